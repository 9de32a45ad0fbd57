// Owns set, setp, selp, slct (PTX ISA 9.7.6, 9.7.7). Never touches memory.
// SPDX-License-Identifier: Apache-2.0
#include "emu/emit.h"

namespace ptxb::emu {

using arith::FloatCompare;
using arith::FloatControl;
using arith::Half;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

enum class Code { Eq, Ne, Lt, Le, Gt, Ge };
std::optional<Code> integer_code(const Decoder& d) {
  // lo, ls, hi, hs are the unsigned spellings; the type is unsigned with them (PTX ISA 9.3.1.1).
  if (d.has(Modifier::Eq)) return Code::Eq;
  if (d.has(Modifier::Ne)) return Code::Ne;
  if (d.has(Modifier::Lt) || d.has(Modifier::Lo)) return Code::Lt;
  if (d.has(Modifier::Le) || d.has(Modifier::Ls)) return Code::Le;
  if (d.has(Modifier::Gt) || d.has(Modifier::Hi)) return Code::Gt;
  if (d.has(Modifier::Ge) || d.has(Modifier::Hs)) return Code::Ge;
  return std::nullopt;
}
std::optional<FloatCompare> float_code(const Decoder& d) {
  static constexpr std::pair<Modifier, FloatCompare> kCodes[] = {
      {Modifier::Eq, FloatCompare::Eq},   {Modifier::Ne, FloatCompare::Ne},
      {Modifier::Lt, FloatCompare::Lt},   {Modifier::Le, FloatCompare::Le},
      {Modifier::Gt, FloatCompare::Gt},   {Modifier::Ge, FloatCompare::Ge},
      {Modifier::Equ, FloatCompare::Equ}, {Modifier::Neu, FloatCompare::Neu},
      {Modifier::Ltu, FloatCompare::Ltu}, {Modifier::Leu, FloatCompare::Leu},
      {Modifier::Gtu, FloatCompare::Gtu}, {Modifier::Geu, FloatCompare::Geu},
      {Modifier::Num, FloatCompare::Num}, {Modifier::Nan, FloatCompare::Nan}};
  for (const auto& [modifier, code] : kCodes)
    if (d.has(modifier)) return code;
  return std::nullopt;
}

template <Code code, class T>
constexpr bool holds(T a, T b) {
  switch (code) {
    case Code::Eq:
      return a == b;
    case Code::Ne:
      return a != b;
    case Code::Lt:
      return a < b;
    case Code::Le:
      return a <= b;
    case Code::Gt:
      return a > b;
    case Code::Ge:
      return a >= b;
  }
  return false;
}

// Plain setp of integers: the hot form, vectorised.
template <Code code, class T>
Handlers plain_integer() {
  using Lane = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  return compare<
      Of<[](Lane a, Lane b) { return holds<code>(static_cast<T>(a), static_cast<T>(b)); }>, Lane>();
}
template <class T>
Handlers plain_integer(Code code) {
  switch (code) {
    case Code::Eq:
      return plain_integer<Code::Eq, T>();
    case Code::Ne:
      return plain_integer<Code::Ne, T>();
    case Code::Lt:
      return plain_integer<Code::Lt, T>();
    case Code::Le:
      return plain_integer<Code::Le, T>();
    case Code::Gt:
      return plain_integer<Code::Gt, T>();
    case Code::Ge:
      break;
  }
  return plain_integer<Code::Ge, T>();
}
Handlers plain_integer(Type type, Code code) {
  switch (type) {
    case Type::U16:
    case Type::B16:
      return plain_integer<uint16_t>(code);
    case Type::S16:
      return plain_integer<int16_t>(code);
    case Type::S32:
      return plain_integer<int32_t>(code);
    case Type::U64:
    case Type::B64:
      return plain_integer<uint64_t>(code);
    case Type::S64:
      return plain_integer<int64_t>(code);
    default:
      return plain_integer<uint32_t>(code);
  }
}

const Insn* plain_f32(Warp& w, const Insn* i) {
  auto f = as_function<arith::LaneCompare>(i);
  set_predicate(w, i->d, f(lanes<U32>(w, i->a), lanes<U32>(w, i->b)));
  return i + 1;
}

// Everything else: set, setp with a Boolean operation or two results, f64 and 16-bit floats.
struct General {
  Type type = Type::B32;
  Code code = Code::Eq;
  FloatCompare float_code = FloatCompare::Eq;
  bool ftz = false;
  enum class Combine : uint8_t { None, And, Or, Xor } combine = Combine::None;
  uint32_t with_slot = 0, with_xor = 0;
  uint32_t second_slot = 0;  // q of p|q
  bool has_second = false;
  enum class Result : uint8_t { Predicate, Value, Pair } result = Result::Predicate;
  uint32_t one_bits = 0;  // of `true` in float results
  bool pair = false;      // f16x2, bf16x2
};

template <class T>
bool integer_holds(Code code, T a, T b) {
  switch (code) {
    case Code::Eq:
      return holds<Code::Eq>(a, b);
    case Code::Ne:
      return holds<Code::Ne>(a, b);
    case Code::Lt:
      return holds<Code::Lt>(a, b);
    case Code::Le:
      return holds<Code::Le>(a, b);
    case Code::Gt:
      return holds<Code::Gt>(a, b);
    case Code::Ge:
      return holds<Code::Ge>(a, b);
  }
  return false;
}

// Bit 0: the value or its low half, bit 1: the high half.
uint32_t compare_lane(Warp& w, const Insn* i, const General& g, uint32_t l) {
  FloatControl control{.ftz = g.ftz};
  if (ptx::size_bits(g.type) == 64) {
    uint64_t a = lanes<U64>(w, i->a)[l], b = lanes<U64>(w, i->b)[l];
    if (g.type == Type::F64) return arith::compare_f64(g.float_code, a, b);
    if (g.type == Type::S64)
      return integer_holds(g.code, static_cast<int64_t>(a), static_cast<int64_t>(b));
    return integer_holds(g.code, a, b);
  }
  uint32_t a = lanes<U32>(w, i->a)[l], b = lanes<U32>(w, i->b)[l];
  switch (g.type) {
    case Type::F32:
      return arith::compare_f32(g.float_code, a, b, control);
    case Type::F16:
      return arith::compare_half(g.float_code, Half::F16, static_cast<uint16_t>(a),
                                 static_cast<uint16_t>(b), control);
    case Type::BF16:
      return arith::compare_half(g.float_code, Half::BF16, static_cast<uint16_t>(a),
                                 static_cast<uint16_t>(b), control);
    case Type::F16x2:
      return arith::compare_half2(g.float_code, Half::F16, a, b, control);
    case Type::BF16x2:
      return arith::compare_half2(g.float_code, Half::BF16, a, b, control);
    case Type::S16:
      return integer_holds(g.code, static_cast<int16_t>(a), static_cast<int16_t>(b));
    case Type::U16:
    case Type::B16:
      return integer_holds(g.code, static_cast<uint16_t>(a), static_cast<uint16_t>(b));
    case Type::S32:
      return integer_holds(g.code, static_cast<int32_t>(a), static_cast<int32_t>(b));
    default:
      return integer_holds(g.code, a, b);
  }
}

const Insn* general(Warp& w, const Insn* i) {
  const General& g = *static_cast<const General*>(i->more);
  uint32_t first = 0, second = 0;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    auto l = static_cast<uint32_t>(std::countr_zero(rest));
    uint32_t bits = compare_lane(w, i, g, l);
    first |= (bits & 1) << l;
    second |= (bits >> 1 & 1) << l;
  }
  // p = t op c; q = !t op c, or for pairs the high halves' t op c (PTX ISA 9.7.6.2, 9.7.7.2).
  if (!g.pair) second = ~first;
  if (g.combine != General::Combine::None) {
    uint32_t c = predicate(w, g.with_slot) ^ g.with_xor;
    auto apply = [&](uint32_t t) {
      return g.combine == General::Combine::And  ? t & c
             : g.combine == General::Combine::Or ? t | c
                                                 : t ^ c;
    };
    first = apply(first);
    second = apply(second);
  }
  switch (g.result) {
    case General::Result::Predicate:
      set_predicate(w, i->d, first);
      if (g.has_second) set_predicate(w, g.second_slot, second);
      break;
    case General::Result::Value:
      for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
        auto l = std::countr_zero(rest);
        lanes<U32>(w, i->d)[l] = (first >> l & 1) ? g.one_bits : 0;
      }
      break;
    case General::Result::Pair:
      for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
        auto l = std::countr_zero(rest);
        lanes<U32>(w, i->d)[l] = ((first >> l & 1) ? g.one_bits & 0xffff : 0) |
                                 ((second >> l & 1) ? g.one_bits & 0xffff0000u : 0);
      }
      break;
  }
  return i + 1;
}

