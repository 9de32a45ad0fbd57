// Owns check mode's view of asynchronous work: what mbarriers order, bulk copies and wgmma operands
// against each other and against ordinary accesses, proxy fences. Never moves data. Reads of lines
// are known by group, writes by mbarrier phase.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emu/async.h"
#include "emu/check.h"
#include "emu/check_state.h"
#include "emu/report.h"

namespace ptxb::emu {

void join_known(std::vector<uint32_t>& into, const std::vector<uint32_t>& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t k = 0; k < from.size(); ++k) into[k] = std::max(into[k], from[k]);
}

void mark_check_site(Decoder& d) {
  if (d.flavour() != Flavour::Checked) return;
  d.kernel().check_sites.push_back(
      {&d.code(), static_cast<uint32_t>(&d.in() - d.function().body.data())});
  d.code().insns.back().y = static_cast<uint32_t>(d.kernel().check_sites.size() - 1);
}

void start_async_shadow(Cta& cta) {
  CtaShadow& block = *cta.shadow;
  size_t lines = (block.words.size() * 4 + 127) / 128;
  block.lines.assign(lines, {});
  block.async_reads.assign(lines * 32, {});
  block.mbarriers.clear();
  block.mbarrier_count = 0;
}

namespace {

uint32_t known(const std::vector<uint32_t>& each, size_t index) {
  return index < each.size() ? each[index] : 0;
}
void learn(std::vector<uint32_t>& each, size_t index, uint32_t value) {
  if (each.size() <= index) each.resize(index + 1);
  each[index] = std::max(each[index], value);
}
size_t number_of(const Cta& cta, uint32_t warp) { return size_t{cta.rank} * 32 + warp; }

std::string offset_text(uint64_t offset) { return "shared+" + hex_text(offset); }
std::string at_text(const CodePlace& place) {
  if (place.source_line) return place.source_file + ":" + std::to_string(place.source_line);
  return "PTX line " + std::to_string(place.ptx_line);
}

void report(Warp& w, uint32_t site, uint32_t other_site, FindingKind kind, const std::string& what,
            std::string hint) {
  Finding finding;
  finding.kind = kind;
  finding.place = w.worker->checker->place(site);
  finding.other = w.worker->checker->place(other_site);
  finding.message = what + " (" + at_text(finding.other) + ")";
  finding.hint = std::move(hint);
  note(w.worker->run, std::move(finding));
}

// What a write of the line would destroy: operands of products and sources of stores that may still
// be read.
bool report_readers(Warp& w, uint32_t site, const std::string& who, const Cta& cta, size_t line) {
  const CtaShadow& block = *cta.shadow;
  if (!block.lines[line].read) return false;
  const Clocks& seen = w.shadow->seen;
  for (uint32_t r = 0; r < cta.warps.size(); ++r) {
    const AsyncRead& read = block.async_reads[line * 32 + r];
    size_t number = number_of(cta, r);
    if (read.product <= known(seen.products, number) && read.bulk <= known(seen.bulk, number))
      continue;
    const WarpShadow& reader = *cta.warps[r]->shadow;
    std::string place =
        offset_text(line * kLineBytes) + (&cta == w.cta ? "" : " of " + block_text(cta));
    if (read.product > known(seen.products, number)) {
      report(w, site, reader.product_site, FindingKind::AsyncHazard,
             who + " overwrites " + place + " while wgmma of warp " + std::to_string(r) +
                 " (warpgroup " + std::to_string(r / 4) + ") may still read it",
             "wgmma.wait_group must cover the product before the arrival (or barrier) that gives "
             "the memory free");
      return true;
    }
    report(w, site, reader.bulk_site, FindingKind::AsyncHazard,
           who + " overwrites " + place + " while a bulk store of warp " + std::to_string(r) +
               " may still read it",
           "cp.async.bulk.wait_group.read by the storing thread, then a barrier, must come before "
           "the memory is written again");
    return true;
  }
  return false;
}

bool is_landed(const Clocks& seen, const AsyncLine& line) {
  return !line.written || line.barrier == 0 || known(seen.phases, line.barrier - 1) > line.phase;
}

// An asynchronous read of some 16-byte chunks of a line; false when something was reported.
bool read_line(Warp& w, uint32_t site, const std::string& who, size_t line, uint32_t chunks) {
  CtaShadow& block = *w.cta->shadow;
  const AsyncLine& l = block.lines[line];
  const Clocks& seen = w.shadow->seen;
  if (!is_landed(seen, l)) {
    report(
        w, site, l.site, FindingKind::AsyncHazard,
        who + " reads " + offset_text(line * kLineBytes) +
            " without having waited for the copy that writes it",
        "wait for the mbarrier that the copy signals (mbarrier.try_wait) before its data is used");
    return false;
  }
  if (!l.generic) return true;
  for (uint32_t k = 0; k < 32; ++k) {
    size_t index = line * 32 + k;
    if (!(chunks >> (k / 4) & 1) || index >= block.words.size()) continue;
    const SharedWord& word = block.words[index];
    if (!word.write_mask || word.in_flight) continue;
    uint32_t writer = word.write_warp;
    std::string what =
        " reads " + offset_text(index * 4) + " written by warp " + std::to_string(writer);
    if (writer != w.index && word.write_clock > seen[writer]) {
      report(w, site, word.write_site, FindingKind::Race, who + what + " with no barrier between",
             "a barrier must stand between the write and the asynchronous read");
      return false;
    }
    if (word.write_clock > seen.proxied[writer]) {
      report(w, site, word.write_site, FindingKind::MissingFence,
             who + what + " with no fence.proxy.async between",
             "the writing threads execute fence.proxy.async before the barrier: ordinary writes "
             "are not visible to the async proxy by themselves");
      return false;
    }
  }
  return true;
}

uint32_t chunks_between(uint64_t begin, uint64_t end, size_t line) {
  uint64_t low = std::max<uint64_t>(begin, line * kLineBytes) - line * kLineBytes;
  uint64_t high = std::min<uint64_t>(end, (line + 1) * kLineBytes) - line * kLineBytes;
  return (1u << ((high + 15) / 16)) - (1u << (low / 16));
}

// Bytes of a line that asynchronous work writes: ordinary accesses of the past no longer matter.
void forget_words(CtaShadow& block, uint64_t begin, uint64_t end) {
  for (uint64_t k = begin / 4; k * 4 < end && k < block.words.size(); ++k) {
    SharedWord& word = block.words[k];
    uint64_t low = std::max(begin, k * 4) - k * 4, high = std::min(end, k * 4 + 4) - k * 4;
    auto mask = static_cast<uint8_t>((1u << high) - (1u << low));
    word.write_mask &= static_cast<uint8_t>(~mask);
    word.read_mask &= static_cast<uint8_t>(~mask);
    if (!word.read_mask) word.readers = 0;
    word.initialised |= mask;
    word.in_flight = false;
  }
}

}  // namespace

