// The null tests: what is no kernel, or a wrong one, must be refused; every right kernel must be
// accepted on every distribution.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/minifloat.h"
#include "task/compare.h"
#include "task/simulated_kernels.h"

namespace ptxb {
namespace {

struct Set {
  Task task;
  InputSpec spec;
  Buffers inputs;
  Reference reference;
};

Set make_set(const Task& task, Distribution distribution) {
  const InputSpec spec{21, distribution};
  Buffers inputs = *make_inputs(task, spec, 1);
  Reference reference = *compute_reference(task, inputs, spec, 1);
  return {task, spec, std::move(inputs), std::move(reference)};
}

std::vector<Set> sets(const Task& task) {
  std::vector<Set> out;
  for (Distribution distribution : distributions(task)) out.push_back(make_set(task, distribution));
  return out;
}

std::vector<Comparison> compared(const Set& set, const Buffers& outputs) {
  return compare(set.task, set.inputs, set.reference, outputs, set.spec);
}

bool passed(const Set& set, const Buffers& outputs) {
  return verdict_of(compared(set, outputs)) == Verdict::Passed;
}

// By rule B alone: what the published tolerance lets through must fall here.
bool refused_by_b(const Set& set, const Buffers& outputs) {
  for (const Comparison& comparison : compared(set, outputs)) {
    if (comparison.mismatched_b > 0) return true;
  }
  return false;
}

template <class Kernel>
void expect_accepted(const std::vector<Set>& all, const Kernel& kernel, const char* what) {
  for (const Set& set : all) {
    for (const Comparison& result : compared(set, run(kernel, set.task, set.inputs))) {
      EXPECT_TRUE(result.passed) << what << " on " << result.distribution << ", " << result.output
                                 << ": normalised error " << result.normalised_error << "; "
                                 << result.diagnosis;
    }
  }
}

// Refused by rule B on the first set (N(0,1)) and, where asked, on the second (exact) too.
enum class On { Normal, NormalAndExact };
template <class Kernel>
void expect_refused(const std::vector<Set>& all, const Kernel& kernel, On on, const char* what) {
  EXPECT_TRUE(refused_by_b(all[0], run(kernel, all[0].task, all[0].inputs)))
      << what << " on normal";
  if (on == On::NormalAndExact) {
    EXPECT_TRUE(refused_by_b(all[1], run(kernel, all[1].task, all[1].inputs)))
        << what << " on exact";
  }
}

double mean(const ReferenceOutput& output) {
  double sum = 0;
  for (float x : output.value) sum += static_cast<double>(x);
  return sum / static_cast<double>(output.value.size());
}

// Outputs that need no kernel: refused on every distribution.
void expect_no_constant_passes(const std::vector<Set>& all) {
  for (const Set& set : all) {
    const std::string where(name(set.spec.distribution));
    EXPECT_FALSE(passed(set, poisoned_outputs(set.task))) << where;
    EXPECT_TRUE(refused_by_b(set, filled(set.task, [](size_t, int64_t) { return 0.0f; })))
        << "zeros on " << where;
    EXPECT_TRUE(refused_by_b(set, filled(set.task, [](size_t, int64_t) { return 1.0f; })))
        << "ones on " << where;
    EXPECT_TRUE(refused_by_b(set, filled(set.task,
                                         [&](size_t output, int64_t) {
                                           return static_cast<float>(
                                               mean(set.reference.outputs[output]));
                                         })))
        << "the mean on " << where;
    EXPECT_TRUE(refused_by_b(
        set, filled(set.task,
                    [&](size_t, int64_t i) {
                      uint16_t bits = 0;
                      std::memcpy(
                          &bits,
                          set.inputs[0].data() + 2 * i % static_cast<int64_t>(set.inputs[0].size()),
                          2);
                      return bf16_to_float(bits);
                    })))
        << "a copy of the first input on " << where;
    EXPECT_TRUE(
        refused_by_b(set, filled(set.task,
                                 [&](size_t output, int64_t i) {
                                   const auto& value = set.reference.outputs[output].value;
                                   return value[(static_cast<size_t>(i) + 1) % value.size()];
                                 })))
        << "shifted by one element on " << where;
  }
}

TEST(NullGemm, NoConstantPasses) { expect_no_constant_passes(sets(gemm_task(48, 40, 2048))); }

TEST(NullGemm, RightKernelsAreAccepted) {
  for (const Task& task : {gemm_task(24, 32, 5120), gemm_task(70, 24, 256), gemm_task(3, 5, 40),
                           gemm_task(9, 8, 21504)}) {
    const std::vector<Set> all = sets(task);
    for (Accumulate how :
         {Accumulate::Forward, Accumulate::Reversed, Accumulate::Blocked, Accumulate::TensorCore}) {
      expect_accepted(all, GemmKernel{.accumulate = how}, "accumulation order");
    }
    expect_accepted(all,
                    GemmKernel{.accumulate = Accumulate::TensorCore, .store = Store::Truncated},
                    "truncating store");
  }
}

TEST(NullGemm, WrongKernelsAreRefused) {
  const std::vector<Set> all = sets(gemm_task(64, 48, 2048));
  expect_refused(all, GemmKernel{.dropped_tail = 64}, On::NormalAndExact, "dropped K tile");
  expect_refused(all, GemmKernel{.dropped_tail = 16}, On::NormalAndExact, "dropped K tail of 16");
  expect_refused(all, GemmKernel{.dropped_tail = 1}, On::NormalAndExact, "dropped last term");
  expect_refused(all, GemmKernel{.first_k = 8}, On::NormalAndExact, "dropped first chunk");
  expect_refused(all, GemmKernel{.a = OperandType::E4m3, .b = OperandType::E4m3},
                 On::NormalAndExact, "fp8");
  expect_refused(all, GemmKernel{.a = OperandType::E4m3}, On::NormalAndExact, "fp8 A");
  expect_refused(all, GemmKernel{.b = OperandType::E4m3}, On::NormalAndExact, "fp8 B");
  expect_refused(all, GemmKernel{.accumulate = Accumulate::Bf16}, On::NormalAndExact,
                 "bf16 accumulator");
  expect_refused(all, GemmKernel{.accumulate = Accumulate::Bf16Partials}, On::NormalAndExact,
                 "bf16 partial sums");
  expect_refused(all, GemmKernel{.layout = GemmKernel::Layout::BTransposed}, On::NormalAndExact,
                 "B read transposed");
  expect_refused(all, GemmKernel{.layout = GemmKernel::Layout::OutputTransposed},
                 On::NormalAndExact, "C transposed");
  expect_refused(all, GemmKernel{.swizzle_a_chunks = 8}, On::NormalAndExact, "swizzled A");
}

TEST(NullGemm, OneDroppedBlockIsRefusedInTheLongestSum) {
  const std::vector<Set> all = sets(gemm_task(16, 16, 21504));
  expect_refused(all, GemmKernel{.dropped_tail = 16}, On::NormalAndExact,
                 "dropped K tail of 16 of 21504");
}

class NullAttention : public testing::TestWithParam<bool> {};
using K = AttentionKernel;

TEST_P(NullAttention, NoConstantPasses) {
  expect_no_constant_passes(sets(attention_task(1, 1, 72, GetParam())));
}

TEST_P(NullAttention, RightKernelsAreAccepted) {
  for (int64_t length : {1, 100, 256}) {
    const std::vector<Set> all = sets(attention_task(1, 1, length, GetParam()));
    expect_accepted(all, K{}, "bf16 weights");
    expect_accepted(all, K{.block = 128}, "blocks of 128 keys");
    expect_accepted(all, K{.weights = K::Weights::F32}, "f32 weights");
    expect_accepted(all, K{.row_sum = K::RowSum::OfRoundedWeights}, "row sum of rounded weights");
    expect_accepted(all, K{.scaling = K::Scaling::OfBf16Queries}, "queries scaled in bf16");
    expect_accepted(all, K{.store = Store::Truncated}, "truncating store");
  }
}

TEST_P(NullAttention, WrongKernelsAreRefused) {
  const std::vector<Set> all = sets(attention_task(1, 2, 256, GetParam()));
  expect_refused(all, K{.score_factor = 0}, On::NormalAndExact, "uniform attention");
  expect_refused(all, K{.score_factor = std::sqrt(128.0)}, On::NormalAndExact, "missing scale");
  expect_refused(all, K{.score_factor = std::log(2.0)}, On::NormalAndExact, "2^x for e^x");
  expect_refused(all, K{.lse_factor = 1 / std::log(2.0)}, On::NormalAndExact, "base-2 LSE");
  expect_refused(all, K{.qk = OperandType::E4m3}, On::NormalAndExact, "fp8 Q and K");
  expect_refused(all, K{.v = OperandType::E4m3}, On::NormalAndExact, "fp8 V");
  expect_refused(all, K{.p = OperandType::E4m3}, On::Normal,
                 "fp8 weights");  // exact inputs have weights of 1
  expect_refused(all, K{.rescale = K::Rescale::Missing}, On::NormalAndExact, "missing rescale");
  expect_refused(all, K{.normalise = K::Normalise::Missing}, On::NormalAndExact,
                 "missing division");
  expect_refused(all, K{.dropped_keys = 64}, On::NormalAndExact, "dropped last block");
  expect_refused(all, K{.dropped_keys = 1}, On::NormalAndExact, "dropped last key");
  if (GetParam()) {
    expect_refused(all, K{.mask_offset = 1}, On::NormalAndExact, "mask off by one");
    expect_refused(all, K{.mask_offset = -1}, On::NormalAndExact, "mask off by minus one");
    expect_refused(all, K{.mask = K::Mask::Never}, On::NormalAndExact, "no mask");
  } else {
    expect_refused(all, K{.mask = K::Mask::Always}, On::NormalAndExact, "a mask");
  }
}

INSTANTIATE_TEST_SUITE_P(Masks, NullAttention, testing::Bool(),
                         [](const auto& test) { return test.param ? "Causal" : "Full"; });

}  // namespace
}  // namespace ptxb
