// Owns wgmma (PTX ISA 9.7.15): products at issue, sixteen rows a warp, and the waits of a warpgroup
// for each other's groups. Never knows operand layouts (arith/wgmma.h).
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "emu/address.h"
#include "emu/arith/wgmma.h"
#include "emu/async.h"
#include "emu/control.h"
#include "emu/report.h"
#include "emu/split.h"

namespace ptxb::emu {

using arith::MmaAccumulator;
using arith::MmaType;
using arith::WgmmaForm;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

// Unpacked B operands of a warpgroup's last products: its four warps multiply by the same one.
struct WgmmaPanels {
  static constexpr uint64_t kKept = 8;
  struct Entry {
    uint64_t issue = UINT64_MAX, descriptor = 0;
    const Insn* insn = nullptr;
    arith::WgmmaPanel panel;
  };
  std::array<Entry, kKept> entries;
};

namespace {

struct Wgmma {
  WgmmaForm form;
  arith::WgmmaKernel kernel;
  std::vector<uint32_t> d;
  std::vector<uint32_t> a;  // registers; or one descriptor
  uint32_t b = 0, scale = 0, scale_xor = 0;
  bool a_in_registers = false;
  ProductRegisters registers;
};

const Insn* misuse(Warp& w, const Insn* i, std::string what, std::string hint = {}) {
  return fault(w, i, FindingKind::BarrierMisuse,
               "warp " + std::to_string(w.index) + " of " + block_text(*w.cta) + " " + what,
               std::move(hint));
}

// The descriptor in slot `slot`; false when lanes differ.
bool uniform(Warp& w, uint32_t slot, uint64_t& value) {
  const U64* each = lanes<U64>(w, slot);
  uint32_t first = first_lane(w.mask);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1)
    if (each[first_lane(rest)] != each[first]) return false;
  value = each[first];
  return true;
}

// Every 16-byte chunk of the operand lies in the block's shared memory. Remembered: products come
// in loops.
bool in_bounds(Warp& w, const Insn* i, const char* which, uint64_t bits, arith::Major major,
               int first, int mn) {
  auto key = std::make_tuple(i, bits, which[0] == 'A' ? first : -1);
  if (w.worker->checked_descriptors.count(key)) return true;
  uint64_t bad = 0;
  arith::each_wgmma_chunk(arith::decode_wgmma_descriptor(bits), major, first, mn,
                          [&](uint32_t address) {
                            if (address < kSharedBase || address + 16 > w.shared_end)
                              bad = address + 1;
                          });
  if (!bad) {
    w.worker->checked_descriptors.insert(key);
    return true;
  }
  uint64_t address = bad - 1;
  std::string where =
      address < kSharedBase
          ? "shared address " + hex_text(address) + ", before the block's shared memory"
          : "shared+" + hex_text(address - kSharedBase) + "; the block has " +
                std::to_string(w.shared_end - kSharedBase) + " bytes of shared memory";
  fault(w, i, FindingKind::OutOfBounds,
        "wgmma of warp " + std::to_string(w.index) + " of " + block_text(*w.cta) +
            " reads operand " + which + " (descriptor " + hex_text(bits) + ") at " + where,
        "check the descriptor's start, leading and stride offsets");
  return false;
}

const arith::WgmmaPanel& panel_of(Warp& w, const Insn* i, const Wgmma& g, uint64_t descriptor,
                                  const uint8_t* window) {
  auto& groups = w.cta->panels;
  size_t group = w.index / 4;
  if (groups.size() <= group) groups.resize(group + 1);
  if (!groups[group]) groups[group] = std::make_shared<WgmmaPanels>();
  if (!(w.cta->panels_in_use >> group & 1)) {
    for (auto& entry : groups[group]->entries) entry.issue = UINT64_MAX;
    w.cta->panels_in_use |= 1u << group;
  }
  auto& entry = groups[group]->entries[w.wgmma_issued % WgmmaPanels::kKept];
  if (entry.issue != w.wgmma_issued || entry.descriptor != descriptor || entry.insn != i) {
    g.kernel.load_b(entry.panel, g.form, window, arith::decode_wgmma_descriptor(descriptor));
    entry.issue = w.wgmma_issued;
    entry.descriptor = descriptor;
    entry.insn = i;
  }
  return entry.panel;
}

const Insn* multiply(Warp& w, const Insn* i) {
  const Wgmma& g = *static_cast<const Wgmma*>(i->more);
  if ((w.index | 3) >= w.cta->warps.size())
    return misuse(w, i, "executes wgmma outside a whole warpgroup (4 warps, 128 threads)");
  uint64_t a = 0, b = 0;
  if (!uniform(w, g.b, b) || (!g.a_in_registers && !uniform(w, g.a[0], a)))
    return misuse(w, i, "executes wgmma with descriptors that differ between lanes");
  int quarter = static_cast<int>(w.index % 4);
  if (!in_bounds(w, i, "B", b, g.form.b_major, 0, g.form.n)) return nullptr;
  if (!g.a_in_registers && !in_bounds(w, i, "A", a, g.form.a_major, 16 * quarter, 16))
    return nullptr;
  check_wgmma(w, i, g.a_in_registers ? nullptr : &a, b, g.form);
  check_product_start(w, i, g.registers);
  const uint8_t* window = w.shared - kSharedBase;
  if (w.worker->run.options.neutralised_family != "wgmma") {
    static thread_local arith::WgmmaRows rows;
    if (g.a_in_registers) {
      const uint32_t* registers[4];
      for (size_t k = 0; k < 4; ++k) registers[k] = lanes<U32>(w, g.a[k]);
      g.kernel.load_a_registers(rows, g.form, registers);
    } else {
      g.kernel.load_a(rows, g.form, window, arith::decode_wgmma_descriptor(a), quarter);
    }
    uint32_t* d[128];
    for (size_t k = 0; k < g.d.size(); ++k) d[k] = lanes<U32>(w, g.d[k]);
    bool keep = (predicate(w, g.scale) ^ g.scale_xor) >> first_lane(w.mask) & 1;
    g.kernel.multiply(rows, panel_of(w, i, g, b, window), g.form, d,
                      keep ? arith::ScaleD::Keep : arith::ScaleD::Zero);
  }
  ++w.wgmma_issued;
  return i + 1;
}

const Insn* commit(Warp& w, const Insn* i) {
  ++w.wgmma_committed;
  for (size_t k = w.index & ~3u; k < w.cta->warps.size() && k <= (w.index | 3); ++k) {
    Warp& other = *w.cta->warps[k];
    for (Split& s : other.splits)
      if (s.wait == Wait::Warpgroup && warpgroup_may_go_on(other, s)) s.wait = Wait::Ready;
  }
  return i + 1;
}

const Insn* fence(Warp& w, const Insn* i) {
  check_product_fence(w);
  return i + 1;
}

// A group is complete for none of the four warps before all of them have issued it: kernels let one
// thread of the warpgroup report for all. x: groups that may stay open.
const Insn* wait(Warp& w, const Insn* i) {
  Split& s = w.split();
  s.object = i->x;
  if (!warpgroup_may_go_on(w, s)) return suspend(w, i, Wait::Warpgroup);
  check_wgmma_wait(w, i->x);
  check_product_wait(w, i->x);
  return i + 1;
}

std::optional<MmaType> input_type(Type type) {
  switch (type) {
    case Type::F16:
      return MmaType::F16;
    case Type::BF16:
      return MmaType::BF16;
    case Type::TF32:
      return MmaType::TF32;
    case Type::E4M3:
      return MmaType::E4M3;
    case Type::E5M2:
      return MmaType::E5M2;
    case Type::S8:
      return MmaType::S8;
    case Type::U8:
      return MmaType::U8;
    case Type::B1:
      return MmaType::B1;
    default:
      return std::nullopt;
  }
}

// imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b, as far as the form has them.
bool immediates(Decoder& d, size_t from, Wgmma& g) {
  std::vector<int64_t> values;
  for (size_t k = from; k < d.operands(); ++k) {
    if (d.operand(k).kind != Operand::Kind::Immediate)
      return d.refuse("immediate operands are needed");
    values.push_back(static_cast<int64_t>(d.operand(k).bits));
  }
  for (size_t k = 0; k < values.size() && k < 2; ++k) {
    int32_t scale = static_cast<int32_t>(values[k]);
    if (scale != 1 && scale != -1) return d.refuse("a scale of " + std::to_string(scale));
    (k == 0 ? g.form.negate_a : g.form.negate_b) = scale == -1;
  }
  std::vector<arith::Major> major;
  for (size_t k = 2; k < values.size(); ++k) {
    if (values[k] != 0 && values[k] != 1)
      return d.refuse("a transpose of " + std::to_string(values[k]));
    major.push_back(values[k] ? arith::Major::MN : arith::Major::K);
  }
  if (g.a_in_registers ? major.size() > 1 : major.size() != 0 && major.size() != 2)
    return d.refuse("immediate operands");
  if (!major.empty()) g.form.b_major = major.back();
  if (major.size() == 2) g.form.a_major = major.front();
  return true;
}

bool decode_multiply(Decoder& d) {
  const ptx::Instruction& in = d.in();
  if (in.types.size() != 3 || in.operands.size() < 4) return d.refuse("");
  Wgmma g;
  for (Modifier m : in.modifiers)
    if (auto shape = ptx::matrix_shape(m)) g.form.n = shape->n;
  auto a = input_type(in.types[1]), b = input_type(in.types[2]);
  if (!a || !b) return d.refuse("");
  g.form.a = *a;
  g.form.b = *b;
  switch (in.types[0]) {
    case Type::F32:
      g.form.d = MmaAccumulator::F32;
      break;
    case Type::F16:
      g.form.d = MmaAccumulator::F16;
      break;
    case Type::S32:
      g.form.d = MmaAccumulator::S32;
      break;
    default:
      return d.refuse("");
  }
  g.form.satfinite = d.has(Modifier::Satfinite);
  const Operand& left = d.operand(1);
  g.a_in_registers = left.kind == Operand::Kind::Vector;
  if (!immediates(d, 4, g)) return false;
  int count = arith::wgmma_d_registers(g.form);
  g.kernel = arith::wgmma_kernel(
      g.form, d.flavour() == Flavour::Exact ? arith::Numerics::Exact : arith::Numerics::Fast);
  if (count == 0 || !g.kernel.multiply) return d.refuse("");
  const Operand& to = d.operand(0);
  if (to.kind != Operand::Kind::Vector || to.elements.size() != static_cast<size_t>(count))
    return d.refuse("the accumulator has " + std::to_string(count) + " registers");
  for (const Operand& each : to.elements) g.d.push_back(d.destination(each, 4));
  if (g.a_in_registers) {
    if (left.elements.size() != 4) return d.refuse("operand A has 4 registers");
    for (const Operand& each : left.elements) g.a.push_back(d.source(each, 4));
  } else {
    g.a.push_back(d.source(left, 8));
  }
  g.b = d.source(2, 8);
  g.scale = d.predicate_source(d.operand(3));
  g.scale_xor = d.operand(3).negated ? kAll : 0;
  if (d.refused()) return false;
  g.registers = product_registers_of(in);
  d.emit(multiply).more = d.keep(std::move(g));
  return true;
}

}  // namespace

bool warpgroup_may_go_on(const Warp& w, const Split& s) {
  uint64_t needed = w.wgmma_committed > s.object ? w.wgmma_committed - s.object : 0;
  for (size_t k = w.index & ~3u; k < w.cta->warps.size() && k <= (w.index | 3); ++k) {
    const Warp& other = *w.cta->warps[k];
    if (other.live() && other.wgmma_committed < needed) return false;
  }
  return true;
}

bool decode_wgmma(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::WgmmaMmaAsync:
      if (!decode_multiply(d)) return false;
      mark_check_site(d);
      return true;
    case Opcode::WgmmaFence:
      d.emit(fence);
      return true;
    case Opcode::WgmmaCommitGroup:
      d.emit(commit);
      return true;
    case Opcode::WgmmaWaitGroup: {
      if (d.operand(0).kind != Operand::Kind::Immediate || d.operand(0).bits > 7)
        return d.refuse("0 to 7 groups");
      Insn& insn = d.emit(wait);
      insn.x = static_cast<uint32_t>(d.operand(0).bits);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace ptxb::emu
