// Legal twin of C03: the last block of each launch resets the device variable that the blocks
// count with. Expected: right (target_absent).
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

__device__ unsigned blocks_done = 0;

__global__ void counted(const bf16* A, const bf16* B, bf16* C, int M, int N, int K) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
  if (row < M && column < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
      sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[column * K + k]);
    C[row * N + column] = __float2bfloat16(sum);
  }
  if (threadIdx.x == 0 && threadIdx.y == 0) atomicInc(&blocks_done, gridDim.x * gridDim.y - 1);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  counted<<<dim3((N + 31) / 32, (M + 3) / 4), dim3(32, 4), 0, stream>>>(A, B, C, M, N, K);
}
