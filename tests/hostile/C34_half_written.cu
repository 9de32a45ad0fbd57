// Trick or accident: an output of a narrower type fills half of the buffer. Expected: unwritten.
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

__global__ void narrow(uint8_t* C, int count) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < count) C[i] = 0x3f;
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  narrow<<<(M * N + 127) / 128, 128, 0, stream>>>(reinterpret_cast<uint8_t*>(C), M * N);
  (void)A, (void)B, (void)K;
}
