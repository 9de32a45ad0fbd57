// Owns cvt between scalars of every type (see convert.h). One template instance per pair, picked at
// decode time. Frequent roundings go through the host's conversions, the rest through the integer
// model.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/convert.h"

#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/minifloat.h"
#include "emu/arith/soft_float.h"

namespace ptxb::emu::arith {
namespace {

constexpr bool is_float(Scalar type) { return type >= Scalar::F16; }
constexpr bool is_signed(Scalar type) { return type >= Scalar::S8 && type <= Scalar::S64; }

constexpr int width_of(Scalar type) {
  switch (type) {
    case Scalar::U8:
    case Scalar::S8:
      return 8;
    case Scalar::U16:
    case Scalar::S16:
    case Scalar::F16:
    case Scalar::BF16:
      return 16;
    case Scalar::U64:
    case Scalar::S64:
    case Scalar::F64:
      return 64;
    default:
      return 32;
  }
}

constexpr Format format_of(Scalar type) {
  switch (type) {
    case Scalar::F16:
      return kFormatF16;
    case Scalar::BF16:
      return kFormatBF16;
    case Scalar::F64:
      return kFormatF64;
    case Scalar::TF32:
      return kFormatTF32;
    default:
      return kFormatF32;
  }
}

uint64_t canonical_nan(Scalar type) {
  switch (type) {
    case Scalar::F64:
      return kNanF64;
    case Scalar::TF32:
      return 0x7fffe000u;
    default:
      return width_of(type) == 16 ? kNanHalf : kNanF32;
  }
}

// Conversions to or from f64 go through the f64 pipe of the hardware, which keeps sign and payload
// of a NaN and makes it quiet (seen on an H200; PTX leaves it open).
template <Scalar to, Scalar from>
uint64_t carried_nan(uint64_t bits) {
  constexpr int kFrom = format_of(from).fraction_bits;
  constexpr int kTo = format_of(to).fraction_bits;
  uint64_t fraction = bits & ((uint64_t{1} << kFrom) - 1);
  fraction = kTo >= kFrom ? fraction << (kTo >= kFrom ? kTo - kFrom : 0)
                          : fraction >> (kFrom >= kTo ? kFrom - kTo : 0);
  uint64_t sign = (bits & format_of(from).sign_bit()) != 0 ? format_of(to).sign_bit() : 0;
  return sign | format_of(to).infinity() | (uint64_t{1} << (kTo - 1)) | fraction;
}

// Sign- or zero-extends the low bits to 64.
template <Scalar type>
uint64_t extend(uint64_t bits) {
  constexpr int kShift = 64 - width_of(type);
  if constexpr (is_signed(type))
    return static_cast<uint64_t>(static_cast<int64_t>(bits << kShift) >> kShift);
  return (bits << kShift) >> kShift;
}

template <Scalar type>
constexpr uint64_t kLargest = is_signed(type) ? (~uint64_t{0} >> (65 - width_of(type)))
                                              : (~uint64_t{0} >> (64 - width_of(type)));
template <Scalar type>
constexpr uint64_t kMostNegative = is_signed(type) ? uint64_t{1} << (width_of(type) - 1)
                                                   : 0;  // as a magnitude

// The value with this sign and magnitude, clamped to the type.
template <Scalar type>
uint64_t clamp_integer(bool negative, uint64_t magnitude) {
  if (!negative) return magnitude < kLargest<type> ? magnitude : kLargest<type>;
  uint64_t limited = magnitude < kMostNegative<type> ? magnitude : kMostNegative<type>;
  return extend<type>(0 - limited);
}

template <Scalar to, Scalar from>
uint64_t integer_to_integer(uint64_t bits, ConvertControl control) {
  uint64_t value = extend<from>(bits);
  if (!control.sat) return extend<to>(value);
  bool negative = is_signed(from) && (value >> 63) != 0;
  return clamp_integer<to>(negative, negative ? 0 - value : value);
}

template <Scalar from>
Soft load_float(uint64_t bits, ConvertControl control) {
  if constexpr (from == Scalar::F32) {
    if (control.ftz && (bits & 0x7f800000u) == 0) bits &= 0x80000000u;
  }
  return unpack(format_of(from), bits & (~uint64_t{0} >> (64 - width_of(from))));
}

template <Scalar to>
uint64_t store_float(Soft value, ConvertControl control) {
  if (value.kind == SoftKind::NaN) return control.sat ? 0 : canonical_nan(to);
  if (value.negative && (control.sat || control.relu)) return 0;
  Overflow overflow = control.satfinite ? Overflow::Saturate : Overflow::Ieee;
  uint64_t bits = pack(format_of(to), value, control.round, overflow);
  if constexpr (to == Scalar::TF32) bits <<= 13;
  if constexpr (to == Scalar::F32) {
    if (control.ftz && (bits & 0x7f800000u) == 0) bits &= 0x80000000u;
  }
  if (control.sat) {
    uint64_t one = static_cast<uint64_t>(format_of(to).bias()) << format_of(to).fraction_bits;
    if (bits > one) bits = one;
  }
  return bits;
}

template <Scalar to, Scalar from>
uint64_t integer_to_float(uint64_t bits, ConvertControl control) {
  uint64_t value = extend<from>(bits);
  bool negative = is_signed(from) && (value >> 63) != 0;
  if constexpr (to == Scalar::F32 || to == Scalar::F64) {
    if (control.round == Round::NearestEven && !control.sat) {
      using Float = std::conditional_t<to == Scalar::F32, float, double>;
      Float result =
          negative ? static_cast<Float>(static_cast<int64_t>(value)) : static_cast<Float>(value);
      if constexpr (to == Scalar::F32) return std::bit_cast<uint32_t>(result);
      return std::bit_cast<uint64_t>(static_cast<double>(result));
    }
  }
  return store_float<to>(soft_integer(negative, negative ? 0 - value : value), control);
}

template <Scalar to, Scalar from>
uint64_t float_to_integer(uint64_t bits, ConvertControl control) {
  Soft value = load_float<from>(bits, control);
  if (value.kind == SoftKind::NaN) {
    bool marked = from == Scalar::F64 || width_of(to) == 64;
    return marked ? extend<to>(uint64_t{1} << (width_of(to) - 1)) : 0;
  }
  SoftInteger rounded = soft_to_integer(value, control.round);
  return clamp_integer<to>(value.negative, rounded.magnitude);
}

// cvt.rna.tf32 is integer arithmetic on the pattern, NaN and infinity included (seen on an H200).
uint64_t tf32_nearest_away(uint32_t bits, ConvertControl control) {
  bool special = (bits & 0x7f800000u) == 0x7f800000u;
  uint32_t rounded = (special ? bits : bits + 0x1000u) & 0xffffe000u;
  bool overflowed = (rounded & 0x7f800000u) == 0x7f800000u;
  return control.satfinite && overflowed ? rounded - 0x2000u : rounded;
}

template <Scalar to, Scalar from>
uint64_t float_to_float(uint64_t bits, ConvertControl control) {
  if constexpr (to == Scalar::TF32) {
    if (control.round == Round::NearestAway)
      return tf32_nearest_away(static_cast<uint32_t>(bits), control);
  }
  bool plain = control.round == Round::NearestEven && !control.sat && !control.relu &&
               !control.satfinite && !control.ftz && !control.integer_round;
  if constexpr (from == Scalar::F32 && to == Scalar::F16) {
    if (plain) return float_to_f16(bits_to_float(static_cast<uint32_t>(bits)));
  }
  if constexpr (from == Scalar::F32 && to == Scalar::BF16) {
    if (plain) return float_to_bf16(bits_to_float(static_cast<uint32_t>(bits)));
  }
  if constexpr (from == Scalar::BF16 && to == Scalar::F32) {
    if (plain) return half_to_f32(Half::BF16, static_cast<uint16_t>(bits));
  }
  Soft value = load_float<from>(bits, control);
  if (value.kind == SoftKind::NaN && !control.sat) {
    if (from == Scalar::F32 && control.ftz) bits = kNanF32;
    if constexpr (to == Scalar::F64 || from == Scalar::F64) return carried_nan<to, from>(bits);
    // A move when nothing is asked for.
    if (to == from && !control.ftz && !control.integer_round) return bits;
  }
  if (control.integer_round) value = soft_round_to_integral(value, control.round);
  return store_float<to>(value, control);
}

template <Scalar to, Scalar from>
uint64_t convert_pair(uint64_t bits, ConvertControl control) {
  if constexpr (is_float(to) && is_float(from))
    return float_to_float<to, from>(bits, control);
  else if constexpr (is_float(to))
    return integer_to_float<to, from>(bits, control);
  else if constexpr (is_float(from))
    return float_to_integer<to, from>(bits, control);
  else
    return integer_to_integer<to, from>(bits, control);
}

constexpr size_t kScalars = 13;
template <size_t... index>
constexpr std::array<ConvertFunction, sizeof...(index)> make_table(std::index_sequence<index...>) {
  return {convert_pair<static_cast<Scalar>(index / kScalars),
                       static_cast<Scalar>(index % kScalars)>...};
}
constexpr auto kTable = make_table(std::make_index_sequence<kScalars * kScalars>());

}  // namespace

ConvertFunction convert_function(Scalar to, Scalar from) {
  return kTable[static_cast<size_t>(to) * kScalars + static_cast<size_t>(from)];
}

uint64_t convert(Scalar to, Scalar from, uint64_t bits, ConvertControl control) {
  return convert_function(to, from)(bits, control);
}

float f16_value(uint16_t bits) { return f16_to_float(bits); }
float bf16_value(uint16_t bits) { return bf16_to_float(bits); }

uint16_t half_from_f32(Half format, uint32_t bits, ConvertControl control) {
  Scalar to = format == Half::F16 ? Scalar::F16 : Scalar::BF16;
  return static_cast<uint16_t>(convert(to, Scalar::F32, bits, control));
}

uint32_t half_to_f32(Half format, uint16_t bits) {
  if (format == Half::BF16) return uint32_t{bits} << 16;
  return (bits & 0x7fff) > 0x7c00 ? kNanF32 : float_to_bits(f16_to_float(bits));
}

uint32_t pack_half2(Half format, uint32_t a, uint32_t b, ConvertControl control) {
  return (uint32_t{half_from_f32(format, a, control)} << 16) | half_from_f32(format, b, control);
}

}  // namespace ptxb::emu::arith
