// Owns integer arithmetic and bit-field instructions (PTX ISA 9.7.1, 9.7.2). Register bits above a
// 16-bit value are unspecified: readers of 16-bit operands cut them off.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/integer_ops.h"
#include "emu/emit.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Type;

namespace {

using arith::FindResult;
using arith::ShiftMode;
using arith::Sign;

constexpr uint32_t u16(uint32_t v) { return v & 0xffffu; }
constexpr uint32_t s16(uint32_t v) {
  return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(v)));
}
constexpr int32_t s(uint32_t v) { return static_cast<int32_t>(v); }
constexpr int64_t s(uint64_t v) { return static_cast<int64_t>(v); }

// One operation for each integer type; the 16-bit ones work on extended values in 32-bit lanes.
enum class Kind { U16, S16, U32, S32, U64, S64, Other };
Kind kind_of(Type type) {
  switch (type) {
    case Type::U16:
    case Type::B16:
      return Kind::U16;
    case Type::S16:
      return Kind::S16;
    case Type::U32:
    case Type::B32:
      return Kind::U32;
    case Type::S32:
      return Kind::S32;
    case Type::U64:
    case Type::B64:
      return Kind::U64;
    case Type::S64:
      return Kind::S64;
    default:
      return Kind::Other;
  }
}
int width_of(Kind kind) { return kind == Kind::U64 || kind == Kind::S64 ? 8 : 4; }

template <auto f32, auto f64>
std::optional<Handlers> same_bits(Kind kind) {  // signedness and width above 16 bits do not matter
  if (kind == Kind::Other) return std::nullopt;
  if (width_of(kind) == 8) return binary<Of<f64>, uint64_t>();
  return binary<Of<f32>, uint32_t>();
}
template <auto fu32, auto fs32, auto fu64, auto fs64>
std::optional<Handlers> by_kind(Kind kind) {
  switch (kind) {
    case Kind::U16:
      return binary<Of<[](uint32_t a, uint32_t b) { return fu32(u16(a), u16(b)); }>, uint32_t>();
    case Kind::S16:
      return binary<Of<[](uint32_t a, uint32_t b) { return fs32(s16(a), s16(b)); }>, uint32_t>();
    case Kind::U32:
      return binary<Of<fu32>, uint32_t>();
    case Kind::S32:
      return binary<Of<fs32>, uint32_t>();
    case Kind::U64:
      return binary<Of<fu64>, uint64_t>();
    case Kind::S64:
      return binary<Of<fs64>, uint64_t>();
    case Kind::Other:
      break;
  }
  return std::nullopt;
}

bool emit_or_refuse(Decoder& d, std::optional<Handlers> handler, Kind kind) {
  if (!handler) return d.refuse("");
  return emit_binary(d, *handler, width_of(kind), width_of(kind), width_of(kind));
}

// Carry chains (PTX ISA 9.7.2): CC.CF is one bit a lane, kept in the warp. n: 1 reads it, 2 writes
// it, 4 subtracts.
template <class T>
const Insn* carry_add(Warp& w, const Insn* i) {
  T* d = lanes<T>(w, i->d);
  const T* a = lanes<T>(w, i->a);
  const T* b = lanes<T>(w, i->b);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = static_cast<uint32_t>(std::countr_zero(rest)), bit = 1u << l;
    uint32_t in = (i->n & 1) && (w.carry & bit) ? 1u : 0u;
    auto sum =
        (i->n & 4) ? arith::sub_borrow<T>(a[l], b[l], in) : arith::add_carry<T>(a[l], b[l], in);
    d[l] = sum.value;
    if (i->n & 2) w.carry = sum.carry ? w.carry | bit : w.carry & ~bit;
  }
  return i + 1;
}
// d = hi/lo(a*b) + c with carry. n as above, 8: high half, 16: signed.
template <class T>
const Insn* carry_mad(Warp& w, const Insn* i) {
  T* d = lanes<T>(w, i->d);
  const T *a = lanes<T>(w, i->a), *b = lanes<T>(w, i->b), *c = lanes<T>(w, i->c);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = static_cast<uint32_t>(std::countr_zero(rest)), bit = 1u << l;
    T product = static_cast<T>(a[l] * b[l]);
    if (i->n & 8) {
      if constexpr (sizeof(T) == 4)
        product = (i->n & 16) ? arith::mul_hi_s32(a[l], b[l]) : arith::mul_hi_u32(a[l], b[l]);
      else
        product = (i->n & 16) ? arith::mul_hi_s64(a[l], b[l]) : arith::mul_hi_u64(a[l], b[l]);
    }
    auto sum = arith::add_carry<T>(product, c[l], (i->n & 1) && (w.carry & bit) ? 1u : 0u);
    d[l] = sum.value;
    if (i->n & 2) w.carry = sum.carry ? w.carry | bit : w.carry & ~bit;
  }
  return i + 1;
}

