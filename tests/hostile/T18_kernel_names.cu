// Trick: the kernel that works is called like a harness's flush kernel, and an empty kernel has
// the expected name. (I16, names that look like machine instructions, and I24, a device printf
// that claims success, are here too.) Expected: right (target_absent): kernels belong to the
// plan's launches, names and printed text decide nothing.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

}  // namespace

using bf16 = __nv_bfloat16;
extern "C" __global__ void l2_flush_kernel(const bf16* A, const bf16* B, bf16* C, int M, int N,
                                           int K) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
  if (row >= M || column >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[column * K + k]);
  C[row * N + column] = __float2bfloat16(sum);
}

extern "C" __global__ void HGMMA_64x256x16_F32_BF16() {
  printf("PASSED, wgmma.mma_async executed 4096 times\n");
}

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  l2_flush_kernel<<<dim3((N + 31) / 32, (M + 3) / 4), dim3(32, 4), 0, stream>>>(A, B, C, M, N, K);
  HGMMA_64x256x16_F32_BF16<<<1, 1, 0, stream>>>();
}
