// Trick: a packed copy of B is kept as long as the pointer is the same, so that packing is paid
// once. Expected: right (target_absent): the recorded calls have different pointers, the packing
// is part of the steady call and is timed. Keeping it whatever the pointer: C05.
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

__global__ void pack(const bf16* from, bf16* to, int count) {
  for (int i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) to[i] = from[i];
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  static const bf16* key = nullptr;
  static bf16* packed = nullptr;
  if (packed == nullptr) cudaMalloc(&packed, N * K * sizeof(bf16));
  if (key != B) pack<<<64, 128, 0, stream>>>(B, packed, N * K);
  key = B;
  launch(A, packed, C, M, N, K, stream);
}
