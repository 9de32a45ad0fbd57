// SPDX-License-Identifier: Apache-2.0
#include "app/options.h"

#include <gtest/gtest.h>

namespace ptxb::app {
namespace {

TEST(Options, EveryOptionIsInTheHelpAndEveryHelpedOptionExists) {
  const std::pair<Command, const char*> commands[] = {
      {Command::Doctor, "doctor"}, {Command::Tasks, "tasks"},   {Command::Eval, "eval"},
      {Command::Plan, "plan"},     {Command::Replay, "replay"}, {Command::Check, "check"},
      {Command::Selftest, "selftest"}};
  for (const auto& [command, name] : commands) {
    std::string help = help_text(name);
    EXPECT_EQ(help.find("## ptxbench " + std::string(name)), 0u);
    std::vector<std::string> names = option_names(command);
    if (command == Command::Plan) {
      for (const std::string& each : option_names(Command::PlanShow)) names.push_back(each);
    }
    for (const std::string& option : names) {
      if (option == "--help" || option == "--no-color") continue;
      EXPECT_NE(help.find(option + " "), std::string::npos) << name << " " << option;
    }
    // The table rows of the help: four spaces, the option, its meaning.
    for (size_t at = help.find("\n    --"); at != std::string::npos; at = help.find("\n    --", at + 1)) {
      std::string option = help.substr(at + 5, help.find_first_of(" ,\n", at + 5) - at - 5);
      EXPECT_NE(std::find(names.begin(), names.end(), option), names.end()) << name << " documents " << option;
    }
  }
}

TEST(Options, EvalReadsItsOptions) {
  auto o = parse_options({"eval", "a.cu", "--task", "gemm_n128_k2048", "--workload", "M=128", "--backend", "emu",
                          "--seed", "7", "--json", "-", "--jobs", "2"});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->command, Command::Eval);
  EXPECT_EQ(o->source, "a.cu");
  EXPECT_EQ(o->task, "gemm_n128_k2048");
  EXPECT_EQ(o->workload, "M=128");
  EXPECT_EQ(o->seed, 7u);
  EXPECT_EQ(o->json, "-");
  EXPECT_EQ(o->jobs, 2);
}

TEST(Options, PlanShowIsACommandOfItsOwn) {
  auto o = parse_options({"plan", "show", "dir"});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->command, Command::PlanShow);
  EXPECT_EQ(o->source, "dir");
  o = parse_options({"plan", "a.cu", "--task", "t", "-o", "dir"});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->command, Command::Plan);
}

TEST(Options, WrongUsageIsBadInputInOneLine) {
  const std::vector<std::vector<std::string>> wrong = {
      {"eval"},
      {"eval", "a.cu"},
      {"eval", "a.cu", "--task"},
      {"eval", "a.cu", "--task", "t", "--arch", "sm_80"},
      {"eval", "a.cu", "--task", "t", "--backend", "gpu"},
      {"eval", "a.cu", "--task", "t", "--seed", "-1"},
      {"eval", "a.cu", "--task", "t", "--seed", "x"},
      {"eval", "a.cu", "--task", "t", "--nonsense"},
      {"eval", "a.cu", "b.cu", "--task", "t"},
      {"frobnicate"},
      {"--nonsense"},
      {"plan", "a.cu", "--task", "t"},
      {"check", "a.cu"},
  };
  for (const auto& arguments : wrong) {
    auto o = parse_options(arguments);
    ASSERT_FALSE(o) << (arguments.empty() ? "" : arguments.back());
    EXPECT_EQ(o.error().code, ErrorCode::BadInput);
    EXPECT_EQ(o.error().message.find('\n'), std::string::npos) << o.error().message;
  }
}

TEST(Options, HelpWinsOverMissingArguments) {
  auto o = parse_options({"eval", "--help"});
  ASSERT_TRUE(o);
  EXPECT_EQ(o->command, Command::Help);
  EXPECT_EQ(o->topic, "eval");
  EXPECT_EQ(parse_options({})->command, Command::Help);
}

}  // namespace
}  // namespace ptxb::app
