// Owns the small kernels that the GPU tests replay: honest ones, and one for each way to go wrong.
// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_bf16.h>

#include <cassert>
#include <cstdint>

using bf16 = __nv_bfloat16;

__device__ float dot(const bf16* a, const bf16* b, int64_t k) {
  float sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += __bfloat162float(a[i]) * __bfloat162float(b[i]);
  return sum;
}

#define ROW_COLUMN()                                                     \
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; \
  const int64_t row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y;    \
  if (row >= M || column >= N) return

extern "C" {

__global__ void honest(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N, int64_t K) {
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(dot(A + row * K, B + column * K, K));
}

// The last 8 of K are missing.
__global__ void dropped_tail(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N,
                             int64_t K) {
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(dot(A + row * K, B + column * K, K - 8));
}

// The last row is never written.
__global__ void unwritten(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N, int64_t K) {
  ROW_COLUMN();
  if (row + 1 < M) C[row * N + column] = __float2bfloat16(dot(A + row * K, B + column * K, K));
}

__global__ void not_finite(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N, int64_t K) {
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(row == 1 ? INFINITY : dot(A + row * K, B + column * K, K));
}

// Adds to what was in C: poison in, NaN out.
__global__ void accumulates(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N,
                            int64_t K) {
  ROW_COLUMN();
  const float before = __bfloat162float(C[row * N + column]);
  C[row * N + column] = __float2bfloat16(before + dot(A + row * K, B + column * K, K));
}

__global__ void modifies_input(bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N, int64_t K) {
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(dot(A + row * K, B + column * K, K));
  if (row == 0 && column == 0) A[K - 1] = __float2bfloat16(77.0f);
}

// Writes one element before the start of C: inside C's mapping, outside C.
__global__ void writes_before(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N,
                              int64_t K) {
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(dot(A + row * K, B + column * K, K));
  if (row == 0 && column == 0) C[-1] = __float2bfloat16(1.0f);
}

// One element past the end of C (C's size is a multiple of 256 bytes in this test): an unmapped
// page.
__global__ void writes_past(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N,
                            int64_t K) {
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(dot(A + row * K, B + column * K, K));
  if (row == 0 && column == 0) C[M * N] = __float2bfloat16(1.0f);
}

__global__ void bad_pointer(const bf16*, const bf16*, bf16*, int64_t M, int64_t N, int64_t) {
  ROW_COLUMN();
  *reinterpret_cast<volatile int*>(uint64_t{0x10}) = 1;
}

__global__ void misaligned(const bf16*, const bf16*, bf16* C, int64_t M, int64_t N, int64_t) {
  ROW_COLUMN();
  *reinterpret_cast<volatile int*>(reinterpret_cast<uint64_t>(C) + 2) = 1;
}

__global__ void traps(const bf16*, const bf16*, bf16*, int64_t, int64_t, int64_t) { __trap(); }

__global__ void asserts(const bf16*, const bf16*, bf16*, int64_t M, int64_t, int64_t) {
  assert(M < 0);
}

__global__ void loops(const bf16*, const bf16*, volatile bf16* C, int64_t, int64_t, int64_t) {
  volatile int* flag = reinterpret_cast<volatile int*>(const_cast<bf16*>(C));
  const int first = *flag;
  while (*flag == first) {
  }
}

// Half of the sum in each of two launches, through scratch memory.
__global__ void first_half(const bf16* A, const bf16* B, float* scratch, int64_t M, int64_t N,
                           int64_t K) {
  ROW_COLUMN();
  scratch[row * N + column] = dot(A + row * K, B + column * K, K / 2);
}
__global__ void second_half(const bf16* A, const bf16* B, const float* scratch, bf16* C, int64_t M,
                            int64_t N, int64_t K) {
  ROW_COLUMN();
  const int64_t half = K / 2;
  C[row * N + column] = __float2bfloat16(scratch[row * N + column] +
                                         dot(A + row * K + half, B + column * K + half, K - half));
}

// What a first call left in the module answers the second one: cached[] is filled by `fill_cache`
// in setup.
__device__ bf16 cached[64 * 1024];
__global__ void fill_cache(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N, int64_t K) {
  ROW_COLUMN();
  cached[row * N + column] = C[row * N + column] =
      __float2bfloat16(dot(A + row * K, B + column * K, K));
}
__global__ void answer_from_cache(bf16* C, int64_t M, int64_t N) {
  ROW_COLUMN();
  C[row * N + column] = cached[row * N + column];
}

// 300,000 cycles of honest idling before the product, on every call or on the first one only.
__device__ void idle() {
  const long long begin = clock64();
  while (clock64() - begin < 300'000) {
  }
}
__global__ void slow_honest(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N,
                            int64_t K) {
  idle();
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(dot(A + row * K, B + column * K, K));
}
__device__ bf16 remembered[64 * 1024];
__device__ int calls[64 * 1024];
__global__ void slow_first_call(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N,
                                int64_t K) {
  ROW_COLUMN();
  const int64_t at = row * N + column;
  if (calls[at] == 0) {
    idle();
    remembered[at] = __float2bfloat16(dot(A + row * K, B + column * K, K));
    calls[at] = 1;
  }
  C[at] = remembered[at];
}

// The factor lies in constant memory (WriteBytes), the pointer to `bias` comes as a parameter (a
// symbol's address).
__constant__ float factor;
__device__ float bias[4];
__global__ void scaled(const bf16* A, const bf16* B, bf16* C, const float* offset, int64_t M,
                       int64_t N, int64_t K) {
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(factor * dot(A + row * K, B + column * K, K) + offset[2]);
}

__global__ void needs_shared(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N,
                             int64_t K) {
  extern __shared__ float memory[];
  memory[threadIdx.x] = 1;
  __syncthreads();
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(memory[threadIdx.x] * dot(A + row * K, B + column * K, K));
}

__global__ void cooperative(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N,
                            int64_t K) {
  cooperative_groups::this_grid().sync();
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(dot(A + row * K, B + column * K, K));
}

__global__ void clustered(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N, int64_t K) {
  cooperative_groups::this_cluster().sync();
  const unsigned in_cluster = cooperative_groups::this_cluster().num_blocks();
  ROW_COLUMN();
  const float sum = dot(A + row * K, B + column * K, K);
  C[row * N + column] = __float2bfloat16(in_cluster == 2 ? sum : -sum);
}

// Spins for ~cycles: a kernel of known length.
__global__ void spins(bf16* C, int64_t M, int64_t N, int64_t cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(0.0f);
}

// Reads `bytes` of A once: a memory-bound kernel for the cold/hot tests.
__global__ void reads(const uint4* A, bf16* C, int64_t bytes) {
  uint4 own = {};
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < bytes / 16;
       i += int64_t{gridDim.x} * blockDim.x) {
    const uint4 word = A[i];
    own.x ^= word.x ^ word.y ^ word.z ^ word.w;
  }
  if (own.x == 0x12345678) C[0] = __float2bfloat16(1.0f);
}

