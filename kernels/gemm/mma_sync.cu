// GEMM C[M,N] = A[M,K] * B[N,K]^T, bf16 in and out, f32 accumulation, by the warp-level
// tensor-core instruction.
//
// Shows: a cp.async pipeline of three stages, an XOR swizzle that keeps ldmatrix and cp.async
//   free of bank conflicts, mma.sync.m16n8k16, and an epilogue staged through shared memory for
//   16-byte stores. Runs on sm_80 and later.
// Tiles: CTA 128x128x64, 256 threads; 2x4 warps of 64x32 each; 3 stages x 32 KiB of shared
//   memory; two CTAs fit an SM.
// Shapes: any M and N; K must be a multiple of 8 (a row starts on 16 bytes), tails in K are
//   filled with zeros.
// Expected verdict: right; a Hopper task that asks for wgmma or TMA says target_absent
//   (mma.sync is the Ampere path).
//
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

constexpr int kTileM = 128, kTileN = 128, kTileK = 64;
constexpr int kStages = 3;
constexpr int kThreads = 256;
constexpr int kWarpM = 64, kWarpN = 32;                       // 2 x 4 warps
constexpr int kBlocksM = kWarpM / 16, kBlocksN = kWarpN / 8;  // mma tiles per warp
constexpr uint32_t kRowBytes = kTileK * 2;  // 128: one swizzle row of eight 16-byte chunks
constexpr uint32_t kTileABytes = kTileM * kRowBytes;
constexpr uint32_t kStageBytes = kTileABytes + kTileN * kRowBytes;
constexpr uint32_t kSharedBytes = kStages * kStageBytes;
constexpr int kGroupM = 16;  // row tiles walked together, so that B tiles stay in L2
constexpr uint32_t kOutputPitch =
    (kTileN + 8) * 2;  // bytes; 8 elements of padding spread the rows over the banks
static_assert(kTileM * kOutputPitch <= kSharedBytes,
              "the output tile reuses the pipeline's memory");

// Copies 16 bytes, of which the first `valid_bytes` come from memory and the rest are zeros (PTX
// ISA: cp.async).
__device__ __forceinline__ void copy_async(uint32_t shared, const void* global, int valid_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(valid_bytes)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ __forceinline__ void load_matrices(uint32_t (&out)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Byte offset of 16-byte chunk `chunk` of row `row`: the chunk index is XORed with the row, so that
// the eight rows of an 8x8 matrix lie in eight different bank groups.
__device__ __forceinline__ uint32_t swizzled(uint32_t row, uint32_t chunk) {
  return row * kRowBytes + ((chunk ^ (row & 7)) << 4);
}

// A thread copies one 16-byte chunk (its number modulo 8) of every 32nd row of either tile. Rows
// past the end are replaced by the last one, whose products nobody stores.
constexpr int kCopies = kTileM * 8 / kThreads;
static_assert(kTileM == kTileN, "both operands are copied alike");
__device__ __forceinline__ void place_rows(const __nv_bfloat16* (&sources)[kCopies],
                                           const __nv_bfloat16* matrix, int64_t row0, int64_t rows,
                                           int64_t depth) {
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    const int64_t row = row0 + threadIdx.x / 8 + i * (kThreads / 8);
    sources[i] = matrix + min(row, rows - 1) * depth;
  }
}
// Both tiles of one stage. Past the end of K the chunk becomes zeros; its address stays inside.
__device__ __forceinline__ void load_stage(uint32_t stage, const __nv_bfloat16* const (&a)[kCopies],
                                           const __nv_bfloat16* const (&b)[kCopies], int64_t k0,
                                           int64_t depth) {
  const int64_t k = k0 + threadIdx.x % 8 * 8;
  const int64_t offset = k < depth ? k : 0;
  const int valid_bytes = k < depth ? 16 : 0;
  const uint32_t target = stage + swizzled(threadIdx.x / 8, threadIdx.x % 8);
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {  // 32 rows further the swizzle is the same
    const uint32_t row_offset = i * (kThreads / 8) * kRowBytes;
    copy_async(target + row_offset, a[i] + offset, valid_bytes);
    copy_async(target + kTileABytes + row_offset, b[i] + offset, valid_bytes);
  }
}

__global__ void __launch_bounds__(kThreads, 2)
    gemm_mma_sync(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B,
                  __nv_bfloat16* __restrict__ C, int64_t M, int64_t N, int64_t K, int tiles_m,
                  int tiles_n) {
  extern __shared__ __align__(128) uint8_t shared_memory[];
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(shared_memory));
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t warp_row = (warp / 4) * kWarpM, warp_column = (warp % 4) * kWarpN;

  // Tiles in groups of kGroupM row tiles: column by column inside a group.
  const int tile = static_cast<int>(blockIdx.x);
  const int first_m = tile / (kGroupM * tiles_n) * kGroupM;
  const int group_m = min(kGroupM, tiles_m - first_m);
  const int in_group = tile % (kGroupM * tiles_n);
  const int64_t row0 = static_cast<int64_t>(first_m + in_group % group_m) * kTileM;
  const int64_t column0 = static_cast<int64_t>(in_group / group_m) * kTileN;

  const __nv_bfloat16 *a_rows[kCopies], *b_rows[kCopies];
  place_rows(a_rows, A, row0, M, K);
  place_rows(b_rows, B, column0, N, K);
  float sum[kBlocksM][kBlocksN][4] = {};
  const int steps = static_cast<int>((K + kTileK - 1) / kTileK);
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps)
      load_stage(shared + s * kStageBytes, a_rows, b_rows, static_cast<int64_t>(s) * kTileK, K);
    commit_copies();  // possibly empty: keeps "one group per step" true
  }

  // ldmatrix addresses of this lane: the row it names, and its half (k 0..7 or 8..15) of each k16
  // block. Blocks of 16 rows further down only add a constant, since the swizzle is the same there.
  uint32_t a_offset[kTileK / 16], b_offset[kTileK / 16];
