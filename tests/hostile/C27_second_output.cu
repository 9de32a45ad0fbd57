// Trick or accident: the first output of two is right, the second one is never written. Expected:
// unwritten: every output of the task is poisoned and compared.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ptxbench_task.h"

namespace {

// One thread a query: two passes over the keys, no tricks.
__global__ void attend(const __nv_bfloat16* Q, const __nv_bfloat16* K, const __nv_bfloat16* V,
                       __nv_bfloat16* O, int rows, int S) {
  constexpr int kDepth = 128;
  const int row = blockIdx.x * 32 + threadIdx.x;
  if (row >= rows) return;
  const int head = row / S * S;
  const float scale = rsqrtf(static_cast<float>(kDepth));
  float out[kDepth] = {}, total = 0.0f, largest = -INFINITY;
  for (int pass = 0; pass < 2; ++pass)
    for (int key = head; key < head + S; ++key) {
      float score = 0.0f;
      for (int d = 0; d < kDepth; ++d)
        score += __bfloat162float(Q[row * kDepth + d]) * __bfloat162float(K[key * kDepth + d]);
      score *= scale;
      if (pass == 0) {
        largest = fmaxf(largest, score);
        continue;
      }
      const float weight = expf(score - largest);
      total += weight;
      for (int d = 0; d < kDepth; ++d) out[d] += weight * __bfloat162float(V[key * kDepth + d]);
    }
  for (int d = 0; d < kDepth; ++d) O[row * kDepth + d] = __float2bfloat16(out[d] / total);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* Q, const __nv_bfloat16* K, const __nv_bfloat16* V,
                    __nv_bfloat16* O, float* LSE, int64_t B, int64_t H, int64_t S, int64_t D,
                    cudaStream_t stream) {
  (void)LSE, (void)D;
  const int rows = static_cast<int>(B * H * S);
  attend<<<(rows + 31) / 32, 32, 0, stream>>>(Q, K, V, O, rows, static_cast<int>(S));
}
