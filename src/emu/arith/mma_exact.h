// Owns the published bit model of Hopper's floating-point tensor cores: one fused sum of a block of
// products and C. Never knows fragments. Sources: arXiv 2511.10909 (MMA-Sim), arXiv 2512.07004
// (Leeds).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emu/arith/mma_element.h"

namespace ptxb::emu::arith {

// Every product is exact and every term (C too) is truncated toward zero to `fraction_bits` below
// the largest exponent among the terms; exponents of products are sums of the operands' exponents,
// not normalised. The sum is then exact. Zero terms do not take part in the maximum.
struct ExactModel {
  MmaType a = MmaType::BF16;
  MmaType b = MmaType::BF16;
  int fraction_bits = 25;
  int exponent_floor = -133;      // the maximum is at least this ...
  int half_exponent_floor = -21;  // ... and this for f16 results
  int result_fraction_bits = 23;  // f32 results are truncated to so many bits (13: wgmma fp8)
};

// One block: a[i] * b[i * b_stride] for i < count, plus c. Result as f32 bits, truncated. A zero
// result is +0.
uint32_t exact_dot_f32(const ExactModel& model, int count, const float* a, const float* b,
                       int b_stride, uint32_t c);
// The same with C and D in f16, rounded to nearest even.
uint16_t exact_dot_f16(const ExactModel& model, int count, const float* a, const float* b,
                       int b_stride, uint16_t c);

}  // namespace ptxb::emu::arith