bool is_pair(Type type) { return type == Type::F16x2 || type == Type::BF16x2; }

std::optional<General> general_of(Decoder& d, Type type) {
  General g;
  g.type = type;
  g.ftz = d.has(Modifier::Ftz);
  g.pair = is_pair(type);
  if (ptx::is_float(type)) {
    auto code = float_code(d);
    if (!code) return std::nullopt;
    g.float_code = *code;
  } else {
    auto code = integer_code(d);
    if (!code) return std::nullopt;
    g.code = *code;
  }
  if (d.operands() > 3) {
    g.combine = d.has(Modifier::Or)    ? General::Combine::Or
                : d.has(Modifier::Xor) ? General::Combine::Xor
                                       : General::Combine::And;
    g.with_slot = d.predicate_source(d.operand(3));
    g.with_xor = d.operand(3).negated ? kAll : 0;
  }
  return g;
}

bool decode_setp(Decoder& d) {
  Type type = d.type();
  const Operand& target = d.operand(0);
  int width = ptx::size_bits(type) == 64 ? 8 : 4;
  bool plain = target.kind != Operand::Kind::Pair && d.operands() == 3;
  if (plain && !ptx::is_float(type)) {
    auto code = integer_code(d);
    if (!code) return d.refuse("");
    uint32_t a = d.source(1, width), b = d.source(2, width), to = d.predicate_destination(target);
    if (d.refused()) return false;
    Insn& insn = d.emit(plain_integer(type, *code));
    insn.d = to;
    insn.a = a;
    insn.b = b;
    return true;
  }
  if (plain && type == Type::F32) {
    auto code = float_code(d);
    if (!code) return d.refuse("");
    uint32_t a = d.source(1, 4), b = d.source(2, 4), to = d.predicate_destination(target);
    if (d.refused()) return false;
    Insn& insn = d.emit(plain_f32);
    insn.d = to;
    insn.a = a;
    insn.b = b;
    insn.more = as_more(arith::lane_compare_f32(*code, {.ftz = d.has(Modifier::Ftz)}));
    return true;
  }
  auto g = general_of(d, type);
  if (!g) return d.refuse("");
  uint32_t a = d.source(1, width), b = d.source(2, width), to = 0;
  if (target.kind == Operand::Kind::Pair) {
    to = d.predicate_destination(target.elements[0]);
    g->second_slot = d.predicate_destination(target.elements[1]);
    g->has_second = true;
  } else {
    to = d.predicate_destination(target);
  }
  if (d.refused()) return false;
  Insn& insn = d.emit(general);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  insn.more = d.keep(*g);
  return true;
}

