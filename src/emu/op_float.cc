// Owns floating-point instructions (PTX ISA 9.7.3, 9.7.4) by the arithmetic of arith/. Never
// rounds by itself.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/approx.h"
#include "emu/arith/float_ops.h"
#include "emu/emit.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Type;

namespace {

using arith::FloatControl;
using arith::Half;
using arith::MinMaxControl;
using arith::Round;

// Whole-register functions of arith: results of lanes outside the mask are thrown away.
const Insn* lane_unary(Warp& w, const Insn* i) {
  auto f = as_function<arith::LaneUnary>(i);
  U32* d = lanes<U32>(w, i->d);
  if (w.mask == kAll) {
    f(d, lanes<U32>(w, i->a));
    return i + 1;
  }
  alignas(64) uint32_t t[32];
  f(t, lanes<U32>(w, i->a));
  blend(d, t, w.mask);
  return i + 1;
}
const Insn* lane_binary(Warp& w, const Insn* i) {
  auto f = as_function<arith::LaneBinary>(i);
  U32* d = lanes<U32>(w, i->d);
  if (w.mask == kAll) {
    f(d, lanes<U32>(w, i->a), lanes<U32>(w, i->b));
    return i + 1;
  }
  alignas(64) uint32_t t[32];
  f(t, lanes<U32>(w, i->a), lanes<U32>(w, i->b));
  blend(d, t, w.mask);
  return i + 1;
}
const Insn* lane_ternary(Warp& w, const Insn* i) {
  auto f = as_function<arith::LaneTernary>(i);
  U32* d = lanes<U32>(w, i->d);
  if (w.mask == kAll) {
    f(d, lanes<U32>(w, i->a), lanes<U32>(w, i->b), lanes<U32>(w, i->c));
    return i + 1;
  }
  alignas(64) uint32_t t[32];
  f(t, lanes<U32>(w, i->a), lanes<U32>(w, i->b), lanes<U32>(w, i->c));
  blend(d, t, w.mask);
  return i + 1;
}

// Scalar functions of arith, lane by lane; the control is packed into Insn::imm.
uint64_t pack(FloatControl c) {
  return static_cast<uint64_t>(c.round) | uint64_t{c.ftz} << 8 | uint64_t{c.sat} << 9 |
         uint64_t{c.relu} << 10 | uint64_t{c.oob} << 11;
}
FloatControl unpack(int64_t bits) {
  FloatControl c;
  c.round = static_cast<Round>(bits & 0xff);
  c.ftz = bits >> 8 & 1;
  c.sat = bits >> 9 & 1;
  c.relu = bits >> 10 & 1;
  c.oob = bits >> 11 & 1;
  return c;
}
uint64_t pack(MinMaxControl c) {
  return uint64_t{c.ftz} | uint64_t{c.nan} << 1 | uint64_t{c.xorsign_abs} << 2 |
         uint64_t{c.abs} << 3;
}
MinMaxControl unpack_min_max(int64_t bits) {
  return {.ftz = (bits & 1) != 0,
          .nan = (bits & 2) != 0,
          .xorsign_abs = (bits & 4) != 0,
          .abs = (bits & 8) != 0};
}

// f(control, lane values...) for the lanes of the mask.
template <class T, auto f>
const Insn* scalar1(Warp& w, const Insn* i) {
  FloatControl control = unpack(i->imm);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    auto l = std::countr_zero(rest);
    lanes<T>(w, i->d)[l] = f(lanes<T>(w, i->a)[l], control);
  }
  return i + 1;
}
template <class T, auto f>
const Insn* scalar2(Warp& w, const Insn* i) {
  FloatControl control = unpack(i->imm);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    auto l = std::countr_zero(rest);
    lanes<T>(w, i->d)[l] = f(lanes<T>(w, i->a)[l], lanes<T>(w, i->b)[l], control);
  }
  return i + 1;
}
template <class T, auto f>
const Insn* scalar3(Warp& w, const Insn* i) {
  FloatControl control = unpack(i->imm);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    auto l = std::countr_zero(rest);
    lanes<T>(w, i->d)[l] =
        f(lanes<T>(w, i->a)[l], lanes<T>(w, i->b)[l], lanes<T>(w, i->c)[l], control);
  }
  return i + 1;
}
template <auto f>
const Insn* extreme3(Warp& w, const Insn* i) {
  MinMaxControl control = unpack_min_max(i->imm);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    auto l = std::countr_zero(rest);
    lanes<U32>(w, i->d)[l] =
        f(lanes<U32>(w, i->a)[l], lanes<U32>(w, i->b)[l], lanes<U32>(w, i->c)[l], control);
  }
  return i + 1;
}

