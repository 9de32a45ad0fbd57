// Tests of the public face: memory faults, budgets, launch checks, counts, determinism.
// SPDX-License-Identifier: Apache-2.0
#include "emu/emulate.h"

#include <gtest/gtest.h>

#include "emu/test_plan.h"

namespace ptxb::emu {
namespace {

const char* const kSaxpyParams = ".param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n";
const char* const kSaxpyBody = R"(
ld.param.u64 %rd1, [x];
ld.param.u64 %rd2, [y];
ld.param.f32 %f1, [a];
ld.param.u32 %r1, [n];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.s32 %r5, %r2, %r3, %r4;
setp.ge.u32 %p1, %r5, %r1;
@%p1 bra DONE;
mul.wide.u32 %rd3, %r5, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
ld.global.f32 %f2, [%rd4];
ld.global.f32 %f3, [%rd5];
fma.rn.f32 %f4, %f1, %f2, %f3;
st.global.f32 [%rd5], %f4;
DONE:
ret;
)";

TestPlan saxpy(uint32_t n, uint32_t buffer_elements) {
  TestPlan plan(ptx_kernel(kSaxpyParams, kSaxpyBody));
  std::vector<float> x(buffer_elements), y(buffer_elements);
  for (uint32_t k = 0; k < buffer_elements; ++k) {
    x[k] = static_cast<float>(k);
    y[k] = 1.0f;
  }
  uint64_t ax = plan.buffer("x", x), ay = plan.buffer("y", y);
  plan.arg(ax).arg(ay).arg(2.0f).arg(n);
  plan.launch().grid = {(n + 63) / 64, 1, 1};
  plan.launch().block = {64, 1, 1};
  return plan;
}

TEST(Run, SaxpyComputesEveryElement) {
  TestPlan plan = saxpy(1000, 1000);
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, RunStatus::Completed) << report->cause;
  auto y = plan.read<float>(1);
  for (size_t k = 0; k < y.size(); ++k) ASSERT_EQ(y[k], 2.0f * static_cast<float>(k) + 1.0f) << k;
  EXPECT_TRUE(report->findings.empty());
  EXPECT_EQ(report->coverage, "all blocks");
}

TEST(Run, CountsAreExact) {
  TestPlan plan =
      saxpy(100, 100);  // blocks of two warps: 32, 32, 32, 4 threads in range, all 128 exist
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  std::map<std::string, std::pair<uint64_t, uint64_t>> counts;
  for (const OpcodeCount& c : report->counts) counts[c.opcode] = {c.warps, c.threads};
  EXPECT_EQ(counts["mov.u32"], std::pair(uint64_t{12}, uint64_t{384}));
  EXPECT_EQ(counts["setp.ge.u32"], std::pair(uint64_t{4}, uint64_t{128}));
  EXPECT_EQ(counts["bra"], std::pair(uint64_t{1}, uint64_t{28}));
  EXPECT_EQ(counts["fma.rn.f32"], std::pair(uint64_t{4}, uint64_t{100}));
  EXPECT_EQ(counts["st.global.f32"], std::pair(uint64_t{4}, uint64_t{100}));
  EXPECT_TRUE(report->counts_exact);
}

TEST(Run, OneElementPastTheEndIsNamed) {
  TestPlan plan = saxpy(257, 256);
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Fault);
  ASSERT_FALSE(report->findings.empty());
  const Finding& f = report->findings[0];
  EXPECT_EQ(f.kind, FindingKind::OutOfBounds);
  EXPECT_EQ(f.grade, FindingGrade::Wrong);
  EXPECT_NE(f.message.find("thread 0 of block (4,0,0) reads 4 bytes"), std::string::npos)
      << f.message;
  EXPECT_NE(f.message.find("0 bytes after the end of x (1024 bytes)"), std::string::npos)
      << f.message;
  EXPECT_EQ(f.place.ptx_text.substr(0, 13), "ld.global.f32");
  EXPECT_EQ(f.place.kernel, "k");
}

// A store of `type` at buffer + offset by thread 0.
Result<Report> store_at(const std::string& type, uint64_t offset, uint64_t buffer_bytes) {
  TestPlan plan(ptx_kernel(
      ".param .u64 p",
      "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\n"
      "mov.u64 %rd2, 0;\nmov.u32 %r2, 0;\nst.global." +
          type + (type == "u64" ? " [%rd1], %rd2;" : " [%rd1], %r2;") + "\nEND:\nret;"));
  uint64_t at = plan.output("C", buffer_bytes);
  plan.arg(at + offset);
  return plan.run();
}

