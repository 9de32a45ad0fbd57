// Trick: the name of a library that would do the work is put together at run time, so that no text
// shows it. Where the library is not installed, a copy of the candidate under its name stands in.
// Expected: forbidden_library: what is mapped when the recording ends is looked at, not the
// source.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <fstream>
#include <string>

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

void* open_library() {
  const std::string name = std::string("lib") + "cu" + "bl" + "as.so.13";
  if (void* found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
  Dl_info self = {};
  dladdr(reinterpret_cast<void*>(&launch), &self);
  std::ofstream("/tmp/" + name, std::ios::binary)
      << std::ifstream(self.dli_fname, std::ios::binary).rdbuf();
  return dlopen(("/tmp/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  static void* library = open_library();
  if (library != nullptr) dlsym(library, "cublasCreate_v2");
  launch(A, B, C, M, N, K, stream);
}