FloatControl control_of(const Decoder& d) {
  FloatControl c;
  if (d.has(Modifier::Rz)) c.round = Round::TowardZero;
  if (d.has(Modifier::Rm)) c.round = Round::Down;
  if (d.has(Modifier::Rp)) c.round = Round::Up;
  c.ftz = d.has(Modifier::Ftz);
  c.sat = d.has(Modifier::Sat);
  c.relu = d.has(Modifier::Relu);
  c.oob = d.has(Modifier::Oob);
  return c;
}
MinMaxControl min_max_control_of(const Decoder& d) {
  MinMaxControl c;
  c.ftz = d.has(Modifier::Ftz);
  c.nan = d.has(Modifier::NanPropagate);
  c.xorsign_abs = d.has(Modifier::Xorsign);
  c.abs = d.has(Modifier::Abs) && !c.xorsign_abs;
  return c;
}

bool place_lane1(Decoder& d, arith::LaneUnary f) {
  if (!f) return d.refuse("");
  if (!emit_unary(d, lane_unary, 4, 4)) return false;
  d.code().insns.back().more = as_more(f);
  return true;
}
bool place_lane2(Decoder& d, arith::LaneBinary f) {
  if (!f) return d.refuse("");
  if (!emit_binary(d, lane_binary, 4, 4, 4)) return false;
  d.code().insns.back().more = as_more(f);
  return true;
}
bool place_lane3(Decoder& d, arith::LaneTernary f) {
  if (!f) return d.refuse("");
  if (!emit_ternary(d, lane_ternary, 4, 4, 4)) return false;
  d.code().insns.back().more = as_more(f);
  return true;
}
template <class Control>
bool with_control(Decoder& d, bool placed, Control control) {
  if (placed) d.code().insns.back().imm = static_cast<int64_t>(pack(control));
  return placed;
}

struct HalfType {
  Half format;
  bool pair;
};
std::optional<HalfType> half_type(Type type) {
  switch (type) {
    case Type::F16:
      return HalfType{Half::F16, false};
    case Type::F16x2:
      return HalfType{Half::F16, true};
    case Type::BF16:
      return HalfType{Half::BF16, false};
    case Type::BF16x2:
      return HalfType{Half::BF16, true};
    default:
      return std::nullopt;
  }
}

// f64: scalar functions.
template <auto f>
constexpr auto kPlain1 = [](uint64_t a, FloatControl) { return f(a); };
template <auto f>
constexpr auto kPlain2 = [](uint64_t a, uint64_t b, FloatControl) { return f(a, b); };

bool decode_f64(Decoder& d) {
  FloatControl c = control_of(d);
  switch (d.opcode()) {
    case Opcode::Add:
      return with_control(d, emit_binary(d, scalar2<uint64_t, arith::add_f64>, 8, 8, 8), c);
    case Opcode::Sub:
      return with_control(d, emit_binary(d, scalar2<uint64_t, arith::sub_f64>, 8, 8, 8), c);
    case Opcode::Mul:
      return with_control(d, emit_binary(d, scalar2<uint64_t, arith::mul_f64>, 8, 8, 8), c);
    case Opcode::Div:
      return with_control(d, emit_binary(d, scalar2<uint64_t, arith::div_f64>, 8, 8, 8), c);
    case Opcode::Mad:
    case Opcode::Fma:
      return with_control(d, emit_ternary(d, scalar3<uint64_t, arith::fma_f64>, 8, 8, 8), c);
    case Opcode::Min:
      return emit_binary(d, scalar2<uint64_t, kPlain2<arith::min_f64>>, 8, 8, 8);
    case Opcode::Max:
      return emit_binary(d, scalar2<uint64_t, kPlain2<arith::max_f64>>, 8, 8, 8);
    case Opcode::Abs:
      return emit_unary(d, scalar1<uint64_t, kPlain1<arith::abs_f64>>, 8, 8);
    case Opcode::Neg:
      return emit_unary(d, scalar1<uint64_t, kPlain1<arith::neg_f64>>, 8, 8);
    case Opcode::Copysign:
      return emit_binary(d, scalar2<uint64_t, kPlain2<arith::copysign_f64>>, 8, 8, 8);
    case Opcode::Sqrt:
      return with_control(d, emit_unary(d, scalar1<uint64_t, arith::sqrt_f64>, 8, 8), c);
    case Opcode::Rcp:
      if (d.has(Modifier::Approx))
        return emit_unary(d, scalar1<uint64_t, kPlain1<arith::rcp_approx_ftz_f64>>, 8, 8);
      return with_control(d, emit_unary(d, scalar1<uint64_t, arith::rcp_f64>, 8, 8), c);
    case Opcode::Rsqrt:
      if (d.has(Modifier::Ftz))
        return emit_unary(d, scalar1<uint64_t, kPlain1<arith::rsqrt_approx_ftz_f64>>, 8, 8);
      return emit_unary(d, scalar1<uint64_t, kPlain1<arith::rsqrt_approx_f64>>, 8, 8);
    default:
      return d.refuse("");
  }
}

