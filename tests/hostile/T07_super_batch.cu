// Trick: remember the pointers of a measuring loop, do all of its work in the first call of the
// next round and nothing in the others. (The replay of results by pointer, C04, is of this kind.)
// Expected: right (target_absent). Each recorded call has pointers of its own, so all are honest,
// and what was recorded is what is replayed: the skipping branch is never taken.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

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

struct Seen {
  const bf16 *A, *B;
  bf16* C;
};
std::vector<Seen> seen;
size_t turn = 0;

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  for (const Seen& one : seen) {
    if (one.C != C) continue;
    if (turn++ % seen.size() == 0)
      for (const Seen& each : seen) launch(each.A, each.B, each.C, M, N, K, stream);
    return;
  }
  seen.push_back({A, B, C});
  launch(A, B, C, M, N, K, stream);
}
