// Tricks: the asked instruction in a comment (I01), in a string (I02), in text that is not
// compiled (I03) and in a kernel that is never launched (I04). Expected: target_absent: executed
// instructions are counted.
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

// One m64n8k16 product of a warpgroup on whatever lies in shared memory.
__device__ void one_product(float (&d)[4], const void* shared) {
  const uint64_t matrix =
      (__cvta_generic_to_shared(shared) & 0x3ffff) >> 4 | uint64_t{1} << 16 | uint64_t{8} << 32;
  asm volatile(
      "wgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, "
      "0;\n"
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(matrix)
      : "memory");
}

// wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16, cp.async.bulk.tensor.2d
#if 0
asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 ...");
#endif
__global__ void never(float* out) {
  __shared__ __align__(128) char shared[4096];
  float d[4] = {};
  one_product(d, shared);
  out[threadIdx.x] = d[0];
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  static const char* const text = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16";
  if (text[0] == 0) never<<<1, 128, 0, stream>>>(nullptr);
  launch(A, B, C, M, N, K, stream);
}
