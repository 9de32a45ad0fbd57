// Legal twin of C26 and C30: the sum is split over two blocks that add to f32 scratch by atomics;
// run() clears the scratch itself. Expected: right (target_absent).
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

__global__ void part(const bf16* A, const bf16* B, float* total, int M, int N, int K) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
  if (row >= M || column >= N) return;
  float sum = 0.0f;
  const int begin = blockIdx.z * K / 2, end = (blockIdx.z + 1) * K / 2;
  for (int k = begin; k < end; ++k)
    sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[column * K + k]);
  atomicAdd(total + row * N + column, sum);
}

__global__ void convert(const float* total, bf16* C, int count) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < count) C[i] = __float2bfloat16(total[i]);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  static float* total = nullptr;
  if (total == nullptr) cudaMalloc(&total, M * N * sizeof(float));
  cudaMemsetAsync(total, 0, M * N * sizeof(float), stream);
  part<<<dim3((N + 31) / 32, (M + 3) / 4, 2), dim3(32, 4), 0, stream>>>(A, B, total, M, N, K);
  convert<<<(M * N + 127) / 128, 128, 0, stream>>>(total, C, M * N);
}