bool decode_carry(Decoder& d, bool reads, bool subtracts) {
  int width = width_of(kind_of(d.type()));
  if (!emit_binary(d, width == 8 ? carry_add<uint64_t> : carry_add<uint32_t>, width, width, width))
    return false;
  d.code().insns.back().n =
      static_cast<uint16_t>((reads ? 1 : 0) | (d.has(Modifier::Cc) ? 2 : 0) | (subtracts ? 4 : 0));
  return true;
}

bool decode_add_sub(Decoder& d, bool subtracts) {
  Kind kind = kind_of(d.type());
  if (d.has(Modifier::Cc)) return decode_carry(d, false, subtracts);
  if (d.has(Modifier::Sat)) {
    if (subtracts) return emit_binary(d, binary<Of<arith::sub_sat_s32>, uint32_t>(), 4, 4, 4);
    return emit_binary(d, binary<Of<arith::add_sat_s32>, uint32_t>(), 4, 4, 4);
  }
  if (d.type() == Type::U16x2 || d.type() == Type::S16x2) {
    if (subtracts) return d.refuse("");
    return emit_binary(d, binary<Of<arith::add_u16x2>, uint32_t>(), 4, 4, 4);
  }
  if (subtracts) {
    return emit_or_refuse(d,
                          same_bits<[](uint32_t a, uint32_t b) { return a - b; },
                                    [](uint64_t a, uint64_t b) { return a - b; }>(kind),
                          kind);
  }
  return emit_or_refuse(d,
                        same_bits<[](uint32_t a, uint32_t b) { return a + b; },
                                  [](uint64_t a, uint64_t b) { return a + b; }>(kind),
                        kind);
}

constexpr auto kMul32 = [](uint32_t a, uint32_t b) { return a * b; };
constexpr auto kMul64 = [](uint64_t a, uint64_t b) { return a * b; };
constexpr auto kMad32 = [](uint32_t a, uint32_t b, uint32_t c) { return a * b + c; };
constexpr auto kMad64 = [](uint64_t a, uint64_t b, uint64_t c) { return a * b + c; };

