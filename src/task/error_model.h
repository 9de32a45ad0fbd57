// Owns the constants and the arithmetic of rule B: how far a correct kernel may be from the exact
// result (docs/checking.md derives them). Plain functions of magnitudes; never sees a candidate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "model/types.h"

namespace ptxb::error_model {

// Significant bits of an output type, the implicit one included.
inline int significant_bits(DType type) {
  switch (type) {
    case DType::BF16:
      return 8;
    case DType::F16:
      return 11;
    case DType::F32:
      return 24;
    case DType::F64:
      return 53;
    case DType::E4M3:
      return 4;
    case DType::E5M2:
      return 3;
    default:
      return 24;
  }
}

// The distance of neighbouring numbers of the type at x: 2^(floor(log2 |x|) - bits + 1). 0 at 0.
inline double output_step(double x, DType type) {
  if (!(std::abs(x) > 0)) return 0;
  int exponent = std::ilogb(x);
  if (type == DType::F16 && exponent < -14) exponent = -14;
  if (exponent < -126) exponent = -126;
  return std::ldexp(1.0, exponent - significant_bits(type) + 1);
}

// Sums of products accumulated in f32, in any order, also truncating as tensor cores do. norms:
// ||a|| * ||b|| >= sum |a||b|.
inline constexpr double kAccumulate = 1.0;
inline double accumulation(double length, double norms) {
  return kAccumulate * std::sqrt(length) * std::ldexp(norms, -24);
}

// One output step admits round to nearest (half a step) and truncation (almost a whole one).
inline double gemm_bound(double value, double length, double norms, DType output) {
  return output_step(value, output) + accumulation(length, norms);
}
// Exact inputs: the sum has no error at all, so only the two neighbours of the exact value are
// right, and the value itself where it is representable.
inline double gemm_exact_bound(double value, DType output) {
  return 0.999 * output_step(value, output);
}

// Attention. incoherent = sqrt(sum p^2 v^2): independent rounding errors of the weights p add up
// like this. Six standard deviations of a bf16 rounding of p (0.4 * 2^-8) are 2.4 * 2^-8; a right wgmma
// kernel on an H200 reached 6.1 * 2^-8 in 1 of 10^8 outputs of spiky inputs (S = 4096), so 8 * 2^-8,
// which also leaves room for one more such rounding (a bf16 copy of scale * Q). logit = scale * ||q o kbar||,
// kbar = sum p k: what that second rounding can do to the scores.
inline constexpr double kWeightRounding = 0x1p-5;
inline double attention_bound(double value, double incoherent, double logit, DType output) {
  return output_step(value, output) + kWeightRounding * (1 + logit) * incoherent;
}
// Exact and coded inputs: equal scores and weights of exactly 1, so only half a bf16 rounding of a
// weight is granted.
inline double attention_exact_bound(double value, double incoherent, DType output) {
  return output_step(value, output) + 0x1p-9 * incoherent;
}
// f32 log-sum-exp. concentration = sqrt(sum p^2): the row sum may be made of bf16-rounded weights;
// norms = ||q|| max ||k|| scale.
inline double lse_bound(double value, double concentration, double logit, double norms) {
  return 0x1p-8 * concentration + kWeightRounding * logit + 0x1p-16 * (1 + std::abs(value)) +
         0x1p-20 * norms;
}

}  // namespace ptxb::error_model