// f16x2 and bf16x2 by lane functions; the single ones likewise: the upper half of their slot is not
// looked at.
bool decode_half(Decoder& d, HalfType h) {
  FloatControl c = control_of(d);
  switch (d.opcode()) {
    case Opcode::Add:
      return place_lane2(d, arith::lane_add_half2(h.format, c));
    case Opcode::Sub:
      return place_lane2(d, arith::lane_sub_half2(h.format, c));
    case Opcode::Mul:
      return place_lane2(d, arith::lane_mul_half2(h.format, c));
    case Opcode::Fma:
      return place_lane3(d, arith::lane_fma_half2(h.format, c));
    case Opcode::Min:
      if (d.operands() > 3) return d.refuse("three-operand form");
      return place_lane2(d, arith::lane_min_half2(h.format, min_max_control_of(d)));
    case Opcode::Max:
      if (d.operands() > 3) return d.refuse("three-operand form");
      return place_lane2(d, arith::lane_max_half2(h.format, min_max_control_of(d)));
    default:
      break;
  }
  bool bf16 = h.format == Half::BF16;
  Handler handler = nullptr;
  switch (d.opcode()) {
    case Opcode::Neg:
      handler =
          bf16
              ? scalar1<uint32_t, [](uint32_t a,
                                     FloatControl k) { return arith::neg_half2(Half::BF16, a, k); }>
              : scalar1<uint32_t, [](uint32_t a, FloatControl k) {
                  return arith::neg_half2(Half::F16, a, k);
                }>;
      break;
    case Opcode::Abs:
      handler =
          bf16
              ? scalar1<uint32_t, [](uint32_t a,
                                     FloatControl k) { return arith::abs_half2(Half::BF16, a, k); }>
              : scalar1<uint32_t, [](uint32_t a, FloatControl k) {
                  return arith::abs_half2(Half::F16, a, k);
                }>;
      break;
    case Opcode::Ex2:
      handler = bf16 ? scalar1<uint32_t,
                               [](uint32_t a, FloatControl k) {
                                 return arith::ex2_approx_half2(Half::BF16, a, k);
                               }>
                     : scalar1<uint32_t, [](uint32_t a, FloatControl k) {
                         return arith::ex2_approx_half2(Half::F16, a, k);
                       }>;
      break;
    case Opcode::Tanh:
      handler = bf16 ? scalar1<uint32_t,
                               [](uint32_t a, FloatControl) {
                                 return arith::tanh_approx_half2(Half::BF16, a);
                               }>
                     : scalar1<uint32_t, [](uint32_t a, FloatControl) {
                         return arith::tanh_approx_half2(Half::F16, a);
                       }>;
      break;
    default:
      return d.refuse("");
  }
  return with_control(d, emit_unary(d, handler, 4, 4), c);
}

bool decode_f32_function(Decoder& d, FloatControl c) {
  bool approx = d.has(Modifier::Approx);
  switch (d.opcode()) {
    case Opcode::Div:
      if (approx)
        return with_control(d, emit_binary(d, scalar2<uint32_t, arith::div_approx_f32>, 4, 4, 4),
                            c);
      if (d.has(Modifier::Full))
        return with_control(d, emit_binary(d, scalar2<uint32_t, arith::div_full_f32>, 4, 4, 4), c);
      return with_control(d, emit_binary(d, scalar2<uint32_t, arith::div_f32>, 4, 4, 4), c);
    case Opcode::Rcp:
      if (approx) return place_lane1(d, arith::lane_rcp_approx_f32(c));
      return with_control(d, emit_unary(d, scalar1<uint32_t, arith::rcp_f32>, 4, 4), c);
    case Opcode::Sqrt:
      return with_control(d,
                          emit_unary(d,
                                     approx ? scalar1<uint32_t, arith::sqrt_approx_f32>
                                            : scalar1<uint32_t, arith::sqrt_f32>,
                                     4, 4),
                          c);
    case Opcode::Rsqrt:
      return with_control(d, emit_unary(d, scalar1<uint32_t, arith::rsqrt_approx_f32>, 4, 4), c);
    case Opcode::Sin:
      return with_control(d, emit_unary(d, scalar1<uint32_t, arith::sin_approx_f32>, 4, 4), c);
    case Opcode::Cos:
      return with_control(d, emit_unary(d, scalar1<uint32_t, arith::cos_approx_f32>, 4, 4), c);
    case Opcode::Lg2:
      return place_lane1(d, arith::lane_lg2_approx_f32(c));
    case Opcode::Ex2:
      return place_lane1(d, arith::lane_ex2_approx_f32(c));
    case Opcode::Tanh:
      return emit_unary(
          d, scalar1<uint32_t, [](uint32_t a, FloatControl) { return arith::tanh_approx_f32(a); }>,
          4, 4);
    default:
      return d.refuse("");
  }
}

