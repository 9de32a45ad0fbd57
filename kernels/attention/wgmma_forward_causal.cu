// Causal attention forward: O = softmax(Q K^T / sqrt(D)) V and LSE = log(sum(exp(scores))) in
// natural logarithms, over [B,H,S,D] bf16 tensors with D = 128, in the manner of FlashAttention-3.
//
// Shows: a producer thread that loads Q, K and V by TMA into two-stage rings, two consumer
//   warpgroups that multiply by wgmma (Q K^T from shared memory, P V with P from registers and V
//   read transposed through the descriptor), softmax of one step while the tensor cores work on
//   the product of the step before, turns between the two warpgroups by named barriers,
//   setmaxnreg, stmatrix, a TMA store of O, and masking of the causal diagonal and of a ragged end.
//   Needs sm_90a.
// Tiles: CTA of 384 threads for 128 query rows (a consumer owns 64), 128 keys a step; 161 KiB of
//   shared memory: Q 32 KiB, two stages of K and of V at 32 KiB each.
// Shapes: any B, H, S; D = 128. Rows past S are zeros when loaded and dropped when stored: the
//   tensor maps have S as their second dimension, so that no head reaches into the next.
// Expected verdict: passed.
//
// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <math_constants.h>

#include "ptxbench_task.h"

namespace {

constexpr bool kCausal = true;  // key position <= query position
constexpr int kDim = 128;
constexpr int kRows = 128;     // query rows per CTA
constexpr int kKeys = 128;     // keys per step
constexpr int kThreads = 384;  // warpgroup 0 produces, 1 and 2 consume
constexpr int kConsumers = 2;
constexpr int kConsumerWarps = kConsumers * 4;
constexpr int kStages = 2;
constexpr int kBoxColumns =
    64;  // 128 bytes: one row of the 128-byte swizzle; a tile has two halves
constexpr uint32_t kHalfBytes = 128 * kBoxColumns * 2;  // 128 rows of 128 bytes
constexpr uint32_t kTileBytes = 2 * kHalfBytes;
constexpr uint32_t kKeyOffset = kTileBytes;
constexpr uint32_t kValueOffset = kKeyOffset + kStages * kTileBytes;
constexpr uint32_t kBarrierOffset = kValueOffset + kStages * kTileBytes;
// + 1024: the swizzle repeats every 1024 bytes, and dynamic shared memory promises less.
constexpr uint32_t kSharedBytes = kBarrierOffset + (1 + 4 * kStages) * 8 + 1024;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
constexpr float kScale = 0.08838834764831845f * kLog2E;  // 1 / sqrt(kDim), scores in units of log2

// ---- mbarriers (PTX ISA: Parallel Synchronization, mbarrier) ---------------------------------

__device__ __forceinline__ void init_barrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes initialised barriers visible to the other threads and to the TMA unit (async proxy).
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void arrive_expecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Returns once the phase of the given parity is complete.
__device__ __forceinline__ void wait_barrier(uint32_t barrier, uint32_t parity) {
  uint32_t complete;
  do {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
        "selp.u32 %0, 1, 0, complete;\n"
        "}\n"
        : "=r"(complete)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (complete == 0);
}
// Every lane of the warp is past wgmma.wait_group, so that one lane may speak for all.
__device__ __forceinline__ void release(uint32_t barrier) {
  if (threadIdx.x % 32 == 0) arrive(barrier);
}

// ---- TMA -------------------------------------------------------------------------------------

__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// The two 64-column halves of 128 rows of one head; the bytes count down the barrier.
__device__ __forceinline__ void load_tile(uint32_t shared, const CUtensorMap* map, int row,
                                          int head, uint32_t barrier) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared + half * kHalfBytes),
        "l"(map), "r"(half * kBoxColumns), "r"(row), "r"(head), "r"(barrier)
        : "memory");
  }
}
__device__ __forceinline__ void store_box(const CUtensorMap* map, uint32_t shared, int column,
                                          int row, int head) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map),
      "r"(column), "r"(row), "r"(head), "r"(shared)
      : "memory");
}
// Ends this thread's group of stores and waits until they have read their shared memory.
__device__ __forceinline__ void finish_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
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
// The same of an operand that runs along its other dimension (V: rows are the product's depth): two
// blocks of 64 columns kHalfBytes apart (leading offset), groups of eight rows 1024 bytes apart.
__device__ __forceinline__ uint64_t describe_transposed(uint32_t shared) {
  return static_cast<uint64_t>((shared & 0x3ffff) >> 4) | uint64_t{kHalfBytes >> 4} << 16 |
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
template <int kCount>
__device__ __forceinline__ void keep_in_order(uint32_t (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(values[i])::"memory");
}
__device__ __forceinline__ void multiply_async(float (&d)[64], uint64_t a, uint64_t b,
                                               uint32_t accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, accumulate, 1, 1, 0, 0;\n"
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
        "+f"(d[63])
      : "l"(a), "l"(b), "r"(accumulate)
      : "memory");
}
__device__ __forceinline__ void multiply_values_async(float (&d)[64], const uint32_t* a,
                                                      uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
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
        "+f"(d[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)
      : "memory");
}

