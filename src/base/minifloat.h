// Owns scalar conversions between f32 and the small float formats (bf16, f16, e4m3, e5m2, tf32); bit patterns in and out.
// Rounding is to nearest, ties to even, unless the name says otherwise. Sources: PTX ISA 5.2.2-5.2.3 (formats), OCP FP8 v1.0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace ptxb {

inline float bits_to_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t float_to_bits(float value) { return std::bit_cast<uint32_t>(value); }

inline float bf16_to_float(uint16_t bits) { return bits_to_float(uint32_t{bits} << 16); }
// NaN becomes the canonical 0x7fff, as cvt.rn.bf16.f32 gives.
inline uint16_t float_to_bf16(float value) {
  uint32_t bits = float_to_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);  // NaN -> 0x7fff, overflow -> infinity

// e4m3: no infinity, max 448, NaN 0x7f. e5m2: infinity and NaN as IEEE, max 57344.
float e4m3_to_float(uint8_t bits);
float e5m2_to_float(uint8_t bits);
// Saturating to the largest finite value (cvt.rn.satfinite); NaN -> 0x7f.
uint8_t float_to_e4m3_satfinite(float value);
uint8_t float_to_e5m2_satfinite(float value);

// cvt.rna.tf32.f32: nearest, ties away from zero, low 13 bits cleared.
inline uint32_t float_to_tf32_rna(uint32_t bits) {
  if ((bits & 0x7f800000u) == 0x7f800000u) return (bits & 0x007fffffu) ? 0x7fffffffu : bits;
  return (bits + 0x1000u) & ~0x1fffu;
}

}  // namespace ptxb
