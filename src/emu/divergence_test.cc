// Tests of divergence, barriers, spinning and deadlocks.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "emu/test_plan.h"

namespace ptxb::emu {
namespace {

TestPlan with_output(const std::string& body, uint64_t bytes,
                     const std::string& before = ".shared .align 16 .b8 s[1024];\n") {
  TestPlan plan(ptx_kernel(".param .u64 o",
                           "ld.param.u64 %rd1, [o];\nmov.u32 %r40, %tid.x;\nmul.wide.u32 %rd2, "
                           "%r40, 4;\nadd.s64 %rd3, %rd1, %rd2;\n" +
                               body,
                           before));
  plan.arg(plan.buffer("o", std::vector<uint8_t>(bytes)));
  return plan;
}

TEST(Divergence, BothSidesRunAndMeetAgain) {
  TestPlan plan = with_output(
      "and.b32 %r1, %r40, 3;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra A;\nsetp.eq.u32 %p2, %r1, "
      "1;\n@%p2 bra B;\nmov.u32 %r2, 30;\nbra J;\n"
      "A:\nmov.u32 %r2, 10;\nbra J;\nB:\nmov.u32 %r2, 20;\nJ:\nactivemask.b32 %r3;\npopc.b32 %r4, "
      "%r3;\nadd.u32 %r5, %r2, %r4;\n"
      "st.global.u32 [%rd3], %r5;\nret;",
      128);
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  auto out = plan.read<uint32_t>(0);
  for (uint32_t l = 0; l < 32; ++l)
    EXPECT_EQ(out[l], (l % 4 == 0 ? 10u : l % 4 == 1 ? 20u : 30u) + 32u);
}

TEST(Divergence, LoopsOfDifferentLength) {
  TestPlan plan = with_output(
      "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nL:\nadd.u32 %r2, %r2, %r1;\nadd.u32 %r1, %r1, "
      "1;\nsetp.le.u32 %p1, %r1, %r40;\n@%p1 bra L;\n"
      "activemask.b32 %r3;\nsetp.ne.u32 %p2, %r3, -1;\n@%p2 mov.u32 %r2, 999;\nst.global.u32 "
      "[%rd3], %r2;\nret;",
      128);
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  auto out = plan.read<uint32_t>(0);
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(out[l], l * (l + 1) / 2);
}

TEST(Divergence, ALockBetweenLanesProgresses) {
  // Every lane takes the lock in turn; the holder is on the other side of the branch than those who
  // spin.
  TestPlan plan = with_output(
      "SPIN:\natom.global.cas.b32 %r1, [%rd1+128], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra "
      "SPIN;\n"
      "ld.volatile.global.u32 %r2, [%rd1+132];\nadd.u32 %r2, %r2, 1;\nst.volatile.global.u32 "
      "[%rd1+132], %r2;\n"
      "membar.gl;\natom.global.exch.b32 %r3, [%rd1+128], 0;\nret;",
      136);
  plan.launch().block = {96, 1, 1};
  plan.launch().grid = {3, 1, 1};
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  EXPECT_EQ(plan.read<uint32_t>(0)[33], 288u);
  EXPECT_FALSE(report->counts_exact);
}

TEST(Divergence, ALaneMayWaitForAnotherAtAHigherPlace) {
  TestPlan plan = with_output(
      "setp.ne.u32 %p1, %r40, 0;\n@%p1 bra OTHERS;\nW:\nld.volatile.global.u32 %r1, "
      "[%rd1];\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 bra W;\nbra END;\n"
      "OTHERS:\nsetp.ne.u32 %p3, %r40, 7;\n@%p3 bra END;\nst.volatile.global.u32 [%rd1], "
      "5;\nEND:\nret;",
      4);
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, RunStatus::Completed) << report->cause;
}

TEST(Divergence, SyncwarpFromDifferentPlaces) {
  TestPlan plan = with_output(
      "setp.lt.u32 %p1, %r40, 16;\n@%p1 bra LOW;\nst.shared.u32 [s], 3;\nbar.warp.sync "
      "-1;\nmov.u32 %r1, 1;\nbra END;\n"
      "LOW:\nbar.warp.sync -1;\nld.shared.u32 %r1, [s];\nEND:\nst.global.u32 [%rd3], %r1;\nret;",
      128);
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  EXPECT_EQ(plan.read<uint32_t>(0)[0], 3u);
}

TEST(Divergence, AnAlignedInstructionWithMissingLanesIsTold) {
  TestPlan plan = with_output(
      "setp.lt.u32 %p1, %r40, 16;\n@%p1 bra W;\nbar.sync 0;\nbra END;\nW:\nld.volatile.global.u32 "
      "%r1, [%rd1];\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 bra W;\nEND:\nret;",
      4);
  plan.options().wall_budget_s = 20;
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Deadlock) << report->cause;
  EXPECT_EQ(report->findings[0].kind, FindingKind::DivergentAligned);
  EXPECT_NE(report->cause.find("waits for lanes 0x0000ffff"), std::string::npos) << report->cause;
}

TEST(Divergence, ALaneOutsideItsMaskIsTold) {
  TestPlan plan = with_output("shfl.sync.idx.b32 %r1, %r40, 0, 31, 0xffff;\nret;", 4);
  auto report = plan.run();
  ASSERT_EQ(report->status, RunStatus::Fault);
  EXPECT_EQ(report->findings[0].kind, FindingKind::BarrierMisuse);
  EXPECT_NE(report->cause.find("lane 16"), std::string::npos) << report->cause;
}

