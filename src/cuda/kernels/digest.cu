// Owns the device digests: a 64-bit sum over positions, so the order of threads cannot change it.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cuda/kernels/calls.h"

namespace ptxb::cuda {

__device__ inline uint64_t scrambled(uint64_t x) {  // murmur3's finaliser
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

__device__ inline uint64_t place(uint64_t word, uint64_t index, uint64_t salt) {
  return scrambled(word + scrambled(index * 0x9e3779b97f4a7c15ull + salt));
}

// Adds the digest of `bytes` bytes at data (16-byte aligned) to *sum.
extern "C" __global__ void ptxb_digest(const uint8_t* data, uint64_t bytes, uint64_t salt,
                                       unsigned long long* sum) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  const uint64_t first = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const auto* vectors = reinterpret_cast<const ulonglong2*>(data);
  const uint64_t count = bytes / 16;
  uint64_t own = 0;
  for (uint64_t i = first; i < count; i += stride) {
    const ulonglong2 pair = vectors[i];
    own += place(pair.x, 2 * i, salt) + place(pair.y, 2 * i + 1, salt);
  }
  if (first < bytes % 16) {
    const uint64_t at = count * 16 + first;
    own += place(data[at], ~at, salt);
  }
  for (int offset = 16; offset > 0; offset /= 2) own += __shfl_down_sync(0xffffffffu, own, offset);
  __shared__ uint64_t warps[32];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < blockDim.x / 32; ++w) own += warps[w];
    atomicAdd(sum, own);
  }
}

}  // namespace ptxb::cuda
