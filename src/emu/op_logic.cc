// Owns logic and shift instructions (PTX ISA 9.7.8) and prmt. Never touches memory.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/integer_ops.h"
#include "emu/emit.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

using arith::PermuteMode;
using arith::ShiftMode;

constexpr uint32_t u16(uint32_t v) { return v & 0xffffu; }

// Predicates are masks: lanes not executing keep their bits.
enum class MaskOp { And, Or, Xor, Not };
template <MaskOp op>
const Insn* mask_op(Warp& w, const Insn* i) {
  uint32_t a = predicate(w, i->a) ^ i->x, b = op == MaskOp::Not ? 0 : predicate(w, i->b) ^ i->y;
  set_predicate(w, i->d,
                op == MaskOp::And   ? a & b
                : op == MaskOp::Or  ? a | b
                : op == MaskOp::Xor ? a ^ b
                                    : ~a);
  return i + 1;
}

bool decode_mask(Decoder& d) {
  bool one = d.opcode() == Opcode::Not;
  uint32_t a = d.predicate_source(d.operand(1)), b = one ? 0 : d.predicate_source(d.operand(2));
  uint32_t to = d.predicate_destination(d.operand(0));
  if (d.refused()) return false;
  Handler handler = mask_op<MaskOp::Not>;
  if (d.opcode() == Opcode::And) handler = mask_op<MaskOp::And>;
  if (d.opcode() == Opcode::Or) handler = mask_op<MaskOp::Or>;
  if (d.opcode() == Opcode::Xor) handler = mask_op<MaskOp::Xor>;
  Insn& insn = d.emit(handler);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  insn.x = d.operand(1).negated ? kAll : 0;
  insn.y = !one && d.operand(2).negated ? kAll : 0;
  return true;
}

template <auto f32, auto f64>
bool two(Decoder& d) {
  if (ptx::size_bits(d.type()) == 64) return emit_binary(d, binary<Of<f64>, uint64_t>(), 8, 8, 8);
  return emit_binary(d, binary<Of<f32>, uint32_t>(), 4, 4, 4);
}

bool decode_not(Decoder& d) {
  int bits = ptx::size_bits(d.type());
  if (d.opcode() == Opcode::Not) {
    if (bits == 64)
      return emit_unary(d, unary<Of<[](uint64_t a) { return ~a; }>, uint64_t>(), 8, 8);
    return emit_unary(d, unary<Of<[](uint32_t a) { return ~a; }>, uint32_t>(), 4, 4);
  }
  if (bits == 64)
    return emit_unary(d, unary<Of<[](uint64_t a) { return uint64_t{a == 0}; }>, uint64_t>(), 8, 8);
  if (bits == 16)
    return emit_unary(d, unary<Of<[](uint32_t a) { return uint32_t{u16(a) == 0}; }>, uint32_t>(), 4,
                      4);
  return emit_unary(d, unary<Of<[](uint32_t a) { return uint32_t{a == 0}; }>, uint32_t>(), 4, 4);
}

bool decode_shift(Decoder& d) {
  int bits = ptx::size_bits(d.type());
  bool negative = ptx::is_signed(d.type());
  if (d.opcode() == Opcode::Shl) {
    if (bits == 64)
      return emit_binary(d, binary<Of<arith::shl_b64>, uint64_t, uint64_t, uint32_t>(), 8, 8, 4);
    if (bits == 16)
      return emit_binary(
          d, binary<Of<[](uint32_t a, uint32_t n) { return (n > 15) ? 0u : a << n; }>, uint32_t>(),
          4, 4, 4);
    return emit_binary(d, binary<Of<arith::shl_b32>, uint32_t>(), 4, 4, 4);
  }
  if (bits == 64) {
    return emit_binary(d,
                       negative ? binary<Of<arith::shr_s64>, uint64_t, uint64_t, uint32_t>()
                                : binary<Of<arith::shr_u64>, uint64_t, uint64_t, uint32_t>(),
                       8, 8, 4);
  }
  if (bits == 16) {
    if (negative) {
      return emit_binary(
          d,
          binary<Of<[](uint32_t a, uint32_t n) {
                   return arith::shr_s32(
                       static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(a))), n);
                 }>,
                 uint32_t>(),
          4, 4, 4);
    }
    return emit_binary(
        d, binary<Of<[](uint32_t a, uint32_t n) { return arith::shr_u32(u16(a), n); }>, uint32_t>(),
        4, 4, 4);
  }
  return emit_binary(
      d, negative ? binary<Of<arith::shr_s32>, uint32_t>() : binary<Of<arith::shr_u32>, uint32_t>(),
      4, 4, 4);
}

bool decode_funnel(Decoder& d) {
  bool clamp = d.has(Modifier::Clamp);
  Handlers handler = d.has(Modifier::L)
                         ? (clamp ? ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) {
                                              return arith::shf_left(ShiftMode::Clamp, a, b, c);
                                            }>,
                                            uint32_t>()
                                  : ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) {
                                              return arith::shf_left(ShiftMode::Wrap, a, b, c);
                                            }>,
                                            uint32_t>())
                         : (clamp ? ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) {
                                              return arith::shf_right(ShiftMode::Clamp, a, b, c);
                                            }>,
                                            uint32_t>()
                                  : ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) {
                                              return arith::shf_right(ShiftMode::Wrap, a, b, c);
                                            }>,
                                            uint32_t>());
  return emit_ternary(d, handler, 4, 4, 4);
}

