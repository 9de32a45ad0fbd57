// Trick: the first call computes and keeps the answer in device memory, later calls deliver it by
// a kernel. Expected: wrong_values: the first call is replayed with other data than the checked
// one.
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

__global__ void copy(const bf16* from, bf16* to, int count) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < count) to[i] = from[i];
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  static bf16* kept = nullptr;
  if (kept == nullptr) {
    cudaMalloc(&kept, M * N * sizeof(bf16));
    launch(A, B, kept, M, N, K, stream);
  }
  copy<<<(M * N + 127) / 128, 128, 0, stream>>>(kept, C, M * N);
}
