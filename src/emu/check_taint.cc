// Owns the spreading of never initialised values in checked code.
// SPDX-License-Identifier: Apache-2.0
#include "emu/check_taint.h"

#include <algorithm>

#include "emu/check_hooks.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Role;

namespace {

uint8_t bytes_of_word(uint64_t word, uint64_t begin, uint64_t end) {
  uint64_t low = std::max(begin, word * 4) - word * 4,
           high = std::min(end, word * 4 + 4) - word * 4;
  return static_cast<uint8_t>((1u << high) - (1u << low));
}

bool written(const Allocation& a, uint64_t byte) {
  return a.initialised || a.written.empty() || (a.written[byte / 8] >> (byte % 8) & 1);
}

// No byte of [begin, end) has ever been written: a partly written word is given the benefit of the
// doubt.
bool untouched(Warp& w, const MemoryPlace& p, uint64_t begin, uint64_t end) {
  if (!p.shared) {
    const Allocation& a = *p.allocation;
    if (a.initialised || a.written.empty()) return false;
    for (uint64_t k = begin; k < end; ++k)
      if (written(a, k)) return false;
    return true;
  }
  const auto& words = w.cta->shadow->words;
  for (uint64_t k = begin / 4; k * 4 < end; ++k)
    if (words[k].initialised & bytes_of_word(k, begin, end)) return false;
  return true;
}

uint32_t taint_site(Warp& w, const MemoryPlace& p) {
  if (!p.shared) return p.site;
  const SharedWord& word = w.cta->shadow->words[p.offset / 4];
  return word.tainted_site ? word.tainted_site - 1 : p.site;
}

std::string where_text(const CodePlace& place) {
  if (place.source_line) return place.source_file + ":" + std::to_string(place.source_line);
  return "PTX line " + std::to_string(place.ptx_line);
}

void report_use(Warp& w, uint32_t lane, uint32_t read_site, uint32_t use_site,
                const std::string& use) {
  Checker& checker = *w.worker->checker;
  Finding finding;
  finding.kind = FindingKind::UninitialisedRead;
  finding.place = checker.place(read_site);
  finding.other = checker.place(use_site);
  auto known = checker.first_uninitialised.find(read_site);
  finding.message = thread_text(w, lane) + " reads " +
                    (known == checker.first_uninitialised.end() ? "memory" : known->second) +
                    ", which nobody has written, and " + use + " at " + where_text(finding.other);
  finding.hint = "initialise the memory before it is read; it holds whatever ran before";
  note(w.worker->run, std::move(finding));
}

uint32_t tainted(const Frame& frame, uint32_t reg) {
  return reg < frame.taint.size() ? frame.taint[reg] : 0;
}

void set_taint(Frame& frame, uint32_t reg, uint32_t lanes_of, uint32_t mask, uint32_t site) {
  if (frame.taint.empty()) {
    if (!lanes_of) return;
    frame.taint.assign(frame.code->function->registers.size(), 0);
    frame.taint_site.assign(frame.taint.size(), 0);
  }
  frame.taint[reg] = (frame.taint[reg] & ~mask) | (lanes_of & mask);
  if (lanes_of & mask) frame.taint_site[reg] = site;
}

}  // namespace

bool is_uninitialised(Warp& w, const MemoryPlace& p) {
  bool bad = untouched(w, p, p.offset, p.offset + p.element_bytes);
  if (bad)
    w.worker->checker->first_uninitialised.emplace(p.site,
                                                   p.allocation->name + "+" + hex_text(p.offset));
  return bad;
}

void look_for_uninitialised(Warp& w, const MemoryPlace& p) {
  for (uint32_t k = 0; k < p.elements; ++k) {
    uint64_t begin = p.offset + uint64_t{k} * p.element_bytes;
    if (!untouched(w, p, begin, begin + p.element_bytes)) continue;
    std::string name =
        p.shared ? "shared+" + hex_text(begin) : p.allocation->name + "+" + hex_text(begin);
    w.worker->checker->first_uninitialised.emplace(p.site, std::move(name));
    if (p.update) {
      report_use(w, p.lane, taint_site(w, p), p.site, "updates it");
      continue;
    }
    if (k < w.shadow->load_taint.size()) w.shadow->load_taint[k] |= 1u << p.lane;
    w.shadow->load_site = taint_site(w, p);
  }
}