// Ordinary accesses
// -----------------------------------------------------------------------------------------------------

void check_against_async(Warp& w, const AccessWords& access, const AccessKind& kind) {
  CtaShadow& block = *w.cta->shadow;
  for (size_t line = access.offset / kLineBytes;
       line * kLineBytes < access.offset + access.bytes && line < block.lines.size(); ++line) {
    AsyncLine& l = block.lines[line];
    std::string who;
    if ((l.written && !is_landed(w.shadow->seen, l)) || (l.read && kind.writes))
      who = thread_text(w, access.lane);
    if (l.written && !is_landed(w.shadow->seen, l)) {
      report(w, kind.site, l.site, FindingKind::AsyncHazard,
             who + (kind.writes ? " writes " : " reads ") + offset_text(access.offset) +
                 " without having waited for the copy that writes it",
             "wait for the mbarrier that the copy signals (mbarrier.try_wait) before its data is "
             "used");
      l.written = false;
    }
    if (kind.writes && l.read) report_readers(w, kind.site, who, *w.cta, line);
    l.generic = true;
  }
}

// mbarriers
// -------------------------------------------------------------------------------------------------------------

namespace {
MbarrierShadow* shadow_at(const Cta& cta, uint32_t offset) {
  auto found = cta.shadow->mbarriers.find(offset);
  return found == cta.shadow->mbarriers.end() ? nullptr : &found->second;
}

void look_at_init(Warp& w, const Insn* i, const MbarrierPlace& at) {
  if (at.cta != w.cta) return;
  const SharedWord& word = w.cta->shadow->words[(at.offset - kSharedBase) / 4];
  if (!word.write_mask || word.write_warp == w.index ||
      word.write_clock <= w.shadow->seen[word.write_warp])
    return;
  report(w, i->y, word.write_site, FindingKind::Race,
         "warp " + std::to_string(w.index) + " of " + block_text(*w.cta) + " uses the mbarrier " +
             offset_text(at.offset - kSharedBase) + " that warp " +
             std::to_string(word.write_warp) + " initialised with no barrier between",
         "__syncthreads() (or a cluster barrier) must stand between mbarrier.init and its use by "
         "others");
}
}  // namespace

