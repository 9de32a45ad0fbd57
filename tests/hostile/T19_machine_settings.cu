// Tricks: lock the clocks through the management library (T19), reserve L2 for an input (T21),
// work on a second GPU (T27). Expected: right (target_absent): the sandbox has no management
// library's device, one GPU is shown, and limits or stream attributes are no part of a plan, so
// the replay is cold and alone.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

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

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  if (void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    auto start = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    auto lock = reinterpret_cast<int (*)(void*, unsigned, unsigned)>(
        dlsym(library, "nvmlDeviceSetGpuLockedClocks"));
    if (start != nullptr && lock != nullptr && start() == 0) lock(nullptr, 1980, 1980);
  }
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 32 << 20);
  cudaStreamAttrValue window = {};
  window.accessPolicyWindow.base_ptr = const_cast<bf16*>(B);
  window.accessPolicyWindow.num_bytes = N * K * sizeof(bf16);
  window.accessPolicyWindow.hitRatio = 1.0f;
  window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window);
  int devices = 0;
  cudaGetDeviceCount(&devices);
  if (devices > 1) cudaSetDevice(1);
  launch(A, B, C, M, N, K, stream);
}