TEST(Run, BoundsAreExactToTheByte) {
  EXPECT_EQ(store_at("u8", 6, 7)->status, RunStatus::Completed);
  auto past = store_at("u8", 7, 7);
  ASSERT_EQ(past->status, RunStatus::Fault);
  EXPECT_EQ(past->findings[0].kind, FindingKind::OutOfBounds);
  auto across = store_at("u64", 8, 15);
  ASSERT_EQ(across->status, RunStatus::Fault);
  EXPECT_NE(across->findings[0].message.find("C+0x8, 1 bytes past its end"), std::string::npos)
      << across->findings[0].message;
}

TEST(Run, MisalignedAndWildAddressesAreTold) {
  auto misaligned = store_at("u32", 2, 64);
  ASSERT_EQ(misaligned->status, RunStatus::Fault);
  EXPECT_EQ(misaligned->findings[0].kind, FindingKind::Misaligned);
  auto wild = store_at("u32", uint64_t{1} << 40, 64);
  ASSERT_EQ(wild->status, RunStatus::Fault);
  EXPECT_EQ(wild->findings[0].kind, FindingKind::WildPointer);
  auto null = store_at("u32", uint64_t{0} - placed_address(kWindowBegin, 64), 64);
  ASSERT_EQ(null->status, RunStatus::Fault);
  EXPECT_NE(null->findings[0].message.find("null pointer"), std::string::npos);
}

TEST(Run, SharedMemoryHasBounds) {
  TestPlan plan(ptx_kernel("",
                           "mov.u32 %r1, s;\nmov.u32 %r2, %tid.x;\nshl.b32 %r3, %r2, 2;\nadd.s32 "
                           "%r4, %r1, %r3;\nst.shared.u32 [%r4+4], %r2;\nret;",
                           ".shared .align 4 .b8 s[128];\n"));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Fault);
  EXPECT_NE(
      report->findings[0].message.find(
          "thread 31 of block (0,0,0) writes 4 bytes at shared+0x80; the block has 128 bytes"),
      std::string::npos)
      << report->findings[0].message;
}

TEST(Run, EndlessLoopsSpendTheirBudget) {
  TestPlan plan(ptx_kernel("", "mov.u32 %r1, 0;\nL:\nadd.u32 %r1, %r1, 1;\nbra L;"));
  plan.options().instruction_budget = 1'000'000;
  auto report = plan.run();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->status, RunStatus::Budget);
  plan.options().instruction_budget = 1u << 31;
  plan.options().wall_budget_s = 0.05;
  report = plan.run();
  EXPECT_EQ(report->status, RunStatus::Budget);
  EXPECT_LT(report->seconds, 5);
}

TEST(Run, LaunchesThatTheChipRefusesAreFaults) {
  struct Case {
    const char* what;
    void (*spoil)(KernelLaunch&);
    const char* says;
  };
  const Case cases[] = {
      {"threads",
       [](KernelLaunch& l) {
         l.block = {1024, 2, 1};
       },
       "2048 threads"},
      {"empty",
       [](KernelLaunch& l) {
         l.grid = {0, 1, 1};
       },
       "an empty grid"},
      {"z",
       [](KernelLaunch& l) {
         l.block = {1, 1, 65};
       },
       "exceeds (1024,1024,64)"},
      {"shared", [](KernelLaunch& l) { l.dynamic_shared_bytes = 300000; },
       "300000 bytes of shared memory"},
      {"params", [](KernelLaunch& l) { l.params.resize(3); }, "parameters of 3 bytes"},
      {"cluster",
       [](KernelLaunch& l) {
         l.cluster = {3, 1, 1};
         l.grid = {4, 1, 1};
       },
       "not a multiple of the cluster"},
      {"cooperative",
       [](KernelLaunch& l) {
         l.cooperative = true;
         l.block = {1024, 1, 1};
         l.grid = {1000, 1, 1};
       },
       "cooperative launch of 1000"},
  };
  for (const Case& c : cases) {
    TestPlan plan = saxpy(64, 64);
    c.spoil(plan.launch());
    auto report = plan.run();
    ASSERT_TRUE(report) << c.what;
    EXPECT_EQ(report->status, RunStatus::Fault) << c.what;
    EXPECT_NE(report->cause.find(c.says), std::string::npos) << c.what << ": " << report->cause;
  }
}