// lop3{.or|.and} d{|p}, a, b, c, table{, q}: p = (d != 0) op q.
const Insn* lop3(Warp& w, const Insn* i) {
  const U32 *a = lanes<U32>(w, i->a), *b = lanes<U32>(w, i->b), *c = lanes<U32>(w, i->c);
  U32* d = lanes<U32>(w, i->d);
  auto table = static_cast<uint8_t>(i->x);
  if (w.mask == kAll) {
    arith::lane_lop3(d, a, b, c, table);
    return i + 1;
  }
  alignas(64) uint32_t t[32];
  arith::lane_lop3(t, a, b, c, table);
  blend(d, t, w.mask);
  return i + 1;
}
// n: 1 .or, 2 .and, 4: q negated; y: q, imm: p.
const Insn* lop3_test(Warp& w, const Insn* i) {
  alignas(64) uint32_t t[32];
  arith::lane_lop3(t, lanes<U32>(w, i->a), lanes<U32>(w, i->b), lanes<U32>(w, i->c),
                   static_cast<uint8_t>(i->x));
  uint32_t nonzero = 0;
  for (uint32_t l = 0; l < 32; ++l) nonzero |= static_cast<uint32_t>(t[l] != 0) << l;
  uint32_t q = predicate(w, i->y) ^ ((i->n & 4) ? kAll : 0);
  blend(lanes<U32>(w, i->d), t, w.mask);
  set_predicate(w, static_cast<uint32_t>(i->imm), (i->n & 1) ? nonzero | q : nonzero & q);
  return i + 1;
}

bool decode_lop3(Decoder& d) {
  const Operand& first = d.operand(0);
  bool tests = first.kind == Operand::Kind::Pair;
  const Operand& target = tests ? first.elements[0] : first;
  uint32_t a = d.source(1, 4), b = d.source(2, 4), c = d.source(3, 4),
           to = d.destination(target, 4);
  uint32_t p = 0, q = 0;
  if (tests) {
    p = d.predicate_destination(first.elements[1]);
    q = d.predicate_source(d.operand(5));
  }
  if (d.operand(4).kind != Operand::Kind::Immediate) return d.refuse("a table that is no constant");
  if (d.refused()) return false;
  Insn& insn = d.emit(tests ? lop3_test : lop3);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  insn.c = c;
  insn.x = static_cast<uint32_t>(d.operand(4).bits & 0xff);
  insn.y = q;
  insn.imm = p;
  insn.n = static_cast<uint16_t>((d.has(Modifier::Or) ? 1 : 2) |
                                 (tests && d.operand(5).negated ? 4 : 0));
  return true;
}

template <PermuteMode mode>
Handlers permute() {
  return ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::prmt(mode, a, b, c); }>,
                 uint32_t>();
}
bool decode_permute(Decoder& d) {
  Handlers handler = permute<PermuteMode::Index>();
  if (d.has(Modifier::F4e)) handler = permute<PermuteMode::F4e>();
  if (d.has(Modifier::B4e)) handler = permute<PermuteMode::B4e>();
  if (d.has(Modifier::Rc8)) handler = permute<PermuteMode::Rc8>();
  if (d.has(Modifier::Ecl)) handler = permute<PermuteMode::Ecl>();
  if (d.has(Modifier::Ecr)) handler = permute<PermuteMode::Ecr>();
  if (d.has(Modifier::Rc16)) handler = permute<PermuteMode::Rc16>();
  return emit_ternary(d, handler, 4, 4, 4);
}

}  // namespace

bool decode_logic(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::And:
      if (d.type() == Type::Pred) return decode_mask(d);
      return two<[](uint32_t a, uint32_t b) { return a & b; },
                 [](uint64_t a, uint64_t b) { return a & b; }>(d);
    case Opcode::Or:
      if (d.type() == Type::Pred) return decode_mask(d);
      return two<[](uint32_t a, uint32_t b) { return a | b; },
                 [](uint64_t a, uint64_t b) { return a | b; }>(d);
    case Opcode::Xor:
      if (d.type() == Type::Pred) return decode_mask(d);
      return two<[](uint32_t a, uint32_t b) { return a ^ b; },
                 [](uint64_t a, uint64_t b) { return a ^ b; }>(d);
    case Opcode::Not:
      if (d.type() == Type::Pred) return decode_mask(d);
      return decode_not(d);
    case Opcode::Cnot:
      return decode_not(d);
    case Opcode::Lop3:
      return decode_lop3(d);
    case Opcode::Shf:
      return decode_funnel(d);
    case Opcode::Shl:
    case Opcode::Shr:
      return decode_shift(d);
    case Opcode::Prmt:
      return decode_permute(d);
    default:
      return false;
  }
}

}  // namespace ptxb::emu
