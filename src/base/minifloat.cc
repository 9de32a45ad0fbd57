// SPDX-License-Identifier: Apache-2.0
#include "base/minifloat.h"

#include <cmath>

namespace ptxb {

namespace {

// The layout of a small format with an implicit leading one and subnormals.
struct Layout {
  int exponent_bits;
  int mantissa_bits;
};

float widen(uint32_t magnitude, bool negative, Layout layout) {
  int bias = (1 << (layout.exponent_bits - 1)) - 1;
  uint32_t exponent = magnitude >> layout.mantissa_bits;
  uint32_t mantissa = magnitude & ((1u << layout.mantissa_bits) - 1);
  float value = exponent == 0
                    ? std::ldexp(static_cast<float>(mantissa), 1 - bias - layout.mantissa_bits)
                    : std::ldexp(static_cast<float>(mantissa + (1u << layout.mantissa_bits)),
                                 static_cast<int>(exponent) - bias - layout.mantissa_bits);
  return negative ? -value : value;
}

// Rounds a finite magnitude to the format's grid; the result may exceed the largest finite pattern.
uint32_t narrow(float magnitude, Layout layout) {
  if (magnitude == 0) return 0;
  int bias = (1 << (layout.exponent_bits - 1)) - 1;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // Exact: scaling by a power of two; nearbyint is ties-to-even in the default rounding mode.
  double scaled = std::ldexp(static_cast<double>(magnitude), layout.mantissa_bits - exponent);
  auto units = static_cast<uint32_t>(std::nearbyint(scaled));
  // `units` includes the implicit one for normals; adding it to (exponent-1) carries correctly.
  return (static_cast<uint32_t>(exponent + bias - 1) << layout.mantissa_bits) + units;
}

uint32_t sign_of(float value) { return float_to_bits(value) >> 31; }

uint8_t narrow_saturated(float value, Layout layout, uint32_t largest) {
  if (std::isnan(value)) return 0x7f;
  uint32_t magnitude = std::isinf(value) ? largest : narrow(std::fabs(value), layout);
  if (magnitude > largest) magnitude = largest;
  return static_cast<uint8_t>(magnitude | (sign_of(value) << 7));
}

constexpr Layout kF16{5, 10};
constexpr Layout kE4m3{4, 3};
constexpr Layout kE5m2{5, 2};

}  // namespace

float f16_to_float(uint16_t bits) {
  uint32_t magnitude = bits & 0x7fffu;
  bool negative = bits >> 15;
  if (magnitude > 0x7c00u) return bits_to_float((uint32_t{negative} << 31) | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude == 0x7c00u) return negative ? -INFINITY : INFINITY;
  return widen(magnitude, negative, kF16);
}

uint16_t float_to_f16(float value) {
  if (std::isnan(value)) return 0x7fff;
  uint32_t magnitude = std::isinf(value) ? 0x7c00u : narrow(std::fabs(value), kF16);
  if (magnitude > 0x7c00u) magnitude = 0x7c00u;
  return static_cast<uint16_t>(magnitude | (sign_of(value) << 15));
}

float e4m3_to_float(uint8_t bits) {
  uint32_t magnitude = bits & 0x7fu;
  if (magnitude == 0x7f) return NAN;
  return widen(magnitude, bits >> 7, kE4m3);
}

float e5m2_to_float(uint8_t bits) {
  uint32_t magnitude = bits & 0x7fu;
  if (magnitude > 0x7c) return NAN;
  if (magnitude == 0x7c) return bits >> 7 ? -INFINITY : INFINITY;
  return widen(magnitude, bits >> 7, kE5m2);
}

uint8_t float_to_e4m3_satfinite(float value) { return narrow_saturated(value, kE4m3, 0x7e); }
uint8_t float_to_e5m2_satfinite(float value) { return narrow_saturated(value, kE5m2, 0x7b); }

}  // namespace ptxb