bool decode_set(Decoder& d) {
  Type to_type = d.type(0), type = d.type(1);
  int width = ptx::size_bits(type) == 64 ? 8 : 4;
  auto g = general_of(d, type);
  if (!g) return d.refuse("");
  g->result = g->pair ? General::Result::Pair : General::Result::Value;
  switch (to_type) {
    case Type::F32:
      g->one_bits = 0x3f800000u;
      break;
    case Type::F16:
      g->one_bits = 0x3c00u;
      break;
    case Type::BF16:
      g->one_bits = 0x3f80u;
      break;
    case Type::F16x2:
      g->one_bits = 0x3c003c00u;
      break;
    case Type::BF16x2:
      g->one_bits = 0x3f803f80u;
      break;
    default:
      g->one_bits = 0xffffffffu;
      break;
  }
  if (g->pair && (to_type == Type::F32)) return d.refuse("");
  uint32_t a = d.source(1, width), b = d.source(2, width), to = d.destination(0, 4);
  if (d.refused()) return false;
  Insn& insn = d.emit(general);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  insn.more = d.keep(*g);
  return true;
}

template <class T>
PTXB_INLINE void select_body(Warp& w, const Insn* i) {
  T* d = lanes<T>(w, i->d);
  const T *a = lanes<T>(w, i->a), *b = lanes<T>(w, i->b);
  uint32_t p = predicate(w, i->c) ^ i->x;
  alignas(64) T t[32];
  PTXB_LANES for (uint32_t l = 0; l < 32; ++l) {
    T keep = static_cast<T>(T{0} - static_cast<T>((p >> l) & 1u));
    t[l] = static_cast<T>((a[l] & keep) | (b[l] & static_cast<T>(~keep)));
  }
  if (w.mask == kAll) {
    PTXB_LANES for (uint32_t l = 0; l < 32; ++l) d[l] = t[l];
  } else {
    blend(d, t, w.mask);
  }
}
template <class T>
const Insn* select_portable(Warp& w, const Insn* i) {
  select_body<T>(w, i);
  return i + 1;
}
template <class T>
PTXB_WIDE const Insn* select_wide(Warp& w, const Insn* i) {
  select_body<T>(w, i);
  return i + 1;
}

