// Trick: a kernel of a library, embedded as machine code (here the smallest file that is
// recognised as such). Expected: launch_unsupported: a plan holds code that was built from the
// source, or PTX that can be looked into and emulated.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <elf.h>

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

const void* image() {
  constexpr int kCudaMachine = 190;
  alignas(64) static unsigned char bytes[sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr)] = {};
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = kCudaMachine;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 1;
  std::memcpy(bytes, &header, sizeof header);
  return bytes;
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  static CUmodule module = nullptr;
  if (module == nullptr && cuModuleLoadData(&module, image()) != CUDA_SUCCESS) return;
  launch(A, B, C, M, N, K, stream);
}