// Scores of 64 queries against 128 keys: eight products of depth 16, four in either half.
__device__ __forceinline__ void begin_scores(float (&score)[64], uint32_t queries, uint32_t keys) {
  const uint64_t q = describe(queries), k = describe(keys);
  begin_products();
#pragma unroll
  for (int block = 0; block < kDim / 16; ++block) {
    const uint64_t offset = (block / 4 * kHalfBytes + block % 4 * 32) >> 4;
    multiply_async(score, q + offset, k + offset, block != 0);
  }
  commit_products();
}
// O += P V: eight products of depth 16, sixteen rows of V (2048 bytes) further along each.
__device__ __forceinline__ void begin_values(float (&o)[64], const uint32_t (&p)[32],
                                             uint32_t values) {
  const uint64_t v = describe_transposed(values);
  begin_products();
#pragma unroll
  for (int block = 0; block < kKeys / 16; ++block)
    multiply_values_async(o, p + block * 4, v + block * (2048 >> 4));
  commit_products();
}

// ---- Softmax ---------------------------------------------------------------------------------
//
// Accumulator layout of a 64xN product (PTX ISA: wgmma, register fragments): this thread holds, of
// rows lane / 4 and lane / 4 + 8 of its warp's sixteen, columns 8 * j + lane % 4 * 2 and the next.
// Elements 4 * j and 4 * j + 1 belong to the upper row, 4 * j + 2 and 4 * j + 3 to the lower.

__device__ __forceinline__ float exp2_approximate(float x) {  // 2 ulp, 0 for -inf
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

struct RowState {
  float maximum[2];  // of the scaled scores, in units of log2
  float sum[2];      // of this thread's columns only
  float rescale[2];  // factor by which the last step lowered earlier sums
};

// Scores to probabilities in place; updates maximum and sum.
__device__ __forceinline__ void softmax(float (&score)[64], RowState& state) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = score[half * 2];
#pragma unroll
    for (int j = 0; j < 16; ++j)
      largest = fmaxf(largest, fmaxf(score[j * 4 + half * 2], score[j * 4 + half * 2 + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    // The first step holds a key that the row sees, so that the maximum is finite from then on.
    const float renewed = fmaxf(state.maximum[half], largest * kScale);
    state.rescale[half] = exp2_approximate(state.maximum[half] - renewed);
    state.maximum[half] = renewed;
    float added = 0;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
#pragma unroll
      for (int e = j * 4 + half * 2; e < j * 4 + half * 2 + 2; ++e) {
        score[e] = exp2_approximate(fmaf(score[e], kScale, -renewed));
        added += score[e];
      }
    }
    state.sum[half] = fmaf(state.sum[half], state.rescale[half], added);
  }
}

__device__ __forceinline__ void rescale_output(float (&o)[64], const RowState& state) {
#pragma unroll
  for (int i = 0; i < 64; ++i) o[i] *= state.rescale[i / 2 % 2];
}

// Hides keys past the end and, causally, keys after the row. `first_key` and `first_row` are the
// positions of this thread's element 0.
__device__ __forceinline__ void mask(float (&score)[64], int first_key, int first_row, int keys) {
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    const int key = first_key + i / 4 * 8 + i % 2;
    const int row = first_row + i / 2 % 2 * 8;
    if (key >= keys || (kCausal && key > row)) score[i] = -CUDART_INF_F;
  }
}

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

// The accumulator layout of P is, eight registers by eight, the layout of the A operand of a k16
// product, so that P never leaves the registers.
__device__ __forceinline__ void pack_probabilities(uint32_t (&p)[32], const float (&score)[64]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) p[i] = pack(score[i * 2], score[i * 2 + 1]);
}

// ---- Named barriers --------------------------------------------------------------------------

// Turns: a consumer issues its products only in its turn, so that the other's softmax runs
// meanwhile. Barriers 1 and 2 are "consumer 0 may" and "consumer 1 may"; 256 threads each: the 128
// that wait and the 128 that let them.
__device__ __forceinline__ void await_turn(int consumer) {
  asm volatile("bar.sync %0, 256;" ::"r"(1 + consumer) : "memory");
}
__device__ __forceinline__ void give_turn(int consumer) {
  asm volatile("bar.arrive %0, 256;" ::"r"(1 + consumer) : "memory");
}
// Waits for the 128 threads of one consumer (barriers 3 and 4).
__device__ __forceinline__ void sync_consumer(int consumer) {
  asm volatile("bar.sync %0, 128;" ::"r"(3 + consumer) : "memory");
}

