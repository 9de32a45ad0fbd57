// Owns the verdict on one access to a global buffer: conflicts between blocks or warps that
// nothing orders.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emu/check_state.h"
#include "emu/report.h"

namespace ptxb::emu {
namespace {

// Whether what block/warp did at these clocks happened before this warp's step.
bool ordered(const Warp& w, uint32_t block, uint32_t block_clock, uint32_t warp, uint32_t clock) {
  if (block == static_cast<uint32_t>(w.cta->linear))
    return warp == w.index || clock <= w.shadow->seen[warp];
  auto known = w.cta->shadow->acquired.find(block);
  return known != w.cta->shadow->acquired.end() && block_clock <= known->second;
}

std::string block_name(const Warp& w, uint32_t block) {
  const Dim3& grid = w.worker->launch.spec.grid;
  return "block (" + std::to_string(block % grid.x) + "," +
         std::to_string(block / grid.x % grid.y) + "," + std::to_string(block / grid.x / grid.y) +
         ")";
}

struct Earlier {
  const char* was;
  uint32_t block, warp, lane, site;
  bool known_thread;
  FindingGrade grade = FindingGrade::Wrong;
};

void report(Warp& w, const Allocation& allocation, const AccessWords& access,
            const AccessKind& kind, uint64_t offset, const Earlier& e) {
  Finding finding;
  finding.kind = FindingKind::Race;
  finding.grade = e.grade;
  finding.place = w.worker->checker->place(kind.site);
  finding.other = w.worker->checker->place(e.site);
  const char* does = kind.atomic ? " updates " : kind.writes ? " writes " : " reads ";
  std::string who = e.known_thread ? "thread " + std::to_string(e.warp * 32 + e.lane) + " of " +
                                         block_name(w, e.block)
                                   : block_name(w, e.block);
  const CodePlace& o = finding.other;
  std::string where = o.source_line ? o.source_file + ":" + std::to_string(o.source_line)
                                    : "PTX line " + std::to_string(o.ptx_line);
  bool same_block = e.block == static_cast<uint32_t>(w.cta->linear);
  finding.message =
      thread_text(w, access.lane) + does + allocation.name + "+" + hex_text(offset) + e.was + who +
      " at " + where +
      (same_block ? " with no barrier between" : " and nothing orders the two blocks");
  finding.hint = same_block ? "a __syncthreads() must stand between the two accesses"
                            : "blocks run in any order: use atomics, a flag with release and "
                              "acquire, or another kernel";
  note(w.worker->run, std::move(finding));
}

bool same_value(const AccessKind& kind, const AccessWords& access) {
  return kind.data && kind.present && std::equal(kind.data, kind.data + access.bytes, kind.present);
}

void check_word(Warp& w, const Allocation& allocation, const AccessWords& access,
                const AccessKind& kind, GlobalWord& word, uint64_t begin, uint8_t mask) {
  uint64_t offset = std::max(begin, access.offset);
  if ((word.write_mask & mask) && !(kind.atomic && word.write_atomic) &&
      !ordered(w, word.write_block, word.write_block_clock, word.write_warp, word.write_clock) &&
      !(kind.writes && same_value(kind, access))) {
    report(
        w, allocation, access, kind, offset,
        {" written by ", word.write_block, word.write_warp, word.write_lane, word.write_site, true,
         word.write_atomic && !kind.writes ? FindingGrade::Repaired : FindingGrade::Wrong});
  } else if (kind.writes && !kind.atomic && (word.read_mask & mask) &&
             !ordered(w, word.read_block, word.read_block_clock, word.read_warp, word.read_clock) &&
             !same_value(kind, access)) {
    report(w, allocation, access, kind, offset,
           {" read by ", word.read_block, word.read_warp, word.read_lane, word.read_site, true});
  } else if (kind.writes && !kind.atomic && (word.other_mask & mask) &&
             !ordered(w, word.other_block, word.other_block_clock, 32, 0xffffffffu) &&
             word.other_block != static_cast<uint32_t>(w.cta->linear) &&
             !same_value(kind, access)) {
    report(w, allocation, access, kind, offset,
           {" read by ", word.other_block, 0, 0, word.read_site, false});
  }
}

void record(Warp& w, const AccessWords& access, const AccessKind& kind, GlobalWord& word,
            uint8_t mask) {
  uint32_t block = static_cast<uint32_t>(w.cta->linear), block_clock = w.cta->shadow->clock;
  if (kind.writes) {
    bool same = word.write_mask && word.write_block == block && word.write_warp == w.index &&
                word.write_clock == w.shadow->clock;
    word.write_mask = same ? word.write_mask | mask : mask;
    word.write_block = block;
    word.write_block_clock = block_clock;
    word.write_warp = static_cast<uint8_t>(w.index);
    word.write_lane = static_cast<uint8_t>(access.lane);
    word.write_clock = w.shadow->clock;
    word.write_site = kind.site;
    word.write_atomic = kind.atomic;
    word.read_mask &= static_cast<uint8_t>(~mask);
    word.other_mask &= static_cast<uint8_t>(~mask);
    return;
  }
  if (kind.atomic) return;
  if (word.read_mask && word.read_block != block) {
    word.other_mask = word.read_mask;
    word.other_block = word.read_block;
    word.other_block_clock = word.read_block_clock;
  }
  word.read_mask = word.read_mask && word.read_block == block ? word.read_mask | mask : mask;
  word.read_block = block;
  word.read_block_clock = block_clock;
  word.read_warp = static_cast<uint8_t>(w.index);
  word.read_lane = static_cast<uint8_t>(access.lane);
  word.read_clock = w.shadow->clock;
  word.read_site = kind.site;
}

}  // namespace

void check_global_access(Warp& w, const Allocation& allocation, const AccessWords& access,
                         const AccessKind& kind) {
  GlobalShadow* shadow = w.worker->checker->shadow_of(allocation, kind.writes);
  if (!shadow) return;
  uint64_t end = access.offset + access.bytes;
  for (uint64_t k = access.offset / 4; k * 4 < end && k < shadow->words; ++k) {
    uint64_t begin = k * 4;
    uint32_t low = static_cast<uint32_t>(std::max(begin, access.offset) - begin);
    uint32_t high = static_cast<uint32_t>(std::min(begin + 4, end) - begin);
    auto mask = static_cast<uint8_t>((1u << high) - (1u << low));
    GlobalWord& word = *shadow->at(k);
    check_word(w, allocation, access, kind, word, begin, mask);
    record(w, access, kind, word, mask);
  }
}

}  // namespace ptxb::emu
