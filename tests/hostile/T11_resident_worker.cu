// Trick: the first call starts a kernel that never ends and polls a flag in mapped host memory;
// later calls only write the flag, so a timer sees nothing. Expected: launch_unsupported: mapped
// host memory is a channel that no plan can hold, and the call is named.
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

__global__ void resident(volatile int* flag, const bf16* A, const bf16* B, bf16* C, int M, int N,
                         int K) {
  for (int seen = 0;;) {
    const int now = *flag;
    if (now < 0) return;
    if (now == seen) continue;
    seen = now;
    for (int i = threadIdx.x; i < M * N; i += 32) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k)
        sum += __bfloat162float(A[i / N * K + k]) * __bfloat162float(B[i % N * K + k]);
      C[i] = __float2bfloat16(sum);
    }
  }
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  static volatile int* flag = nullptr;
  if (flag == nullptr) {
    void *host = nullptr, *device = nullptr;
    cudaHostAlloc(&host, 64, cudaHostAllocMapped);
    cudaHostGetDevicePointer(&device, host, 0);
    flag = static_cast<volatile int*>(host);
    *flag = 0;
    resident<<<1, 32, 0, stream>>>(static_cast<volatile int*>(device), A, B, C, M, N, K);
  }
  *flag = *flag + 1;
}
