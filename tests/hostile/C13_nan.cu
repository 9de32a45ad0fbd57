// Trick: NaN everywhere, because comparisons with NaN are false. Expected: non_finite: the
// comparison is written so that NaN loses.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

__global__ void fill(bf16* C, int count, float value) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < count) C[i] = __float2bfloat16(value);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  fill<<<(M * N + 127) / 128, 128, 0, stream>>>(C, M * N, NAN);
  (void)A, (void)B, (void)K;
}
