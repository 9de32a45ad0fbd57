// Tests of kernels as nvcc compiles them (testdata/): values, counts, modes, threads, the neutralised tensor core.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "emu/test_kernels.h"

namespace ptxb::emu {
namespace {

std::string data(const std::string& name) { return read_text(std::string(PTXB_SOURCE_DIR) + "/src/emu/testdata/" + name); }

TEST(Kernels, SimtGemmIsRightOnRaggedShapes) {
  GemmCase gemm{GemmCase::Kernel::Simt, 93, 70, 77};
  TestPlan plan = gemm.plan(data("gemm_simt.ptx"));
  plan.options().threads = 2;
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  EXPECT_LT(gemm.worst_error(plan.read<uint16_t>(2)), 0.01);
}

TEST(Kernels, MmaSyncGemmIsRightInFastAndExact) {
  for (Mode mode : {Mode::Fast, Mode::Exact}) {
    GemmCase gemm{GemmCase::Kernel::MmaSync, 93, 136, 200};
    TestPlan plan = gemm.plan(data("gemm_mma_sync.ptx"));
    plan.options().mode = mode;
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
    EXPECT_LT(gemm.worst_error(plan.read<uint16_t>(2)), 0.01);
  }
}

TEST(Kernels, MatrixInstructionsAreCountedWithTheirFlops) {
  GemmCase gemm{GemmCase::Kernel::MmaSync, 128, 128, 128};
  TestPlan plan = gemm.plan(data("gemm_mma_sync.ptx"));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  double flops = 0, bytes = 0;
  uint64_t mma = 0;
  for (const OpcodeCount& c : report->counts) {
    if (c.family == "mma_sync") flops += c.flops, mma += c.warps;
    if (c.family == "cp_async" && c.bytes > 0) bytes += c.bytes;
  }
  EXPECT_EQ(mma, 128u * 128 * 128 / (16 * 8 * 16));
  EXPECT_EQ(flops, 2.0 * 128 * 128 * 128);
  EXPECT_EQ(bytes, 2.0 * 128 * 128 * 2);
}

TEST(Kernels, ANeutralisedFamilyLeavesItsAccumulator) {
  GemmCase gemm{GemmCase::Kernel::MmaSync, 64, 64, 64};
  TestPlan plan = gemm.plan(data("gemm_mma_sync.ptx"));
  plan.options().neutralised_family = "mma_sync";
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  for (uint16_t c : plan.read<uint16_t>(2)) ASSERT_EQ(c & 0x7fff, 0);
}

TEST(Kernels, ThreadsChangeNeitherBitsNorCounts) {
  auto once = [](int threads) {
    GemmCase gemm{GemmCase::Kernel::MmaSync, 130, 260, 72};
    TestPlan plan = gemm.plan(data("gemm_mma_sync.ptx"));
    plan.options().threads = threads;
    auto report = plan.run();
    EXPECT_TRUE(report);
    return std::pair(plan.read<uint16_t>(2), report->warp_instructions);
  };
  EXPECT_EQ(once(1), once(3));
}

TEST(Kernels, CallsRecursionTablesAndPrintf) {
  int n = 100;
  std::vector<float> in(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) in[static_cast<size_t>(i)] = static_cast<float>(i) * 1.25f;
  TestPlan plan(data("calls.ptx"), "k");
  uint64_t out = plan.output("out", static_cast<uint64_t>(n) * 4);
  plan.arg(out).arg(plan.buffer("in", in)).arg(n);
  plan.launch().grid = {2, 1, 1};
  plan.launch().block = {64, 1, 1};
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  auto f1 = [](int x) { return x * 2 + 1; };
  auto f2 = [](int x) { return x * 3 + 2; };
  const int fib[8] = {0, 1, 1, 2, 3, 5, 8, 13};
  auto result = plan.read<int>(0);
  for (int i = 0; i < n; ++i) {
    int switched[8] = {5, f1(1), 18, 9, -3, f2(6), -1, -1};
    int expected = (i & 1 ? f2(i) : f1(i)) + fib[i % 8] + static_cast<int>(i * 0.5 + in[static_cast<size_t>(i)]) +
                   static_cast<signed char>(i) + (2 + i % 3) + (1 + i % 3) + switched[i % 8];
    EXPECT_EQ(result[static_cast<size_t>(i)], expected) << i;
  }
  ASSERT_EQ(report->printed.size(), 1u);
  EXPECT_EQ(report->printed[0], "hello 3 2.500000 str 3.33e-01 123456789012 x");
}

TEST(Kernels, AFailedAssertNamesItsConditionAndLine) {
  TestPlan plan(data("calls.ptx"), "k");
  uint64_t out = plan.output("out", 512);
  plan.arg(out).arg(plan.buffer("in", std::vector<float>(128))).arg(128);
  plan.launch().grid = {2, 1, 1};
  plan.launch().block = {64, 1, 1};
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Fault);
  EXPECT_EQ(report->findings[0].kind, FindingKind::AssertFailed);
  EXPECT_NE(report->cause.find("thread 36 of block (1,0,0) fails the assertion \"i < 100\""), std::string::npos) << report->cause;
}

TEST(Check, AMissingBarrierIsARaceOfTwoNamedThreads) {
  GemmCase gemm{GemmCase::Kernel::Faulty, 32, 32, 128};
  TestPlan plan = gemm.plan(data("gemm_race.ptx"));
  plan.options().mode = Mode::Check;
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_LT(gemm.worst_error(plan.read<uint16_t>(2)), 0.01) << "the values are right all the same";
  ASSERT_EQ(report->findings.size(), 1u);
  const Finding& f = report->findings[0];
  EXPECT_EQ(f.kind, FindingKind::Race);
  EXPECT_EQ(f.grade, FindingGrade::Wrong);
  EXPECT_EQ(f.place.source_file, "gemm_race.cu");
  EXPECT_GT(f.times, 1u);
  EXPECT_EQ(f.message.find("thread 32 of block (0,0,0) reads shared+0x"), 0u) << f.message;
  EXPECT_NE(f.message.find(" written by thread 0 at gemm_race.cu:"), std::string::npos) << f.message;
  EXPECT_NE(f.message.find(" with no barrier between"), std::string::npos) << f.message;
}

TEST(Check, UninitialisedSharedMemoryThatReachesTheOutput) {
  GemmCase gemm{GemmCase::Kernel::Faulty, 32, 32, 64};
  TestPlan plan = gemm.plan(data("gemm_uninitialised_shared.ptx"));
  plan.options().mode = Mode::Check;
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->findings.size(), 1u);
  EXPECT_EQ(report->findings[0].kind, FindingKind::UninitialisedRead);
  EXPECT_NE(report->findings[0].message.find("which nobody has written"), std::string::npos) << report->findings[0].message;
}

