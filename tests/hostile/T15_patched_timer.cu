// Tricks: a constructor overwrites the machine code of the timer functions (T15), run() looks for
// the caller's events on the stack (T16) and ends the profiler (T17). Expected: right
// (target_absent): none of the three lives in the process that loads a candidate. The clock, the
// events and the counters belong to another program, which gets a plan.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>

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

int instant(float* ms, void*, void*) {
  *ms = 0.001f;
  return 0;
}

__attribute__((constructor)) void detour() {
  auto* code = static_cast<unsigned char*>(dlsym(RTLD_DEFAULT, "cudaEventElapsedTime"));
  if (code == nullptr) return;
  void* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(code) & ~uintptr_t{4095});
  if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
  unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0,    0,
                            0,    0,    0, 0, 0xff, 0xe0};  // mov rax, ...; jmp rax
  void* target = reinterpret_cast<void*>(instant);
  std::memcpy(jump + 2, &target, sizeof target);
  std::memcpy(code, jump, sizeof jump);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  launch(A, B, C, M, N, K, stream);
  void** words = static_cast<void**>(__builtin_frame_address(0));
  for (int i = 0; i < 64; ++i)
    if (words[i] != nullptr &&
        cudaEventQuery(static_cast<cudaEvent_t>(words[i])) == cudaErrorNotReady)
      cudaEventRecord(static_cast<cudaEvent_t>(words[i]), stream);
  if (void* profiler = dlopen("libcupti.so.13", RTLD_NOLOAD | RTLD_NOW)) {
    auto end = reinterpret_cast<int (*)()>(dlsym(profiler, "cuptiFinalize"));
    if (end != nullptr) end();
  }
}