bool decode_mul(Decoder& d) {
  Kind kind = kind_of(d.type());
  if (d.has(Modifier::Wide)) {
    switch (kind) {
      case Kind::U16:
        return emit_binary(
            d, binary<Of<[](uint32_t a, uint32_t b) { return u16(a) * u16(b); }>, uint32_t>(), 4, 4,
            4);
      case Kind::S16:
        return emit_binary(
            d, binary<Of<[](uint32_t a, uint32_t b) { return s16(a) * s16(b); }>, uint32_t>(), 4, 4,
            4);
      case Kind::U32:
        return emit_binary(d, binary<Of<arith::mul_wide_u32>, uint64_t, uint32_t>(), 8, 4, 4);
      case Kind::S32:
        return emit_binary(d, binary<Of<arith::mul_wide_s32>, uint64_t, uint32_t>(), 8, 4, 4);
      default:
        return d.refuse("");
    }
  }
  if (d.has(Modifier::Hi)) {
    switch (kind) {
      case Kind::U16:
        return emit_binary(
            d,
            binary<Of<[](uint32_t a, uint32_t b) { return ((u16(a) * u16(b)) >> 16); }>,
                   uint32_t>(),
            4, 4, 4);
      case Kind::S16:
        return emit_binary(
            d,
            binary<Of<[](uint32_t a, uint32_t b) { return ((s16(a) * s16(b)) >> 16); }>,
                   uint32_t>(),
            4, 4, 4);
      case Kind::U32:
        return emit_binary(d, binary<Of<arith::mul_hi_u32>, uint32_t>(), 4, 4, 4);
      case Kind::S32:
        return emit_binary(d, binary<Of<arith::mul_hi_s32>, uint32_t>(), 4, 4, 4);
      case Kind::U64:
        return emit_binary(d, binary<Of<arith::mul_hi_u64>, uint64_t>(), 8, 8, 8);
      case Kind::S64:
        return emit_binary(d, binary<Of<arith::mul_hi_s64>, uint64_t>(), 8, 8, 8);
      default:
        return d.refuse("");
    }
  }
  return emit_or_refuse(d, same_bits<kMul32, kMul64>(kind), kind);
}

bool decode_mad(Decoder& d) {
  Kind kind = kind_of(d.type());
  bool carries = d.opcode() == Opcode::Madc || d.has(Modifier::Cc);
  if (carries) {
    int width = width_of(kind);
    if (!emit_ternary(d, width == 8 ? carry_mad<uint64_t> : carry_mad<uint32_t>, width, width,
                      width))
      return false;
    bool negative = kind == Kind::S32 || kind == Kind::S64;
    d.code().insns.back().n =
        static_cast<uint16_t>((d.opcode() == Opcode::Madc ? 1 : 0) | (d.has(Modifier::Cc) ? 2 : 0) |
                              (d.has(Modifier::Hi) ? 8 : 0) | (negative ? 16 : 0));
    return true;
  }
  if (d.has(Modifier::Wide)) {
    switch (kind) {
      case Kind::U16:
        return emit_ternary(
            d,
            ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) { return u16(a) * u16(b) + c; }>,
                    uint32_t>(),
            4, 4, 4);
      case Kind::S16:
        return emit_ternary(
            d,
            ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) { return s16(a) * s16(b) + c; }>,
                    uint32_t>(),
            4, 4, 4);
      case Kind::U32:
        return emit_ternary(
            d,
            ternary<Of<[](uint32_t a, uint32_t b, uint64_t c) { return uint64_t{a} * b + c; }>,
                    uint64_t, uint32_t, uint32_t, uint64_t>(),
            8, 4, 8);
      case Kind::S32:
        return emit_ternary(d,
                            ternary<Of<[](uint32_t a, uint32_t b, uint64_t c) {
                                      return arith::mul_wide_s32(a, b) + c;
                                    }>,
                                    uint64_t, uint32_t, uint32_t, uint64_t>(),
                            8, 4, 8);
      default:
        return d.refuse("");
    }
  }
  if (d.has(Modifier::Hi)) {
    if (d.has(Modifier::Sat))
      return emit_ternary(d, ternary<Of<arith::mad_hi_sat_s32>, uint32_t>(), 4, 4, 4);
    switch (kind) {
      case Kind::U16:
        return emit_ternary(
            d,
            ternary<
                Of<[](uint32_t a, uint32_t b, uint32_t c) { return (u16(a) * u16(b) >> 16) + c; }>,
                uint32_t>(),
            4, 4, 4);
      case Kind::S16:
        return emit_ternary(
            d,
            ternary<
                Of<[](uint32_t a, uint32_t b, uint32_t c) { return (s16(a) * s16(b) >> 16) + c; }>,
                uint32_t>(),
            4, 4, 4);
      case Kind::U32:
        return emit_ternary(
            d,
            ternary<
                Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::mul_hi_u32(a, b) + c; }>,
                uint32_t>(),
            4, 4, 4);
      case Kind::S32:
        return emit_ternary(
            d,
            ternary<
                Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::mul_hi_s32(a, b) + c; }>,
                uint32_t>(),
            4, 4, 4);
      case Kind::U64:
        return emit_ternary(
            d,
            ternary<
                Of<[](uint64_t a, uint64_t b, uint64_t c) { return arith::mul_hi_u64(a, b) + c; }>,
                uint64_t>(),
            8, 8, 8);
      case Kind::S64:
        return emit_ternary(
            d,
            ternary<
                Of<[](uint64_t a, uint64_t b, uint64_t c) { return arith::mul_hi_s64(a, b) + c; }>,
                uint64_t>(),
            8, 8, 8);
      default:
        return d.refuse("");
    }
  }
  if (kind == Kind::Other) return d.refuse("");
  if (width_of(kind) == 8) return emit_ternary(d, ternary<Of<kMad64>, uint64_t>(), 8, 8, 8);
  return emit_ternary(d, ternary<Of<kMad32>, uint32_t>(), 4, 4, 4);
}