void check_mbarrier_init(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at) {
  if (!check_attached(*w.cta)) return;
  AccessKind kind;
  kind.writes = true;
  kind.site = i->y;
  ++w.shadow->step;
  if (at.cta == w.cta) check_shared_access(w, {lane, at.offset - kSharedBase, 8}, kind);
  MbarrierShadow fresh;
  fresh.number = w.cta->cluster->ctas[0]->shadow->mbarrier_count++;
  at.cta->shadow->mbarriers[at.offset] = fresh;
}

void check_mbarrier_arrive(Warp& w, const Insn* i, const MbarrierPlace& at) {
  if (!check_attached(*w.cta)) return;
  MbarrierShadow* shadow = shadow_at(*at.cta, at.offset);
  if (!shadow) return;
  look_at_init(w, i, at);
  if (at.cta == w.cta)
    join(shadow->gathering, w.shadow->seen);
  else
    join_asynchronous(shadow->gathering, w.shadow->seen);
  w.shadow->seen[w.index] = ++w.shadow->clock;
  w.shadow->fenced = false;
  ++w.sync_phase;
}

void check_mbarrier_phase(const MbarrierPlace& at) {
  if (!check_attached(*at.cta)) return;
  MbarrierShadow* shadow = shadow_at(*at.cta, at.offset);
  if (!shadow) return;
  join(shadow->complete, shadow->gathering);
  shadow->gathering.fill(0);
}

void check_mbarrier_wait(Warp& w, const Insn* i, const MbarrierPlace& at) {
  if (!check_attached(*w.cta)) return;
  MbarrierShadow* shadow = shadow_at(*at.cta, at.offset);
  if (!shadow) return;
  look_at_init(w, i, at);
  join(w.shadow->seen, shadow->complete);
  learn(w.shadow->seen.phases, shadow->number, static_cast<uint32_t>(at.barrier->phase));
  ++w.sync_phase;
}

// Bulk copies
// -----------------------------------------------------------------------------------------------------------

void check_bulk_write(Warp& w, const Insn* i, uint32_t lane, Cta& cta, uint32_t offset,
                      uint32_t bytes, uint32_t barrier) {
  if (!check_attached(*w.cta) || bytes == 0) return;
  CtaShadow& block = *cta.shadow;
  const MbarrierShadow* signal = barrier ? shadow_at(cta, barrier) : nullptr;
  uint32_t phase = signal ? static_cast<uint32_t>(cta.mbarriers[barrier].phase) : 0;
  uint64_t begin = offset - kSharedBase, end = begin + bytes;
  bool told = false;
  AccessKind kind;
  kind.writes = true;
  kind.site = i->y;
  std::string who = "the bulk copy of " + thread_text(w, lane);
  for (size_t line = begin / kLineBytes; line * kLineBytes < end && line < block.lines.size();
       ++line) {
    AsyncLine& l = block.lines[line];
    uint64_t low = std::max<uint64_t>(begin, line * kLineBytes),
             high = std::min<uint64_t>(end, (line + 1) * kLineBytes);
    bool whole = high - low == kLineBytes;
    if (!told && l.read) told = report_readers(w, i->y, who, cta, line);
    if (l.generic && &cta == w.cta) {
      bool landed = l.written;
      l.written = false;  // the copy that was there is not this check's business
      check_shared_access(w, {lane, low, static_cast<uint32_t>(high - low)}, kind);
      l.written = landed;
    }
    if (l.generic || !l.written || !whole) forget_words(block, low, high);
    if (!whole) {
      l.generic = true;
      continue;
    }
    l = {};
    l.site = i->y;
    l.written = true;
    l.barrier = signal ? signal->number + 1 : 0;
    l.phase = phase;
    std::fill_n(block.async_reads.begin() + static_cast<std::ptrdiff_t>(line * 32), 32,
                AsyncRead{});
  }
}

void check_bulk_read(Warp& w, const Insn* i, uint32_t lane, uint32_t offset, uint32_t bytes) {
  if (!check_attached(*w.cta) || bytes == 0) return;
  CtaShadow& block = *w.cta->shadow;
  uint64_t begin = offset - kSharedBase, end = begin + bytes;
  bool quiet = false;
  std::string who = "the bulk copy of " + thread_text(w, lane);
  for (size_t line = begin / kLineBytes; line * kLineBytes < end && line < block.lines.size();
       ++line) {
    if (!quiet) quiet = !read_line(w, i->y, who, line, chunks_between(begin, end, line));
    block.lines[line].read = true;
    block.async_reads[line * 32 + w.index].bulk = w.shadow->bulk_groups + 1;
  }
  w.shadow->bulk_site = i->y;
}

