// Owns warp matrix instructions: mma, ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5) by the tile
// arithmetic of arith/.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "arch/families.h"
#include "emu/address.h"
#include "emu/arith/fragments.h"
#include "emu/arith/mma.h"
#include "emu/check_hooks.h"
#include "emu/emit.h"
#include "emu/op_wmma.h"
#include "ptx/parse.h"

namespace ptxb::emu {

using arith::MmaAccumulator;
using arith::MmaForm;
using arith::MmaType;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

constexpr size_t kMostRegisters = 32;

struct Mma {
  arith::MmaFunction function = nullptr;
  arith::MmaFunction64 function64 = nullptr;
  std::vector<uint32_t> a, b, c, d;
};

bool neutralised(const Warp& w) { return w.worker->neutralise_mma; }

const Insn* mma(Warp& w, const Insn* i) {
  const Mma& m = *static_cast<const Mma*>(i->more);
  const uint32_t *a[kMostRegisters], *b[kMostRegisters], *c[kMostRegisters];
  uint32_t* d[kMostRegisters];
  for (size_t k = 0; k < m.a.size(); ++k) a[k] = lanes<U32>(w, m.a[k]);
  for (size_t k = 0; k < m.b.size(); ++k) b[k] = lanes<U32>(w, m.b[k]);
  for (size_t k = 0; k < m.c.size(); ++k) c[k] = lanes<U32>(w, m.c[k]);
  for (size_t k = 0; k < m.d.size(); ++k) d[k] = lanes<U32>(w, m.d[k]);
  if (neutralised(w)) {
    for (size_t k = 0; k < std::min(m.c.size(), m.d.size()); ++k) std::memmove(d[k], c[k], 128);
    return i + 1;
  }
  m.function({a, b, c, d});
  return i + 1;
}
const Insn* mma64(Warp& w, const Insn* i) {
  const Mma& m = *static_cast<const Mma*>(i->more);
  const uint64_t *a[kMostRegisters], *b[kMostRegisters], *c[kMostRegisters];
  uint64_t* d[kMostRegisters];
  for (size_t k = 0; k < m.a.size(); ++k) a[k] = lanes<U64>(w, m.a[k]);
  for (size_t k = 0; k < m.b.size(); ++k) b[k] = lanes<U64>(w, m.b[k]);
  for (size_t k = 0; k < m.c.size(); ++k) c[k] = lanes<U64>(w, m.c[k]);
  for (size_t k = 0; k < m.d.size(); ++k) d[k] = lanes<U64>(w, m.d[k]);
  if (neutralised(w)) {
    for (size_t k = 0; k < m.d.size(); ++k) std::memmove(d[k], c[k], 256);
    return i + 1;
  }
  m.function64({a, b, c, d});
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
    case Type::F64:
      return MmaType::F64;
    case Type::E4M3:
      return MmaType::E4M3;
    case Type::E5M2:
      return MmaType::E5M2;
    case Type::S8:
      return MmaType::S8;
    case Type::U8:
      return MmaType::U8;
    case Type::S4:
      return MmaType::S4;
    case Type::U4:
      return MmaType::U4;
    case Type::B1:
      return MmaType::B1;
    default:
      return std::nullopt;
  }
}
std::optional<MmaAccumulator> accumulator_type(Type type) {
  switch (type) {
    case Type::F32:
      return MmaAccumulator::F32;
    case Type::F16:
      return MmaAccumulator::F16;
    case Type::S32:
      return MmaAccumulator::S32;
    case Type::F64:
      return MmaAccumulator::F64;
    default:
      return std::nullopt;
  }
}

bool registers(Decoder& d, const Operand& operand, int wanted, int width, bool writes,
               std::vector<uint32_t>& out) {
  size_t count = operand.kind == Operand::Kind::Vector ? operand.elements.size() : 1;
  if (count != static_cast<size_t>(wanted) || count > kMostRegisters)
    return d.refuse(std::to_string(count) + " registers where the form has " +
                    std::to_string(wanted));
  for (size_t k = 0; k < count; ++k) {
    const Operand& each = operand.kind == Operand::Kind::Vector ? operand.elements[k] : operand;
    out.push_back(writes ? d.destination(each, width) : d.source(each, width));
  }
  return !d.refused();
}

