// SPDX-License-Identifier: Apache-2.0
#include "task/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/minifloat.h"
#include "task/error_model.h"
#include "task/matmul.h"
#include "task/simulated_kernels.h"

namespace ptxb {
namespace {

double at(const std::vector<uint8_t>& bytes, int64_t index) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + 2 * index, 2);
  return static_cast<double>(bf16_to_float(bits));
}

TEST(Matmul, EqualsPlainLoopsAtRaggedSizes) {
  std::mt19937 random(1);
  for (auto [rows, columns, length] :
       {std::array<int64_t, 3>{1, 1, 1}, {7, 9, 300}, {13, 5, 257}, {6, 8, 256}, {145, 3, 2}}) {
    std::vector<float> a(static_cast<size_t>(rows * length)),
        b(static_cast<size_t>(columns * length));
    for (auto* side : {&a, &b}) {
      for (float& x : *side) x = static_cast<float>(static_cast<int>(random() % 200) - 100);
    }
    std::vector<double> c(static_cast<size_t>(rows * columns));
    MatmulScratch scratch;
    multiply_nt({Operand::Type::F32, a.data(), length, 1},
                {Operand::Type::F32, b.data(), 1, columns}, rows, columns, length, c.data(),
                columns, scratch);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < length; ++k) {
          sum += static_cast<double>(a[static_cast<size_t>(i * length + k)]) *
                 static_cast<double>(b[static_cast<size_t>(k * columns + j)]);
        }
        ASSERT_EQ(c[static_cast<size_t>(i * columns + j)], sum);
      }
    }
  }
}

TEST(Reference, GemmEqualsPlainLoops) {
  const Task task = gemm_task(150, 21, 300);
  const InputSpec spec{5, Distribution::Normal};
  const Buffers inputs = *make_inputs(task, spec, 1);
  const Reference reference = *compute_reference(task, inputs, spec, 2);
  for (int64_t i = 0; i < 150 * 21; ++i) {
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < 300; ++k) {
      const double product = at(inputs[0], i / 21 * 300 + k) * at(inputs[1], i % 21 * 300 + k);
      sum += product;
      magnitude += std::abs(product);
    }
    ASSERT_NEAR(static_cast<double>(reference.outputs[0].value[static_cast<size_t>(i)]), sum,
                1e-6 * (1 + std::abs(sum)));
    // Never below the sum of magnitudes that Cauchy-Schwarz stands for.
    ASSERT_GE(static_cast<double>(reference.outputs[0].bound[static_cast<size_t>(i)]) * 1.000001,
              error_model::gemm_bound(sum, 300, magnitude, DType::BF16));
  }
}

TEST(Reference, AttentionEqualsPlainLoops) {
  for (bool causal : {false, true}) {
    const Task task = attention_task(1, 2, 70, causal);
    const InputSpec spec{5, Distribution::Spiky};
    const Buffers inputs = *make_inputs(task, spec, 1);
    const Reference reference = *compute_reference(task, inputs, spec, 2);
    for (int64_t row = 0; row < 140; row += 3) {
      const int64_t head = row / 70 * 70, visible = causal ? row % 70 + 1 : 70;
      std::vector<double> weights, out(128);
      double total = 0;
      for (int64_t j = 0; j < visible; ++j) {
        double score = 0;
        for (int64_t d = 0; d < 128; ++d)
          score += at(inputs[0], row * 128 + d) * at(inputs[1], (head + j) * 128 + d);
        weights.push_back(std::exp(score / std::sqrt(128.0)));
        total += weights.back();
      }
      ASSERT_NEAR(static_cast<double>(reference.outputs[1].value[static_cast<size_t>(row)]),
                  std::log(total), 1e-5);
      for (int64_t d = 0; d < 128; ++d) {
        double sum = 0;
        for (int64_t j = 0; j < visible; ++j)
          sum += weights[static_cast<size_t>(j)] / total * at(inputs[2], (head + j) * 128 + d);
        ASSERT_NEAR(
            static_cast<double>(reference.outputs[0].value[static_cast<size_t>(row * 128 + d)]),
            sum, 1e-5);
      }
    }
  }
}

TEST(Reference, ExactAndCodedOutputsAreRepresentable) {
  for (bool causal : {false, true}) {
    for (Distribution distribution : {Distribution::Exact, Distribution::Coded}) {
      const Task task = attention_task(1, 2, 100, causal);
      const InputSpec spec{9, distribution};
      const Reference reference = *compute_reference(task, *make_inputs(task, spec, 1), spec, 1);
      for (float x : reference.outputs[0].value) ASSERT_EQ(bf16_to_float(float_to_bf16(x)), x);
    }
  }
  const Task task = gemm_task(30, 70, 512);
  const InputSpec spec{9, Distribution::Coded};
  const Reference reference = *compute_reference(task, *make_inputs(task, spec, 1), spec, 1);
  for (float x : reference.outputs[0].value) ASSERT_EQ(bf16_to_float(float_to_bf16(x)), x);
}

TEST(Reference, RefusesWhatItWasNotWrittenFor) {
  Task task = gemm_task(4, 8, 16);
  const Buffers inputs = *make_inputs(task, {}, 1);
  Buffers broken = inputs;
  EXPECT_TRUE(compute_reference(task, broken, {}, 1));
  broken[0][0] = 0xff;  // 0x7fff is a NaN
  broken[0][1] = 0x7f;
  EXPECT_EQ(compute_reference(task, broken, {}, 1).error().code, ErrorCode::Harness);
  broken.pop_back();
  EXPECT_EQ(compute_reference(task, broken, {}, 1).error().code, ErrorCode::Harness);
  task.definition.reference = "def run(A, B):\n  return A @ B.T";
  EXPECT_EQ(compute_reference(task, inputs, {}, 1).error().code, ErrorCode::Unsupported);
}

TEST(ErrorModel, OutputStepIsTheDistanceOfNeighbours) {
  EXPECT_EQ(error_model::output_step(1.0, DType::BF16), 0x1p-7);
  EXPECT_EQ(error_model::output_step(-1.99, DType::BF16), 0x1p-7);
  EXPECT_EQ(error_model::output_step(2.0, DType::BF16), 0x1p-6);
  EXPECT_EQ(error_model::output_step(1.0, DType::F32), 0x1p-23);
  EXPECT_EQ(error_model::output_step(0, DType::BF16), 0);
}

}  // namespace
}  // namespace ptxb
