// Owns cvt and cvt.pack (PTX ISA 9.7.9.21-22) by the conversions of arith/. Never rounds by
// itself.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/convert.h"

#include <type_traits>

#include "emu/emit.h"

namespace ptxb::emu {

using arith::ConvertControl;
using arith::Half;
using arith::MiniFloat;
using arith::Round;
using arith::Scalar;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Type;

namespace {

std::optional<Scalar> scalar_of(Type type) {
  switch (type) {
    case Type::U8:
    case Type::B8:
      return Scalar::U8;
    case Type::U16:
    case Type::B16:
      return Scalar::U16;
    case Type::U32:
    case Type::B32:
      return Scalar::U32;
    case Type::U64:
    case Type::B64:
      return Scalar::U64;
    case Type::S8:
      return Scalar::S8;
    case Type::S16:
      return Scalar::S16;
    case Type::S32:
      return Scalar::S32;
    case Type::S64:
      return Scalar::S64;
    case Type::F16:
      return Scalar::F16;
    case Type::BF16:
      return Scalar::BF16;
    case Type::F32:
      return Scalar::F32;
    case Type::F64:
      return Scalar::F64;
    case Type::TF32:
      return Scalar::TF32;
    default:
      return std::nullopt;
  }
}
std::optional<MiniFloat> mini_of(Type type) {
  switch (type) {
    case Type::E4M3x2:
      return MiniFloat::E4M3;
    case Type::E5M2x2:
      return MiniFloat::E5M2;
    case Type::E2M3x2:
      return MiniFloat::E2M3;
    case Type::E3M2x2:
      return MiniFloat::E3M2;
    case Type::E2M1x2:
      return MiniFloat::E2M1;
    case Type::UE8M0x2:
      return MiniFloat::UE8M0;
    default:
      return std::nullopt;
  }
}
std::optional<Half> half2_of(Type type) {
  if (type == Type::F16x2) return Half::F16;
  if (type == Type::BF16x2) return Half::BF16;
  return std::nullopt;
}

ConvertControl control_of(const Decoder& d) {
  ConvertControl c;
  if (d.has(Modifier::Rz) || d.has(Modifier::Rzi)) c.round = Round::TowardZero;
  if (d.has(Modifier::Rm) || d.has(Modifier::Rmi)) c.round = Round::Down;
  if (d.has(Modifier::Rp) || d.has(Modifier::Rpi)) c.round = Round::Up;
  if (d.has(Modifier::Rna)) c.round = Round::NearestAway;
  c.integer_round =
      d.has(Modifier::Rni) || d.has(Modifier::Rzi) || d.has(Modifier::Rmi) || d.has(Modifier::Rpi);
  c.ftz = d.has(Modifier::Ftz);
  c.sat = d.has(Modifier::Sat);
  c.relu = d.has(Modifier::Relu);
  c.satfinite = d.has(Modifier::Satfinite);
  return c;
}

// Integers without saturation: the low bits of one type, extended into the destination register.
template <class E, class D, class A>
Handlers extension() {
  return unary<Of<[](A a) {
                 return static_cast<D>(
                     static_cast<std::conditional_t<std::is_signed_v<E>, int64_t, uint64_t>>(
                         static_cast<E>(a)));
               }>,
               D, A>();
}
template <class E>
Handlers extension(int to_bytes, int from_bytes) {
  if (to_bytes == 8)
    return from_bytes == 8 ? extension<E, uint64_t, uint64_t>()
                           : extension<E, uint64_t, uint32_t>();
  return from_bytes == 8 ? extension<E, uint32_t, uint64_t>() : extension<E, uint32_t, uint32_t>();
}
Handlers extension(int bits, bool negative, int to_bytes, int from_bytes) {
  switch (bits) {
    case 8:
      return negative ? extension<int8_t>(to_bytes, from_bytes)
                      : extension<uint8_t>(to_bytes, from_bytes);
    case 16:
      return negative ? extension<int16_t>(to_bytes, from_bytes)
                      : extension<uint16_t>(to_bytes, from_bytes);
    case 32:
      return negative ? extension<int32_t>(to_bytes, from_bytes)
                      : extension<uint32_t>(to_bytes, from_bytes);
    default:
      return extension<uint64_t>(to_bytes, from_bytes);
  }
}

struct Conversion {
  arith::ConvertFunction function = nullptr;
  ConvertControl control;
};
template <class D, class A>
const Insn* convert_lanes(Warp& w, const Insn* i) {
  const auto& c = *static_cast<const Conversion*>(i->more);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    auto l = std::countr_zero(rest);
    lanes<D>(w, i->d)[l] = static_cast<D>(c.function(lanes<A>(w, i->a)[l], c.control));
  }
  return i + 1;
}

const Insn* lane_unary(Warp& w, const Insn* i) {
  alignas(64) uint32_t t[32];
  as_function<arith::LaneUnary>(i)(t, lanes<U32>(w, i->a));
  blend(lanes<U32>(w, i->d), t, w.mask);
  return i + 1;
}
const Insn* lane_binary(Warp& w, const Insn* i) {
  alignas(64) uint32_t t[32];
  as_function<arith::LaneBinary>(i)(t, lanes<U32>(w, i->a), lanes<U32>(w, i->b));
  blend(lanes<U32>(w, i->d), t, w.mask);
  return i + 1;
}

bool decode_scalar(Decoder& d, Type to_type, Type from_type) {
  auto to = scalar_of(to_type), from = scalar_of(from_type);
  if (!to || !from || d.operands() != 2) return d.refuse("");
  int from_bytes = d.width_of(d.operand(1)), to_bytes = d.width_of(d.operand(0));
  if (from_bytes == 0) from_bytes = ptx::size_bits(from_type) == 64 ? 8 : 4;
  if (to_bytes == 0) to_bytes = ptx::size_bits(to_type) == 64 ? 8 : 4;
  if (from_bytes > 8 || to_bytes > 8) return d.refuse("128-bit registers");
  ConvertControl c = control_of(d);
  bool integers = !ptx::is_float(to_type) && !ptx::is_float(from_type);
  int to_bits = ptx::size_bits(to_type), from_bits = ptx::size_bits(from_type);
  if (integers && !c.sat && (to_bits <= from_bits || to_bits == to_bytes * 8)) {
    bool narrows = to_bits <= from_bits;
    Handlers handler =
        extension(narrows ? to_bits : from_bits, ptx::is_signed(narrows ? to_type : from_type),
                  to_bytes, from_bytes);
    return emit_unary(d, handler, to_bytes, from_bytes);
  }
  bool plain = c.round == Round::NearestEven && !c.ftz && !c.sat && !c.relu && !c.satfinite &&
               !c.integer_round;
  arith::LaneUnary whole = nullptr;
  if (plain && to_bytes == 4 && from_bytes == 4) {
    if (from_type == Type::F32 && to_type == Type::F16)
      whole = arith::lane_half_from_f32(Half::F16);
    if (from_type == Type::F32 && to_type == Type::BF16)
      whole = arith::lane_half_from_f32(Half::BF16);
    if (to_type == Type::F32 && from_type == Type::F16) whole = arith::lane_half_to_f32(Half::F16);
    if (to_type == Type::F32 && from_type == Type::BF16)
      whole = arith::lane_half_to_f32(Half::BF16);
  }
  if (whole) {
    if (!emit_unary(d, lane_unary, 4, 4)) return false;
    d.code().insns.back().more = as_more(whole);
    return true;
  }
  Conversion conversion{arith::convert_function(*to, *from), c};
  if (!conversion.function) return d.refuse("");
  Handler handler = to_bytes == 8 ? (from_bytes == 8 ? convert_lanes<uint64_t, uint64_t>
                                                     : convert_lanes<uint64_t, uint32_t>)
                                  : (from_bytes == 8 ? convert_lanes<uint32_t, uint64_t>
                                                     : convert_lanes<uint32_t, uint32_t>);
  if (!emit_unary(d, handler, to_bytes, from_bytes)) return false;
  d.code().insns.back().more = d.keep(conversion);
  return true;
}

// Packed forms, lane by lane.
struct Packed {
  Half half = Half::F16;
  MiniFloat mini = MiniFloat::E4M3;
  ConvertControl control;
  arith::PackTarget target;
};
enum class Form { HalfFromTwo, MiniFromTwo, MiniFromHalf, HalfFromMini, Pack };
template <Form form>
const Insn* packed(Warp& w, const Insn* i) {
  const auto& p = *static_cast<const Packed*>(i->more);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    auto l = std::countr_zero(rest);
    uint32_t a = lanes<U32>(w, i->a)[l];
    uint32_t& d = lanes<U32>(w, i->d)[l];
    if constexpr (form == Form::HalfFromTwo)
      d = arith::pack_half2(p.half, a, lanes<U32>(w, i->b)[l], p.control);
    if constexpr (form == Form::MiniFromTwo)
      d = arith::pack_mini2(p.mini, a, lanes<U32>(w, i->b)[l], p.control);
    if constexpr (form == Form::MiniFromHalf)
      d = arith::pack_mini2_from_half2(p.mini, p.half, a, p.control);
    if constexpr (form == Form::HalfFromMini)
      d = arith::unpack_mini2(p.mini, p.half, static_cast<uint16_t>(a), p.control);
    if constexpr (form == Form::Pack)
      d = arith::convert_pack(p.target, static_cast<int32_t>(a),
                              static_cast<int32_t>(lanes<U32>(w, i->b)[l]), lanes<U32>(w, i->c)[l]);
  }
  return i + 1;
}

