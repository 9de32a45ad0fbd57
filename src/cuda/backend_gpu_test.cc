// Owns the GPU tests of the backend that the evaluation line uses: outcomes, executed families,
// speeds.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/cuda_backend.h"
#include "backend/disassembler.h"
#include "cuda/gpu_plans.h"

namespace ptxb::cuda {
namespace {

class OnBackend : public ::testing::Test {
 protected:
  void SetUp() override {
    CudaSettings settings;
    settings.worker = program_folder() + "/ptxbench-worker";
    settings.policy.budget_s = 0.2;
    settings.policy.preheat_s = 0.02;
    auto opened = CudaBackend::open(settings);
    if (!opened) GTEST_SKIP() << opened.error().message;
    backend_ = *std::move(opened);
  }
  std::unique_ptr<CudaBackend> backend_;
  const Task task_ = gemm_task(512, 512, 512);
};

OpcodeCount family_sum(const std::vector<OpcodeCount>& counts, const std::string& family) {
  OpcodeCount sum;
  for (const OpcodeCount& count : counts) {
    if (count.family != family) continue;
    sum.warps += count.warps;
    sum.threads += count.threads;
    sum.flops += count.flops;
    sum.bytes += count.bytes;
  }
  return sum;
}

TEST_F(OnBackend, ItNamesItsChip) {
  EXPECT_FALSE(backend_->chip().empty());
  EXPECT_FALSE(backend_->driver().empty());
}

TEST_F(OnBackend, ARightKernelRunsRepeatsAndIsTimed) {
  const LaunchPlan plan = wgmma_plan(task_, 132);
  const auto run = backend_->run(task_, plan, {.inputs = {4, Distribution::Normal}});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->status, RunStatus::Completed) << run->cause;
  ASSERT_EQ(run->comparisons.size(), 1u);
  EXPECT_TRUE(run->comparisons[0].passed) << run->comparisons[0].diagnosis;
  EXPECT_EQ(run->repeat_digest, run->output_digest);
  const auto speed = backend_->time(task_, plan);
  ASSERT_TRUE(speed) << speed.error().message;
  EXPECT_EQ(speed->gate.status, GateStatus::Passed) << speed->gate.reason;
  EXPECT_TRUE(speed->gate.speedup && speed->gate.speedup_low && speed->gate.tflops);
  EXPECT_EQ(speed->implausible, "");
  EXPECT_NE(speed->gate.baseline.find("cuBLASLt"), std::string::npos);
}

TEST_F(OnBackend, ExecutedFamiliesCarryTheWholeProduct) {
  if (find_nvdisasm().empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  const auto counts = backend_->count(task_, wgmma_plan(task_, 132));
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_DOUBLE_EQ(family_sum(*counts, "wgmma").flops, 2.0 * 512 * 512 * 512);
  // 4 x 2 tiles, 8 steps, two loads each.
  EXPECT_EQ(family_sum(*counts, "tma").warps, 4 * 2 * 8 * 2 + 4u * 2 * 2 * 4);
  EXPECT_GT(family_sum(*counts, "tma").bytes, 2.0 * 512 * 512 * 2);
  EXPECT_NE(backend_->annotated_listing().find("HGMMA.64x256x16.F32.BF16"), std::string::npos);
  const auto warp_level = backend_->count(task_, mma_sync_plan(task_));
  ASSERT_TRUE(warp_level) << warp_level.error().message;
  EXPECT_DOUBLE_EQ(family_sum(*warp_level, "mma_sync").flops, 2.0 * 512 * 512 * 512);
  EXPECT_EQ(family_sum(*warp_level, "wgmma").warps, 0u);
}

TEST_F(OnBackend, ABareCommitIsNoMatrixWork) {
  if (find_nvdisasm().empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  const auto counts = backend_->count(task_, simple_plan(task_, "decoy"));
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_EQ(family_sum(*counts, "wgmma").warps, 0u);
  bool seen = false;
  for (const OpcodeCount& count : *counts)
    seen = seen || (count.opcode.find("gdesc[URZ]") != std::string::npos && count.warps > 0);
  EXPECT_TRUE(seen)
      << "ptxas no longer emits the empty HGMMA: does_nothing() may need another look";
}

TEST_F(OnBackend, WritesBesideABufferAreAFinding) {
  const auto run = backend_->run(task_, simple_plan(task_, "writes_before"), {});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->status, RunStatus::Fault);
  ASSERT_EQ(run->findings.size(), 1u);
  EXPECT_EQ(run->findings[0].kind, FindingKind::OutOfBounds);
}

TEST_F(OnBackend, AHangIsABudgetOutcomeAndTheNextRunIsFine) {
  const auto hung = backend_->run(task_, simple_plan(task_, "loops"), {.wall_budget_s = 0.3});
  ASSERT_TRUE(hung) << hung.error().message;
  EXPECT_EQ(hung->status, RunStatus::Budget) << hung->cause;
  const auto next = backend_->run(task_, simple_plan(task_, "honest"), {});
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->status, RunStatus::Completed) << next->cause;
}

TEST_F(OnBackend, HazardsAreNotTheGpusBusiness) {
  const auto run = backend_->run(task_, simple_plan(task_, "honest"), {.depth = RunDepth::Hazards});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::Unsupported);
}

}  // namespace
}  // namespace ptxb::cuda
