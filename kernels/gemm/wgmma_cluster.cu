// GEMM C[M,N] = A[M,K] * B[N,K]^T, bf16 in and out, f32 accumulation: the warp-specialised kernel
// of wgmma_tma.cu for clusters of two CTAs that share B.
//
// Shows: __cluster_dims__, TMA multicast (each CTA fetches half of the B tile for both, so that L2
//   is read a third less), "empty" mbarriers that collect arrivals from both CTAs (mapa, remote
//   mbarrier.arrive), cluster-scope acquire and release, barrier.cluster at start and end. Needs
//   sm_90a.
// Tiles: cluster 256x256x64, CTA 128x256x64 in 4 stages (two consumers of 64x256, m64n256k16).
//   384 threads, one CTA an SM, 225 KiB of shared memory.
// Shapes: any M, N and K with N and K multiples of 8 (TMA rows start on 16 bytes). Tails are the
//   TMA unit's: loads outside the matrix give zeros, stores outside are dropped.
// Expected verdict: passed.
//
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>

#include "ptxbench_task.h"

namespace {

constexpr int kCluster = 2;                 // CTAs one above the other: they share B
constexpr int kTileM = 128, kTileN = 256;   // of one CTA
constexpr int kShareN = kTileN / kCluster;  // rows of B that each CTA fetches for the cluster
constexpr int kStages = 4;
constexpr int kTileK = 64;     // 128 bytes: one row of the 128-byte swizzle
constexpr int kThreads = 384;  // warpgroup 0 produces, 1 and 2 consume
constexpr int kConsumers = 2;
constexpr int kConsumerWarps = kConsumers * 4;
constexpr int kGroupM = 8;  // rows of clusters walked together: a wave's operands stay in L2
constexpr uint32_t kRowBytes = kTileK * 2;
constexpr uint32_t kTileABytes = kTileM * kRowBytes;
constexpr int kStoreColumns = 64;                         // columns of C per TMA store
constexpr uint32_t kStoreBytes = 64 * kStoreColumns * 2;  // 64 rows of 128 bytes

constexpr uint32_t kStageBytes = kTileABytes + kTileN * kRowBytes;
constexpr uint32_t kStoreOffset = kStages * kStageBytes;  // two buffers per consumer
constexpr uint32_t kBarrierOffset = kStoreOffset + kConsumers * 2 * kStoreBytes;
// + 1024: the swizzle repeats every 1024 bytes, and dynamic shared memory promises less.
constexpr uint32_t kSharedBytes = kBarrierOffset + 2 * kStages * 8 + 1024;

// ---- Cluster ---------------------------------------------------------------------------------

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// Waits for every thread of both CTAs.
__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// ---- mbarriers (PTX ISA: Parallel Synchronization, mbarrier) ---------------------------------

__device__ __forceinline__ void init_barrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes initialised barriers visible to the cluster and to the TMA unit (async proxy).
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void arrive_expecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Arrives at the barrier in the same place of another CTA of the cluster.
__device__ __forceinline__ void arrive_at(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
// Returns once the phase of the given parity is complete. Acquires at cluster scope: bytes and
// arrivals come from the other CTA too.
__device__ __forceinline__ void wait_barrier(uint32_t barrier, uint32_t parity) {
  uint32_t complete;
  do {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%1], %2;\n"
        "selp.u32 %0, 1, 0, complete;\n"
        "}\n"
        : "=r"(complete)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (complete == 0);
}
// Every lane of the warp is past wgmma.wait_group, so that one lane may speak for all: one to this
// CTA's producer, one to the other's.
__device__ __forceinline__ void release_stage(uint32_t barrier) {
  const uint32_t lane = threadIdx.x % 32;
  if (lane < kCluster) arrive_at(barrier, lane);
}

// ---- TMA -------------------------------------------------------------------------------------

__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// The box at (column, row) to shared memory; its bytes count down the barrier's transactions.
__device__ __forceinline__ void load_box(uint32_t shared, const CUtensorMap* map, int column,
                                         int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
// The same to the same place in every CTA of the mask; each CTA's own barrier counts the bytes.
__device__ __forceinline__ void load_box_multicast(uint32_t shared, const CUtensorMap* map,
                                                   int column, int row, uint32_t barrier,
                                                   uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared),
      "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(ctas)
      : "memory");
}
__device__ __forceinline__ void store_box(const CUtensorMap* map, uint32_t shared, int column,
                                          int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
      "r"(column), "r"(row), "r"(shared)
      : "memory");
}
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// All but the last kPending groups of this thread's stores have read their shared memory.
template <int kPending>
__device__ __forceinline__ void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
// Makes this thread's ordinary writes to shared memory visible to the TMA unit.
__device__ __forceinline__ void publish_to_tma() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- wgmma (PTX ISA: Asynchronous Warpgroup Level Matrix Instructions) -----------------------