// ---- Kernel ----------------------------------------------------------------------------------

// Position in a ring of kStages.
struct Ring {
  int stage = 0;
  uint32_t phase = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// Addresses of the barriers: [stage], 8 bytes each.
struct Barriers {
  uint32_t queries, keys_full, keys_empty, values_full, values_empty;
};

__device__ __forceinline__ void produce(uint32_t shared, const Barriers& barriers,
                                        const CUtensorMap* map_q, const CUtensorMap* map_k,
                                        const CUtensorMap* map_v, int row0, int head, int steps) {
  arrive_expecting(barriers.queries, kTileBytes);
  load_tile(shared, map_q, row0, head, barriers.queries);
  Ring ring;
  for (int step = steps - 1; step >= 0; --step) {
    const uint32_t at = ring.stage * 8;
    // A fresh barrier counts as if the phase before its first were complete: the first round does
    // not wait.
    wait_barrier(barriers.keys_empty + at, ring.phase ^ 1);
    arrive_expecting(barriers.keys_full + at, kTileBytes);
    load_tile(shared + kKeyOffset + ring.stage * kTileBytes, map_k, step * kKeys, head,
              barriers.keys_full + at);
    wait_barrier(barriers.values_empty + at, ring.phase ^ 1);
    arrive_expecting(barriers.values_full + at, kTileBytes);
    load_tile(shared + kValueOffset + ring.stage * kTileBytes, map_v, step * kKeys, head,
              barriers.values_full + at);
    ring.advance();
  }
}

__device__ __forceinline__ void consume(uint32_t shared, const Barriers& barriers,
                                        const CUtensorMap* map_o, float* lse, int row0, int head,
                                        int steps, int sequence, int consumer) {
  const int lane = static_cast<int>(threadIdx.x) % 32,
            warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int first_row = row0 + consumer * 64 + warp * 16 + lane / 4;
  const uint32_t queries = shared + consumer * 64 * 128;
  float score[64], o[64];
  uint32_t p[32];
  RowState state;
  state.maximum[0] = state.maximum[1] = -CUDART_INF_F;
  state.sum[0] = state.sum[1] = 0;
#pragma unroll
  for (int i = 0; i < 64; ++i) o[i] = 0;
  Ring keys, values;

  if (consumer == 1) give_turn(0);  // consumer 0 begins
  wait_barrier(barriers.queries, 0);

  // Keys are taken from the last step down: the steps that need a mask come first.
  wait_barrier(barriers.keys_full + keys.stage * 8, keys.phase);
  await_turn(consumer);
  begin_scores(score, queries, shared + kKeyOffset + keys.stage * kTileBytes);
  if (consumer == 0 || steps > 1) give_turn(1 - consumer);
  wait_products<0>();
  keep_in_order(score);
  release(barriers.keys_empty + keys.stage * 8);
  keys.advance();
  mask(score, (steps - 1) * kKeys + lane % 4 * 2, first_row, sequence);
  softmax(score, state);
  pack_probabilities(p, score);

  for (int step = steps - 2; step >= 0; --step) {
    wait_barrier(barriers.keys_full + keys.stage * 8, keys.phase);
    wait_barrier(barriers.values_full + values.stage * 8, values.phase);
    await_turn(consumer);
    begin_scores(score, queries, shared + kKeyOffset + keys.stage * kTileBytes);
    begin_values(o, p, shared + kValueOffset + values.stage * kTileBytes);
    if (consumer == 0 || step > 0) give_turn(1 - consumer);
    wait_products<1>();  // the scores are there; P V of the step before goes on
    keep_in_order(score);
    release(barriers.keys_empty + keys.stage * 8);
    keys.advance();
    softmax(score, state);
    wait_products<0>();
    keep_in_order(o);
    keep_in_order(p);
    release(barriers.values_empty + values.stage * 8);
    values.advance();
    rescale_output(o, state);
    pack_probabilities(p, score);
  }

  wait_barrier(barriers.values_full + values.stage * 8, values.phase);
  begin_values(o, p, shared + kValueOffset + values.stage * kTileBytes);
  wait_products<0>();
  keep_in_order(o);

  // Epilogue: O to this consumer's own rows of the query tile, once all four warps' products are
  // complete.
  sync_consumer(consumer);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = state.sum[half];
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    state.rescale[half] = 1.0f / total;
    const int row = first_row + half * 8;
    if (lane % 4 == 0 && row < sequence)
      lse[static_cast<int64_t>(head) * sequence + row] = state.maximum[half] * kLn2 + logf(total);
  }
  rescale_output(o, state);
  // stmatrix: lane l names row l % 8 of matrix l / 8; the four matrices are the upper and lower
  // eight rows of this warp's sixteen, in two neighbouring blocks of eight columns.
  const uint32_t matrix_row = warp * 16 + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
  for (int block = 0; block < kDim / 8; block += 2) {
    const uint32_t chunk = static_cast<uint32_t>(block % 8 + lane / 16) ^ (matrix_row & 7);
    store_matrices(queries + block / 8 * kHalfBytes + matrix_row * 128 + chunk * 16,
                   pack(o[block * 4], o[block * 4 + 1]), pack(o[block * 4 + 2], o[block * 4 + 3]),
                   pack(o[block * 4 + 4], o[block * 4 + 5]),
                   pack(o[block * 4 + 6], o[block * 4 + 7]));
  }
  publish_to_tma();
  sync_consumer(consumer);
  if (threadIdx.x % 128 == 0) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      store_box(map_o, queries + half * kHalfBytes, half * kBoxColumns, row0 + consumer * 64, head);
    finish_stores();  // shared memory must live until it has been read
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    attention_wgmma(const __grid_constant__ CUtensorMap map_q,
                    const __grid_constant__ CUtensorMap map_k,
                    const __grid_constant__ CUtensorMap map_v,
                    const __grid_constant__ CUtensorMap map_o, float* lse, int sequence) {
  extern __shared__ uint8_t shared_memory[];
  const uint32_t shared =
      (static_cast<uint32_t>(__cvta_generic_to_shared(shared_memory)) + 1023) & ~1023u;
  const uint32_t first = shared + kBarrierOffset;
  const Barriers barriers = {first, first + 8, first + 8 + kStages * 8, first + 8 + kStages * 16,
                             first + 8 + kStages * 24};
  if (threadIdx.x == 0) {
    prefetch_map(&map_q);
    prefetch_map(&map_k);
    prefetch_map(&map_v);
    prefetch_map(&map_o);
    init_barrier(barriers.queries, 1);
    for (uint32_t at = 0; at < kStages * 8; at += 8) {
      init_barrier(barriers.keys_full + at, 1);  // the producer's arrival, plus bytes
      init_barrier(barriers.values_full + at, 1);
      init_barrier(barriers.keys_empty + at, kConsumerWarps);  // one arrival a warp
      init_barrier(barriers.values_empty + at, kConsumerWarps);
    }
    publish_barriers();
  }
  __syncthreads();

  // Causal rows near the end have the most keys: they start first.
  const int tile = static_cast<int>(kCausal ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  const int row0 = tile * kRows, head = static_cast<int>(blockIdx.y);
  const int end = kCausal ? min(sequence, row0 + kRows) : sequence;  // no row sees a key past it
  const int steps = (end + kKeys - 1) / kKeys;
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");  // registers go to the consumers
    if (threadIdx.x == 0) produce(shared, barriers, &map_q, &map_k, &map_v, row0, head, steps);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(shared, barriers, &map_o, lse, row0, head, steps, sequence, warpgroup - 1);
  }
}

// ---- Host ------------------------------------------------------------------------------------

// A [heads, rows, 128] bf16 tensor in boxes of box_rows x 64 of one head, 128-byte swizzle.
CUtensorMap make_map(const __nv_bfloat16* tensor, int64_t heads, int64_t rows, uint32_t box_rows) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static Encode encode = nullptr;
  if (encode == nullptr) {  // found at run time: the library needs no link to the driver
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                     &found);
    encode = reinterpret_cast<Encode>(entry);
  }
  const cuuint64_t sizes[3] = {kDim, static_cast<cuuint64_t>(rows), static_cast<cuuint64_t>(heads)};
  const cuuint64_t strides[2] = {kDim * 2, static_cast<cuuint64_t>(rows) * kDim * 2};
  const cuuint32_t box[3] = {kBoxColumns, box_rows, 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  CUtensorMap map{};
  encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<__nv_bfloat16*>(tensor), sizes,
         strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

}  // namespace

extern "C" void run(const __nv_bfloat16* Q, const __nv_bfloat16* K, const __nv_bfloat16* V,
                    __nv_bfloat16* O, float* LSE, int64_t B, int64_t H, int64_t S, int64_t D,
                    cudaStream_t stream) {
  (void)D;  // kDim
  if (B * H * S == 0) return;
  const CUtensorMap map_q = make_map(Q, B * H, S, kRows);
  const CUtensorMap map_k = make_map(K, B * H, S, kKeys);
  const CUtensorMap map_v = make_map(V, B * H, S, kKeys);
  const CUtensorMap map_o = make_map(O, B * H, S, 64);
  const dim3 grid(static_cast<unsigned>((S + kRows - 1) / kRows), static_cast<unsigned>(B * H));
  cudaFuncSetAttribute(attention_wgmma, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  attention_wgmma<<<grid, kThreads, kSharedBytes, stream>>>(map_q, map_k, map_v, map_o, LSE,
                                                            static_cast<int>(S));
}
