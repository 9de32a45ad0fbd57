// Fault: the host function starts another process, which would live on after the evaluation.
// Shows: a child that must be noticed and ended; the parent gives up when it is refused.
// Tiles: CTA 32x32x32, 64 threads. Expected verdict: launch_unsupported (stage launch).
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>

#include "ptxbench_task.h"

namespace {

constexpr int kTile = 32;     // rows and columns of C per CTA, k per step
constexpr int kThreads = 64;  // 8 x 8 threads, 4x4 accumulators each

__global__ void __launch_bounds__(kThreads)
    gemm(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K) {
  __shared__ float a[kTile][kTile + 1], b[kTile][kTile + 1];
  const int thread = threadIdx.x, tx = thread % 8, ty = thread / 8;
  const int row0 = blockIdx.y * kTile, column0 = blockIdx.x * kTile;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < K; k0 += kTile) {
    for (int i = thread; i < kTile * kTile; i += kThreads) {
      const int r = i / kTile, k = i % kTile;
      a[r][k] = row0 + r < M && k0 + k < K ? __bfloat162float(A[(row0 + r) * K + k0 + k]) : 0.0f;
      b[r][k] =
          column0 + r < N && k0 + k < K ? __bfloat162float(B[(column0 + r) * K + k0 + k]) : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < kTile; ++k)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += a[ty * 4 + i][k] * b[tx * 4 + j][k];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int row = row0 + ty * 4 + i, column = column0 + tx * 4 + j;
      if (row < M && column < N) C[row * N + column] = __float2bfloat16(sum[i][j]);
    }
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  const pid_t child = fork();  // fault
  if (child < 0) std::abort();
  if (child == 0) {
    setsid();
    for (;;) pause();
  }
  const dim3 grid((N + kTile - 1) / kTile, (M + kTile - 1) / kTile);
  gemm<<<grid, kThreads, 0, stream>>>(A, B, C, M, N, K);
}
