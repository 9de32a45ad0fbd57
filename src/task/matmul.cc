// SPDX-License-Identifier: Apache-2.0
#include "task/matmul.h"

#include <algorithm>

#include "base/minifloat.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ptxb {

namespace {

// A register tile of 6 x 8 doubles is 12 AVX2 registers; a panel of 8 x 256 doubles is 16 KiB, half
// of a first-level cache.
constexpr int64_t kTileRows = 6, kTileColumns = 8, kDepth = 256;

template <class T>
double widen(T value) {
  return static_cast<double>(value);
}
template <>
double widen(uint16_t value) {
  return static_cast<double>(bf16_to_float(value));
}

// Panels of `width` rows, k-major: out[panel][k][row]; missing rows are zero.
template <class T>
void pack(const Operand& from, int64_t first_row, int64_t rows, int64_t first_k, int64_t depth,
          int64_t width, double* out) {
  const T* data = static_cast<const T*>(from.data);
  for (int64_t panel = 0; panel < rows; panel += width, out += width * depth) {
    for (int64_t r = 0; r < width; ++r) {
      if (panel + r >= rows) {
        for (int64_t k = 0; k < depth; ++k) out[k * width + r] = 0;
        continue;
      }
      const T* row = data + (first_row + panel + r) * from.row_stride + first_k * from.k_stride;
      for (int64_t k = 0; k < depth; ++k) out[k * width + r] = widen(row[k * from.k_stride]);
    }
  }
}

void pack_any(const Operand& from, int64_t first_row, int64_t rows, int64_t first_k, int64_t depth,
              int64_t width, double* out) {
  switch (from.type) {
    case Operand::Type::Bf16:
      return pack<uint16_t>(from, first_row, rows, first_k, depth, width, out);
    case Operand::Type::F32:
      return pack<float>(from, first_row, rows, first_k, depth, width, out);
    case Operand::Type::F64:
      return pack<double>(from, first_row, rows, first_k, depth, width, out);
  }
}

using Tile = void (*)(const double* a, const double* b, int64_t depth, double* out);

void tile_portable(const double* a, const double* b, int64_t depth, double* out) {
  double sums[kTileRows][kTileColumns] = {};
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < kTileRows; ++i) {
      for (int64_t j = 0; j < kTileColumns; ++j)
        sums[i][j] += a[k * kTileRows + i] * b[k * kTileColumns + j];
    }
  }
  std::copy(&sums[0][0], &sums[0][0] + kTileRows * kTileColumns, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void tile_avx2(const double* a, const double* b, int64_t depth,
                                                   double* out) {
  __m256d sums[kTileRows][2];
  for (auto& row : sums) row[0] = row[1] = _mm256_setzero_pd();
  for (int64_t k = 0; k < depth; ++k) {
    const __m256d low = _mm256_loadu_pd(b + k * kTileColumns),
                  high = _mm256_loadu_pd(b + k * kTileColumns + 4);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kTileRows; ++i) {
      const __m256d left = _mm256_broadcast_sd(a + k * kTileRows + i);
      sums[i][0] = _mm256_fmadd_pd(left, low, sums[i][0]);
      sums[i][1] = _mm256_fmadd_pd(left, high, sums[i][1]);
    }
  }
  for (int64_t i = 0; i < kTileRows; ++i) {
    _mm256_storeu_pd(out + i * kTileColumns, sums[i][0]);
    _mm256_storeu_pd(out + i * kTileColumns + 4, sums[i][1]);
  }
}
#endif

Tile best_tile() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return tile_avx2;
#endif
  return tile_portable;
}

}  // namespace

void multiply_nt(const Operand& a, const Operand& b, int64_t rows, int64_t columns, int64_t length,
                 double* c, int64_t c_stride, MatmulScratch& scratch) {
  static const Tile tile = best_tile();
  for (int64_t i = 0; i < rows; ++i) std::fill_n(c + i * c_stride, columns, 0.0);
  const int64_t panels = (rows + kTileRows - 1) / kTileRows;
  scratch.a.resize(static_cast<size_t>(panels * kTileRows * kDepth));
  scratch.b.resize(static_cast<size_t>(kTileColumns * kDepth));
  double sums[kTileRows * kTileColumns];
  for (int64_t k = 0; k < length; k += kDepth) {
    const int64_t depth = std::min(kDepth, length - k);
    pack_any(a, 0, rows, k, depth, kTileRows, scratch.a.data());
    for (int64_t j = 0; j < columns; j += kTileColumns) {
      const int64_t width = std::min(kTileColumns, columns - j);
      pack_any(b, j, width, k, depth, kTileColumns, scratch.b.data());
      for (int64_t panel = 0; panel < panels; ++panel) {
        tile(scratch.a.data() + panel * kTileRows * depth, scratch.b.data(), depth, sums);
        const int64_t height = std::min(kTileRows, rows - panel * kTileRows);
        for (int64_t i = 0; i < height; ++i) {
          double* out = c + (panel * kTileRows + i) * c_stride + j;
          for (int64_t x = 0; x < width; ++x) out[x] += sums[i * kTileColumns + x];
        }
      }
    }
  }
}

}  // namespace ptxb
