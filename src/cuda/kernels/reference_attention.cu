// Owns the GPU reference of attention forward: softmax(scale Q K^T) V and the log-sum-exp in fp64,
// no tensor cores, with the error model's sums (sum p^2, sum p^2 v^2, sum p k) beside them in fp32.
// The CPU twin is task/reference_attention.cc. One block takes 64 queries of one head and walks
// over the keys 32 at a time (online softmax).
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cuda/kernels/calls.h"
#include "cuda/kernels/error_step.cuh"

namespace ptxb::cuda {

namespace {

constexpr int kQueries = kAttentionTile, kKeys = 32, kWidth = kAttentionMaxWidth;
// Coded values reach 2^71: their squares, summed in fp32, must not overflow, and those of N(0,1)
// must not vanish.
constexpr float kValueScale = 0x1p-16f;

struct AttentionShared {
  // Rows of 129 doubles: 16 threads that read one column of 16 rows then touch all 32 banks once.
  double q[kQueries][kWidth + 1];
  double k[kKeys][kWidth + 1];
  double v[kKeys][kWidth + 1];
  double p[kQueries][kKeys + 1];
  float key[kKeys][kWidth + 1];
  float v_square[kKeys][kWidth + 1];
  float weight[kQueries][kKeys + 1];
  float weight_square[kQueries][kKeys + 1];
};
static_assert(sizeof(AttentionShared) <= kAttentionSharedBytes);

// Over the 16 lanes that share a row of queries.
__device__ inline double row_max(double x) {
  for (int offset = 8; offset > 0; offset /= 2)
    x = fmax(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}
__device__ inline double row_sum(double x) {
  for (int offset = 8; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

struct RowState {
  double most = -1e300, sum = 0, squares = 0;
};

struct Accumulators {
  double out[4][8] = {};
  float incoherent[4][8] = {};
  float mean_key[4][8] = {};
};

__device__ void load_keys(AttentionShared& shared, const AttentionCall& call, int64_t head,
                          int64_t first) {
  const auto* k = static_cast<const uint16_t*>(call.k) + head * call.length * call.width;
  const auto* v = static_cast<const uint16_t*>(call.v) + head * call.length * call.width;
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kWidth; i += 256) {
    const int row = i / kWidth, d = i % kWidth;
    const bool inside = first + row < call.length && d < call.width;
    const float key = inside ? bf16_value(k[(first + row) * call.width + d]) : 0.0f;
    const float value = inside ? bf16_value(v[(first + row) * call.width + d]) : 0.0f;
    shared.k[row][d] = key;
    shared.key[row][d] = key;
    shared.v[row][d] = value;
    shared.v_square[row][d] = (value * kValueScale) * (value * kValueScale);
  }
}

// Scores of 4 queries x 2 keys a thread, then their weights relative to the running maximum, into
// shared memory.
__device__ void weigh(AttentionShared& shared, const AttentionCall& call, int64_t first_query,
                      int64_t first_key, RowState state[4], Accumulators& sums) {
  const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
  double score[4][2] = {};
#pragma unroll 4
  for (int d = 0; d < kWidth; ++d) {
    const double k0 = shared.k[tx][d], k1 = shared.k[tx + 16][d];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const double q = shared.q[ty * 4 + i][d];
      score[i][0] = fma(q, k0, score[i][0]);
      score[i][1] = fma(q, k1, score[i][1]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t query = first_query + ty * 4 + i;
    double most = state[i].most;
    bool visible[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int64_t key = first_key + tx + 16 * j;
      visible[j] = key < call.length && (call.causal == 0 || key <= query);
      if (visible[j]) most = fmax(most, score[i][j]);
    }
    most = row_max(most);
    const double shrink = exp((state[i].most - most) * call.scale);
    state[i].most = most;
    double sum = 0, squares = 0;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const double p = visible[j] ? exp((score[i][j] - most) * call.scale) : 0.0;
      sum += p;
      squares += p * p;
      shared.p[ty * 4 + i][tx + 16 * j] = p;
      shared.weight[ty * 4 + i][tx + 16 * j] = static_cast<float>(p);
      shared.weight_square[ty * 4 + i][tx + 16 * j] = static_cast<float>(p * p);
    }
    state[i].sum = state[i].sum * shrink + row_sum(sum);
    state[i].squares = state[i].squares * shrink * shrink + row_sum(squares);
    const auto small = static_cast<float>(shrink);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      sums.out[i][c] *= shrink;
      sums.mean_key[i][c] *= small;
      sums.incoherent[i][c] *= small * small;
    }
  }
}

__device__ void accumulate(const AttentionShared& shared, Accumulators& sums) {
  const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
  for (int key = 0; key < kKeys; ++key) {
    double p[4];
    float weight[4], square[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      p[i] = shared.p[ty * 4 + i][key];
      weight[i] = shared.weight[ty * 4 + i][key];
      square[i] = shared.weight_square[ty * 4 + i][key];
    }
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const double v = shared.v[key][tx + 16 * c];
      const float k = shared.key[key][tx + 16 * c], v2 = shared.v_square[key][tx + 16 * c];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums.out[i][c] = fma(p[i], v, sums.out[i][c]);
        sums.mean_key[i][c] = fmaf(weight[i], k, sums.mean_key[i][c]);
        sums.incoherent[i][c] = fmaf(square[i], v2, sums.incoherent[i][c]);
      }
    }
  }
}

__device__ void finish(const AttentionShared& shared, const AttentionCall& call, int64_t head,
                       int64_t first_query, double longest_key, const RowState state[4],
                       const Accumulators& sums) {
  const int tx = static_cast<int>(threadIdx.x) % 16, ty = static_cast<int>(threadIdx.x) / 16;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t query = first_query + ty * 4 + i;
    double logit2 = 0;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const double product = shared.q[ty * 4 + i][tx + 16 * c] * sums.mean_key[i][c] / state[i].sum;
      logit2 += product * product;
    }
    const double logit = call.scale * sqrt(row_sum(logit2));
    if (query >= call.length) continue;
    const int64_t row = head * call.length + query;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const int d = tx + 16 * c;
      if (d >= call.width) continue;
      const double value = sums.out[i][c] / state[i].sum;
      const double incoherent =
          sqrt(static_cast<double>(sums.incoherent[i][c])) / (kValueScale * state[i].sum);
      const double step = output_step(value, call.output);
      call.value[row * call.width + d] = static_cast<float>(value);
      call.bound[row * call.width + d] = static_cast<float>(
          call.kind == BoundKind::Exact ? step + 0x1p-9 * incoherent
                                        : step + 0x1p-5 * (1 + logit) * incoherent);
    }
    if (tx != 0) continue;
    const double lse = state[i].most * call.scale + log(state[i].sum);
    const double concentration = sqrt(state[i].squares) / state[i].sum;
    call.lse[row] = static_cast<float>(lse);
    call.lse_bound[row] =
        static_cast<float>(0x1p-8 * concentration + 0x1p-5 * logit + 0x1p-16 * (1 + fabs(lse)) +
                           0x1p-20 * call.q_norms[row] * longest_key * call.scale);
  }
}

}  // namespace