TEST(Barrier, OrdersWarpsAndCountsVotes) {
  TestPlan plan = with_output(
      "shl.b32 %r1, %r40, 2;\nmov.u32 %r2, s;\nadd.u32 %r3, %r2, %r1;\nst.shared.u32 [%r3], "
      "%r40;\nsetp.lt.u32 %p1, %r40, 40;\n"
      "bar.red.popc.u32 %r4, 0, %p1;\nxor.b32 %r5, %r1, 384;\nadd.u32 %r6, %r2, "
      "%r5;\nld.shared.u32 %r7, [%r6];\n"
      "shl.b32 %r8, %r4, 16;\nor.b32 %r9, %r7, %r8;\nst.global.u32 [%rd3], %r9;\nret;",
      512);
  plan.launch().block = {128, 1, 1};
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  auto out = plan.read<uint32_t>(0);
  for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(out[t], (t ^ 96u) | 40u << 16);
}

TEST(Barrier, ExitedThreadsAreNotWaitedFor) {
  TestPlan plan = with_output(
      "setp.ge.u32 %p1, %r40, 48;\n@%p1 exit;\nbar.sync 0;\nst.global.u32 [%rd3], 1;\nret;", 512);
  plan.launch().block = {128, 1, 1};
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, RunStatus::Completed) << report->cause;
  EXPECT_EQ(plan.read<uint32_t>(0)[47], 1u);
}

TEST(Barrier, NamedBarriersHandOver) {
  // Warp 0 produces for warp 1: arrive on 1, sync on 2 and the other way round.
  TestPlan plan = with_output(
      "setp.lt.u32 %p1, %r40, 32;\n@%p1 bra P;\nbar.sync 1, 64;\nld.shared.u32 %r1, "
      "[s];\nst.global.u32 [%rd1], %r1;\nbar.arrive 2, 64;\nret;\n"
      "P:\nst.shared.u32 [s], 77;\nbar.arrive 1, 64;\nbar.sync 2, 64;\nret;",
      4);
  plan.launch().block = {64, 1, 1};
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  EXPECT_EQ(plan.read<uint32_t>(0)[0], 77u);
}

TEST(Barrier, DeadlocksListWhoWaitsWhere) {
  TestPlan plan = with_output(
      "setp.lt.u32 %p1, %r40, 32;\n@%p1 bra P;\nbar.sync 1, 64;\nret;\nP:\nbar.sync 2, 64;\nret;",
      4);
  plan.launch().block = {64, 1, 1};
  auto report = plan.run();
  ASSERT_EQ(report->status, RunStatus::Deadlock);
  EXPECT_EQ(report->findings[0].kind, FindingKind::Deadlock);
  EXPECT_NE(report->cause.find("warp 0 of block (0,0,0)"), std::string::npos);
  EXPECT_NE(report->cause.find("barrier 2, 32 of 64 threads arrived"), std::string::npos)
      << report->cause;
  EXPECT_NE(report->cause.find("barrier 1, 32 of 64 threads arrived"), std::string::npos)
      << report->cause;
}

TEST(Barrier, WrongNumbersAreMisuse) {
  for (const char* body :
       {"bar.sync 16;\nret;", "bar.sync 1, 33;\nret;", "bar.arrive 1, 0;\nret;"}) {
    TestPlan plan = with_output(body, 4);
    auto report = plan.run();
    ASSERT_TRUE(report) << body << report.error().message;
    ASSERT_EQ(report->status, RunStatus::Fault) << body;
    EXPECT_EQ(report->findings[0].kind, FindingKind::BarrierMisuse) << body;
  }
}

// Every block adds one to a counter and waits until all have: a grid barrier.
const char* const kGridBarrier =
    "setp.ne.u32 %p1, %r40, 0;\n@%p1 exit;\natom.global.add.u32 %r1, [%rd1], 1;\nmov.u32 %r3, "
    "%nctaid.x;\nW:\nld.acquire.gpu.global.u32 %r2, [%rd1];\nsetp.lt.u32 %p2, %r2, %r3;\n@%p2 bra "
    "W;\nret;";

TEST(Grid, BlocksThatWaitForEachOtherRunTogether) {
  for (int threads : {1, 2}) {
    TestPlan plan = with_output(kGridBarrier, 4);
    plan.launch().block = {1, 1, 1};
    plan.launch().grid = {200, 1, 1};
    plan.options().threads = threads;
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->status, RunStatus::Completed) << report->cause;
    EXPECT_EQ(plan.read<uint32_t>(0)[0], 200u);
  }
}

TEST(Grid, MoreBlocksThanTheChipHoldsNeedCoResidency) {
  TestPlan plan = with_output(kGridBarrier, 4);
  plan.launch().block = {1024, 1, 1};
  plan.launch().grid = {300, 1, 1};  // 264 fit
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, RunStatus::Deadlock) << report->cause;
  EXPECT_NE(report->cause.find("36 blocks have not started because only 264 fit"),
            std::string::npos)
      << report->cause;
}

}  // namespace
}  // namespace ptxb::emu
