// Owns the GEMM reference C = A * B^T: bf16 operands, exact products, fp64 sums.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/minifloat.h"
#include "base/parallel.h"
#include "task/error_model.h"
#include "task/matmul.h"
#include "task/reference_families.h"

namespace ptxb {

namespace {

// By Cauchy-Schwarz ||a|| * ||b|| >= sum |a||b|; for N(0,1) it is 1.57 times that, and costs no
// second product.
std::vector<double> row_norms(const uint16_t* matrix, int64_t rows, int64_t length, int threads) {
  std::vector<double> norms(static_cast<size_t>(rows));
  parallel_for(norms.size(), threads, [&](size_t row, int) {
    const uint16_t* at = matrix + static_cast<int64_t>(row) * length;
    double sum = 0;
    for (int64_t k = 0; k < length; ++k) {
      const double x = static_cast<double>(bf16_to_float(at[k]));
      sum += x * x;
    }
    norms[row] = std::sqrt(sum);
  });
  return norms;
}

constexpr int64_t kTileM = 144, kTileN = 384;  // the fp64 tile of C is 442 KB: a second-level cache

struct Scratch {
  MatmulScratch matmul;
  std::vector<double> c;
};

}  // namespace

Reference gemm_reference(const Task& task, const Buffers& inputs, InputSpec spec, int threads) {
  const int64_t m = task.axes.at("M"), n = task.axes.at("N"), k = task.axes.at("K");
  const auto* a = reinterpret_cast<const uint16_t*>(inputs[0].data());
  const auto* b = reinterpret_cast<const uint16_t*>(inputs[1].data());
  const DType type = task.definition.outputs[0].dtype;
  const std::vector<double> a_norms = row_norms(a, m, k, threads),
                            b_norms = row_norms(b, n, k, threads);
  Reference reference;
  ReferenceOutput& out = reference.outputs.emplace_back();
  out.value.resize(static_cast<size_t>(m * n));
  out.bound.resize(static_cast<size_t>(m * n));
  const int64_t tiles_m = (m + kTileM - 1) / kTileM, tiles_n = (n + kTileN - 1) / kTileN;
  std::vector<Scratch> scratch(static_cast<size_t>(std::max(threads, 1)));
  parallel_for(static_cast<size_t>(tiles_m * tiles_n), threads, [&](size_t tile, int thread) {
    Scratch& own = scratch[static_cast<size_t>(thread)];
    own.c.resize(static_cast<size_t>(kTileM * kTileN));
    const int64_t m0 = (static_cast<int64_t>(tile) % tiles_m) * kTileM,
                  n0 = (static_cast<int64_t>(tile) / tiles_m) * kTileN;
    const int64_t rows = std::min(kTileM, m - m0), columns = std::min(kTileN, n - n0);
    multiply_nt({Operand::Type::Bf16, a + m0 * k, k, 1}, {Operand::Type::Bf16, b + n0 * k, k, 1},
                rows, columns, k, own.c.data(), kTileN, own.matmul);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const double value = own.c[static_cast<size_t>(i * kTileN + j)];
        const double norms =
            a_norms[static_cast<size_t>(m0 + i)] * b_norms[static_cast<size_t>(n0 + j)];
        const size_t at = static_cast<size_t>((m0 + i) * n + n0 + j);
        out.value[at] = static_cast<float>(value);
        out.bound[at] = static_cast<float>(
            exact_inputs(spec)
                ? error_model::gemm_exact_bound(value, type)
                : error_model::gemm_bound(value, static_cast<double>(k), norms, type));
      }
    }
  });
  return reference;
}

}  // namespace ptxb
