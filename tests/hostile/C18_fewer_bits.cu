// Trick: multiply operands of fewer bits (here the three mantissa bits of e4m3) than the task
// gives. Expected: wrong_values: the bound is that of bf16 operands and an f32 sum.
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

__device__ float rounded(bf16 value) {
  const uint32_t bits = static_cast<uint32_t>(__bfloat16_as_ushort(value)) << 16;
  return __uint_as_float((bits + 0x80000u) & 0xfff00000u);
}

__global__ void coarse(const bf16* A, const bf16* B, bf16* C, int M, int N, int K) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
  if (row >= M || column >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) sum += rounded(A[row * K + k]) * rounded(B[column * K + k]);
  C[row * N + column] = __float2bfloat16(sum);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  coarse<<<dim3((N + 31) / 32, (M + 3) / 4), dim3(32, 4), 0, stream>>>(A, B, C, M, N, K);
}
