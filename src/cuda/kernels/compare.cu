// Owns the comparison on the device: rule A and rule B for every element, totals, and a map of error cells.
// Written so that NaN loses. The rules are those of task/compare.h.
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
  // Non-negative doubles order like their bits; a NaN's bits are above infinity's, so NaN wins here, as it must.
  atomicMax(target, static_cast<unsigned long long>(__double_as_longlong(value)));
}

}  // namespace

extern "C" __global__ void ptxb_compare(const CompareCall call, CompareTotals* totals, CompareCell* cells) {
  const int64_t count = call.rows * call.columns, stride = int64_t{gridDim.x} * blockDim.x;
  unsigned long long bad_a = 0, bad_b = 0, bad = 0, unwritten = 0, non_finite = 0;
  double max_abs = 0, max_rel = 0, max_normalised = 0, error2 = 0, value2 = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const Loaded out = load(call.out, call.element, i, call.poison);
    const double reference = call.value[i], error = fabs(static_cast<double>(out.value) - reference);
    const double bound = call.bound[i];
    const bool finite = isfinite(out.value);
    const bool fails_a = !(error <= call.atol + call.rtol * fabs(reference));
    const bool fails_b = !(error <= bound);
    bad_a += fails_a;
    bad_b += fails_b;
    unwritten += out.poisoned;
    non_finite += !finite && !out.poisoned;
    if (finite) {
      max_abs = fmax(max_abs, error);
      max_rel = fmax(max_rel, error / (fabs(reference) + 1e-8));
      max_normalised = fmax(max_normalised, error == 0 ? 0.0 : error / bound);
      error2 += error * error;
    }
    value2 += reference * reference;
    if (!fails_a && !fails_b) continue;
    ++bad;
    const int64_t row = i / call.columns, column = i % call.columns;
    CompareCell* cell = &cells[row / call.cell_rows * call.cells_across + column / call.cell_columns];
    atomicAdd(&cell->mismatches, 1ull);
    atomicMin(&cell->first, static_cast<unsigned long long>(i));
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    bad_a += __shfl_down_sync(0xffffffffu, bad_a, offset);
    bad_b += __shfl_down_sync(0xffffffffu, bad_b, offset);
    bad += __shfl_down_sync(0xffffffffu, bad, offset);
    unwritten += __shfl_down_sync(0xffffffffu, unwritten, offset);
    non_finite += __shfl_down_sync(0xffffffffu, non_finite, offset);
    max_abs = fmax(max_abs, __shfl_down_sync(0xffffffffu, max_abs, offset));
    max_rel = fmax(max_rel, __shfl_down_sync(0xffffffffu, max_rel, offset));
    max_normalised = fmax(max_normalised, __shfl_down_sync(0xffffffffu, max_normalised, offset));
    error2 += __shfl_down_sync(0xffffffffu, error2, offset);
    value2 += __shfl_down_sync(0xffffffffu, value2, offset);
  }
  if (threadIdx.x % 32 != 0) return;
  if (bad_a) atomicAdd(&totals->mismatched_a, bad_a);
  if (bad_b) atomicAdd(&totals->mismatched_b, bad_b);
  if (bad) atomicAdd(&totals->mismatched, bad);
  if (unwritten) atomicAdd(&totals->unwritten, unwritten);
  if (non_finite) atomicAdd(&totals->non_finite, non_finite);
  raise_to(&totals->max_abs_bits, max_abs);
  raise_to(&totals->max_rel_bits, max_rel);
  raise_to(&totals->max_normalised_bits, max_normalised);
  atomicAdd(&totals->sum_squared_error, error2);
  atomicAdd(&totals->sum_squared_value, value2);
}

// For the elements that the cells named: what was there and what should have been.
extern "C" __global__ void ptxb_gather(const CompareCall call, const unsigned long long* indices, uint32_t count,
                                       GatheredElement* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const auto at = static_cast<int64_t>(indices[i]);
  out[i] = {load(call.out, call.element, at, call.poison).value, call.value[at], call.bound[at]};
}

}  // namespace ptxb::cuda