bool decode_24(Decoder& d) {
  bool negative = d.type() == Type::S32, high = d.has(Modifier::Hi);
  if (d.opcode() == Opcode::Mul24) {
    if (high)
      return emit_binary(d,
                         negative ? binary<Of<arith::mul24_hi_s32>, uint32_t>()
                                  : binary<Of<arith::mul24_hi_u32>, uint32_t>(),
                         4, 4, 4);
    return emit_binary(d,
                       negative ? binary<Of<arith::mul24_lo_s32>, uint32_t>()
                                : binary<Of<arith::mul24_lo_u32>, uint32_t>(),
                       4, 4, 4);
  }
  if (d.has(Modifier::Sat)) {
    return emit_ternary(d,
                        ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) {
                                  return arith::add_sat_s32(arith::mul24_hi_s32(a, b), c);
                                }>,
                                uint32_t>(),
                        4, 4, 4);
  }
  if (high) {
    if (negative)
      return emit_ternary(
          d,
          ternary<
              Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::mul24_hi_s32(a, b) + c; }>,
              uint32_t>(),
          4, 4, 4);
    return emit_ternary(
        d,
        ternary<
            Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::mul24_hi_u32(a, b) + c; }>,
            uint32_t>(),
        4, 4, 4);
  }
  if (negative)
    return emit_ternary(
        d,
        ternary<
            Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::mul24_lo_s32(a, b) + c; }>,
            uint32_t>(),
        4, 4, 4);
  return emit_ternary(
      d,
      ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::mul24_lo_u32(a, b) + c; }>,
              uint32_t>(),
      4, 4, 4);
}

bool decode_sad(Decoder& d) {
  Kind kind = kind_of(d.type());
  switch (kind) {
    case Kind::U16:
      return emit_ternary(d,
                          ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) {
                                    return arith::sad_u32(u16(a), u16(b), c);
                                  }>,
                                  uint32_t>(),
                          4, 4, 4);
    case Kind::S16:
      return emit_ternary(d,
                          ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) {
                                    return arith::sad_s32(s16(a), s16(b), c);
                                  }>,
                                  uint32_t>(),
                          4, 4, 4);
    case Kind::U32:
      return emit_ternary(d, ternary<Of<arith::sad_u32>, uint32_t>(), 4, 4, 4);
    case Kind::S32:
      return emit_ternary(d, ternary<Of<arith::sad_s32>, uint32_t>(), 4, 4, 4);
    case Kind::U64:
      return emit_ternary(d, ternary<Of<arith::sad_u64>, uint64_t>(), 8, 8, 8);
    case Kind::S64:
      return emit_ternary(d, ternary<Of<arith::sad_s64>, uint64_t>(), 8, 8, 8);
    case Kind::Other:
      break;
  }
  return d.refuse("");
}

