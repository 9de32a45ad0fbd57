// SPDX-License-Identifier: Apache-2.0
#include "task/diagnose.h"

#include <gtest/gtest.h>

#include <cmath>

#include "task/compare.h"
#include "task/simulated_kernels.h"

namespace ptxb {
namespace {

TEST(DescribeRegion, NamesRowsColumnsAndTiles) {
  const Layout layout{.matrices = 1, .rows = 256, .columns = 256};
  const struct {
    bool (*bad)(int64_t row, int64_t column);
    const char* text;
  } cases[] = {
      {[](int64_t, int64_t) { return true; }, "all elements"},
      {[](int64_t row, int64_t) { return row >= 192; }, "25% of the elements (rows 192..255)"},
      {[](int64_t row, int64_t) { return row == 3; }, "0.391% of the elements (row 3)"},
      {[](int64_t row, int64_t) { return row % 16 >= 8; },
       "50% of the elements (rows with row mod 16 in 8..15)"},
      {[](int64_t, int64_t column) { return column % 2 == 1; },
       "50% of the elements (columns with column mod 2 = 1)"},
      {[](int64_t row, int64_t column) { return row < 64 && column >= 128; },
       "12.5% of the elements (rows 0..63, columns 128..255)"},
      {[](int64_t row, int64_t column) { return row / 64 == column / 64; },
       "25% of the elements (4 of 16 tiles of 64x64 (the first at row 0, column 0))"},
      {[](int64_t row, int64_t column) { return (row * 7 + column * 13) % 61 == 0; },
       "1.64% of the elements (scattered)"},
  };
  for (const auto& one : cases) {
    std::vector<uint8_t> bad;
    for (int64_t i = 0; i < 256 * 256; ++i) bad.push_back(one.bad(i / 256, i % 256) ? 1 : 0);
    EXPECT_EQ(describe_region(bad, layout), one.text);
  }
}

template <class Kernel>
std::string diagnosis(const Task& task, const Kernel& kernel, size_t output = 0,
                      Distribution distribution = Distribution::Normal) {
  const InputSpec spec{4, distribution};
  const Buffers inputs = *make_inputs(task, spec, 1);
  const Reference reference = *compute_reference(task, inputs, spec, 1);
  return compare(task, inputs, reference, run(kernel, task, inputs), spec)[output].diagnosis;
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(DiagnoseGemm, NamesTheMistake) {
  const Task task = gemm_task(64, 48, 1024);
  for (Distribution distribution : {Distribution::Normal, Distribution::Exact}) {
    auto says = [&](const GemmKernel& kernel) { return diagnosis(task, kernel, 0, distribution); };
    EXPECT_SAYS(says({.dropped_tail = 64}),
                "only the first 960 of 1024 K terms were summed (the K tail of 64 is dropped)");
    EXPECT_SAYS(says({.dropped_tail = 1}), "only the first 1023 of 1024 K terms");
    EXPECT_SAYS(says({.first_k = 32}), "the first 32 of 1024 K terms were left out");
    EXPECT_SAYS(says({.a = OperandType::E4m3, .b = OperandType::E4m3}),
                "both operands were rounded to fp8");
    EXPECT_SAYS(says({.b = OperandType::E4m3}), "B were rounded to fp8");
    EXPECT_SAYS(says({.layout = GemmKernel::Layout::BTransposed}),
                "B were read as [K, N] (transposed)");
    EXPECT_SAYS(says({.layout = GemmKernel::Layout::OutputTransposed}),
                "stored column-major (transposed)");
    EXPECT_SAYS(says({.swizzle_a_chunks = 8}),
                "16-byte chunks of A were permuted by the 128-byte swizzle");
    EXPECT_SAYS(says({.accumulate = Accumulate::Bf16Partials}),
                "K were split into 2 parts whose sums are rounded to bf16");
    EXPECT_SAYS(says({.accumulate = Accumulate::Bf16}), "lost precision");
  }
}

// Outputs made from the right ones.
std::string diagnosis_of(const Task& task, Distribution distribution,
                         const std::function<double(const std::vector<float>& right, int64_t row,
                                                    int64_t column)>& value) {
  const InputSpec spec{4, distribution};
  const Buffers inputs = *make_inputs(task, spec, 1);
  const Reference reference = *compute_reference(task, inputs, spec, 1);
  const int64_t n = task.axes.at("N");
  const Buffers outputs = filled(task, [&](size_t, int64_t i) {
    return static_cast<float>(value(reference.outputs[0].value, i / n, i % n));
  });
  return compare(task, inputs, reference, outputs, spec)[0].diagnosis;
}

TEST(DiagnoseGemm, FindsMovedAndScaledResults) {
  const Task task = gemm_task(192, 192, 96);
  auto at = [](const std::vector<float>& right, int64_t row, int64_t column) {
    return static_cast<double>(right[static_cast<size_t>(row * 192 + column)]);
  };
  EXPECT_SAYS(diagnosis_of(task, Distribution::Normal,
                           [&](const auto& right, int64_t row, int64_t column) {
                             return 2 * at(right, row, column);
                           }),
              "multiplied by 2 (summed more than once, or accumulators not cleared)");
  EXPECT_SAYS(diagnosis_of(task, Distribution::Normal,
                           [&](const auto& right, int64_t row, int64_t column) {
                             return at(right, column, row);
                           }),
              "the output were transposed");
  EXPECT_SAYS(diagnosis_of(task, Distribution::Normal,
                           [&](const auto& right, int64_t row, int64_t column) {
                             return at(right, (row + 8) % 192, column);
                           }),
              "held the result of row + 8");
  EXPECT_SAYS(diagnosis_of(task, Distribution::Normal,
                           [&](const auto& right, int64_t row, int64_t column) {
                             return at(right, row, column < 128 ? column ^ 64 : column);
                           }),
              "exchanged with the result at column xor 64");
  EXPECT_SAYS(diagnosis_of(task, Distribution::Normal,
                           [&](const auto& right, int64_t row, int64_t column) {
                             return at(right, row, column) +
                                    (column >= 64 ? at(right, row, column - 64) : 0);
                           }),
              "accumulators are not cleared between tiles");
  EXPECT_SAYS(
      diagnosis_of(task, Distribution::Normal, [](const auto&, int64_t, int64_t) { return 0; }),
      "every element of C is 0: nothing was accumulated");
  EXPECT_SAYS(diagnosis_of(task, Distribution::Coded,
                           [&](const auto& right, int64_t row, int64_t column) {
                             return row % 2 ? 0.0 : at(right, row, column);
                           }),
              "rows with row mod 2 = 1");
}

TEST(DiagnoseGemm, FindsAMissingTileOfK) {
  const Task task = gemm_task(32, 32, 512);
  const InputSpec spec{4, Distribution::Normal};
  const Buffers inputs = *make_inputs(task, spec, 1);
  const Reference reference = *compute_reference(task, inputs, spec, 1);
  Buffers cut = inputs;  // a tile of zeros in A is a tile that was not summed
  for (int64_t row = 0; row < 32; ++row) {
    std::fill_n(cut[0].begin() + (row * 512 + 192) * 2, 64 * 2, uint8_t{0});
  }
  const Comparison result = compare(task, inputs, reference, run(GemmKernel{}, task, cut), spec)[0];
  EXPECT_SAYS(result.diagnosis, "the terms k = 192..255 were missing");
}

TEST(DiagnoseAttention, NamesTheMistake) {
  using K = AttentionKernel;
  const Task full = attention_task(1, 2, 192, false), causal = attention_task(1, 2, 192, true);
  EXPECT_SAYS(diagnosis(full, K{.score_factor = std::sqrt(128.0)}), "not scaled by 1/sqrt(D)");
  EXPECT_SAYS(diagnosis(full, K{.score_factor = std::log(2.0)}),
              "exp2 were taken without the factor log2(e)");
  EXPECT_SAYS(diagnosis(full, K{.score_factor = 0}), "uniform attention");
  EXPECT_SAYS(diagnosis(full, K{.lse_factor = 1 / std::log(2.0)}, 1), "LSE is a natural logarithm");
  EXPECT_SAYS(diagnosis(full, K{.dropped_keys = 64}),
              "the last 64 keys of the sequence were left out");
  EXPECT_SAYS(diagnosis(full, K{.rescale = K::Rescale::Missing}),
              "not rescaled when the running maximum grows");
  EXPECT_SAYS(diagnosis(full, K{.normalise = K::Normalise::Missing}), "not divided by the row sum");
  EXPECT_SAYS(diagnosis(full, K{.qk = OperandType::E4m3}), "Q and K were rounded to fp8");
  EXPECT_SAYS(diagnosis(full, K{.v = OperandType::E4m3}), "V were rounded to fp8");
  EXPECT_SAYS(diagnosis(full, K{.mask = K::Mask::Always}), "this task has no mask");
  EXPECT_SAYS(diagnosis(causal, K{.mask = K::Mask::Never}), "no causal mask");
  EXPECT_SAYS(diagnosis(causal, K{.mask_offset = 1}), "query i sees keys up to i + 1");
  EXPECT_SAYS(diagnosis(causal, K{.mask_offset = -1}), "query i does not see key i");
}

}  // namespace
}  // namespace ptxb