bool decode_selp(Decoder& d) {
  int width = ptx::size_bits(d.type()) == 64 ? 8 : 4;
  uint32_t a = d.source(1, width), b = d.source(2, width), to = d.destination(0, width);
  uint32_t p = d.predicate_source(d.operand(3));
  if (d.refused()) return false;
  Handlers handler = width == 8 ? Handlers{select_portable<uint64_t>, select_wide<uint64_t>}
                                : Handlers{select_portable<uint32_t>, select_wide<uint32_t>};
  Insn& insn = d.emit(handler);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  insn.c = p;
  insn.x = d.operand(3).negated ? kAll : 0;
  return true;
}

// slct d, a, b, c: a where c >= 0. n: 1 c is f32 (-0 counts as >= 0, NaN as < 0), 2 with .ftz.
template <class T>
const Insn* slct(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    auto l = std::countr_zero(rest);
    uint32_t c = lanes<U32>(w, i->c)[l];
    bool first = (i->n & 1) ? arith::compare_f32(FloatCompare::Ge, c, 0, {.ftz = (i->n & 2) != 0})
                            : !(c >> 31);
    lanes<T>(w, i->d)[l] = first ? lanes<T>(w, i->a)[l] : lanes<T>(w, i->b)[l];
  }
  return i + 1;
}
bool decode_slct(Decoder& d) {
  int width = ptx::size_bits(d.type()) == 64 ? 8 : 4;
  if (!emit_ternary(d, width == 8 ? slct<uint64_t> : slct<uint32_t>, width, width, 4)) return false;
  d.code().insns.back().n =
      static_cast<uint16_t>((d.type(1) == Type::F32 ? 1 : 0) | (d.has(Modifier::Ftz) ? 2 : 0));
  return true;
}

}  // namespace

bool decode_compare(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::Setp:
      return decode_setp(d);
    case Opcode::Set:
      return decode_set(d);
    case Opcode::Selp:
      return decode_selp(d);
    case Opcode::Slct:
      return decode_slct(d);
    default:
      return false;
  }
}

}  // namespace ptxb::emu
