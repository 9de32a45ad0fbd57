// Owns the device twin of task/error_model.h's output_step; a GPU test compares the two on whole
// references.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/kernels/calls.h"

namespace ptxb::cuda {

__device__ inline float bf16_value(uint16_t bits) { return __uint_as_float(uint32_t{bits} << 16); }

__device__ inline double output_step(double x, Element element) {
  if (!(fabs(x) > 0)) return 0;
  int bits = 24;
  switch (element) {
    case Element::BF16:
      bits = 8;
      break;
    case Element::F16:
      bits = 11;
      break;
    case Element::F64:
      bits = 53;
      break;
    case Element::E4M3:
      bits = 4;
      break;
    case Element::E5M2:
      bits = 3;
      break;
    default:
      break;
  }
  int exponent = ilogb(x);
  if (element == Element::F16 && exponent < -14) exponent = -14;
  if (exponent < -126) exponent = -126;
  return ldexp(1.0, exponent - bits + 1);
}

}  // namespace ptxb::cuda
