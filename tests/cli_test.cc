// Runs the built ptxbench as a user would: bad input, hostile candidates, formats. Needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "model/evaluation.h"
#include "os/subprocess.h"

namespace ptxb {
namespace {

struct Ran {
  int code = -1;
  std::string out, err;
};

class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempFolder::make("ptxb-cli-");
    ASSERT_TRUE(made);
    folder_.emplace(*std::move(made));
  }
  static Ran run(std::vector<std::string> arguments) {
    os::Command command;
    command.argv = {std::string(PTXB_BINARY_DIR) + "/bin/ptxbench"};
    for (std::string& each : arguments) command.argv.push_back(std::move(each));
    command.limits.wall_s = 240;
    auto finished = os::run(command);
    EXPECT_TRUE(finished) << finished.error().message;
    if (!finished) return {};
    EXPECT_EQ(finished->exit.kind, os::Exit::Kind::Code) << os::summary(finished->exit);
    return {finished->exit.number, finished->out.text(), finished->err.text()};
  }
  std::string file(const std::string& file_name, const std::string& text) {
    Path path = folder_->path() / file_name;
    EXPECT_TRUE(write_file(path, text));
    return path.string();
  }
  static std::string kernel(const std::string& below) { return std::string(PTXB_SOURCE_DIR) + "/kernels/" + below; }
  std::optional<TempFolder> folder_;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Cli, HelpIsTheManual) {
  Ran ran = run({"--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_HAS(ran.out, "Exit code");
  EXPECT_EQ(run({}).code, 0);
  EXPECT_HAS(run({"eval", "--help"}).out, "--workload");
}

TEST_F(Cli, WrongUsageIsTwo) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"eval"}, {"evaluate"}, {"eval", "x.cu", "--task"}, {"eval", "x.cu", "--task", "gemm_n128_k2048", "--arch", "sm_70"}}) {
    Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_HAS(ran.err, "ptxbench: error:");
    EXPECT_EQ(ran.out, "");
  }
}