TEST(Check, CorrectKernelsAreNotAccused) {
  struct Case {
    GemmCase gemm;
    const char* file;
  };
  Case cases[] = {{{GemmCase::Kernel::Simt, 93, 70, 77}, "gemm_simt.ptx"}, {{GemmCase::Kernel::MmaSync, 93, 136, 200}, "gemm_mma_sync.ptx"}};
  for (Case& c : cases) {
    for (Mode mode : {Mode::Check, Mode::Fuzz}) {
      TestPlan plan = c.gemm.plan(data(c.file));
      plan.options().mode = mode;
      plan.options().seed = 3;
      auto report = plan.run();
      ASSERT_TRUE(report) << report.error().message;
      ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
      EXPECT_TRUE(report->findings.empty()) << c.file << ": " << report->findings[0].message;
      EXPECT_LT(c.gemm.worst_error(plan.read<uint16_t>(2)), 0.01);
    }
  }
}

TEST(Check, ABlockLimitSamplesTheGrid) {
  GemmCase gemm{GemmCase::Kernel::Simt, 200, 500, 32};
  TestPlan plan = gemm.plan(data("gemm_simt.ptx"));
  plan.options().mode = Mode::Check;
  plan.options().block_limit = 5;
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->coverage, "5 of 32 blocks");
}

}  // namespace
}  // namespace ptxb::emu
