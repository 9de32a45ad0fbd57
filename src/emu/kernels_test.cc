// Tests of kernels as nvcc compiles them (testdata/): values, counts, modes, threads, the
// neutralised tensor core.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "emu/test_kernels.h"

namespace ptxb::emu {
namespace {

std::string data(const std::string& name) {
  return read_text(std::string(PTXB_SOURCE_DIR) + "/src/emu/testdata/" + name);
}

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

uint16_t half_bits(int small) {  // of 0..63, exact
  if (small == 0) return 0;
  int exponent = 31 - __builtin_clz(static_cast<unsigned>(small));
  return static_cast<uint16_t>(((exponent + 15) << 10) | ((small << (10 - exponent)) & 0x3ff));
}

// Small integers, so that every sum is exact: element x of a list is (x * step) % 7.
int element(int x, int step) { return x * step % 7; }

TEST(Kernels, WmmaFragmentsOfEveryShapeMultiply) {
  std::vector<uint16_t> a(256), b(512), c(512), d(512);
  std::vector<int8_t> e(256), f(256);
  std::vector<double> g(32), h(32);
  for (int x = 0; x < 512; ++x) {
    size_t at = static_cast<size_t>(x);
    if (x < 256)
      a[at] = half_bits(element(x, 3)), e[at] = static_cast<int8_t>(element(x, 3) - 3),
      f[at] = static_cast<int8_t>(element(x, 5) - 3);
    b[at] = half_bits(element(x, 5));
    c[at] = to_bf16(static_cast<float>(element(x, 3)));
    d[at] = to_bf16(static_cast<float>(element(x, 5)));
    if (x < 32) g[at] = element(x, 3), h[at] = element(x, 5);
  }
  TestPlan plan(data("wmma.ptx"), "k");
  plan.arg(plan.buffer("a", a))
      .arg(plan.buffer("b", b))
      .arg(plan.buffer("c", c))
      .arg(plan.buffer("d", d))
      .arg(plan.buffer("e", e));
  plan.arg(plan.buffer("f", f)).arg(plan.buffer("g", g)).arg(plan.buffer("h", h));
  plan.arg(plan.output("out", 1536 * 4))
      .arg(plan.output("iout", 1024))
      .arg(plan.output("dout", 512))
      .arg(plan.output("hout", 512));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  auto out = plan.read<float>(8);
  // Sum over k of A[i*ai + k*ak] * B[k*bk + j*bj].
  auto sum = [](int i, int j, int depth, int ai, int ak, int bk, int bj) {
    int total = 0;
    for (int k = 0; k < depth; ++k)
      total += element(i * ai + k * ak, 3) * element(k * bk + j * bj, 5);
    return total;
  };
  struct Shape {
    int at, m, n, ai, ak, bk, bj;
  };
  for (const Shape& s : {Shape{0, 16, 16, 16, 1, 1, 16},
                         {256, 16, 16, 1, 16, 16, 1},
                         {512, 32, 8, 16, 1, 8, 1},
                         {768, 8, 32, 16, 1, 1, 16},
                         {1024, 8, 32, 16, 1, 32, 1}})
    for (int i = 0; i < s.m; ++i)
      for (int j = 0; j < s.n; ++j)
        ASSERT_EQ(out[static_cast<size_t>(s.at + i * s.n + j)],
                  2.0f * static_cast<float>(sum(i, j, 16, s.ai, s.ak, s.bk, s.bj) + 1))
            << s.at << " " << i << " " << j;
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      double tf32 = 0;
      int bytes = 3;
      for (int k = 0; k < 8; ++k)
        tf32 += double{out[static_cast<size_t>(i * 16 + k)]} *
                out[static_cast<size_t>(256 + j * 16 + k)];
      for (int k = 0; k < 16; ++k)
        bytes += (element(i * 16 + k, 3) - 3) * (element(j * 16 + k, 5) - 3);
      ASSERT_EQ(out[static_cast<size_t>(1280 + j * 16 + i)], tf32);
      ASSERT_EQ(plan.read<int>(9)[static_cast<size_t>(i * 16 + j)], bytes);
    }
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      ASSERT_EQ(plan.read<double>(10)[static_cast<size_t>(i * 8 + j)],
                0.5 + sum(i, j, 4, 4, 1, 1, 4));
  auto half = plan.read<uint16_t>(11);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      uint16_t bits = half[static_cast<size_t>(i * 16 + j)];
      int value = bits ? ((bits & 0x3ff) | 0x400) >> (25 - (bits >> 10)) : 0;
      ASSERT_EQ(value, sum(i, j, 16, 16, 1, 16, 1) + element(i * 16 + j, 3)) << i << " " << j;
    }
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
    int expected = (i & 1 ? f2(i) : f1(i)) + fib[i % 8] +
                   static_cast<int>(i * 0.5 + in[static_cast<size_t>(i)]) +
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
  EXPECT_NE(report->cause.find("thread 36 of block (1,0,0) fails the assertion \"i < 100\""),
            std::string::npos)
      << report->cause;
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
  EXPECT_NE(f.message.find(" written by thread 0 at gemm_race.cu:"), std::string::npos)
      << f.message;
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
  EXPECT_NE(report->findings[0].message.find("which nobody has written"), std::string::npos)
      << report->findings[0].message;
}

TEST(Check, CorrectKernelsAreNotAccused) {
  struct Case {
    GemmCase gemm;
    const char* file;
  };
  Case cases[] = {{{GemmCase::Kernel::Simt, 93, 70, 77}, "gemm_simt.ptx"},
                  {{GemmCase::Kernel::MmaSync, 93, 136, 200}, "gemm_mma_sync.ptx"}};
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
