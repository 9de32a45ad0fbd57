// Trick: hash the inputs on the device and replay a kept answer when the hash is known. Expected:
// launch_unsupported: host code that decides by device data cannot be recorded.
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

__global__ void add_up(const bf16* A, int count, unsigned* hash) {
  unsigned sum = 0;
  for (int i = threadIdx.x; i < count; i += 128) sum = sum * 31 + __bfloat16_as_ushort(A[i]);
  atomicAdd(hash, sum);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  static unsigned* hash = nullptr;
  static unsigned known = 0;
  if (hash == nullptr) cudaMalloc(&hash, 4);
  cudaMemsetAsync(hash, 0, 4, stream);
  add_up<<<1, 128, 0, stream>>>(A, M * K, hash);
  unsigned now = 0;
  cudaMemcpyAsync(&now, hash, 4, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  if (now != known) launch(A, B, C, M, N, K, stream);
  known = now;
}
