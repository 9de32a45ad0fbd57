// SPDX-License-Identifier: Apache-2.0
#include "model/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ptxb {
namespace {

Evaluation sample() {
  Evaluation e;
  e.task = "gemm_n128_k2048";
  e.workload = "M=128";
  e.axes = {{"M", 128}, {"N", 128}, {"K", 2048}};
  e.arch = "sm_90a";
  e.backend = "emu";
  e.profile = "quick";
  e.verdict = Verdict::WrongValues;
  e.cause = "all rows wrong";
  e.compile.status = GateStatus::Passed;
  e.correct.status = GateStatus::Failed;
  e.correct.comparisons.push_back({.output = "C", .distribution = "exact", .seed = 7, .elements = 10});
  e.check.findings.push_back({.kind = FindingKind::Race, .message = "two warps"});
  e.speed.reason = "no GPU";
  e.provenance.seeds = {1, 2};
  return e;
}

TEST(Evaluation, JsonRoundTrips) {
  Json json = to_json(sample());
  auto back = evaluation_from_json(json, "e.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), json);
}

TEST(Evaluation, ContractKeysArePresent) {
  Json json = to_json(sample());
  for (const char* key : {"schema", "task", "workload", "arch", "backend", "profile", "verdict", "stage", "cause", "hint",
                          "gates", "provenance", "cost"}) {
    EXPECT_NE(json.find(key), nullptr) << key;
  }
  EXPECT_EQ(json.find("stage")->as_string(), "correct");
  const Json* gates = json.find("gates");
  for (const char* gate : {"compile", "launch", "check", "correct", "generalises", "target", "speed"}) {
    ASSERT_NE(gates->find(gate), nullptr) << gate;
    EXPECT_NE(gates->find(gate)->find("status"), nullptr) << gate;
  }
  for (const char* key : {"max_abs_error", "max_rel_error", "matched_ratio", "normalised_error", "diagnosis"}) {
    EXPECT_NE(gates->find("correct")->find(key), nullptr) << key;
  }
  for (const char* key : {"speedup", "speedup_low", "speedup_high", "candidate_ms", "baseline_ms", "tflops", "peak_share"}) {
    ASSERT_NE(gates->find("speed")->find(key), nullptr) << key;
    EXPECT_TRUE(gates->find("speed")->find(key)->is_null()) << "null without a GPU: " << key;
  }
}

TEST(Evaluation, EveryVerdictHasANameAndStageAndParsesBack) {
  for (int i = 0; i <= static_cast<int>(Verdict::ImplausibleSpeed); ++i) {
    auto verdict = static_cast<Verdict>(i);
    EXPECT_EQ(parse_verdict(name(verdict)), verdict);
    EXPECT_FALSE(name(stage_of(verdict)).empty());
  }
}

TEST(Evaluation, WrongTypesAreNamed) {
  Json json = to_json(sample());
  json["gates"]["correct"]["max_abs_error"] = "big";
  auto back = evaluation_from_json(json, "e.json");
  ASSERT_FALSE(back);
  EXPECT_NE(back.error().message.find("e.json.gates.correct.max_abs_error"), std::string::npos);
}

TEST(Evaluation, NotANumberSurvivesAsNull) {
  Evaluation e = sample();
  e.correct.max_abs_error = NAN;
  auto back = evaluation_from_json(to_json(e), "e.json");
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::isnan(back->correct.max_abs_error));
}

}  // namespace
}  // namespace ptxb