void check_bulk_global(Warp& w, const Insn* i, uint32_t lane, uint64_t address, uint32_t bytes,
                       Access access) {
  if (!check_attached(*w.cta)) return;
  Allocation* allocation = w.worker->run.memory.find(address, bytes);
  if (!allocation) return;
  AccessKind kind;
  kind.writes = access != Access::Read;
  kind.atomic = access == Access::Update;
  kind.site = i->y;
  uint64_t offset = address - allocation->begin;
  check_global_access(w, *allocation, {lane, offset, bytes}, kind);
  if (!kind.writes || allocation->written.empty()) return;
  for (uint64_t k = offset; k < offset + bytes; ++k)
    allocation->written[k / 8] = static_cast<uint8_t>(allocation->written[k / 8] | 1u << (k % 8));
}

void check_bulk_commit(Warp& w) {
  if (check_attached(*w.cta)) ++w.shadow->bulk_groups;
}
// Both kinds of wait mean that the sources have been read.
void check_bulk_wait(Warp& w, uint32_t pending) {
  if (!check_attached(*w.cta)) return;
  uint32_t groups = w.shadow->bulk_groups;
  learn(w.shadow->seen.bulk, number_of(*w.cta, w.index), groups > pending ? groups - pending : 0);
}

// wgmma
// -----------------------------------------------------------------------------------------------------------------

namespace {

using OperandLines = std::vector<std::pair<uint32_t, uint32_t>>;  // line, chunks

const OperandLines& lines_of(Warp& w, const Insn* i, uint64_t bits, arith::Major major, int first,
                             int mn, int key) {
  auto [found, fresh] = w.worker->checker->operand_lines.try_emplace({i, bits, key});
  if (!fresh) return found->second;
  std::map<uint32_t, uint32_t> chunks;
  arith::each_wgmma_chunk(arith::decode_wgmma_descriptor(bits), major, first, mn,
                          [&](uint32_t address) {
                            uint32_t offset = address - kSharedBase;
                            chunks[offset / kLineBytes] |= 1u << (offset % kLineBytes / 16);
                          });
  found->second.assign(chunks.begin(), chunks.end());
  return found->second;
}

void read_operand(Warp& w, const Insn* i, const OperandLines& lines) {
  CtaShadow& block = *w.cta->shadow;
  bool quiet = false;
  std::string who = "wgmma of warp " + std::to_string(w.index) + " of " + block_text(*w.cta);
  for (const auto& [line, chunks] : lines) {
    if (line >= block.lines.size()) continue;
    if (!quiet) quiet = !read_line(w, i->y, who, line, chunks);
    block.lines[line].read = true;
    block.async_reads[line * 32 + w.index].product = static_cast<uint32_t>(w.wgmma_committed) + 1;
  }
}

}  // namespace

void check_wgmma(Warp& w, const Insn* i, const uint64_t* a, uint64_t b,
                 const arith::WgmmaForm& form) {
  if (!check_attached(*w.cta)) return;
  int quarter = static_cast<int>(w.index % 4);
  if (a) read_operand(w, i, lines_of(w, i, *a, form.a_major, 16 * quarter, 16, quarter));
  read_operand(w, i, lines_of(w, i, b, form.b_major, 0, form.n, 4));
  w.shadow->product_site = i->y;
}

// Complete groups are complete for the whole warpgroup.
void check_wgmma_wait(Warp& w, uint32_t pending) {
  if (!check_attached(*w.cta)) return;
  uint64_t committed = w.wgmma_committed;
  uint32_t complete = static_cast<uint32_t>(committed > pending ? committed - pending : 0);
  for (uint32_t r = w.index & ~3u; r <= (w.index | 3) && r < w.cta->warps.size(); ++r)
    learn(w.shadow->seen.products, number_of(*w.cta, r), complete);
}

void check_proxy_fence(Warp& w) {
  WarpShadow& own = *w.shadow;
  for (size_t k = 0; k < own.seen.size(); ++k)
    own.seen.proxied[k] = std::max(own.seen.proxied[k], own.seen[k]);
  own.seen[w.index] = ++own.clock;
}

}  // namespace ptxb::emu