bool uninitialised_words(Warp& w, uint64_t offset, bool (&bad)[4], uint32_t site) {
  bool any = false;
  for (uint64_t k = 0; k < 4; ++k) {
    const SharedWord& word = w.cta->shadow->words[offset / 4 + k];
    bad[k] = word.initialised == 0;
    if (!bad[k]) continue;
    any = true;
    w.worker->checker->first_uninitialised.emplace(site, "shared+" + hex_text(offset + 4 * k));
    if (word.tainted_site) w.shadow->load_site = word.tainted_site - 1;
  }
  return any;
}

void mark_uninitialised(Warp& w, uint64_t offset, uint32_t bytes, uint32_t site) {
  auto& words = w.cta->shadow->words;
  for (uint64_t k = offset / 4; k * 4 < offset + bytes && k < words.size(); ++k) {
    words[k].initialised &= static_cast<uint8_t>(~bytes_of_word(k, offset, offset + bytes));
    words[k].tainted_site = site + 1;
  }
}

void mark_written(Warp& w, const MemoryPlace& p, const std::vector<uint32_t>& data_registers) {
  const Frame& frame = w.frame();
  for (uint32_t k = 0; k < p.elements; ++k) {
    uint64_t begin = p.offset + uint64_t{k} * p.element_bytes, end = begin + p.element_bytes;
    uint32_t reg = k < data_registers.size() ? data_registers[k] : kNone;
    bool bad = tainted(frame, reg) >> p.lane & 1;
    if (p.shared) {
      if (bad) mark_uninitialised(w, begin, p.element_bytes, frame.taint_site[reg]);
      continue;
    }
    if (bad)
      report_use(
          w, p.lane, frame.taint_site[reg], p.site,
          "stores what it computes from it to " + p.allocation->name + "+" + hex_text(begin));
    auto& bits = const_cast<Allocation*>(p.allocation)->written;
    if (bits.empty()) continue;
    for (uint64_t b = begin; b < end; ++b)
      bits[b / 8] = static_cast<uint8_t>(bits[b / 8] | 1u << (b % 8));
  }
}

void note_remote_write(Warp& w, uint64_t address, uint32_t bytes, Access access) {
  uint32_t rank = static_cast<uint32_t>(address >> 24 & 0xff);
  if (access == Access::Read || rank >= w.cta->cluster->ctas.size()) return;
  auto& words = w.cta->cluster->ctas[rank]->shadow->words;
  uint64_t begin = (address & 0xffffff) - kSharedBase, end = begin + bytes;
  for (uint64_t k = begin / 4; k * 4 < end && k < words.size(); ++k) {
    words[k].initialised |= bytes_of_word(k, begin, end);
    words[k].write_mask = words[k].read_mask = 0;
  }
}

void report_tainted_address(Warp& w, uint32_t reg, uint32_t site) {
  Frame& frame = w.frame();
  uint32_t bad = tainted(frame, reg) & w.mask;
  if (!bad) return;
  report_use(w, first_lane(bad), frame.taint_site[reg], site, "uses it as an address");
}

// After each instruction
// -----------------------------------------------------------------------------------------------

