// Owns the 8-, 6- and 4-bit floats and cvt.pack (see convert.h). Never saturates silently
// differently from cvt: .satfinite is part of every down-conversion but ue8m0's.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "emu/arith/convert.h"
#include "emu/arith/soft_float.h"

namespace ptxb::emu::arith {
namespace {

Format format_of(MiniFloat format) {
  switch (format) {
    case MiniFloat::E4M3:
      return kFormatE4M3;
    case MiniFloat::E5M2:
      return kFormatE5M2;
    case MiniFloat::E2M3:
      return kFormatE2M3;
    case MiniFloat::E3M2:
      return kFormatE3M2;
    default:
      return kFormatE2M1;
  }
}

bool has_nan(MiniFloat format) { return format == MiniFloat::E4M3 || format == MiniFloat::E5M2; }
int part_bits(MiniFloat format) { return format == MiniFloat::E2M1 ? 4 : 8; }

uint8_t mini_from_soft(MiniFloat format, Soft value, ConvertControl control) {
  if (value.kind == SoftKind::NaN) {
    return has_nan(format) ? 0x7f : static_cast<uint8_t>(format_of(format).largest());
  }
  if (value.negative && control.relu) return 0;
  return static_cast<uint8_t>(
      pack(format_of(format), value, Round::NearestEven, Overflow::Saturate));
}

// ue8m0 keeps the exponent of the magnitude; there is no sign, and 0 means 2^-127.
uint8_t ue8m0_from_f32(uint32_t bits, ConvertControl control) {
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0xff;
  uint32_t exponent = magnitude >> 23;
  bool inexact = (magnitude & 0x007fffffu) != 0 && magnitude > 0x00400000u && exponent != 0xff;
  if (control.round == Round::Up && inexact) ++exponent;
  if (exponent == 0xff && control.satfinite) exponent = 0xfe;
  return static_cast<uint8_t>(exponent);
}

uint16_t join(MiniFloat format, uint8_t upper, uint8_t lower) {
  return static_cast<uint16_t>((uint32_t{upper} << part_bits(format)) | lower);
}

}  // namespace

uint8_t mini_from_f32(MiniFloat format, uint32_t bits, ConvertControl control) {
  if (format == MiniFloat::UE8M0) return ue8m0_from_f32(bits, control);
  return mini_from_soft(format, unpack(kFormatF32, bits), control);
}

float mini_value(MiniFloat format, uint8_t bits) {
  if (format == MiniFloat::UE8M0) {
    if (bits == 0xff) return std::bit_cast<float>(kNanF32);
    return std::bit_cast<float>(bits == 0 ? 0x00400000u : uint32_t{bits} << 23);
  }
  uint64_t used = bits & (2 * format_of(format).sign_bit() - 1);
  Soft value = unpack(format_of(format), used);
  return std::bit_cast<float>(static_cast<uint32_t>(pack(kFormatF32, value, Round::NearestEven)));
}

uint16_t pack_mini2(MiniFloat format, uint32_t a, uint32_t b, ConvertControl control) {
  return join(format, mini_from_f32(format, a, control), mini_from_f32(format, b, control));
}

uint16_t pack_mini2_from_half2(MiniFloat format, Half source, uint32_t a, ConvertControl control) {
  uint32_t upper = half_to_f32(source, static_cast<uint16_t>(a >> 16));
  uint32_t lower = half_to_f32(source, static_cast<uint16_t>(a));
  return pack_mini2(format, upper, lower, control);
}

uint32_t unpack_mini2(MiniFloat format, Half target, uint16_t a, ConvertControl control) {
  uint32_t mask = (1u << part_bits(format)) - 1;
  uint8_t upper = static_cast<uint8_t>((uint32_t{a} >> part_bits(format)) & mask);
  uint8_t lower = static_cast<uint8_t>(a & mask);
  uint32_t upper_bits = std::bit_cast<uint32_t>(mini_value(format, upper));
  uint32_t lower_bits = std::bit_cast<uint32_t>(mini_value(format, lower));
  return pack_half2(target, upper_bits, lower_bits, {.relu = control.relu});
}

uint32_t convert_pack(PackTarget target, int32_t a, int32_t b, uint32_t c) {
  int64_t least = target.is_signed ? -(int64_t{1} << (target.bits - 1)) : 0;
  int64_t greatest = (int64_t{1} << (target.is_signed ? target.bits - 1 : target.bits)) - 1;
  uint32_t mask = (1u << target.bits) - 1;
  auto clamp = [&](int32_t value) {
    int64_t limited = value < least ? least : value > greatest ? greatest : value;
    return static_cast<uint32_t>(limited) & mask;
  };
  uint32_t packed = (clamp(a) << target.bits) | clamp(b);
  return target.bits == 16 ? packed : packed | (c << (2 * target.bits));
}

}  // namespace ptxb::emu::arith
