// Owns the argument structures that the worker and its own device kernels share; plain data, no
// pointers to host memory. Compiled by both the host compiler and nvcc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ptxb::cuda {

// Values of DType that the device kernels understand (model/types.h order; a static_assert on the
// host side keeps it so).
enum class Element : uint32_t { F64 = 0, F32 = 1, F16 = 2, BF16 = 3, E4M3 = 4, E5M2 = 5, I32 = 7 };

// Which bound of task/error_model.h holds: that of rounded arithmetic, or that of inputs whose sums
// are exact.
enum class BoundKind : uint32_t { Rounded = 0, Exact = 1 };

struct GemmCall {
  const void* a = nullptr;          // [m, k] row-major, bf16
  const void* b = nullptr;          // [n, k] row-major, bf16
  const double* a_norms = nullptr;  // [m], [n]: Euclidean norms of the rows
  const double* b_norms = nullptr;
  float* value = nullptr;  // [m, n]
  float* bound = nullptr;  // [m, n]
  int64_t m = 0, n = 0, k = 0;
  BoundKind kind = BoundKind::Rounded;
  Element output = Element::BF16;
};

struct AttentionCall {
  const void* q = nullptr;  // [heads, length, width], heads = batch * heads, bf16
  const void* k = nullptr;
  const void* v = nullptr;
  const double* q_norms = nullptr;  // [heads * length]
  const double* k_norms = nullptr;
  float* value = nullptr;  // [heads, length, width]
  float* bound = nullptr;
  float* lse = nullptr;  // [heads, length]
  float* lse_bound = nullptr;
  int64_t heads = 0, length = 0, width = 0;
  double scale = 0;
  int32_t causal = 0;
  BoundKind kind = BoundKind::Rounded;
  Element output = Element::BF16;
};
inline constexpr int kAttentionMaxWidth = 128;
inline constexpr int kAttentionTile =
    64;  // queries a block; the CPU reference takes the same steps
inline constexpr uint32_t kAttentionSharedBytes = 206 * 1024;

struct CompareCall {
  const void* out = nullptr;
  const float* value = nullptr;
  const float* bound = nullptr;
  uint8_t* bad = nullptr;  // 1 for each wrong element; null: not wanted
  int64_t count = 0;
  Element element = Element::BF16;
  double rtol = 0, atol = 0;
  uint32_t poison = 0xff;  // the byte that unwritten elements consist of
};
struct CompareTotals {
  unsigned long long mismatched_a, mismatched_b, unwritten, non_finite;
  unsigned long long max_abs_bits, max_rel_bits,
      max_normalised_bits;  // of non-negative doubles: ordered like them
};
// One multiprocessor's clock and the global clock, read together at a tick's edge.
struct ClockStamp {
  unsigned long long cycles, time_ns;
};
inline constexpr uint32_t kStampSlots = 256;  // multiprocessors, indexed by %smid

}  // namespace ptxb::cuda
