// GEMM C[M,N] = A[M,K] * B[N,K]^T, bf16 in and out, f32 FMA on the ordinary cores: the plainest
// correct kernel.
//
// Shows: shared-memory tiling, register blocking, guarded tails for every M, N and K. No tensor
//   cores and no asynchronous copies, so it runs on any architecture: right but slow.
// Tiles: CTA 64x64x16, 64 threads, 8x8 accumulators a thread (two runs of 4 rows and 4 columns).
// Expected verdict: right on every shape; a task that asks for wgmma or TMA says target_absent.
//
// SPDX-License-Identifier: Apache-2.0
#include "ptxbench_task.h"

namespace {

constexpr int kTile = 64;     // rows and columns of C per CTA
constexpr int kDepth = 16;    // k per shared-memory tile
constexpr int kThreads = 64;  // 8 x 8 threads
constexpr int kPitch =
    kTile + 4;  // floats; keeps 16-byte vectors aligned and spreads the transposed stores

// Sixteen consecutive k of one row as f32; zeros outside the matrix, so that tails add nothing.
__device__ __forceinline__ void load_row(const __nv_bfloat16* __restrict__ matrix, int64_t row,
                                         int64_t rows, int64_t k0, int64_t depth,
                                         float (&out)[kDepth]) {
  if (row < rows && depth % 8 == 0 &&
      k0 + kDepth <= depth) {  // 16-byte vectors stay aligned and inside
    const uint4* source = reinterpret_cast<const uint4*>(matrix + row * depth + k0);
#pragma unroll
    for (int v = 0; v < kDepth / 8; ++v) {
      const uint4 packed = source[v];
      const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {  // a bf16 is the upper half of an f32
        out[v * 8 + w * 2] = __uint_as_float(words[w] << 16);
        out[v * 8 + w * 2 + 1] = __uint_as_float(words[w] & 0xffff0000u);
      }
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    const bool inside = row < rows && k0 + k < depth;
    out[k] = inside ? __bfloat162float(matrix[row * depth + k0 + k]) : 0.0f;
  }
}

__global__ void __launch_bounds__(kThreads)
    gemm_simt(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B,
              __nv_bfloat16* __restrict__ C, int64_t M, int64_t N, int64_t K) {
  __shared__ __align__(16) float a_tile[kDepth][kPitch];  // [k][row]
  __shared__ __align__(16) float b_tile[kDepth][kPitch];  // [k][column]
  const int thread = static_cast<int>(threadIdx.x);
  const int tx = thread % 8, ty = thread / 8;
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t column0 = static_cast<int64_t>(blockIdx.x) * kTile;

  float sum[8][8] = {};
  float a_next[kDepth], b_next[kDepth];
  load_row(A, row0 + thread, M, 0, K, a_next);
  load_row(B, column0 + thread, N, 0, K, b_next);
  for (int64_t k0 = 0; k0 < K; k0 += kDepth) {
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      a_tile[k][thread] = a_next[k];
      b_tile[k][thread] = b_next[k];
    }
    __syncthreads();        // the tile is complete
    if (k0 + kDepth < K) {  // the next tile travels while this one is used
      load_row(A, row0 + thread, M, k0 + kDepth, K, a_next);
      load_row(B, column0 + thread, N, k0 + kDepth, K, b_next);
    }
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float4 a_low = *reinterpret_cast<const float4*>(&a_tile[k][ty * 4]);
      const float4 a_high = *reinterpret_cast<const float4*>(&a_tile[k][32 + ty * 4]);
      const float4 b_low = *reinterpret_cast<const float4*>(&b_tile[k][tx * 4]);
      const float4 b_high = *reinterpret_cast<const float4*>(&b_tile[k][32 + tx * 4]);
      const float a[8] = {a_low.x,  a_low.y,  a_low.z,  a_low.w,
                          a_high.x, a_high.y, a_high.z, a_high.w};
      const float b[8] = {b_low.x,  b_low.y,  b_low.z,  b_low.w,
                          b_high.x, b_high.y, b_high.z, b_high.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
      }
    }
    __syncthreads();  // everybody has read the tile: it may be overwritten
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int64_t row = row0 + (i / 4) * 32 + ty * 4 + i % 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int64_t column = column0 + (j / 4) * 32 + tx * 4 + j % 4;
      if (row < M && column < N) C[row * N + column] = __float2bfloat16(sum[i][j]);
    }
  }
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  if (M == 0 || N == 0) return;
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile),
                  static_cast<unsigned>((M + kTile - 1) / kTile));
  gemm_simt<<<grid, kThreads, 0, stream>>>(A, B, C, M, N, K);
}