namespace {

struct Step {
  enum class Kind : uint8_t { General, Load, Select, And, Or, Mma } kind = Kind::General;
  std::vector<uint32_t> reads, writes;  // registers; kNone where there is none
  std::vector<uint32_t> slots;          // And, Or: of the two predicates; Select: of the predicate
  uint32_t flip_a = 0, flip_b = 0;
  size_t a_count = 0, b_count = 0;  // Mma: reads are a, b, c
};

uint32_t site_of(const Frame& frame, const std::vector<uint32_t>& reads) {
  for (uint32_t reg : reads)
    if (tainted(frame, reg)) return frame.taint_site[reg];
  return 0;
}

// Rows of A and columns of B that hold such values, to the accumulators of m16n8 (PTX
// ISA 9.7.14.5): lane 4r+c has rows r (even registers of A, first half of D) and r+8, column r of
// B, and columns 2c, 2c+1 of D.
void spread_mma(Frame& frame, const Step& s, uint32_t mask) {
  uint32_t rows[2] = {}, columns = 0;
  for (size_t k = 0; k < s.a_count; ++k)
    for (uint32_t rest = tainted(frame, s.reads[k]); rest; rest &= rest - 1)
      rows[k % 2] |= 1u << (first_lane(rest) / 4);
  for (size_t k = 0; k < s.b_count; ++k)
    for (uint32_t rest = tainted(frame, s.reads[s.a_count + k]); rest; rest &= rest - 1)
      columns |= 1u << (first_lane(rest) / 4);
  size_t half = std::max<size_t>(s.writes.size() / 2, 1);
  uint32_t site = site_of(frame, s.reads);
  for (size_t k = 0; k < s.writes.size(); ++k) {
    size_t c_at = s.a_count + s.b_count + k;
    uint32_t bad = c_at < s.reads.size() ? tainted(frame, s.reads[c_at]) : 0;
    for (uint32_t l = 0; l < 32; ++l) {
      bool row = rows[k / half % 2] >> (l / 4) & 1;
      bool one = columns >> (2 * (l % 4)) & 1, two = columns >> (2 * (l % 4) + 1) & 1;
      bool packed = s.writes.size() == 2;
      if (row || (packed ? one && two : k % 2 ? two : one)) bad |= 1u << l;
    }
    if (s.writes[k] != kNone) set_taint(frame, s.writes[k], bad, mask, site);
  }
}

const Insn* taint_step(Warp& w, const Insn* i) {
  const Step& s = *static_cast<const Step*>(i->more);
  Frame& frame = w.frame();
  if (s.kind == Step::Kind::Load) {
    const WarpShadow& own = *w.shadow;
    for (size_t k = 0; k < s.writes.size() && k < own.load_taint.size(); ++k)
      if (s.writes[k] != kNone)
        set_taint(frame, s.writes[k], own.load_taint[k], w.mask, own.load_site);
    return i + 1;
  }
  if (frame.taint.empty()) return i + 1;
  if (s.kind == Step::Kind::Mma) {
    spread_mma(frame, s, w.mask);
    return i + 1;
  }
  uint32_t bad = 0;
  for (uint32_t reg : s.reads) bad |= tainted(frame, reg);
  if (s.kind == Step::Kind::Select) {
    uint32_t p = predicate(w, s.slots[0]) ^ s.flip_a;
    bad = (p & tainted(frame, s.reads[0])) | (~p & tainted(frame, s.reads[1])) |
          tainted(frame, s.reads[2]);
  } else if (s.kind == Step::Kind::And || s.kind == Step::Kind::Or) {
    // A definite false (true) decides; the values are those before the instruction unless it
    // overwrites its operand.
    uint32_t flip = s.kind == Step::Kind::And ? 0 : kAll;
    uint32_t a = predicate(w, s.slots[0]) ^ s.flip_a ^ flip,
             b = predicate(w, s.slots[1]) ^ s.flip_b ^ flip;
    uint32_t ta = tainted(frame, s.reads[0]), tb = tainted(frame, s.reads[1]);
    bad = (ta & (b | tb)) | (tb & (a | ta));
  }
  uint32_t site = bad ? site_of(frame, s.reads) : 0;
  for (uint32_t reg : s.writes)
    if (reg != kNone) set_taint(frame, reg, bad, w.mask, site);
  return i + 1;
}

struct BranchCheck {
  uint32_t reg = 0, site = 0;
};
const Insn* branch_check(Warp& w, const Insn* i) {
  const BranchCheck& b = *static_cast<const BranchCheck*>(i->more);
  Frame& frame = w.frame();
  uint32_t bad = tainted(frame, b.reg) & w.exec;
  if (!bad) return i + 1;
  report_use(w, first_lane(bad), frame.taint_site[b.reg], b.site, "branches on it");
  frame.taint[b.reg] &= ~bad;
  return i + 1;
}

void add(const Operand& operand, std::vector<uint32_t>& out) {
  if (operand.kind == Operand::Kind::Vector || operand.kind == Operand::Kind::Pair) {
    for (const Operand& each : operand.elements) add(each, out);
  } else {
    out.push_back(operand.kind == Operand::Kind::Register ? operand.reg : kNone);
  }
}

}  // namespace