TEST_F(Cli, UnknownTaskAndWorkloadNameTheNearest) {
  Ran ran = run({"eval", kernel("gemm/simt.cu"), "--task", "gemm_n7168_k512"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_HAS(ran.err, "gemm_n7168_k5120");
  EXPECT_EQ(run({"eval", kernel("gemm/simt.cu"), "--task", "gemm_n128_k2048", "--workload", "deadbeef-0000"}).code, 2);
  EXPECT_EQ(run({"eval", kernel("gemm/simt.cu"), "--task", "gemm_n128_k2048", "--workload", "M=0"}).code, 2);
  EXPECT_EQ(run({"eval", kernel("gemm/simt.cu"), "--task", "gemm_n128_k2048", "--workload", "Q=4"}).code, 2);
  EXPECT_EQ(run({"eval", kernel("gemm/simt.cu"), "--task", "gemm_n128_k2048", "--target", "nonsense"}).code, 2);
  EXPECT_EQ(run({"tasks", "gemm_n7168_k512"}).code, 2);
}

TEST_F(Cli, SourcesThatAreNoTextAreTwo) {
  for (const std::string& path : {file("empty.cu", ""), file("blank.cu", " \n\t\n"), file("binary.cu", std::string("a\0b", 3)),
                                  folder_->path().string() + "/absent.cu", folder_->path().string()}) {
    Ran ran = run({"eval", path, "--task", "gemm_n128_k2048"});
    EXPECT_EQ(ran.code, 2) << path << ran.out << ran.err;
    EXPECT_HAS(ran.err, "ptxbench: error:");
  }
}

TEST_F(Cli, TasksListsAndDescribes) {
  Ran list = run({"tasks"});
  EXPECT_EQ(list.code, 0);
  EXPECT_HAS(list.out, "gemm_n7168_k5120");
  EXPECT_HAS(list.out, "mha_with_lse_d128_causal");
  EXPECT_HAS(run({"tasks", "gemm_n7168_k5120"}).out, "94920358-01a8-4c5b-9209-3103fd490e94");
  EXPECT_HAS(run({"tasks", "gemm_n7168_k5120"}).out, "void run(const __nv_bfloat16* A");
  Ran json = run({"tasks", "--json", "-"});
  auto parsed = parse_json(json.out, "tasks");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->is_array());
}

TEST_F(Cli, JsonIsOneEvaluation) {
  Ran ran = run({"eval", kernel("gemm/simt.cu"), "--task", "gemm_n128_k2048", "--workload", "M=17", "--backend", "emu",
                 "--profile", "quick", "--target", "none", "--seed", "5", "--json", "-"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  auto json = parse_json(ran.out, "stdout");
  ASSERT_TRUE(json) << ran.out;
  auto evaluation = evaluation_from_json(*json, "stdout");
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  EXPECT_EQ(evaluation->verdict, Verdict::Passed);
  EXPECT_EQ(evaluation->correct.status, GateStatus::Passed);
  EXPECT_EQ(evaluation->speed.status, GateStatus::NotVerified);
  EXPECT_FALSE(evaluation->speed.speedup.has_value());
  EXPECT_EQ(evaluation->provenance.source_sha256.size(), 64u);
  EXPECT_EQ(evaluation->provenance.cubin_sha256.size(), 64u);
  EXPECT_EQ(evaluation->provenance.plan_sha256.size(), 64u);
  EXPECT_FALSE(evaluation->provenance.sandbox_layers.empty());
}

TEST_F(Cli, SameSeedSameEvidence) {
  std::vector<std::string> arguments = {"eval", kernel("faulty/gemm_transposed_b.cu"), "--task", "gemm_n128_k2048", "--workload",
                                        "M=17", "--backend", "emu", "--profile", "quick", "--seed", "9", "--json", "-"};
  auto first = parse_json(run(arguments).out, "first"), second = parse_json(run(arguments).out, "second");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->find("gates")->find("correct")->dump(), second->find("gates")->find("correct")->dump());
  EXPECT_EQ(first->find("gates")->find("correct")->find("status")->as_string(), "failed");
}

TEST_F(Cli, PlanIsRecordedShownAndReplayed) {
  std::string plan = (folder_->path() / "plan").string();
  Ran made = run({"plan", kernel("gemm/simt.cu"), "--task", "gemm_n128_k2048", "--workload", "M=17", "-o", plan});
  ASSERT_EQ(made.code, 0) << made.err;
  Ran shown = run({"plan", "show", plan});
  EXPECT_EQ(shown.code, 0);
  EXPECT_HAS(shown.out, "gemm_n128_k2048");
  Ran replayed = run({"replay", plan, "--backend", "emu", "--target", "none", "--profile", "quick"});
  EXPECT_EQ(replayed.code, 0) << replayed.out << replayed.err;
  EXPECT_EQ(run({"plan", "show", folder_->path().string() + "/none"}).code, 2);
  ASSERT_TRUE(write_file(Path(plan) / "plan.json", "{}"));
  EXPECT_EQ(run({"replay", plan}).code, 2);
}

TEST_F(Cli, CheckPrintsFindingsLikeACompiler) {
  std::string sarif = (folder_->path() / "out.sarif").string();
  Ran ran = run({"check", kernel("faulty/gemm_race.cu"), "--task", "gemm_n128_k2048", "--workload", "M=17", "--sarif", sarif});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_HAS(ran.out, "gemm_race.cu:");
  EXPECT_HAS(ran.out, "race");
  auto text = read_file(sarif);
  ASSERT_TRUE(text);
  auto json = parse_json(*text, "sarif");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->find("version")->as_string(), "2.1.0");
  EXPECT_EQ(run({"check", kernel("gemm/simt.cu"), "--task", "gemm_n128_k2048", "--workload", "M=17"}).code, 0);
}

TEST_F(Cli, ParseOnlyNamesWhatIsUnknown) {
  std::string good = file("good.ptx", ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n");
  EXPECT_EQ(run({"check", good, "--parse-only"}).code, 0);
  std::string bad = file("bad.ptx", ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n frobnicate.u32;\n ret;\n}\n");
  Ran ran = run({"check", bad, "--parse-only"});
  EXPECT_NE(ran.code, 0);
  EXPECT_HAS(ran.out + ran.err, "frobnicate");
}

TEST_F(Cli, DoctorSaysWhatIsThere) {
  Ran ran = run({"doctor"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_HAS(ran.out, "nvcc");
  EXPECT_HAS(ran.out, "sandbox");
}

TEST_F(Cli, CacheThatCannotBeWrittenIsNamed) {
  std::string blocked = file("blocked", "a file, not a folder");
  ::setenv("PTXBENCH_CACHE", (blocked + "/cache").c_str(), 1);
  Ran ran = run({"eval", kernel("gemm/simt.cu"), "--task", "gemm_n128_k2048", "--workload", "M=17"});
  ::unsetenv("PTXBENCH_CACHE");
  EXPECT_EQ(ran.code, 3);
  EXPECT_HAS(ran.err, "blocked");
}

}  // namespace
}  // namespace ptxb