// Shared-memory matrix descriptor of a K-major operand with 128-byte swizzle: rows of 128 bytes,
// groups of eight rows 1024 bytes apart. The leading offset is not used in this layout.
__device__ __forceinline__ uint64_t describe(uint32_t shared) {
  return static_cast<uint64_t>((shared & 0x3ffff) >> 4) | uint64_t{1} << 16 |
         uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}
// Orders accesses to the accumulators by ordinary instructions before the products that follow.
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// All but the last kPending groups are complete: their results may be read, their operands reused.
template <int kPending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// The compiler believes that a product's registers are ready at once; this keeps it from moving
// their uses up across the wait.
template <int kCount>
__device__ __forceinline__ void keep_in_order(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}
__device__ __forceinline__ void multiply_async(float (&d)[128], uint64_t a, uint64_t b,
                                               uint32_t accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127}, "
      "%128, %129, accumulate, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]),
        "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]),
        "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
        "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]),
        "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]),
        "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]),
        "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]),
        "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]),
        "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b), "r"(accumulate)
      : "memory");
}

// Four products of depth 16 over one stage: 32 bytes further along the swizzled rows each.
template <int kCount>
__device__ __forceinline__ void multiply_stage(float (&sum)[kCount], uint32_t a, uint32_t b,
                                               bool accumulate) {
  const uint64_t a_matrix = describe(a), b_matrix = describe(b);
  begin_products();
#pragma unroll
  for (int k = 0; k < kTileK / 16; ++k)
    multiply_async(sum, a_matrix + k * 2, b_matrix + k * 2, k != 0 || accumulate);
  commit_products();
}

// ---- Epilogue --------------------------------------------------------------------------------

