// Tests of check mode on small kernels: what must be found, and what must not be accused.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "emu/test_plan.h"

namespace ptxb::emu {
namespace {

struct Outcome {
  RunStatus status;
  std::vector<Finding> findings;
  bool has(FindingKind kind, FindingGrade grade = FindingGrade::Wrong) const {
    for (const Finding& f : findings)
      if (f.kind == kind && f.grade == grade) return true;
    return false;
  }
  std::string text() const {
    std::string all;
    for (const Finding& f : findings) all += std::string(name(f.kind)) + ": " + f.message + "\n";
    return all;
  }
};

// %rd1: output of 4 KiB (not initialised), %rd4: input, %r40: thread, %rd3: the thread's word of
// the output, %r41: its word of `s`.
Outcome check(const std::string& body, uint32_t threads, uint32_t blocks = 1) {
  TestPlan plan(ptx_kernel(".param .u64 o, .param .u64 i",
                           "ld.param.u64 %rd1, [o];\nld.param.u64 %rd4, [i];\nmov.u32 %r40, "
                           "%tid.x;\nmul.wide.u32 %rd2, %r40, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
                           "mov.u32 %r42, s;\nshl.b32 %r43, %r40, 2;\nadd.u32 %r41, %r42, %r43;\n" +
                               body,
                           ".shared .align 16 .b8 s[2048];\n"));
  uint64_t out = plan.output("out", 4096);
  plan.arg(out).arg(plan.buffer("in", std::vector<uint32_t>(1024, 1)));
  plan.launch().block = {threads, 1, 1};
  plan.launch().grid = {blocks, 1, 1};
  plan.options().mode = Mode::Check;
  auto report = plan.run();
  if (!report) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return {report->status, report->findings};
}

const std::string kReverse =
    "xor.b32 %r1, %r43, 128;\nadd.u32 %r2, %r42, %r1;\n";  // the word of the same lane in the other
                                                           // warp

TEST(CheckShared, WriteThenReadNeedsABarrier) {
  Outcome bad = check(kReverse +
                          "st.shared.u32 [%r41], %r40;\nld.shared.u32 %r3, [%r2];\nst.global.u32 "
                          "[%rd3], %r3;\nret;",
                      64);
  EXPECT_TRUE(bad.has(FindingKind::Race)) << bad.text();
  Outcome good = check(kReverse +
                           "st.shared.u32 [%r41], %r40;\nbar.sync 0;\nld.shared.u32 %r3, "
                           "[%r2];\nst.global.u32 [%rd3], %r3;\nret;",
                       64);
  EXPECT_TRUE(good.findings.empty()) << good.text();
}

TEST(CheckShared, ReadThenOverwriteNeedsABarrier) {
  std::string start = kReverse +
                      "st.shared.u32 [%r41], %r40;\nbar.sync 0;\nld.shared.u32 %r3, [%r2];\n",
              end = "st.shared.u32 [%r41], 5;\nst.global.u32 [%rd3], %r3;\nret;";
  Outcome bad = check(start + end, 64);
  EXPECT_TRUE(bad.has(FindingKind::Race)) << bad.text();
  EXPECT_NE(bad.text().find(" read by thread "), std::string::npos) << bad.text();
  EXPECT_TRUE(check(start + "bar.sync 0;\n" + end, 64).findings.empty());
}

TEST(CheckShared, NamedBarriersOrderThoseWhoTakePart) {
  std::string body =
      "setp.lt.u32 %p1, %r40, 32;\n@%p1 bra P;\nbar.sync 1, 64;\nld.shared.u32 %r1, "
      "[%r41+-128];\nst.global.u32 [%rd3], %r1;\nret;\nP:\n"
      "st.shared.u32 [%r41], 7;\n";
  EXPECT_TRUE(check(body + "bar.arrive 1, 64;\nret;", 64).findings.empty());
  Outcome late = check(
      "setp.lt.u32 %p1, %r40, 32;\n@%p1 bra P;\nbar.sync 1, 64;\nld.shared.u32 %r1, "
      "[%r41+-128];\nst.global.u32 [%rd3], %r1;\nret;\nP:\n"
      "bar.arrive 1, 64;\nst.shared.u32 [%r41], 7;\nret;",
      64);
  EXPECT_TRUE(late.has(FindingKind::Race)) << late.text();
}

TEST(CheckShared, LanesOfAWarpNeedSyncwarpButRunInStep) {
  std::string start = "st.shared.u32 [%r41], %r40;\n",
              end =
                  "xor.b32 %r1, %r43, 4;\nadd.u32 %r2, %r42, %r1;\nld.shared.u32 %r3, "
                  "[%r2];\nst.global.u32 [%rd3], %r3;\nret;";
  Outcome loose = check(start + end, 32);
  EXPECT_TRUE(loose.has(FindingKind::Race, FindingGrade::Repaired)) << loose.text();
  EXPECT_FALSE(loose.has(FindingKind::Race, FindingGrade::Wrong)) << loose.text();
  EXPECT_TRUE(check(start + "bar.warp.sync -1;\n" + end, 32).findings.empty());
}

TEST(CheckShared, AtomicsDoNotRaceWithEachOther) {
  Outcome o = check(
      "setp.ne.u32 %p1, %r40, 0;\n@!%p1 st.shared.u32 [s], 0;\nbar.sync 0;\natom.shared.add.u32 "
      "%r1, [s], 1;\nbar.sync 0;\nld.shared.u32 %r2, [s];\nst.global.u32 [%rd3], %r2;\nret;",
      128);
  EXPECT_TRUE(o.findings.empty()) << o.text();
  Outcome bad = check(
      "setp.ne.u32 %p1, %r40, 0;\n@!%p1 st.shared.u32 [s], 0;\nbar.sync 0;\nred.shared.add.u32 "
      "[s], 1;\nld.shared.u32 %r2, [s];\nst.global.u32 [%rd3], %r2;\nret;",
      128);
  EXPECT_TRUE(bad.has(FindingKind::Race, FindingGrade::Repaired)) << bad.text();
  Outcome init = check("st.shared.u32 [s], %r40;\nred.shared.add.u32 [s], 1;\nret;", 128);
  EXPECT_TRUE(init.has(FindingKind::Race)) << init.text();
}

TEST(CheckShared, WritingTheSameValueIsNoRace) {
  EXPECT_TRUE(check("st.shared.u32 [s], 1;\nbar.sync 0;\nld.shared.u32 %r1, [s];\nst.global.u32 "
                    "[%rd3], %r1;\nret;",
                    128)
                  .findings.empty());
}

TEST(CheckShared, AFlagProtocolOrders) {
  Outcome o = check(
      "setp.eq.u32 %p3, %r40, 0;\n@%p3 st.shared.u32 [s+1024], 0;\nbar.sync 0;\nsetp.lt.u32 %p1, "
      "%r40, 32;\n@%p1 bra P;\n"
      "W:\nld.volatile.shared.u32 %r1, [s+1024];\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 bra "
      "W;\nld.shared.u32 %r2, [%r41+-128];\nst.global.u32 [%rd3], %r2;\nret;\n"
      "P:\nst.shared.u32 [%r41], 9;\nmembar.cta;\nbar.warp.sync -1;\n@%p3 st.volatile.shared.u32 "
      "[s+1024], 1;\nret;",
      64);
  EXPECT_TRUE(o.findings.empty()) << o.text();
}

TEST(CheckAsync, CopiesAreSeenAfterTheWaitOnly) {
  std::string copy =
      "shl.b32 %r1, %r40, 4;\nadd.u32 %r2, %r42, %r1;\ncvt.u64.u32 %rd5, %r1;\nadd.s64 %rd6, %rd4, "
      "%rd5;\n"
      "cp.async.ca.shared.global [%r2], [%rd6], 16;\ncp.async.commit_group;\n";
  std::string use = "ld.shared.u32 %r3, [%r2];\nst.global.u32 [%rd3], %r3;\nret;";
  EXPECT_TRUE(check(copy + "cp.async.wait_group 0;\n" + use, 64).findings.empty());
  Outcome early = check(copy + use, 64);
  EXPECT_TRUE(early.has(FindingKind::AsyncHazard)) << early.text();
  EXPECT_TRUE(check(copy + "cp.async.wait_group 1;\n" + use, 64).has(FindingKind::AsyncHazard));
  std::string other =
      "xor.b32 %r4, %r1, 512;\nadd.u32 %r5, %r42, %r4;\nld.shared.u32 %r3, [%r5];\nst.global.u32 "
      "[%rd3], %r3;\nret;";
  EXPECT_TRUE(check(copy + "cp.async.wait_group 0;\nbar.sync 0;\n" + other, 64).findings.empty());
  EXPECT_TRUE(check(copy + "bar.sync 0;\ncp.async.wait_group 0;\n" + other, 64).findings.size() >
              0);
}

TEST(CheckUninitialised, OnlyWhatReachesSomethingIsTold) {
  EXPECT_TRUE(check("ld.shared.u32 %r1, [%r41];\nadd.u32 %r2, %r1, 1;\nret;", 32).findings.empty());
  EXPECT_TRUE(check("ld.shared.u32 %r1, [%r41];\nst.global.u32 [%rd3], %r1;\nret;", 32)
                  .has(FindingKind::UninitialisedRead));
  EXPECT_TRUE(check("ld.shared.u32 %r1, [%r41];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra "
                    "E;\nst.global.u32 [%rd3], 1;\nE:\nret;",
                    32)
                  .has(FindingKind::UninitialisedRead));
  // The unwritten lanes' values are selected away.
  Outcome o = check(
      "setp.lt.u32 %p1, %r40, 16;\n@%p1 st.shared.u32 [%r41], 4;\nbar.warp.sync -1;\nld.shared.u32 "
      "%r1, [%r41];\nselp.u32 %r2, %r1, 0, %p1;\nst.global.u32 [%rd3], %r2;\nret;",
      32);
  EXPECT_TRUE(o.findings.empty()) << o.text();
}

TEST(CheckUninitialised, GlobalOutputsToo) {
  Outcome o = check(
      "ld.global.u32 %r1, [%rd3];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%rd3], %r1;\nret;", 32);
  EXPECT_TRUE(o.has(FindingKind::UninitialisedRead)) << o.text();
  EXPECT_TRUE(check("red.global.add.u32 [%rd1], 1;\nret;", 32).has(FindingKind::UninitialisedRead));
  EXPECT_TRUE(
      check(
          "st.global.u32 [%rd3], 1;\nld.global.u32 %r1, [%rd3];\nst.global.u32 [%rd3], %r1;\nret;",
          32)
          .findings.empty());
}

TEST(CheckGlobal, BlocksThatShareBytesRace) {
  Outcome o = check("mov.u32 %r1, %ctaid.x;\nst.global.u32 [%rd3], %r1;\nret;", 32, 3);
  EXPECT_TRUE(o.has(FindingKind::Race)) << o.text();
  EXPECT_NE(o.text().find("nothing orders the two blocks"), std::string::npos) << o.text();
  EXPECT_TRUE(check("mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd5, %r1, 128;\nadd.s64 %rd6, %rd3, "
                    "%rd5;\nst.global.u32 [%rd6], %r1;\nret;",
                    32, 3)
                  .findings.empty());
}

TEST(CheckGlobal, TheLastBlockMayReadWhatTheOthersWrote) {
  // Each block writes its word, fences, takes a ticket; the last one sums.
  Outcome o = check(
      "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd5, %r1, 4;\nadd.s64 %rd6, %rd4, "
      "%rd5;\nst.global.u32 [%rd6+1024], %r1;\nmembar.gl;\n"
      "atom.global.add.u32 %r2, [%rd4], 1;\nsetp.ne.u32 %p1, %r2, 4;\n@%p1 bra "
      "E;\nmembar.gl;\nld.global.u32 %r3, [%rd4+1024];\nld.global.u32 %r4, [%rd4+1036];\n"
      "add.u32 %r5, %r3, %r4;\nst.global.u32 [%rd1], %r5;\nE:\nret;",
      1, 4);
  EXPECT_TRUE(o.findings.empty()) << o.text();
}

}  // namespace
}  // namespace ptxb::emu