extern "C" __global__ __launch_bounds__(256,
                                        1) void ptxb_reference_attention(const AttentionCall call) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<AttentionShared*>(memory);
  const int64_t head = blockIdx.y, first_query = int64_t{blockIdx.x} * kQueries;
  const auto* q = static_cast<const uint16_t*>(call.q) + head * call.length * call.width;
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * kWidth; i += 256) {
    const int row = i / kWidth, d = i % kWidth;
    const bool inside = first_query + row < call.length && d < call.width;
    shared.q[row][d] = inside ? bf16_value(q[(first_query + row) * call.width + d]) : 0.0f;
  }
  const int64_t last = first_query + kQueries < call.length ? first_query + kQueries : call.length;
  const int64_t keys = call.causal != 0 ? last : call.length;
  RowState state[4];
  Accumulators sums;
  for (int64_t first_key = 0; first_key < keys; first_key += kKeys) {
    __syncthreads();
    load_keys(shared, call, head, first_key);
    __syncthreads();
    weigh(shared, call, first_query, first_key, state, sums);
    __syncthreads();
    accumulate(shared, sums);
  }
  double longest_key = 0;
  for (int64_t j = threadIdx.x % 16; j < keys; j += 16)
    longest_key = fmax(longest_key, call.k_norms[head * call.length + j]);
  finish(shared, call, head, first_query, row_max(longest_key), state, sums);
}

}  // namespace ptxb::cuda