bool decode_f32(Decoder& d) {
  FloatControl c = control_of(d);
  switch (d.opcode()) {
    case Opcode::Add:
      return place_lane2(d, arith::lane_add_f32(c));
    case Opcode::Sub:
      return place_lane2(d, arith::lane_sub_f32(c));
    case Opcode::Mul:
      return place_lane2(d, arith::lane_mul_f32(c));
    case Opcode::Mad:
    case Opcode::Fma:
      return place_lane3(d, arith::lane_fma_f32(c));
    case Opcode::Min:
    case Opcode::Max: {
      bool greatest = d.opcode() == Opcode::Max;
      MinMaxControl m = min_max_control_of(d);
      if (d.operands() > 3)
        return with_control(
            d,
            emit_ternary(d, greatest ? extreme3<arith::max3_f32> : extreme3<arith::min3_f32>, 4, 4,
                         4),
            m);
      return place_lane2(d, greatest ? arith::lane_max_f32(m) : arith::lane_min_f32(m));
    }
    case Opcode::Abs:
      if (c.ftz) return with_control(d, emit_unary(d, scalar1<uint32_t, arith::abs_f32>, 4, 4), c);
      return emit_unary(d, unary<Of<[](uint32_t a) { return arith::abs_f32(a); }>, uint32_t>(), 4,
                        4);
    case Opcode::Neg:
      if (c.ftz) return with_control(d, emit_unary(d, scalar1<uint32_t, arith::neg_f32>, 4, 4), c);
      return emit_unary(d, unary<Of<[](uint32_t a) { return arith::neg_f32(a); }>, uint32_t>(), 4,
                        4);
    case Opcode::Copysign:
      return emit_binary(
          d,
          binary<Of<[](uint32_t a, uint32_t b) { return arith::copysign_f32(a, b); }>, uint32_t>(),
          4, 4, 4);
    default:
      return decode_f32_function(d, c);
  }
}

// testp.property: a predicate.
template <arith::FloatProperty property>
Handlers test_handler(bool wide) {
  if (wide)
    return compare<Of<[](uint64_t a, uint64_t) { return arith::test_f64(property, a); }>,
                   uint64_t>();
  return compare<Of<[](uint32_t a, uint32_t) { return arith::test_f32(property, a); }>, uint32_t>();
}
bool decode_testp(Decoder& d) {
  using P = arith::FloatProperty;
  bool wide = d.type() == Type::F64;
  Handlers handler = test_handler<P::Finite>(wide);
  if (d.has(Modifier::Infinite)) handler = test_handler<P::Infinite>(wide);
  if (d.has(Modifier::Number)) handler = test_handler<P::Number>(wide);
  if (d.has(Modifier::Notanumber)) handler = test_handler<P::NotANumber>(wide);
  if (d.has(Modifier::Normal)) handler = test_handler<P::Normal>(wide);
  if (d.has(Modifier::Subnormal)) handler = test_handler<P::Subnormal>(wide);
  uint32_t a = d.source(1, wide ? 8 : 4), to = d.predicate_destination(d.operand(0));
  if (d.refused()) return false;
  Insn& insn = d.emit(handler);
  insn.d = to;
  insn.a = insn.b = a;
  return true;
}

}  // namespace

bool decode_float(Decoder& d) {
  ptx::Category category = ptx::info(d.opcode()).category;
  if (category != ptx::Category::Float &&
      !(category == ptx::Category::Integer && ptx::is_float(d.type())))
    return false;
  if (d.opcode() == Opcode::Testp) return decode_testp(d);
  if (d.in().types.size() != 1) return d.refuse("mixed precision");
  if (auto half = half_type(d.type())) return decode_half(d, *half);
  if (d.type() == Type::F32) return decode_f32(d);
  if (d.type() == Type::F64) return decode_f64(d);
  return d.refuse("");
}

}  // namespace ptxb::emu
