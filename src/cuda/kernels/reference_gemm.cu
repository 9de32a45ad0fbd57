// Owns the GPU reference of C = A B^T on bf16: fp64 accumulation, no tensor cores, simple on
// purpose. 128x64 tiles, 256 threads, 8x4 elements a thread.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cuda/kernels/calls.h"
#include "cuda/kernels/error_step.cuh"

namespace ptxb::cuda {

namespace {

constexpr int kTileM = 128, kTileN = 64, kTileK = 16;

}  // namespace

extern "C" __global__ __launch_bounds__(256, 2) void ptxb_reference_gemm_nt(const GemmCall call) {
  // Padded by two doubles: the transposing stores of a warp then spread over the banks; rows stay
  // 16-byte aligned.
  __shared__ double a_tile[kTileK][kTileM + 2];
  __shared__ double b_tile[kTileK][kTileN + 2];
  const auto* a = static_cast<const uint16_t*>(call.a);
  const auto* b = static_cast<const uint16_t*>(call.b);
  const int64_t m0 = int64_t{blockIdx.y} * kTileM, n0 = int64_t{blockIdx.x} * kTileN;
  const int tm = static_cast<int>(threadIdx.x) / 16 * 8,
            tn = static_cast<int>(threadIdx.x) % 16 * 4;
  double sum[8][4] = {};
  for (int64_t k0 = 0; k0 < call.k; k0 += kTileK) {
    for (int i = static_cast<int>(threadIdx.x); i < kTileM * kTileK; i += 256) {
      const int row = i / kTileK, k = i % kTileK;
      const bool inside = m0 + row < call.m && k0 + k < call.k;
      const float value = inside ? bf16_value(a[(m0 + row) * call.k + k0 + k]) : 0.0f;
      a_tile[k][row] = value;
    }
    for (int i = static_cast<int>(threadIdx.x); i < kTileN * kTileK; i += 256) {
      const int row = i / kTileK, k = i % kTileK;
      const bool inside = n0 + row < call.n && k0 + k < call.k;
      const float value = inside ? bf16_value(b[(n0 + row) * call.k + k0 + k]) : 0.0f;
      b_tile[k][row] = value;
    }
    __syncthreads();
#pragma unroll 2
    for (int k = 0; k < kTileK; ++k) {
      double x[8], y[4];
#pragma unroll
      for (int i = 0; i < 8; ++i) x[i] = a_tile[k][tm + i];
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = b_tile[k][tn + j];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = fma(x[i], y[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (m0 + tm + i >= call.m || n0 + tn + j >= call.n) continue;
      const int64_t at = (m0 + tm + i) * call.n + n0 + tn + j;
      const double step = output_step(sum[i][j], call.output);
      const double norms = call.a_norms[m0 + tm + i] * call.b_norms[n0 + tn + j];
      call.value[at] = static_cast<float>(sum[i][j]);
      call.bound[at] =
          static_cast<float>(call.kind == BoundKind::Exact
                                 ? 0.999 * step
                                 : step + sqrt(static_cast<double>(call.k)) * norms * 0x1p-24);
    }
  }
}

// Euclidean norms of rows of bf16, one warp a row.
extern "C" __global__ void ptxb_row_norms(const uint16_t* data, int64_t rows, int64_t length,
                                          double* norms) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= rows) return;
  double sum = 0;
  for (int64_t k = threadIdx.x % 32; k < length; k += 32) {
    const double x = bf16_value(data[row * length + k]);
    sum = fma(x, x, sum);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) norms[row] = sqrt(sum);
}

}  // namespace ptxb::cuda
