// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "app/manifest.h"
#include "app/sarif.h"
#include "app/show_evaluation.h"

namespace ptxb::app {
namespace {

TEST(Manifest, FaultsNameTheEntryAndTheKey) {
  auto folder = TempFolder::make("ptxb-manifest-");
  ASSERT_TRUE(folder);
  Path path = folder->path() / "m.toml";
  const std::pair<const char*, const char*> cases[] = {
      {"x = ", "m.toml:1"},
      {"version = 1", "no [[kernel]]"},
      {"[[kernel]]\nfile='a'\ntask='t'\narch='sm_90a'\nverdict='fine'\nstage='run'\naxes={M=1}", "kernel 1: verdict"},
      {"[[kernel]]\nfile='a'\ntask='t'\narch='sm_90a'\nverdict='race'\nstage='run'\naxes={M=1}", "stage"},
      {"[[kernel]]\nfile='a'\ntask='t'\narch='sm_90a'\nverdict='race'\nstage='check'\naxes={M='x'}", "axes.M"},
      {"[[kernel]]\nfile=1\ntask='t'\narch='sm_90a'\nverdict='race'\nstage='check'\naxes={M=1}", "file"},
  };
  for (const auto& [text, part] : cases) {
    ASSERT_TRUE(write_file(path, text));
    auto entries = read_manifest(path);
    ASSERT_FALSE(entries) << text;
    EXPECT_NE(entries.error().message.find(part), std::string::npos) << entries.error().message;
  }
  ASSERT_TRUE(write_file(path, "[[kernel]]\nfile='a'\ntask='t'\narch='sm_90a'\nverdict='race'\nstage='check'\naxes={M=93}\nquickstart=true"));
  auto entries = read_manifest(path);
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries->at(0).selector, "M=93");
  EXPECT_TRUE(entries->at(0).quickstart);
}

TEST(ShowEvaluation, NamesVerdictStageAndCauseWithoutControlBytes) {
  Evaluation e;
  e.task = "gemm_n128_k2048";
  e.verdict = Verdict::Race;
  e.cause = "two warps \x1b[31m collide";
  e.check.status = GateStatus::Failed;
  e.check.findings.push_back({.kind = FindingKind::Race, .message = "bad", .hint = "barrier"});
  std::string text = show(e, Terminal::make(true, true));
  EXPECT_NE(text.find("race  (stage check)"), std::string::npos) << text;
  EXPECT_NE(text.find("two warps"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Sarif, EachFindingIsAResultWithARule) {
  std::vector<Finding> findings(2);
  findings[0].kind = FindingKind::Race;
  findings[0].place.source_line = 12;
  findings[1].kind = FindingKind::Lint;
  findings[1].grade = FindingGrade::Lint;
  Json sarif = to_sarif(findings, "a.cu");
  const Json& run = sarif.find("runs")->items().at(0);
  EXPECT_EQ(run.find("results")->items().size(), 2u);
  EXPECT_EQ(run.find("results")->items()[0].find("level")->as_string(), "error");
  EXPECT_EQ(run.find("results")->items()[1].find("level")->as_string(), "note");
  EXPECT_EQ(run.find("tool")->find("driver")->find("rules")->items().size(), 2u);
}

}  // namespace
}  // namespace ptxb::app