bool decode_packed(Decoder& d, Type to, Type from) {
  Packed p;
  p.control = control_of(d);
  bool placed = false;
  if (auto half = half2_of(to); half && from == Type::F32) {
    p.half = *half;
    if (d.operands() != 3) return d.refuse("");
    const ConvertControl& c = p.control;
    if (c.round == Round::NearestEven && !c.relu && !c.satfinite && !c.sat) {
      if (!emit_binary(d, lane_binary, 4, 4, 4)) return false;
      d.code().insns.back().more = as_more(arith::lane_pack_half2(*half));
      return true;
    }
    placed = emit_binary(d, packed<Form::HalfFromTwo>, 4, 4, 4);
  } else if (half && mini_of(from)) {
    p.half = *half;
    p.mini = *mini_of(from);
    placed = emit_unary(d, packed<Form::HalfFromMini>, 4, 4);
  } else if (auto mini = mini_of(to); mini && from == Type::F32) {
    p.mini = *mini;
    if (d.operands() != 3) return d.refuse("");
    placed = emit_binary(d, packed<Form::MiniFromTwo>, 4, 4, 4);
  } else if (mini && half2_of(from)) {
    p.mini = *mini;
    p.half = *half2_of(from);
    placed = emit_unary(d, packed<Form::MiniFromHalf>, 4, 4);
  } else {
    return d.refuse("");
  }
  if (placed) d.code().insns.back().more = d.keep(p);
  return placed;
}

bool decode_pack(Decoder& d) {
  Packed p;
  p.target.bits = ptx::size_bits(d.type());
  p.target.is_signed = ptx::is_signed(d.type());
  uint32_t a = d.source(1, 4), b = d.source(2, 4),
           c = d.operands() > 3 ? d.source(3, 4) : d.bits(0, 4);
  uint32_t to = d.destination(0, 4);
  if (d.refused()) return false;
  Insn& insn = d.emit(packed<Form::Pack>);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  insn.c = c;
  insn.more = d.keep(p);
  return true;
}

}  // namespace

bool decode_convert(Decoder& d) {
  if (d.opcode() == Opcode::CvtPack) return decode_pack(d);
  if (d.opcode() != Opcode::Cvt) return false;
  if (d.has(Modifier::Rs) || d.has(Modifier::ScaledN2Ue8m0))
    return d.refuse("stochastic rounding or scaling");
  Type to = d.type(0), from = d.type(1);
  if (half2_of(to) || mini_of(to) || mini_of(from)) return decode_packed(d, to, from);
  return decode_scalar(d, to, from);
}

}  // namespace ptxb::emu