// A bare commit: ptxas emits an HGMMA-named instruction that does nothing.
__global__ void decoy(const bf16* A, const bf16* B, bf16* C, int64_t M, int64_t N, int64_t K) {
  asm volatile(
      "wgmma.fence.sync.aligned;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned "
      "0;" ::
          : "memory");
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(dot(A + row * K, B + column * K, K));
}

// A counted loop: each warp executes the FFMA-like body exactly `times` times.
__global__ void counted(bf16* C, int64_t M, int64_t N, int times) {
  double x = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < times; ++i) asm volatile("fma.rn.f64 %0, %0, %0, %0;" : "+d"(x));
  ROW_COLUMN();
  C[row * N + column] = __float2bfloat16(static_cast<float>(x));
}

// A bulk tensor load from a misaligned shared-memory address.
__global__ void misaligned_tma(const __grid_constant__ CUtensorMap map, bf16* C) {
  __shared__ __align__(128) uint8_t tile[4096 + 128];
  __shared__ uint64_t barrier;
  const auto bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(tile)) + 8;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.proxy.async.shared::cta;" ::"r"(bar)
               : "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" ::"r"(bar) : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(to),
      "l"(reinterpret_cast<uint64_t>(&map)), "r"(0), "r"(0), "r"(bar)
      : "memory");
  asm volatile(
      "{.reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L;}" ::"r"(
          bar)
      : "memory");
  C[0] = __float2bfloat16(static_cast<float>(tile[8]));
}

}  // extern "C"