#pragma unroll
  for (uint32_t block = 0; block < kTileK / 16; ++block) {
    a_offset[block] = swizzled(warp_row + lane % 16, block * 2 + lane / 16);
    b_offset[block] =
        kTileABytes + swizzled(warp_column + lane / 16 * 8 + lane % 8, block * 2 + lane / 8 % 2);
  }
  uint32_t stage = shared, refill = shared + (kStages - 1) * kStageBytes;
  const uint32_t last_stage = refill;
  for (int step = 0; step < steps; ++step) {
    wait_copies<kStages - 2>();  // this thread's part of `step` has landed
    __syncthreads();             // everybody's part has, and nobody uses the stage refilled next
    const int ahead = step + kStages - 1;
    if (ahead < steps) load_stage(refill, a_rows, b_rows, static_cast<int64_t>(ahead) * kTileK, K);
    commit_copies();

#pragma unroll
    for (uint32_t block = 0; block < kTileK / 16; ++block) {
      uint32_t a[kBlocksM][4], b[kBlocksN / 2][4];
#pragma unroll
      for (int i = 0; i < kBlocksM; ++i)
        load_matrices(a[i], stage + a_offset[block] + i * 16 * kRowBytes);
#pragma unroll
      for (int j = 0; j < kBlocksN / 2; ++j)
        load_matrices(b[j], stage + b_offset[block] + j * 16 * kRowBytes);
#pragma unroll
      for (int i = 0; i < kBlocksM; ++i) {
#pragma unroll
        for (int j = 0; j < kBlocksN; ++j)
          multiply(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
    refill = stage;
    stage = stage == last_stage ? shared : stage + kStageBytes;
  }

  // Epilogue: fragments to shared memory, then whole 16-byte pieces of rows to C.
  wait_copies<0>();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kBlocksM; ++i) {
#pragma unroll
    for (int j = 0; j < kBlocksN; ++j) {
      const uint32_t row = warp_row + i * 16 + lane / 4,
                     column = warp_column + j * 8 + lane % 4 * 2;
      uint8_t* target = shared_memory + row * kOutputPitch + column * 2;
      *reinterpret_cast<__nv_bfloat162*>(target) =
          __floats2bfloat162_rn(sum[i][j][0], sum[i][j][1]);
      *reinterpret_cast<__nv_bfloat162*>(target + 8 * kOutputPitch) =
          __floats2bfloat162_rn(sum[i][j][2], sum[i][j][3]);
    }
  }
  __syncthreads();
  for (uint32_t index = threadIdx.x; index < kTileM * kTileN / 8; index += kThreads) {
    const uint32_t row = index / (kTileN / 8), column = index % (kTileN / 8) * 8;
    if (row0 + row >= M || column0 + column >= N) continue;
    const uint8_t* source = shared_memory + row * kOutputPitch + column * 2;
    __nv_bfloat16* target = C + (row0 + row) * N + column0 + column;
    if (N % 8 == 0) {
      *reinterpret_cast<uint4*>(target) = *reinterpret_cast<const uint4*>(source);
    } else {
      for (int e = 0; e < 8 && column0 + column + e < N; ++e)
        target[e] = reinterpret_cast<const __nv_bfloat16*>(source)[e];
    }
  }
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  if (M == 0 || N == 0) return;
  const int tiles_m = static_cast<int>((M + kTileM - 1) / kTileM);
  const int tiles_n = static_cast<int>((N + kTileN - 1) / kTileN);
  cudaFuncSetAttribute(gemm_mma_sync, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  gemm_mma_sync<<<tiles_m * tiles_n, kThreads, kSharedBytes, stream>>>(A, B, C, M, N, K, tiles_m,
                                                                       tiles_n);
}
