// Owns the integer model of IEEE arithmetic: exact or sticky-jammed values, one rounding into any
// binary format. Never fast: the rare rounding modes, small formats and conversions use it; it is
// also the oracle of the fast paths.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emu/arith/controls.h"

namespace ptxb::emu::arith {

__extension__ typedef unsigned __int128 Wide;

// An IEEE-like format of 1 + exponent_bits + fraction_bits bits.
struct Format {
  int exponent_bits;
  int fraction_bits;
  uint64_t finite_limit = 0;  // largest finite pattern of formats without infinity; 0: IEEE
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint64_t infinity() const {
    return ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;
  }
  constexpr uint64_t largest() const { return finite_limit != 0 ? finite_limit : infinity() - 1; }
  constexpr uint64_t sign_bit() const { return uint64_t{1} << (exponent_bits + fraction_bits); }
};
inline constexpr Format kFormatF16{5, 10};
inline constexpr Format kFormatBF16{8, 7};
inline constexpr Format kFormatTF32{8, 10};  // the upper 19 bits of an f32
inline constexpr Format kFormatF32{8, 23};
inline constexpr Format kFormatF64{11, 52};
inline constexpr Format kFormatE5M2{5, 2};
inline constexpr Format kFormatE4M3{4, 3, 0x7e};  // NaN is 0x7f
inline constexpr Format kFormatE3M2{3, 2, 0x1f};
inline constexpr Format kFormatE2M3{2, 3, 0x1f};
inline constexpr Format kFormatE2M1{2, 1, 0x07};

enum class SoftKind : uint8_t { Zero, Finite, Infinite, NaN };

// Finite: mantissa * 2^exponent. The lowest bit may stand for a lost remainder ("jam") when the
// mantissa has at least 60 significant bits, which never changes a rounding to 53 bits or fewer.
struct Soft {
  SoftKind kind = SoftKind::Zero;
  bool negative = false;
  int exponent = 0;
  Wide mantissa = 0;
};

enum class Overflow : uint8_t { Ieee, Saturate };

Soft unpack(Format format, uint64_t bits);
Soft soft_integer(bool negative, uint64_t magnitude);
// NaN gives all ones below the sign bit (NVIDIA's canonical NaN of f16, bf16, f32).
uint64_t pack(Format format, const Soft& value, Round round, Overflow overflow = Overflow::Ieee);

Soft soft_negate(Soft a);
Soft soft_add(const Soft& a, const Soft& b, Round round);  // round: the sign of an exact zero
Soft soft_mul(const Soft& a, const Soft& b);
Soft soft_fma(const Soft& a, const Soft& b, const Soft& c, Round round);
Soft soft_div(const Soft& a, const Soft& b);
Soft soft_sqrt(const Soft& a);
Soft soft_round_to_integral(const Soft& a, Round round);

// Rounds to an integer; the magnitude saturates at 2^64 - 1 (`overflowed`).
struct SoftInteger {
  uint64_t magnitude = 0;
  bool overflowed = false;
};
SoftInteger soft_to_integer(const Soft& a, Round round);

// The shared rounding decision: remainder of `bits_lost` low bits of mantissa.
Wide round_shift(Wide mantissa, int bits_lost, bool negative, Round round);

}  // namespace ptxb::emu::arith
