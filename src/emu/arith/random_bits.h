// Owns the seeded operand patterns of the arith tests: uniform bits mixed with the values where
// rounding goes wrong. Never used outside tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ptxb::emu::arith {

class RandomBits {
 public:
  explicit RandomBits(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>((next() >> 32) * limit >> 32); }

  // A float pattern of 1 + exponent_bits + fraction_bits: specials, neighbours of powers of two,
  // close exponents, any bits.
  uint64_t float_bits(int exponent_bits, int fraction_bits) {
    uint64_t fraction_mask = (uint64_t{1} << fraction_bits) - 1;
    uint64_t exponent_mask = ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;
    uint64_t sign = (next() & 1) << (exponent_bits + fraction_bits);
    uint64_t bias = (uint64_t{1} << (exponent_bits - 1)) - 1;
    uint64_t random = next();
    switch (below(8)) {
      case 0: {
        const uint64_t specials[] = {0,
                                     1,
                                     fraction_mask,
                                     fraction_mask + 1,
                                     bias << fraction_bits,
                                     exponent_mask,
                                     exponent_mask | 1,
                                     exponent_mask - 1,
                                     exponent_mask | fraction_mask};
        return sign | specials[below(9)];
      }
      case 1:
        return sign | (random & fraction_mask);  // subnormal
      case 2:
        return sign |
               ((((random & exponent_mask) | below(3)) - 1) & (exponent_mask | fraction_mask));
      case 3:
      case 4:
      case 5:  // near one: sums cancel, products stay in range
        return sign | ((bias + below(8) - 4) << fraction_bits) | (random & fraction_mask);
      case 6:  // few fraction bits: ties
        return sign | (random & exponent_mask) | ((random << (fraction_bits - 3)) & fraction_mask);
      default:
        return sign | (random & (exponent_mask | fraction_mask));
    }
  }
  uint32_t f32() { return static_cast<uint32_t>(float_bits(8, 23)); }
  uint64_t f64() { return float_bits(11, 52); }
  uint16_t f16() { return static_cast<uint16_t>(float_bits(5, 10)); }
  uint16_t bf16() { return static_cast<uint16_t>(float_bits(8, 7)); }

 private:
  uint64_t state_;
};

}  // namespace ptxb::emu::arith
