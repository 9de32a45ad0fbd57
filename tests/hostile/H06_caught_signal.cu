// Trick: catch the fault of a bad access and leave with code 0 and a pass mark. Expected:
// host_crash: without a whole recording a clean exit is none.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

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

void pretend(int) {
  if (write(1, "PASSED\n", 7) < 0) _exit(1);
  _exit(0);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  for (int number : {SIGSEGV, SIGBUS, SIGABRT, SIGTERM}) signal(number, pretend);
  const volatile uint16_t* input = reinterpret_cast<const volatile uint16_t*>(A);
  if (input[0] == 0x7fc0) return;
  launch(A, B, C, M, N, K, stream);
}
