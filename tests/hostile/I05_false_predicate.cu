// Trick: the asked instruction is there, behind a predicate that is false for every thread. (I25,
// a commit without a product, is here too.) Expected: target_absent: issued is not executed.
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

// C = A * B^T, one thread an element: right, and slow.
__global__ void honest(const bf16* A, const bf16* B, bf16* C, int M, int N, int K) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
  if (row >= M || column >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[column * K + k]);
  C[row * N + column] = __float2bfloat16(sum);
}

void launch(const bf16* A, const bf16* B, bf16* C, int M, int N, int K, cudaStream_t stream) {
  honest<<<dim3((N + 31) / 32, (M + 3) / 4), dim3(32, 4), 0, stream>>>(A, B, C, M, N, K);
}

__global__ void off(bf16* C, int zero) {
  float d[4] = {};
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.s32 p, %5, 0;\n"
      "wgmma.fence.sync.aligned;\n"
      "@p wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, "
      "0, 0;\n"
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(uint64_t{0}), "r"(zero)
      : "memory");
  if (d[0] != 0.0f) C[0] = __float2bfloat16(d[0]);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  launch(A, B, C, M, N, K, stream);
  off<<<1, 128, 0, stream>>>(C, 0);
}
