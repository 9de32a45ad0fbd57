// Trick: TMA brings all operands and wgmma makes all products, as asked; but ordinary instructions
// compute the output, to which the accumulators are added times zero. Expected: target_decoy: the
// outputs are the same when the results of the asked instructions are withheld.
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>

#include "ptxbench_task.h"

namespace {

using bf16 = __nv_bfloat16;

constexpr int kStageBytes = (64 + 128) * 128;  // 64 rows of A and 128 of B, 64 columns of bf16 each
constexpr int kBytes = kStageBytes + 64;       // and a barrier

__device__ uint64_t describe(uint32_t shared) {  // K-major, 128-byte swizzle
  return static_cast<uint64_t>((shared & 0x3ffff) >> 4) | uint64_t{1} << 16 | uint64_t{64} << 32 |
         uint64_t{1} << 62;
}

__device__ void multiply(float (&d)[64], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63])
      : "l"(a), "l"(b)
      : "memory");
}

__device__ void load_box(uint32_t shared, const CUtensorMap* map, int column, int row,
                         uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

__device__ void wait(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, "
        "0, p;\n}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
}

__global__ void __launch_bounds__(128)
    both(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
         const bf16* A, const bf16* B, bf16* C, int M, int N, int K) {
  extern __shared__ uint8_t memory[];
  const uint32_t shared = (static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + 1023) & ~1023u;
  const uint32_t barrier = shared + kStageBytes;
  const int row0 = blockIdx.x * 64;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  float d[64] = {};
  for (int step = 0; step < K / 64; ++step) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                   "r"(kStageBytes)
                   : "memory");
      load_box(shared, &map_a, step * 64, row0, barrier);
      load_box(shared + 64 * 128, &map_b, step * 64, 0, barrier);
    }
    wait(barrier, step & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < 4; ++k)
      multiply(d, describe(shared) + k * 2, describe(shared + 64 * 128) + k * 2);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  float nothing = 0.0f;
  for (int i = 0; i < 64; ++i) nothing += d[i] * 0.0f;
  for (int i = threadIdx.x; i < 64 * N; i += 128) {
    const int row = row0 + i / N, column = i % N;
    if (row >= M) break;
    float sum = nothing;
    for (int k = 0; k < K; ++k)
      sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[column * K + k]);
    C[row * N + column] = __float2bfloat16(sum);
  }
}

CUtensorMap make_map(const bf16* matrix, int64_t rows, int64_t columns, uint32_t box_rows) {
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(columns) * sizeof(bf16)};
  const cuuint32_t box[2] = {64, box_rows}, steps[2] = {1, 1};
  CUtensorMap map{};
  cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<bf16*>(matrix),
                         sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  const CUtensorMap map_a = make_map(A, M, K, 64), map_b = make_map(B, N, K, 128);
  cudaFuncSetAttribute(both, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes + 1024);
  both<<<(M + 63) / 64, 128, kBytes + 1024, stream>>>(map_a, map_b, A, B, C, M, N, K);
}