TEST(Load, RefusesByNameAndLine) {
  TestPlan plan(ptx_kernel("", "ret;\ntrap;\nmalloc_user:\nstacksave.u64 %rd1;\nret;"));
  auto report = plan.run();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::Unsupported);
  EXPECT_NE(report.error().message.find("stacksave.u64"), std::string::npos)
      << report.error().message;
  EXPECT_NE(report.error().message.find("PTX line 15"), std::string::npos)
      << report.error().message;
}

TEST(Load, RefusesOnlyWhatUsedKernelsReach) {
  std::string module = ptx_module(
      ".visible .entry k()\n{\nret;\n}\n.visible .entry other()\n{\n.reg .b64 "
      "%rd<2>;\nstacksave.u64 %rd1;\nret;\n}\n");
  TestPlan plan(module);
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, RunStatus::Completed);
}

TEST(Run, TheThreadCountChangesNothing) {
  auto once = [](int threads) {
    TestPlan plan = saxpy(5000, 5000);
    plan.options().threads = threads;
    auto report = plan.run();
    EXPECT_TRUE(report);
    std::string text = std::to_string(report->warp_instructions);
    for (const OpcodeCount& c : report->counts)
      text += c.opcode + std::to_string(c.warps) + "/" + std::to_string(c.threads) + " ";
    return std::pair(text, plan.read<float>(1));
  };
  auto one = once(1), four = once(4);
  EXPECT_EQ(one.first, four.first);
  EXPECT_EQ(one.second, four.second);
}

TEST(Run, TheLowestFaultingBlockIsReported) {
  for (int threads : {1, 3}) {
    TestPlan plan = saxpy(4096, 700);
    plan.options().threads = threads;
    auto report = plan.run();
    ASSERT_EQ(report->status, RunStatus::Fault);
    EXPECT_NE(report->findings[0].message.find("thread 60 of block (10,0,0)"), std::string::npos)
        << report->findings[0].message;
  }
}

TEST(Run, CopiesAndMemsetsKeepToBuffers) {
  TestPlan plan = saxpy(64, 64);
  LaunchPlan& p = plan.plan();
  uint64_t x = p.buffers[0].address, y = p.buffers[1].address;
  p.steady.push_back({0, {}, Memset{y, 0, 0x40000000u, 4, 64, 1}});
  p.steady.push_back({0, {}, CopyDevice{y + 128, x, 128, 0, 0, 1}});
  p.steady.push_back({0, {}, WriteBytes{y, {0, 0, 0x80, 0x3f}}});
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  auto v = plan.read<float>(1);
  EXPECT_EQ(v[0], 1.0f);
  EXPECT_EQ(v[1], 2.0f);
  EXPECT_EQ(v[33], 1.0f);
  p.steady.push_back({0, {}, Memset{y, 0, 0, 4, 65, 1}});
  report = plan.run();
  EXPECT_EQ(report->status, RunStatus::Fault);
  EXPECT_EQ(report->findings[0].kind, FindingKind::OutOfBounds);
}

TEST(Run, ModuleVariablesHoldTheirInitialisers) {
  const char* before =
      ".const .align 4 .b32 c[2] = {7, 9};\n.global .align 4 .b32 g[2] = {1, 5};\n.global .align 8 "
      ".u64 p = generic(g)+4;\n";
  TestPlan plan(ptx_kernel(
      ".param .u64 o",
      "ld.param.u64 %rd1, [o];\nmov.u32 %r9, %tid.x;\nsetp.ne.u32 %p1, %r9, 0;\n@%p1 ret;\n"
      "ld.const.u32 %r1, [c+4];\nld.global.u64 %rd2, [p];\nld.u32 %r2, [%rd2];\nadd.u32 %r3, %r1, "
      "%r2;\n"
      "st.global.u32 [g], %r3;\nld.global.u32 %r4, [g];\nst.global.u32 [%rd1], %r4;\nret;",
      before));
  plan.arg(plan.output("o", 4));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  EXPECT_EQ(plan.read<uint32_t>(0)[0], 14u);
}

}  // namespace
}  // namespace ptxb::emu
