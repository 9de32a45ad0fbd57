// Owns the verdict on one access to shared memory: conflicts without a barrier between, copies in
// flight.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "emu/check_state.h"
#include "emu/report.h"

namespace ptxb::emu {
namespace {

std::string offset_text(uint64_t offset) { return "shared+" + hex_text(offset); }

std::string at_source(const CodePlace& place) {
  if (place.source_line) return place.source_file + ":" + std::to_string(place.source_line);
  return "PTX line " + std::to_string(place.ptx_line);
}

Finding finding_of(Warp& w, FindingKind kind, uint32_t site, uint32_t other_site) {
  Finding finding;
  finding.kind = kind;
  finding.place = w.worker->checker->place(site);
  finding.other = w.worker->checker->place(other_site);
  return finding;
}

void report_race(Warp& w, uint32_t lane, const AccessKind& kind, uint64_t offset, const char* was,
                 std::string who, uint32_t other_site, FindingGrade grade) {
  Finding finding = finding_of(w, FindingKind::Race, kind.site, other_site);
  finding.grade = grade;
  const char* does = kind.asynchronous ? " overwrites (cp.async) "
                     : kind.atomic     ? " updates "
                     : kind.writes     ? " writes "
                                       : " reads ";
  finding.message = thread_text(w, lane) + does + offset_text(offset) + std::string(was) + who +
                    " at " + at_source(finding.other) + " with no barrier between";
  finding.hint =
      "a __syncthreads() (or a named barrier that both warps take part in) must stand between the "
      "two accesses";
  note(w.worker->run, std::move(finding));
}

void report_flight(Warp& w, uint32_t lane, const AccessKind& kind, uint64_t offset,
                   const SharedWord& word) {
  Finding finding = finding_of(w, FindingKind::AsyncHazard, kind.site, word.write_site);
  uint32_t owner = word.write_warp * 32u + word.write_lane;
  bool own = word.write_warp == w.index && word.write_lane == lane;
  finding.message = thread_text(w, lane) + (kind.writes ? " writes " : " reads ") +
                    offset_text(offset) + " while the cp.async of " +
                    (own ? std::string("its own") : "thread " + std::to_string(owner)) + " at " +
                    at_source(finding.other) + " may still be in flight";
  finding.hint = own ? "cp.async.wait_group must come before the access"
                     : "the copying thread must wait (cp.async.wait_group) before the barrier that "
                       "lets others read";
  note(w.worker->run, std::move(finding));
}

// A plain read beside an atomic update (or a look before an atomicMax) reads whole values on every
// chip: Repaired. Lanes of one warp without __syncwarp: undefined by the rules, but the warp runs
// in step.
void report_lanes(Warp& w, uint32_t lane, const AccessKind& kind, uint64_t offset,
                  const SharedWord& word) {
  Finding finding = finding_of(w, FindingKind::Race, kind.site, word.write_site);
  finding.grade = FindingGrade::Repaired;
  finding.message = thread_text(w, lane) + (kind.writes ? " writes " : " reads ") +
                    offset_text(offset) + " written by thread " +
                    std::to_string(word.write_warp * 32u + word.write_lane) + " of its warp at " +
                    at_source(finding.other) + " with no __syncwarp() between";
  finding.hint =
      "__syncwarp() orders memory between the lanes of a warp; running in step is not guaranteed";
  note(w.worker->run, std::move(finding));
}

std::string thread_name(uint32_t warp, uint32_t lane) {
  return lane == kSeveralLanes ? "warp " + std::to_string(warp)
                               : "thread " + std::to_string(warp * 32 + lane);
}

bool same_value(const AccessKind& kind, uint64_t word_begin, const AccessWords& access,
                uint8_t mask) {
  if (!kind.data || !kind.present) return false;
  for (uint32_t b = 0; b < 4; ++b) {
    if (!(mask >> b & 1)) continue;
    uint64_t k = word_begin + b - access.offset;
    if (kind.data[k] != kind.present[k]) return false;
  }
  return true;
}

void against_write(Warp& w, const AccessWords& access, const AccessKind& kind,
                   const SharedWord& word, uint64_t begin, uint8_t mask) {
  uint8_t common = word.write_mask & mask;
  if (!common) return;
  uint64_t offset = std::max(begin, access.offset);
  if (word.in_flight) {
    report_flight(w, access.lane, kind, offset, word);
    return;
  }
  if (kind.atomic && word.write_atomic) return;
  if (word.write_warp != w.index) {
    if (word.write_clock <= w.shadow->seen[word.write_warp]) return;
    if (kind.writes && same_value(kind, begin, access, common)) return;
    report_race(w, access.lane, kind, offset, " written by ",
                thread_name(word.write_warp, word.write_lane), word.write_site,
                word.write_atomic && !kind.writes ? FindingGrade::Repaired : FindingGrade::Wrong);
    return;
  }
  bool other_lane = word.write_lane != access.lane && word.write_lane != kSeveralLanes;
  if (!other_lane || word.write_phase != w.sync_phase || word.write_step == w.shadow->step) return;
  if (kind.writes && same_value(kind, begin, access, common)) return;
  report_lanes(w, access.lane, kind, offset, word);
}

void against_reads(Warp& w, const AccessWords& access, const AccessKind& kind,
                   const SharedWord& word, uint64_t begin, uint8_t mask) {
  if (!(word.read_mask & mask)) return;
  uint64_t offset = std::max(begin, access.offset);
  const Clocks& seen = w.shadow->seen;
  auto race = [&](uint32_t warp) {
    if (same_value(kind, begin, access, mask)) return;
    uint32_t lane = warp == word.read_warp ? word.read_lane : kSeveralLanes;
    report_race(w, access.lane, kind, offset, " read by ", thread_name(warp, lane), word.read_site,
                kind.atomic ? FindingGrade::Repaired : FindingGrade::Wrong);
  };
  if (word.readers == 0) {
    if (word.read_warp != w.index && word.read_clock > seen[word.read_warp]) race(word.read_warp);
    return;
  }
  const auto& readers = w.cta->shadow->readers[word.readers - 1];
  for (uint32_t r = 0; r < w.cta->warps.size(); ++r) {
    if (r == w.index || readers[r] <= seen[r]) continue;
    race(r);
    return;
  }
}

void record_write(Warp& w, const AccessWords& access, const AccessKind& kind, SharedWord& word,
                  uint8_t mask) {
  const WarpShadow& own = *w.shadow;
  bool same = word.write_mask && word.write_warp == w.index && word.write_clock == own.clock &&
              word.write_phase == w.sync_phase && word.in_flight == kind.asynchronous;
  uint8_t lane = static_cast<uint8_t>(access.lane);
  word.write_lane = same && word.write_lane != lane ? kSeveralLanes : lane;
  word.write_mask = same ? word.write_mask | mask : mask;
  word.write_warp = static_cast<uint8_t>(w.index);
  word.write_clock = own.clock;
  word.write_phase = w.sync_phase;
  word.write_step = own.step;
  word.write_site = kind.site;
  word.write_atomic = kind.atomic;
  word.in_flight = kind.asynchronous;
  word.initialised |= mask;
  word.read_mask &= static_cast<uint8_t>(~mask);
  if (!word.read_mask) word.readers = 0;
}

void record_read(Warp& w, const AccessWords& access, const AccessKind& kind, SharedWord& word,
                 uint8_t mask) {
  const WarpShadow& own = *w.shadow;
  if (word.read_mask && word.read_warp != w.index && word.readers == 0) {
    CtaShadow& block = *w.cta->shadow;
    if (!word.own_readers) {
      block.readers.emplace_back();
      word.own_readers = static_cast<uint32_t>(block.readers.size());
    }
    word.readers = word.own_readers;
    auto& clocks = block.readers[word.readers - 1];
    clocks.fill(0);
    clocks[word.read_warp] = word.read_clock;
  }
  if (word.readers) w.cta->shadow->readers[word.readers - 1][w.index] = own.clock;
  word.read_mask |= mask;
  word.read_warp = static_cast<uint8_t>(w.index);
  word.read_lane = static_cast<uint8_t>(access.lane);
  word.read_clock = own.clock;
  word.read_site = kind.site;
}

}  // namespace

bool read_before(Warp& w, uint64_t offset, uint32_t bytes) {
  const CtaShadow& block = *w.cta->shadow;
  if ((offset | bytes) & 3 || offset + bytes > block.words.size() * 4) return false;
  if (offset / kLineBytes < block.lines.size()) {  // an access of 16 bytes lies in one line
    const AsyncLine& line = block.lines[offset / kLineBytes];
    if (line.written || !line.generic) return false;
  }
  uint32_t clock = w.shadow->clock;
  for (uint64_t k = offset / 4; k < (offset + bytes) / 4; ++k) {
    const SharedWord& word = block.words[k];
    if (word.read_clock != clock || word.read_warp != w.index || word.read_mask != 0xf ||
        word.initialised != 0xf || word.in_flight)
      return false;
    bool other_lane =
        word.write_warp == w.index && word.write_phase == w.sync_phase && word.write_mask;
    if (other_lane) return false;
  }
  return true;
}

void check_shared_access(Warp& w, const AccessWords& access, const AccessKind& kind) {
  check_against_async(w, access, kind);
  std::vector<SharedWord>& words = w.cta->shadow->words;
  uint64_t end = access.offset + access.bytes;
  for (uint64_t k = access.offset / 4; k * 4 < end && k < words.size(); ++k) {
    uint64_t begin = k * 4;
    uint32_t low = static_cast<uint32_t>(std::max(begin, access.offset) - begin);
    uint32_t high = static_cast<uint32_t>(std::min(begin + 4, end) - begin);
    auto mask = static_cast<uint8_t>((1u << high) - (1u << low));
    SharedWord& word = words[k];
    against_write(w, access, kind, word, begin, mask);
    if (kind.writes) {
      against_reads(w, access, kind, word, begin, mask);
      record_write(w, access, kind, word, mask);
    } else if (!kind.atomic) {
      record_read(w, access, kind, word, mask);
    }
  }
}

}  // namespace ptxb::emu
