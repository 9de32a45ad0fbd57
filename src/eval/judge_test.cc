// SPDX-License-Identifier: Apache-2.0
#include "eval/judge.h"

#include <gtest/gtest.h>

#include "eval/climb.h"

namespace ptxb {
namespace {

OpcodeCount count(const char* opcode, const char* family, uint64_t warps, uint64_t threads, double flops, double bytes = 0) {
  return {"k", opcode, family, warps, threads, flops, bytes};
}

TargetQuestion gemm_question() {
  TargetQuestion q;
  q.required = {"wgmma", "tma"};
  q.work.matrix_flops = 1e9;
  q.work.bytes = 1e6;
  q.operand_type = ".bf16";
  return q;
}

constexpr const char* kWgmma = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16";
constexpr const char* kTma = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes";

TEST(JudgeTarget, WorkDoneByTheFamilyPasses) {
  TargetGate gate;
  auto j = judge_target(gemm_question(), {count(kWgmma, "wgmma", 100, 3200, 1e9), count(kTma, "tma", 10, 10, 0, 9e5)}, gate);
  EXPECT_FALSE(j) << j->cause;
  EXPECT_EQ(gate.level, "did_the_work");
  EXPECT_DOUBLE_EQ(gate.share, 1.0);
}

TEST(JudgeTarget, AbsentDecoyAndWrongVariantAreToldApart) {
  const OpcodeCount tma = count(kTma, "tma", 10, 10, 0, 9e5);
  struct Case {
    const char* what;
    std::vector<OpcodeCount> counts;
    Verdict verdict;
  } cases[] = {
      {"nothing", {}, Verdict::TargetAbsent},
      {"only the older instruction", {count("mma.sync", "mma_sync", 9, 9, 1e9), tma}, Verdict::TargetAbsent},
      {"issued, but predicated off for every lane", {count(kWgmma, "wgmma", 100, 0, 0), tma}, Verdict::TargetAbsent},
      {"one decoy warpgroup", {count(kWgmma, "wgmma", 4, 128, 1e5), tma}, Verdict::TargetDecoy},
      {"just below the share", {count(kWgmma, "wgmma", 4, 128, 0.89e9), tma}, Verdict::TargetDecoy},
      {"fp8 instead of bf16",
       {count("wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3", "wgmma", 4, 128, 1e9), tma},
       Verdict::TargetWrongVariant},
      {"no copies", {count(kWgmma, "wgmma", 100, 3200, 1e9)}, Verdict::TargetAbsent},
      {"one decoy copy", {count(kWgmma, "wgmma", 100, 3200, 1e9), count(kTma, "tma", 1, 1, 0, 100)}, Verdict::TargetDecoy},
  };
  for (const Case& c : cases) {
    TargetGate gate;
    auto j = judge_target(gemm_question(), c.counts, gate);
    ASSERT_TRUE(j) << c.what;
    EXPECT_EQ(j->verdict, c.verdict) << c.what << ": " << j->cause;
    EXPECT_FALSE(j->hint.empty());
  }
}

TEST(JudgeTarget, NothingAskedIsNeverAFailureAndStillTellsWhatRan) {
  TargetQuestion q = gemm_question();
  q.required.clear();
  TargetGate gate;
  EXPECT_FALSE(judge_target(q, {count("mma.sync", "mma_sync", 9, 288, 5e8)}, gate));
  ASSERT_EQ(gate.families.size(), 1u);
  EXPECT_EQ(gate.families[0].family, "mma_sync");
  EXPECT_DOUBLE_EQ(gate.families[0].share, 0.5);
}

TEST(JudgeTarget, UnusedResultsAreADecoy) {
  TargetGate gate;
  judge_target(gemm_question(), {count(kWgmma, "wgmma", 100, 3200, 1e9), count(kTma, "tma", 10, 10, 0, 9e5)}, gate);
  EXPECT_EQ(target_results_unused("wgmma", gate).verdict, Verdict::TargetDecoy);
  EXPECT_EQ(gate.level, "executed");
}

TEST(JudgeRun, EachStatusHasItsVerdict) {
  RunOutcome o;
  EXPECT_FALSE(judge_run(o));
  const std::pair<RunStatus, Verdict> plain[] = {{RunStatus::Deadlock, Verdict::Deadlock},
                                                 {RunStatus::Budget, Verdict::Timeout},
                                                 {RunStatus::Unsupported, Verdict::EmulatorUnsupported},
                                                 {RunStatus::Fault, Verdict::Fault}};
  for (const auto& [status, verdict] : plain) {
    o.status = status;
    EXPECT_EQ(judge_run(o)->verdict, verdict);
  }
  o.status = RunStatus::Fault;
  o.findings = {{.kind = FindingKind::OutOfBounds, .message = "1 byte past A"}};
  EXPECT_EQ(judge_run(o)->verdict, Verdict::OutOfBounds);
}

TEST(JudgeFindings, OnlyGradeWrongDecides) {
  std::vector<Finding> findings = {{.kind = FindingKind::Race, .grade = FindingGrade::Lint, .message = "advice"},
                                   {.kind = FindingKind::MissingFence, .grade = FindingGrade::Repaired, .message = "repaired"}};
  EXPECT_FALSE(judge_findings(findings));
  findings.push_back({.kind = FindingKind::Race, .grade = FindingGrade::Wrong, .message = "collide"});
  EXPECT_EQ(judge_findings(findings)->verdict, Verdict::Race);
}

TEST(JudgeValues, ChangedInputsFailEvenWhenTheOutputIsRight) {
  RunOutcome o;
  Comparison right;
  right.passed = true;
  o.comparisons = {right};
  EXPECT_FALSE(judge_values(o));
  o.modified_inputs = {"A"};
  EXPECT_EQ(judge_values(o)->verdict, Verdict::InputModified);
}

TEST(Profiles, StrictUsesThreeSeedsAndEveryDistribution) {
  Task task;
  task.definition.reference = "native:gemm_nt";
  task.definition.op_type = "gemm";
  auto strict = input_specs(task, Profile::Strict, 10);
  EXPECT_GE(strict.size(), 3u);
  for (size_t i = 0; i < strict.size(); ++i) EXPECT_EQ(strict[i].seed, 10 + i);
  EXPECT_LE(input_specs(task, Profile::Quick, 10).size(), 2u);
}

TEST(SecondCall, StateIsScratchOrADeviceVariable) {
  LaunchPlan plan;
  plan.modules = {{"candidate", ".version 9.0\nld.global.f32 %f1, [%rd1];\ncvta.to.global.u64 %rd1, %rd2;\n", "", {}}};
  EXPECT_FALSE(keeps_state(plan));
  plan.modules[0].ptx += ".visible .global .align 4 .u32 calls;\n";
  EXPECT_TRUE(keeps_state(plan));
  plan.modules[0].ptx.clear();
  plan.buffers = {{"C", BufferRole::Output, 0, 64}};
  EXPECT_FALSE(keeps_state(plan));
  plan.buffers.push_back({"scratch0", BufferRole::Scratch, 4096, 64});
  EXPECT_TRUE(keeps_state(plan));
}

TEST(SecondCall, FollowsTheFirstWithItsOwnOrder) {
  LaunchPlan plan;
  plan.setup = {{0, {}, Memset{1}}};
  plan.steady = {{1, {}, Memset{2}}, {0, {0}, Memset{3}}};
  LaunchPlan second = second_call(plan);
  ASSERT_EQ(second.setup.size(), 3u);
  EXPECT_EQ(second.setup[2].after, std::vector<uint32_t>{1});
  EXPECT_EQ(std::get<Memset>(second.setup[1].action).address, 2u);
  EXPECT_EQ(second.steady.size(), 2u);
  EXPECT_EQ(second.steady[1].after, std::vector<uint32_t>{0});
}

}  // namespace
}  // namespace ptxb
