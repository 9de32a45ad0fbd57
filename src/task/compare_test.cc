// SPDX-License-Identifier: Apache-2.0
#include "task/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "task/simulated_kernels.h"

namespace ptxb {
namespace {

struct Case {
  Task task = gemm_task(64, 64, 256);
  InputSpec spec{11, Distribution::Normal};
  Buffers inputs = *make_inputs(task, spec, 1);
  Reference reference = *compute_reference(task, inputs, spec, 1);
  Buffers right = filled(task, [this](size_t output, int64_t i) {
    return reference.outputs[output].value[static_cast<size_t>(i)];
  });

  Comparison compared(const Buffers& outputs) const {
    return compare(task, inputs, reference, outputs, spec)[0];
  }
  // The right outputs with one element replaced.
  Comparison with(int64_t index, float value) const {
    Buffers changed = right;
    const Buffers one = filled(task, [value](size_t, int64_t) { return value; });
    changed[0][static_cast<size_t>(2 * index)] = one[0][0];
    changed[0][static_cast<size_t>(2 * index + 1)] = one[0][1];
    return compared(changed);
  }
};

TEST(Compare, RoundedReferencePasses) {
  const Case test;
  const Comparison result = test.compared(test.right);
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(result.elements, 64 * 64);
  EXPECT_EQ(result.matched_ratio, 1);
  EXPECT_LE(result.normalised_error, 0.51);
  EXPECT_EQ(result.diagnosis, "");
  EXPECT_EQ(verdict_of({result}), Verdict::Passed);
}

TEST(Compare, OneWrongElementFails) {
  const Case test;
  const float exact = test.reference.outputs[0].value[70];
  const Comparison result = test.with(70, exact * 1.05f + 0.1f);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.mismatched_a, 1);
  EXPECT_EQ(result.mismatched_b, 1);
  EXPECT_NE(result.diagnosis.find("row 1, column 6"), std::string::npos) << result.diagnosis;
  EXPECT_EQ(verdict_of({result}), Verdict::WrongValues);
}

TEST(Compare, NanAndInfinityNeverMatch) {
  const Case test;
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    const Comparison result = test.with(0, bad);
    EXPECT_FALSE(result.passed);
    EXPECT_EQ(result.non_finite, 1);
    EXPECT_EQ(result.mismatched_b, 1);
    EXPECT_TRUE(std::isfinite(result.max_abs_error));
    EXPECT_EQ(verdict_of({result}), Verdict::NonFinite);
  }
}

TEST(Compare, NanDoesNotHideBehindAnInfiniteBound) {
  Case test;
  test.reference.outputs[0].bound[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(test.with(0, std::numeric_limits<float>::quiet_NaN()).passed);
  test.reference.outputs[0].bound[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(test.with(0, test.reference.outputs[0].value[0] + 1).passed);
}

TEST(Compare, PoisonIsUnwritten) {
  const Case test;
  const Comparison none = test.compared(poisoned_outputs(test.task));
  EXPECT_FALSE(none.passed);
  EXPECT_EQ(none.unwritten, 64 * 64);
  EXPECT_NE(none.diagnosis.find("C was never written"), std::string::npos);
  Buffers partly = test.right;
  for (int64_t i = 64 * 48; i < 64 * 64; ++i)
    partly[0][static_cast<size_t>(2 * i)] = partly[0][static_cast<size_t>(2 * i + 1)] = kPoisonByte;
  const Comparison some = test.compared(partly);
  EXPECT_EQ(some.unwritten, 64 * 16);
  EXPECT_EQ(some.diagnosis, "25% of the elements (rows 48..63) of C were never written");
  EXPECT_EQ(verdict_of({some}), Verdict::Unwritten);
}

TEST(Compare, WrongSizeAndMissingOutputFail) {
  const Case test;
  Buffers cut = test.right;
  cut[0].pop_back();
  EXPECT_EQ(verdict_of({test.compared(cut)}), Verdict::WrongShapeOrType);
  EXPECT_EQ(verdict_of({test.compared({})}), Verdict::WrongShapeOrType);
}

TEST(Compare, RequiredMatchedRatioLoosensRuleAOnly) {
  Case test;
  test.task.definition.tolerance.required_matched_ratio = 0.5;
  EXPECT_FALSE(test.with(70, test.reference.outputs[0].value[70] * 1.05f + 0.1f).passed);
}

TEST(Compare, ExactInputsGrantNoError) {
  Case test;
  test.spec.distribution = Distribution::Exact;
  test.inputs = *make_inputs(test.task, test.spec, 1);
  test.reference = *compute_reference(test.task, test.inputs, test.spec, 1);
  test.right = filled(test.task, [&](size_t, int64_t i) {
    return test.reference.outputs[0].value[static_cast<size_t>(i)];
  });
  EXPECT_TRUE(test.compared(test.right).passed);
  for (int64_t i = 0; i < 64 * 64; ++i) {
    const float exact = test.reference.outputs[0].value[static_cast<size_t>(i)];
    if (exact < 512 || exact >= 1024) continue;  // bf16 steps of 4
    EXPECT_FALSE(test.with(i, std::floor(exact / 4) * 4 + 8).passed);
    return;
  }
  FAIL() << "no element in the range";
}

TEST(Compare, ZeroBoundAcceptsEqualityOnly) {
  Case test;
  test.reference.outputs[0].value[5] = 0;
  test.reference.outputs[0].bound[5] = 0;
  EXPECT_TRUE(test.with(5, 0.0f).passed);
  EXPECT_FALSE(test.with(5, 1e-6f).passed);
}

}  // namespace
}  // namespace ptxb
