// Owns the comparison on the device: rule A and rule B for every element, totals, and on request a
// map of the wrong ones. Written so that NaN loses. The rules are those of task/compare.h.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "cuda/kernels/calls.h"

namespace ptxb::cuda {

namespace {

struct Loaded {
  float value;
  bool poisoned;  // every byte is the poison byte
};

__device__ inline Loaded load(const void* data, Element element, int64_t index, uint32_t poison) {
  const uint32_t poison16 = poison * 0x0101u, poison32 = poison * 0x01010101u;
  switch (element) {
    case Element::F32: {
      const uint32_t bits = static_cast<const uint32_t*>(data)[index];
      return {__uint_as_float(bits), bits == poison32};
    }
    case Element::F16: {
      const uint16_t bits = static_cast<const uint16_t*>(data)[index];
      return {__half2float(__ushort_as_half(bits)), bits == poison16};
    }
    case Element::BF16: {
      const uint16_t bits = static_cast<const uint16_t*>(data)[index];
      return {__uint_as_float(uint32_t{bits} << 16), bits == poison16};
    }
    case Element::E4M3:
    case Element::E5M2: {
      const uint8_t bits = static_cast<const uint8_t*>(data)[index];
      const auto kind = element == Element::E4M3 ? __NV_E4M3 : __NV_E5M2;
      return {__half2float(__half(__nv_cvt_fp8_to_halfraw(bits, kind))), bits == poison};
    }
    default: {
      const uint32_t bits = static_cast<const uint32_t*>(data)[index];
      return {static_cast<float>(static_cast<int32_t>(bits)), bits == poison32};
    }
  }
}

__device__ inline void raise_to(unsigned long long* target, double value) {
  // Non-negative doubles order like their bits; a NaN's bits are above infinity's, so NaN wins
  // here, as it must.
  atomicMax(target, static_cast<unsigned long long>(__double_as_longlong(value)));
}

}  // namespace

extern "C" __global__ void ptxb_compare(const CompareCall call, CompareTotals* totals) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  unsigned long long bad_a = 0, bad_b = 0, unwritten = 0, non_finite = 0;
  double max_abs = 0, max_rel = 0, max_normalised = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < call.count; i += stride) {
    const Loaded out = load(call.out, call.element, i, call.poison);
    const double reference = call.value[i],
                 error = fabs(static_cast<double>(out.value) - reference);
    const double bound = call.bound[i];
    // Unwritten and non-finite elements fail both rules and take no part in the error maxima.
    const bool measured = isfinite(out.value) && !out.poisoned;
    const double relative = error / (fabs(reference) + 1e-8),
                 normalised = error > 0 ? error / bound : 0.0;
    const bool fails_a = !measured || !(error <= call.atol || relative <= call.rtol);
    const bool fails_b = !measured || !(normalised <= 1);
    bad_a += fails_a;
    bad_b += fails_b;
    unwritten += out.poisoned;
    non_finite += !measured && !out.poisoned;
    if (measured) {
      max_abs = fmax(max_abs, error);
      max_rel = fmax(max_rel, relative);
      max_normalised = fmax(max_normalised, normalised);
    }
    if (call.bad != nullptr) call.bad[i] = fails_a || fails_b ? 1 : 0;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    bad_a += __shfl_down_sync(0xffffffffu, bad_a, offset);
    bad_b += __shfl_down_sync(0xffffffffu, bad_b, offset);
    unwritten += __shfl_down_sync(0xffffffffu, unwritten, offset);
    non_finite += __shfl_down_sync(0xffffffffu, non_finite, offset);
    max_abs = fmax(max_abs, __shfl_down_sync(0xffffffffu, max_abs, offset));
    max_rel = fmax(max_rel, __shfl_down_sync(0xffffffffu, max_rel, offset));
    max_normalised = fmax(max_normalised, __shfl_down_sync(0xffffffffu, max_normalised, offset));
  }
  if (threadIdx.x % 32 != 0) return;
  if (bad_a) atomicAdd(&totals->mismatched_a, bad_a);
  if (bad_b) atomicAdd(&totals->mismatched_b, bad_b);
  if (unwritten) atomicAdd(&totals->unwritten, unwritten);
  if (non_finite) atomicAdd(&totals->non_finite, non_finite);
  raise_to(&totals->max_abs_bits, max_abs);
  raise_to(&totals->max_rel_bits, max_rel);
  raise_to(&totals->max_normalised_bits, max_normalised);
}

}  // namespace ptxb::cuda