bool decode_min_max(Decoder& d, bool greatest) {
  if (d.operands() > 3) return d.refuse("three-operand form");
  Kind kind = kind_of(d.type());
  bool relu = d.has(Modifier::Relu);
  if (d.type() == Type::U16x2)
    return emit_binary(d,
                       greatest ? binary<Of<arith::max_u16x2>, uint32_t>()
                                : binary<Of<arith::min_u16x2>, uint32_t>(),
                       4, 4, 4);
  if (d.type() == Type::S16x2) {
    if (relu) {
      if (greatest)
        return emit_binary(d,
                           binary<Of<[](uint32_t a, uint32_t b) {
                                    return arith::relu_s16x2(arith::max_s16x2(a, b));
                                  }>,
                                  uint32_t>(),
                           4, 4, 4);
      return emit_binary(
          d,
          binary<
              Of<[](uint32_t a, uint32_t b) { return arith::relu_s16x2(arith::min_s16x2(a, b)); }>,
              uint32_t>(),
          4, 4, 4);
    }
    return emit_binary(d,
                       greatest ? binary<Of<arith::max_s16x2>, uint32_t>()
                                : binary<Of<arith::min_s16x2>, uint32_t>(),
                       4, 4, 4);
  }
  if (relu) {
    if (greatest)
      return emit_binary(
          d,
          binary<Of<[](uint32_t a, uint32_t b) { return arith::relu_s32((s(a) > s(b)) ? a : b); }>,
                 uint32_t>(),
          4, 4, 4);
    return emit_binary(
        d,
        binary<Of<[](uint32_t a, uint32_t b) { return arith::relu_s32(s(a) < s(b) ? a : b); }>,
               uint32_t>(),
        4, 4, 4);
  }
  if (greatest) {
    return emit_or_refuse(
        d,
        by_kind<[](uint32_t a, uint32_t b) { return (a > b) ? a : b; },
                [](uint32_t a, uint32_t b) { return (s(a) > s(b)) ? a : b; },
                [](uint64_t a, uint64_t b) { return (a > b) ? a : b; },
                [](uint64_t a, uint64_t b) { return (s(a) > s(b)) ? a : b; }>(kind),
        kind);
  }
  return emit_or_refuse(d,
                        by_kind<[](uint32_t a, uint32_t b) { return a < b ? a : b; },
                                [](uint32_t a, uint32_t b) { return s(a) < s(b) ? a : b; },
                                [](uint64_t a, uint64_t b) { return a < b ? a : b; },
                                [](uint64_t a, uint64_t b) { return s(a) < s(b) ? a : b; }>(kind),
                        kind);
}

bool decode_unary(Decoder& d) {
  Kind kind = kind_of(d.type());
  bool wide = width_of(kind) == 8;
  switch (d.opcode()) {
    case Opcode::Abs:
      if (kind == Kind::S16)
        return emit_unary(
            d, unary<Of<[](uint32_t a) { return arith::abs_s32(s16(a)); }>, uint32_t>(), 4, 4);
      if (wide) return emit_unary(d, unary<Of<arith::abs_s64>, uint64_t>(), 8, 8);
      return emit_unary(d, unary<Of<arith::abs_s32>, uint32_t>(), 4, 4);
    case Opcode::Neg:
      if (wide)
        return emit_unary(d, unary<Of<[](uint64_t a) { return uint64_t{0} - a; }>, uint64_t>(), 8,
                          8);
      return emit_unary(d, unary<Of<[](uint32_t a) { return 0u - a; }>, uint32_t>(), 4, 4);
    case Opcode::Popc:
      if (wide) return emit_unary(d, unary<Of<arith::popc_b64>, uint32_t, uint64_t>(), 4, 8);
      return emit_unary(d, unary<Of<arith::popc_b32>, uint32_t>(), 4, 4);
    case Opcode::Clz:
      if (wide) return emit_unary(d, unary<Of<arith::clz_b64>, uint32_t, uint64_t>(), 4, 8);
      return emit_unary(d, unary<Of<arith::clz_b32>, uint32_t>(), 4, 4);
    case Opcode::Brev:
      if (wide) return emit_unary(d, unary<Of<arith::brev_b64>, uint64_t>(), 8, 8);
      return emit_unary(d, unary<Of<arith::brev_b32>, uint32_t>(), 4, 4);
    default:
      break;
  }
  return d.refuse("");
}