__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}
__device__ __forceinline__ void store_matrices(uint32_t shared, uint32_t a, uint32_t b, uint32_t c,
                                               uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
// Waits for the 128 threads of one consumer warpgroup (named barriers 1 and 2).
__device__ __forceinline__ void sync_consumer(int consumer) {
  asm volatile("bar.sync %0, 128;" ::"r"(consumer + 1) : "memory");
}

// One consumer's 64 rows to C, 64 columns at a time through two alternating buffers.
template <int kCount>
__device__ __forceinline__ void store_tile(const float (&sum)[kCount], const CUtensorMap* map,
                                           uint32_t store, int column, int row, int consumer,
                                           bool leader) {
  // stmatrix: lane l names row l % 8 of matrix l / 8; the four matrices are the upper and lower
  // eight rows of this warp's sixteen, in two neighbouring blocks of eight columns.
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const uint32_t matrix_row = warp * 16 + lane / 8 % 2 * 8 + lane % 8, matrix_column = lane / 16;
#pragma unroll
  for (int part = 0; part < kCount * 2 / kStoreColumns; ++part) {
    const uint32_t buffer = store + part % 2 * kStoreBytes;
    if (leader) wait_stores_read<1>();  // the store two parts ago has read this buffer
    sync_consumer(consumer);
#pragma unroll
    for (uint32_t block = 0; block < kStoreColumns / 8; block += 2) {
      const float* values = sum + part * (kStoreColumns / 2) + block * 4;
      const uint32_t chunk = (block + matrix_column) ^ (matrix_row & 7);  // 128-byte swizzle
      store_matrices(buffer + matrix_row * 128 + chunk * 16, pack(values[0], values[1]),
                     pack(values[2], values[3]), pack(values[4], values[5]),
                     pack(values[6], values[7]));
    }
    publish_to_tma();
    sync_consumer(consumer);
    if (leader) {
      store_box(map, buffer, column + part * kStoreColumns, row);
      commit_stores();
    }
  }
}

// Number -> coordinates of a cluster's tile: groups of kGroupM rows, column by column inside a
// group.
struct Place {
  int m, n;
};
__device__ __forceinline__ Place place_of(int tile, int tiles_m, int tiles_n) {
  const int first_m = tile / (kGroupM * tiles_n) * kGroupM;
  const int group_m = min(kGroupM, tiles_m - first_m);
  const int in_group = tile % (kGroupM * tiles_n);
  return {first_m + in_group % group_m, in_group / group_m};
}

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    gemm_wgmma_cluster(const __grid_constant__ CUtensorMap map_a,
                       const __grid_constant__ CUtensorMap map_b,
                       const __grid_constant__ CUtensorMap map_c, int tiles_m, int tiles_n,
                       int steps) {
  extern __shared__ uint8_t shared_memory[];
  const uint32_t shared =
      (static_cast<uint32_t>(__cvta_generic_to_shared(shared_memory)) + 1023) & ~1023u;
  const uint32_t full = shared + kBarrierOffset;  // [stage]: the stage's bytes have landed
  const uint32_t empty = full + kStages * 8;      // [stage]: both CTAs are done with it
  const int rank = static_cast<int>(cluster_rank());

  if (threadIdx.x == 0) {
    prefetch_map(&map_a);
    prefetch_map(&map_b);
    prefetch_map(&map_c);
    for (int s = 0; s < kStages; ++s) {
      init_barrier(full + s * 8, 1);                           // the producer's arrival, plus bytes
      init_barrier(empty + s * 8, kCluster * kConsumerWarps);  // one arrival a warp
    }
    publish_barriers();
  }
  sync_cluster();  // nobody touches the other CTA's barriers before they exist

  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const int tiles = tiles_m * tiles_n;
  if (warpgroup == 0) {
    // Producer. Registers go to the consumers; one thread issues all copies.
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      int stage = 0;
      uint32_t phase = 0;
      for (int tile = blockIdx.x / kCluster; tile < tiles; tile += gridDim.x / kCluster) {
        const Place place = place_of(tile, tiles_m, tiles_n);
        for (int step = 0; step < steps; ++step) {
          // The stage must be free in both CTAs, since both are written. A fresh barrier counts
          // as if the phase before its first were complete: the first round does not wait.
          wait_barrier(empty + stage * 8, phase ^ 1);
          arrive_expecting(full + stage * 8, kStageBytes);
          const uint32_t target = shared + stage * kStageBytes;
          // Own rows of A; own share of B for both. The other CTA's share of B may land before
          // the line above has run: the phase still waits for that line's arrival.
          load_box(target, &map_a, step * kTileK, (place.m * kCluster + rank) * kTileM,
                   full + stage * 8);
          load_box_multicast(target + kTileABytes + rank * kShareN * kRowBytes, &map_b,
                             step * kTileK, place.n * kTileN + rank * kShareN, full + stage * 8,
                             (1 << kCluster) - 1);
          if (++stage == kStages) {
            stage = 0;
            phase ^= 1;
          }
        }
      }
    }
  } else {
    // Consumers. Warpgroup 1 owns rows 0..63 of the tile, warpgroup 2 rows 64..127.
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int consumer = warpgroup - 1;
    const bool leader = threadIdx.x % 128 == 0;
    const uint32_t store = shared + kStoreOffset + consumer * 2 * kStoreBytes;
    float sum[kTileN / 2];
    int stage = 0;
    uint32_t phase = 0;
    for (int tile = blockIdx.x / kCluster; tile < tiles; tile += gridDim.x / kCluster) {
      int previous = 0;
      for (int step = 0; step < steps; ++step) {
        wait_barrier(full + stage * 8, phase);
        const uint32_t a = shared + stage * kStageBytes + consumer * 64 * kRowBytes;
        const uint32_t b = shared + stage * kStageBytes + kTileABytes;
        multiply_stage(sum, a, b, step != 0);
        // This stage's products stay in flight; those of the stage before are complete, so that
        // its memory may be overwritten.
        wait_products<1>();
        if (step != 0) release_stage(empty + previous * 8);
        previous = stage;
        if (++stage == kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
      wait_products<0>();
      keep_in_order(sum);
      release_stage(empty + previous * 8);

      const Place place = place_of(tile, tiles_m, tiles_n);
      store_tile(sum, &map_c, store, place.n * kTileN,
                 (place.m * kCluster + rank) * kTileM + consumer * 64, consumer, leader);
    }
    if (leader) wait_stores_read<0>();  // shared memory must live until it has been read
  }
  sync_cluster();  // a CTA stays until the other's copies and arrivals have reached it
}

// ---- Host ------------------------------------------------------------------------------------

// A row-major bf16 matrix in boxes of rows x columns, 128-byte swizzle.
CUtensorMap make_map(const __nv_bfloat16* matrix, int64_t rows, int64_t columns, uint32_t box_rows,
                     uint32_t box_columns) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static Encode encode = nullptr;
  if (encode == nullptr) {  // found at run time: the library needs no link to the driver
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                     &found);
    encode = reinterpret_cast<Encode>(entry);
  }
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(columns) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[2] = {box_columns, box_rows};
  const cuuint32_t steps[2] = {1, 1};
  CUtensorMap map{};
  encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(matrix), sizes,
         strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

}  // namespace

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M,
                    int64_t N, int64_t K, cudaStream_t stream) {
  if (M == 0 || N == 0 || K == 0) return;
  int device = 0, sms = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  const CUtensorMap map_a = make_map(A, M, K, kTileM, kTileK);
  const CUtensorMap map_b = make_map(B, N, K, kShareN, kTileK);
  const CUtensorMap map_c = make_map(C, M, N, 64, kStoreColumns);
  const int tiles_m = static_cast<int>((M + kCluster * kTileM - 1) / (kCluster * kTileM));
  const int tiles_n = static_cast<int>((N + kTileN - 1) / kTileN);
  const int steps = static_cast<int>((K + kTileK - 1) / kTileK);
  const int clusters = tiles_m * tiles_n < sms / kCluster ? tiles_m * tiles_n : sms / kCluster;
  cudaFuncSetAttribute(gemm_wgmma_cluster, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kSharedBytes);
  gemm_wgmma_cluster<<<clusters * kCluster, kThreads, kSharedBytes, stream>>>(
      map_a, map_b, map_c, tiles_m, tiles_n, steps);
}
