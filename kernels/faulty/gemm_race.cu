// Fault: the __syncthreads() before the two warps' partial sums are added is missing. The writing
// warp has a quarter of the work, so in practice its sums are there long before they are read: runs
// give the right values. Shows: a race that only the rules reveal. (Inside a warp the steps are
// ordered by __syncwarp().) Tiles: CTA 32x32x32, 64 threads, K split 1:3 between two warps.
// Expected verdict: race (stage check). SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

constexpr int kTile = 32;  // rows and columns of C per CTA, k per step

__global__ void __launch_bounds__(64)
    gemm(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K) {
  __shared__ float a[2][kTile][kTile + 1], b[2][kTile][kTile + 1];  // one tile each for either warp
  __shared__ float partial[kTile][kTile];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, tx = lane % 4, ty = lane / 4;
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  const int split = K / kTile / 4 * kTile;  // warp 0: [0, split), warp 1: [split, K)
  float sum[4][8] = {};
  for (int k0 = warp == 0 ? 0 : split; k0 < (warp == 0 ? split : K); k0 += kTile) {
    for (int r = 0; r < kTile; ++r) {
      const bool inside = k0 + lane < K;
      a[warp][r][lane] =
          inside && row0 + r < M ? __bfloat162float(A[(row0 + r) * K + k0 + lane]) : 0.0f;
      b[warp][r][lane] =
          inside && column0 + r < N ? __bfloat162float(B[(column0 + r) * K + k0 + lane]) : 0.0f;
    }
    __syncwarp();
    for (int k = 0; k < kTile; ++k)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 8; ++j) sum[i][j] += a[warp][ty * 4 + i][k] * b[warp][tx * 8 + j][k];
    __syncwarp();
  }
  if (warp == 0) {
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 8; ++j) partial[ty * 4 + i][tx * 8 + j] = sum[i][j];
    return;
  }
  // fault: nothing orders these reads after the other warp's writes
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 8; ++j) {
      const int row = row0 + ty * 4 + i, column = column0 + tx * 8 + j;
      if (row < M && column < N)
        C[row * N + column] = __float2bfloat16(sum[i][j] + partial[ty * 4 + i][tx * 8 + j]);
    }
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  const dim3 grid((N + kTile - 1) / kTile, (M + kTile - 1) / kTile);
  gemm<<<grid, 64, 0, stream>>>(A, B, C, M, N, K);
}