template <FindResult result>
std::optional<Handlers> find_handler(Kind kind) {
  switch (kind) {
    case Kind::U32:
      return unary<Of<[](uint32_t a) { return arith::bfind_u32(result, a); }>, uint32_t>();
    case Kind::S32:
      return unary<Of<[](uint32_t a) { return arith::bfind_s32(result, a); }>, uint32_t>();
    case Kind::U64:
      return unary<Of<[](uint64_t a) { return arith::bfind_u64(result, a); }>, uint32_t,
                   uint64_t>();
    case Kind::S64:
      return unary<Of<[](uint64_t a) { return arith::bfind_s64(result, a); }>, uint32_t,
                   uint64_t>();
    default:
      return std::nullopt;
  }
}

bool decode_fields(Decoder& d) {
  Kind kind = kind_of(d.type());
  switch (d.opcode()) {
    case Opcode::Bfind: {
      auto handler = d.has(Modifier::Shiftamt) ? find_handler<FindResult::ShiftAmount>(kind)
                                               : find_handler<FindResult::Position>(kind);
      return handler ? emit_unary(d, *handler, 4, width_of(kind)) : d.refuse("");
    }
    case Opcode::Fns:
      return emit_ternary(
          d,
          ternary<Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::fns_b32(a, b, s(c)); }>,
                  uint32_t>(),
          4, 4, 4);
    case Opcode::Szext: {
      bool clamp = d.has(Modifier::Clamp);
      if (kind == Kind::S32)
        return emit_binary(d,
                           clamp ? binary<Of<[](uint32_t a, uint32_t b) {
                                            return arith::szext_s32(ShiftMode::Clamp, a, b);
                                          }>,
                                          uint32_t>()
                                 : binary<Of<[](uint32_t a, uint32_t b) {
                                            return arith::szext_s32(ShiftMode::Wrap, a, b);
                                          }>,
                                          uint32_t>(),
                           4, 4, 4);
      return emit_binary(d,
                         clamp ? binary<Of<[](uint32_t a, uint32_t b) {
                                          return arith::szext_u32(ShiftMode::Clamp, a, b);
                                        }>,
                                        uint32_t>()
                               : binary<Of<[](uint32_t a, uint32_t b) {
                                          return arith::szext_u32(ShiftMode::Wrap, a, b);
                                        }>,
                                        uint32_t>(),
                         4, 4, 4);
    }
    case Opcode::Bmsk:
      return emit_binary(d,
                         d.has(Modifier::Clamp)
                             ? binary<Of<[](uint32_t a, uint32_t b) {
                                        return arith::bmsk_b32(ShiftMode::Clamp, a, b);
                                      }>,
                                      uint32_t>()
                             : binary<Of<[](uint32_t a, uint32_t b) {
                                        return arith::bmsk_b32(ShiftMode::Wrap, a, b);
                                      }>,
                                      uint32_t>(),
                         4, 4, 4);
    case Opcode::Bfe: {
      if (kind == Kind::U32)
        return emit_ternary(d, ternary<Of<arith::bfe_u32>, uint32_t>(), 4, 4, 4);
      if (kind == Kind::S32)
        return emit_ternary(d, ternary<Of<arith::bfe_s32>, uint32_t>(), 4, 4, 4);
      uint32_t a = d.source(1, 8), b = d.source(2, 4), c = d.source(3, 4), to = d.destination(0, 8);
      if (d.refused()) return false;
      Handlers handler =
          kind == Kind::S64 ? ternary<Of<arith::bfe_s64>, uint64_t, uint64_t, uint32_t, uint32_t>()
                            : ternary<Of<arith::bfe_u64>, uint64_t, uint64_t, uint32_t, uint32_t>();
      Insn& insn = d.emit(handler);
      insn.d = to;
      insn.a = a;
      insn.b = b;
      insn.c = c;
      return true;
    }
    default:
      break;
  }
  return d.refuse("");
}

