// SPDX-License-Identifier: Apache-2.0
#include "shim/describe_launch.h"

#include <gtest/gtest.h>

#include <cstring>

#include "shim/expression.h"

namespace ptxb::shim {
namespace {

TEST(Expression, ValuesAndFaults) {
  const std::map<std::string, int64_t> axes = {{"M", 93}, {"N", 128}};
  const std::pair<const char*, int64_t> good[] = {
      {"M", 93}, {"ceil_div(M, 16)", 6}, {"round_up(M,16)", 96}, {"(M + 1) * 2 - -3", 191}, {"0x10 % 7", 2}, {"-7 / 2", -3},
      {"min(M, N) + max(1, 2)", 95}, {"10 - 3 - 2", 5}};
  for (const auto& [text, value] : good) {
    auto out = evaluate_expression(text, axes);
    ASSERT_TRUE(out) << text << ": " << out.error().message;
    EXPECT_EQ(*out, value) << text;
  }
  for (const char* text : {"", "M +", "Q", "1 / 0", "1 % 0", "9223372036854775807 + 1", "ceil_div(1, 0)", "ceil_div(-1, 2)", "f(1, 2)",
                           "(1", "1 2", "99999999999999999999", "-9223372036854775807 - 2", "min(1)", "1 $ 2"}) {
    auto out = evaluate_expression(text, axes);
    EXPECT_FALSE(out) << text;
  }
  EXPECT_FALSE(evaluate_expression(std::string(300, '('), axes));
  EXPECT_FALSE(evaluate_expression(std::string(256, '-'), axes));
}

struct Case {
  Artifact artifact;
  Task task;
};

Case small_case() {
  Case c;
  c.artifact.binding = Binding::Ptx;
  c.artifact.arch = "sm_90a";
  c.artifact.ptx =
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 a, .param .u32 n, .param .f32 s)\n{\n ret;\n}\n";
  c.artifact.cubin = "x";
  c.artifact.kernels = {{.name = "k", .params = {{0, 8}, {8, 4}, {12, 4}}}};
  c.task.definition.name = "t";
  c.task.definition.axes = {{"M", std::nullopt, ""}};
  c.task.definition.inputs = {{"A", {"M"}, false, DType::F32, ""}};
  c.task.definition.outputs = {{"C", {"M"}, false, DType::F32, ""}};
  c.task.axes = {{"M", 100}};
  return c;
}

TEST(DescribeLaunch, FillsParametersInTheKernelsTypes) {
  Case c = small_case();
  auto out = describe_launch(c.artifact, c.task,
                             "version = 1\n[[launch]]\nkernel='k'\ngrid=['ceil_div(M, 32)']\nblock=[32]\nparams=['C', 'M', 0.5]\n",
                             *arch::find_chip("H200"));
  ASSERT_TRUE(out) << out.error().message;
  ASSERT_TRUE(std::holds_alternative<LaunchPlan>(*out)) << std::get<NoPlan>(*out).cause;
  const LaunchPlan& plan = std::get<LaunchPlan>(*out);
  ASSERT_EQ(plan.steady.size(), 1u);
  const auto& launch = std::get<KernelLaunch>(plan.steady[0].action);
  EXPECT_EQ(launch.grid, (Dim3{4, 1, 1}));
  uint64_t address = 0;
  uint32_t count = 0;
  float scale = 0;
  std::memcpy(&address, launch.params.data(), 8);
  std::memcpy(&count, launch.params.data() + 8, 4);
  std::memcpy(&scale, launch.params.data() + 12, 4);
  EXPECT_EQ(address, plan.buffers[1].address);
  EXPECT_EQ(count, 100u);
  EXPECT_EQ(scale, 0.5f);
}

TEST(DescribeLaunch, FaultsAreTheCandidatesAndNameTheKey) {
  Case c = small_case();
  const std::pair<const char*, const char*> cases[] = {
      {"version = ", "line 1"},
      {"version = 2", "version"},
      {"version = 1", "launch"},
      {"version = 1\nother = 2", "other"},
      {"version = 1\n[[launch]]\nkernel='z'\ngrid=[1]\nblock=[1]\nparams=[]", "no kernel"},
      {"version = 1\n[[launch]]\nkernel='k'\ngrid=[1]\nblock=[1]\nparams=['A']", "3 parameters"},
      {"version = 1\n[[launch]]\nkernel='k'\ngrid=[-1]\nblock=[1]\nparams=['A', 1, 1]", "grid"},
      {"version = 1\n[[launch]]\nkernel='k'\ngrid=[1]\nblock=[2048]\nparams=['A', 1, 1]", "block"},
      {"version = 1\n[[launch]]\nkernel='k'\ngrid=['1 +']\nblock=[1]\nparams=['A', 1, 1]", "grid"},
      {"version = 1\n[[launch]]\nkernel='k'\ngrid=[1]\nblock=[1]\nparams=['A', -1, 1]", "does not fit"},
      {"version = 1\n[[launch]]\nkernel='k'\ngrid=[1]\nblock=[1]\nparams=['A', 'A', 1]", "params[1]"},
      {"version = 1\n[[launch]]\nkernel='k'\ngrid=[1]\nblock=[1]\nshared=1\nparams=['A', 1, 1]", "shared"},
      {"version = 1\n[[launch]]\nkernel='k'\ngrid=[0]\nblock=[1]\nparams=['A', 1, 1]", "nothing"},
      {"version = 1\n[[launch]]\nkernel='k'\ngrid=[1]\nblock=[1]\ndynamic_shared_bytes=999999\nparams=['A', 1, 1]", "dynamic_shared_bytes"},
  };
  for (const auto& [text, part] : cases) {
    auto out = describe_launch(c.artifact, c.task, text, *arch::find_chip("H200"));
    ASSERT_TRUE(out) << out.error().message;
    ASSERT_TRUE(std::holds_alternative<NoPlan>(*out)) << text;
    EXPECT_EQ(std::get<NoPlan>(*out).verdict, Verdict::LaunchError);
    EXPECT_NE(std::get<NoPlan>(*out).cause.find(part), std::string::npos) << std::get<NoPlan>(*out).cause;
  }
}

}  // namespace
}  // namespace ptxb::shim