bool decode_mma(Decoder& d) {
  const ptx::Instruction& in = d.in();
  if (in.types.size() != 4 || in.operands.size() != 4) return d.refuse("");
  if (d.has(Modifier::BlockScale) || d.has(Modifier::KindF8f6f4)) return d.refuse("sm_120 forms");
  MmaForm form;
  for (Modifier m : in.modifiers) {
    if (auto shape = ptx::matrix_shape(m)) {
      form.m = static_cast<uint8_t>(shape->m);
      form.n = static_cast<uint8_t>(shape->n);
      form.k = static_cast<uint16_t>(shape->k);
    }
  }
  auto a = input_type(in.types[1]), b = input_type(in.types[2]);
  auto to = accumulator_type(in.types[0]), c = accumulator_type(in.types[3]);
  if (!a || !b || !c || !to) return d.refuse("");
  form.a = *a;
  form.b = *b;
  form.c = *c;
  form.d = *to;
  form.satfinite = d.has(Modifier::Satfinite);
  if (d.has(Modifier::Popc))
    form.bit_op = d.has(Modifier::Xor) ? arith::MmaBitOp::XorPopc : arith::MmaBitOp::AndPopc;
  // m8n8k4 also takes .row.row, .col.row, .col.col; everything else is .row.col.
  std::vector<Modifier> layout;
  for (Modifier m : in.modifiers)
    if (m == Modifier::Row || m == Modifier::Col) layout.push_back(m);
  if (layout.size() != 2 || layout[0] != Modifier::Row || layout[1] != Modifier::Col)
    return d.refuse("layout other than .row.col");
  if (form.a == MmaType::F64 && (d.has(Modifier::Rz) || d.has(Modifier::Rm) || d.has(Modifier::Rp)))
    return d.refuse("rounding other than .rn");
  arith::MmaRegisters counts = arith::mma_registers(form);
  if (counts.a == 0) return d.refuse("");
  Mma m;
  if (counts.wide)
    m.function64 = arith::mma_function_f64(form);
  else
    m.function = arith::mma_function(
        form, d.flavour() == Flavour::Exact ? arith::Numerics::Exact : arith::Numerics::Fast);
  if (!m.function && !m.function64) return d.refuse("");
  int width = counts.wide ? 8 : 4;
  if (!registers(d, in.operands[1], counts.a, width, false, m.a) ||
      !registers(d, in.operands[2], counts.b, width, false, m.b) ||
      !registers(d, in.operands[3], counts.c, width, false, m.c) ||
      !registers(d, in.operands[0], counts.d, width, true, m.d))
    return false;
  Insn& insn = d.emit(counts.wide ? mma64 : mma);
  insn.more = d.keep(std::move(m));
  return true;
}

// ldmatrix and stmatrix: lane 8*m + r names row r of matrix m; n: matrices, x: 1 transposed.
struct Matrices {
  std::vector<uint32_t> slots;
};
const uint8_t* row_bytes(Warp& w, const Insn* i, uint32_t lane, Access access) {
  return resolve(w, i, lane, Window::Shared, lane_address(w, i, Window::Shared, lane), 16, access);
}

// The 32 row addresses, in bounds and aligned; lanes whose address does not count repeat the first.
bool rows_of(Warp& w, const Insn* i, Access access, uint8_t** rows) {
  uint32_t count = i->n * 8u;
  const U32* a = lanes<U32>(w, i->a);
  uint32_t from = w.shared_tag + kSharedBase - static_cast<uint32_t>(i->imm),
           limit = w.shared_end - kSharedBase - 16;
  for (uint32_t l = 0; l < count; ++l) {
    uint32_t o = a[l] - from;
    if ((o | (limit - o)) >> 31 || (o & 15)) {
      uint8_t* at = const_cast<uint8_t*>(row_bytes(w, i, l, access));
      if (!at) return false;
      rows[l] = at;
    } else {
      rows[l] = w.shared + o;
    }
  }
  return true;
}

const Insn* ldmatrix(Warp& w, const Insn* i) {
  uint8_t* rows[32];
  if (!rows_of(w, i, Access::Read, rows)) return nullptr;
  const auto& slots = static_cast<const Matrices*>(i->more)->slots;
  auto order = i->x ? arith::MatrixOrder::Transposed : arith::MatrixOrder::Row;
  for (uint32_t m = 0; m < i->n; ++m)
    arith::ldmatrix_b16(lanes<U32>(w, slots[m]), rows + 8 * m, order);
  return i + 1;
}
const Insn* stmatrix(Warp& w, const Insn* i) {
  uint8_t* rows[32];
  if (!rows_of(w, i, Access::Write, rows)) return nullptr;
  const auto& slots = static_cast<const Matrices*>(i->more)->slots;
  auto order = i->x ? arith::MatrixOrder::Transposed : arith::MatrixOrder::Row;
  for (uint32_t m = 0; m < i->n; ++m)
    arith::stmatrix_b16(rows + 8 * m, lanes<U32>(w, slots[m]), order);
  return i + 1;
}

bool decode_matrices(Decoder& d, bool loads) {
  if (!d.has(Modifier::M8N8) || d.type() != Type::B16) return d.refuse("only .m8n8 of .b16");
  const Operand& address = d.operand(loads ? 1 : 0);
  const Operand& regs = d.operand(loads ? 0 : 1);
  // Without a state space the address is generic; the low half of one in the shared window is its
  // shared address.
  int count = d.has(Modifier::X4) ? 4 : d.has(Modifier::X2) ? 2 : 1;
  uint32_t base = address_slot(d, address, Window::Shared);
  Matrices m;
  if (d.refused() || !registers(d, regs, count, 4, loads, m.slots)) return false;
  emit_matrix_check(d, base, address.offset, static_cast<uint32_t>(count),
                    loads ? Access::Read : Access::Write);
  Insn& insn = d.emit(loads ? ldmatrix : stmatrix);
  insn.a = base;
  insn.imm = address.offset;
  insn.n = static_cast<uint16_t>(count);
  insn.x = d.has(Modifier::Trans);
  insn.more = d.keep(std::move(m));
  return true;
}

const Insn* movmatrix(Warp& w, const Insn* i) {
  arith::movmatrix_b16(lanes<U32>(w, i->d), lanes<U32>(w, i->a));
  return i + 1;
}

}  // namespace

bool decode_matrix(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::Mma:
      return decode_mma(d);
    case Opcode::Ldmatrix:
      return decode_matrices(d, true);
    case Opcode::Stmatrix:
      return decode_matrices(d, false);
    case Opcode::Movmatrix:
      return emit_unary(d, movmatrix, 4, 4);
    default:
      return decode_wmma(d);
  }
}

}  // namespace ptxb::emu