// bfi d, a, b, position, length: four sources, the last in x.
template <class T, auto insert>
const Insn* insert_bits(Warp& w, const Insn* i) {
  T* d = lanes<T>(w, i->d);
  const T *a = lanes<T>(w, i->a), *b = lanes<T>(w, i->b);
  const U32 *c = lanes<U32>(w, i->c), *e = lanes<U32>(w, i->x);
  alignas(64) T t[32];
  for (uint32_t l = 0; l < 32; ++l) t[l] = insert(a[l], b[l], c[l], e[l]);
  blend(d, t, w.mask);
  return i + 1;
}

bool decode_bfi(Decoder& d) {
  int width = d.type() == Type::B64 ? 8 : 4;
  uint32_t a = d.source(1, width), b = d.source(2, width), c = d.source(3, 4), e = d.source(4, 4),
           to = d.destination(0, width);
  if (d.refused()) return false;
  Insn& insn = d.emit(width == 8 ? insert_bits<uint64_t, arith::bfi_b64>
                                 : insert_bits<uint32_t, arith::bfi_b32>);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  insn.c = c;
  insn.x = e;
  return true;
}

template <Sign sa, Sign sb>
Handlers dot_handler(int form) {
  if (form == 0)
    return ternary<
        Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::dp4a(sa, sb, a, b, c); }>,
        uint32_t>();
  if (form == 1)
    return ternary<
        Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::dp2a_lo(sa, sb, a, b, c); }>,
        uint32_t>();
  return ternary<
      Of<[](uint32_t a, uint32_t b, uint32_t c) { return arith::dp2a_hi(sa, sb, a, b, c); }>,
      uint32_t>();
}
bool decode_dot(Decoder& d) {
  int form = d.opcode() == Opcode::Dp4a ? 0 : d.has(Modifier::Lo) ? 1 : 2;
  bool a = ptx::is_signed(d.type(0)), b = ptx::is_signed(d.type(1));
  Handlers handler = a ? (b ? dot_handler<Sign::Signed, Sign::Signed>(form)
                            : dot_handler<Sign::Signed, Sign::Unsigned>(form))
                       : (b ? dot_handler<Sign::Unsigned, Sign::Signed>(form)
                            : dot_handler<Sign::Unsigned, Sign::Unsigned>(form));
  return emit_ternary(d, handler, 4, 4, 4);
}

}  // namespace

bool decode_integer(Decoder& d) {
  if (ptx::info(d.opcode()).category != ptx::Category::Integer || ptx::is_float(d.type()))
    return false;
  Kind kind = kind_of(d.type());
  switch (d.opcode()) {
    case Opcode::Add:
      return decode_add_sub(d, false);
    case Opcode::Sub:
      return decode_add_sub(d, true);
    case Opcode::Addc:
      return decode_carry(d, true, false);
    case Opcode::Subc:
      return decode_carry(d, true, true);
    case Opcode::Mul:
      return decode_mul(d);
    case Opcode::Mad:
    case Opcode::Madc:
      return decode_mad(d);
    case Opcode::Mul24:
    case Opcode::Mad24:
      return decode_24(d);
    case Opcode::Sad:
      return decode_sad(d);
    case Opcode::Div:
      return emit_or_refuse(
          d, by_kind<arith::div_u32, arith::div_s32, arith::div_u64, arith::div_s64>(kind), kind);
    case Opcode::Rem:
      return emit_or_refuse(
          d, by_kind<arith::rem_u32, arith::rem_s32, arith::rem_u64, arith::rem_s64>(kind), kind);
    case Opcode::Min:
      return decode_min_max(d, false);
    case Opcode::Max:
      return decode_min_max(d, true);
    case Opcode::Abs:
    case Opcode::Neg:
    case Opcode::Popc:
    case Opcode::Clz:
    case Opcode::Brev:
      return decode_unary(d);
    case Opcode::Bfi:
      return decode_bfi(d);
    case Opcode::Dp4a:
    case Opcode::Dp2a:
      return decode_dot(d);
    default:
      return decode_fields(d);
  }
}

}  // namespace ptxb::emu