void emit_taint_step(Decoder& d) {
  if (d.flavour() != Flavour::Checked) return;
  const ptx::Instruction& in = d.in();
  if (in.opcode == Opcode::Call || in.opcode == Opcode::Ret || in.opcode == Opcode::Exit ||
      in.opcode == Opcode::BrxIdx)
    return;
  Step s;
  std::vector<Role> roles = emu::operand_roles(in);
  for (size_t k = 0; k < in.operands.size(); ++k) {
    bool writes = roles[k] == Role::Destination || roles[k] == Role::DestinationPair ||
                  roles[k] == Role::Accumulator;
    if (writes)
      add(in.operands[k], s.writes);
    else if (in.operands[k].kind != Operand::Kind::Address)
      add(in.operands[k], s.reads);
  }
  bool any = std::any_of(s.writes.begin(), s.writes.end(), [](uint32_t r) { return r != kNone; });
  if (!any) return;
  bool predicates = in.types.size() == 1 && in.types[0] == ptx::Type::Pred;
  if (in.opcode == Opcode::Ld || in.opcode == Opcode::Ldu || in.opcode == Opcode::Ldmatrix ||
      in.opcode == Opcode::Atom) {
    if (d.code().insns.empty()) return;
    s.kind = d.checked_load() ? Step::Kind::Load : Step::Kind::General;
    s.reads.clear();
  } else if (in.opcode == Opcode::Mma) {
    s.kind = Step::Kind::Mma;
    s.reads.clear();
    add(in.operands[1], s.reads);
    s.a_count = s.reads.size();
    add(in.operands[2], s.reads);
    s.b_count = s.reads.size() - s.a_count;
    add(in.operands[3], s.reads);
  } else if (in.opcode == Opcode::Selp && s.reads.size() == 3 &&
             in.operands[3].kind == Operand::Kind::Register) {
    s.kind = Step::Kind::Select;
    s.slots = {d.predicate_source(in.operands[3])};
    s.flip_a = in.operands[3].negated ? kAll : 0;
  } else if (predicates && (in.opcode == Opcode::And || in.opcode == Opcode::Or) &&
             s.reads.size() == 2 && s.writes.size() == 1 && s.writes[0] != s.reads[0] &&
             s.writes[0] != s.reads[1]) {
    s.kind = in.opcode == Opcode::And ? Step::Kind::And : Step::Kind::Or;
    s.slots = {d.predicate_source(in.operands[1]), d.predicate_source(in.operands[2])};
    s.flip_a = in.operands[1].negated ? kAll : 0;
    s.flip_b = in.operands[2].negated ? kAll : 0;
  }
  const Step* kept = d.keep(std::move(s));
  d.emit(taint_step).more = kept;
}

void emit_branch_check(Decoder& d) {
  if (d.flavour() != Flavour::Checked || !d.in().guard) return;
  d.kernel().check_sites.push_back(
      {&d.code(), static_cast<uint32_t>(&d.in() - d.function().body.data())});
  BranchCheck b{d.in().guard->reg, static_cast<uint32_t>(d.kernel().check_sites.size() - 1)};
  const BranchCheck* kept = d.keep(b);
  d.emit(branch_check).more = kept;
}

}  // namespace ptxb::emu
