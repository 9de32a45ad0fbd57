// SPDX-License-Identifier: Apache-2.0
#include "task/inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/hash.h"
#include "base/minifloat.h"
#include "task/normal_fill.h"
#include "task/simulated_kernels.h"

namespace ptxb {
namespace {

TEST(Philox, KnownAnswers) {
  // Known-answer vectors published with Random123.
  const PhiloxBlock zero = philox4x32_10({{0, 0, 0, 0}}, 0, 0);
  EXPECT_EQ(zero.w[0], 0x6627e8d5u);
  EXPECT_EQ(zero.w[1], 0xe169c58du);
  EXPECT_EQ(zero.w[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.w[3], 0x9b00dbd8u);
  const PhiloxBlock ones = philox4x32_10({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u);
  EXPECT_EQ(ones.w[0], 0x408f276du);
  EXPECT_EQ(ones.w[1], 0x41c83b0eu);
  EXPECT_EQ(ones.w[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.w[3], 0x6d5451fdu);
}

TEST(NormalFill, FastEqualsPlain) {
  for (Pattern pattern : {Pattern::Normal, Pattern::Spiky}) {
    for (int64_t begin : {int64_t{0}, int64_t{5}, (int64_t{1} << 32) - 9}) {
      GeneratorSpec spec;
      spec.key = 0x123456789abcdef0u;
      spec.tensor = 2;
      spec.pattern = pattern;
      std::vector<uint16_t> fast(8003), plain(8003);
      fill_normal_bf16(spec, begin, 8003, fast.data());
      fill_normal_bf16_portable(spec, begin, 8003, plain.data());
      EXPECT_EQ(fast, plain);
    }
  }
}

TEST(NormalFill, HasTheMomentsOfItsDistribution) {
  GeneratorSpec spec;
  const int64_t count = 1 << 20;
  std::vector<uint16_t> bits(count);
  for (Pattern pattern : {Pattern::Normal, Pattern::Spiky}) {
    spec.pattern = pattern;
    fill_normal_bf16(spec, 0, count, bits.data());
    double sum = 0, squares = 0, fourth = 0;
    int64_t large = 0;
    for (uint16_t b : bits) {
      const double x = static_cast<double>(bf16_to_float(b));
      sum += x;
      squares += x * x;
      fourth += x * x * x * x;
      large += std::abs(x) > 6 ? 1 : 0;
    }
    const double n = static_cast<double>(count);
    EXPECT_NEAR(sum / n, 0, 0.005);
    if (pattern == Pattern::Normal) {
      EXPECT_NEAR(squares / n, 1, 0.005);
      EXPECT_NEAR(fourth / n, 2.9, 0.05);  // twelve uniform terms: 3 - 1.2 / 12
      EXPECT_EQ(large, 0);
    } else {
      EXPECT_NEAR(squares / n, 1 + 100.0 / 1024, 0.02);
      EXPECT_NEAR(static_cast<double>(large) / n, 0.549 / 1024, 0.1 / 1024);  // P(|N(0, 101)| > 6)
    }
  }
}

TEST(Inputs, ArePinned) {
  // The generator is a published format: other numbers here mean that stored results cannot be
  // replayed.
  const struct {
    Task task;
    Distribution distribution;
  } cases[] = {{gemm_task(5, 8, 64), Distribution::Normal},
               {gemm_task(5, 8, 64), Distribution::Exact},
               {gemm_task(5, 8, 64), Distribution::Coded},
               {attention_task(1, 2, 24, false), Distribution::Spiky},
               {attention_task(1, 2, 24, false), Distribution::Exact},
               {attention_task(1, 2, 24, true), Distribution::Coded}};
  std::string all;
  for (const auto& one : cases) {
    const Buffers inputs = *make_inputs(one.task, {1, one.distribution}, 1);
    for (const auto& bytes : inputs) all.append(bytes.begin(), bytes.end());
  }
  EXPECT_EQ(sha256_hex(all), "c4318ee474dcf8112743e92b20a3db0ebd04aa0bcf7d1d19e0b0cd555e007fbf");
}

TEST(Inputs, DependOnSeedShapeAndTensorOnly) {
  const Task task = gemm_task(40, 40, 64);
  const Buffers one = *make_inputs(task, {1, Distribution::Normal}, 1);
  EXPECT_EQ(one, *make_inputs(task, {1, Distribution::Normal}, 2));
  EXPECT_NE(one, *make_inputs(task, {2, Distribution::Normal}, 1));
  EXPECT_NE(one[0], one[1]);
  const Buffers other = *make_inputs(gemm_task(41, 40, 64), {1, Distribution::Normal}, 1);
  EXPECT_NE(std::memcmp(one[0].data(), other[0].data(), one[0].size()), 0);
}

TEST(Inputs, ExactGemmNeedsTheWholeMantissaOfBothOperands) {
  const Task task = gemm_task(64, 64, 4096);
  const Buffers inputs = *make_inputs(task, {3, Distribution::Exact}, 1);
  for (const auto& bytes : inputs) {
    int64_t wide = 0, unit = 0;
    for (size_t i = 0; i < bytes.size(); i += 2) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + i, 2);
      const float x = std::abs(bf16_to_float(bits));
      if (x > 1) {
        ++wide;
        EXPECT_EQ(std::fmod(x, 2.0f), 1.0f);
        EXPECT_GE(x, 129.0f);
        EXPECT_LE(x, 255.0f);
        EXPECT_NE(e4m3_to_float(float_to_e4m3_satfinite(x)), x);
      } else {
        unit += x > 0 ? 1 : 0;
      }
    }
    EXPECT_NEAR(static_cast<double>(wide), 64 * 2048, 64 * 200);
    EXPECT_NEAR(static_cast<double>(unit), 64 * 512, 64 * 100);  // a density of 1024 / 4096
  }
}

TEST(Inputs, CodesNameRowAndColumn) {
  std::set<float> seen;
  for (int64_t row = 0; row < 64; ++row) {
    for (int64_t column = 0; column < 128; ++column) {
      const float value = code_value(row, column);
      EXPECT_EQ(bf16_to_float(float_to_bf16(value)), value);
      EXPECT_TRUE(seen.insert(value).second);
    }
  }
  EXPECT_NE(code_value(0, 0), code_value(64, 0));
  EXPECT_NE(code_value(0, 0), code_value(0, 128));
}

TEST(Inputs, AttentionTargetsAreVisible) {
  GeneratorSpec spec;
  spec.rows = 100;
  spec.inner = 128;
  for (bool causal : {false, true}) {
    spec.causal = causal;
    int64_t own = 0, last = 0;
    for (int64_t i = 0; i < 100; ++i) {
      const int64_t target = attention_target(spec, 3, i);
      EXPECT_GE(target, 0);
      EXPECT_LE(target, causal ? i : 99);
      own += target == i ? 1 : 0;
      last += target == 99 ? 1 : 0;
    }
    EXPECT_GT(own, 10);
    EXPECT_GT(last, causal ? 0 : 3);
  }
}

TEST(Inputs, RefuseWhatTheyCannotMake) {
  Task task = gemm_task(4, 8, 16);
  task.workload.inputs["A"].kind = WorkloadInput::Kind::Safetensors;
  EXPECT_EQ(make_inputs(task, {}, 1).error().code, ErrorCode::Unsupported);
  task.workload.inputs["A"].kind = WorkloadInput::Kind::Random;
  task.definition.inputs[0].dtype = DType::I32;
  EXPECT_EQ(make_inputs(task, {}, 1).error().code, ErrorCode::Unsupported);
}

}  // namespace
}  // namespace ptxb
