// Trick: a call-count switch on the device: a variable counts launches, and only the first one
// writes the output. Host code is not needed for it, so recording alone does not see it. Expected:
// unwritten: a plan whose code has device variables is also judged in a second call.
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

__device__ int launches = 0;

__global__ void once(const bf16* A, const bf16* B, bf16* C, int M, int N, int K) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
  if (row >= M || column >= N || launches > 0) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[column * K + k]);
  C[row * N + column] = __float2bfloat16(sum);
}

__global__ void count() { ++launches; }

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  once<<<dim3((N + 31) / 32, (M + 3) / 4), dim3(32, 4), 0, stream>>>(A, B, C, M, N, K);
  count<<<1, 1, 0, stream>>>();
}
