// Trick or accident: the sum is split over two blocks which read and write the output without
// order; often right by luck. Expected: race. Legal twin: C26_atomic_halves.
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

__global__ void part(const bf16* A, const bf16* B, bf16* C, int M, int N, int K) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
  if (row >= M || column >= N) return;
  float sum = 0.0f;
  const int begin = blockIdx.z * K / 2, end = (blockIdx.z + 1) * K / 2;
  for (int k = begin; k < end; ++k)
    sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[column * K + k]);
  C[row * N + column] = __float2bfloat16(__bfloat162float(C[row * N + column]) + sum);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  cudaMemsetAsync(C, 0, M * N * sizeof(bf16), stream);
  part<<<dim3((N + 31) / 32, (M + 3) / 4, 2), dim3(32, 4), 0, stream>>>(A, B, C, M, N, K);
}
