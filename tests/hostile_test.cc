// Every trick of tests/hostile/ must get exactly its expected verdict, and every legal twin must be
// called right. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "os/subprocess.h"

namespace ptxb {
namespace {

class Hostile : public ::testing::TestWithParam<const char*> {};

TEST_P(Hostile, EveryTrickGetsItsVerdict) {
  os::Command command;
  command.argv = {std::string(PTXB_BINARY_DIR) + "/bin/ptxbench",
                  "selftest",
                  std::string(PTXB_SOURCE_DIR) + "/tests/hostile/" + GetParam(),
                  "--backend",
                  "emu",
                  "--profile",
                  "quick",
                  "--quiet"};
  command.limits.wall_s = 880;
  auto finished = os::run(command);
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_TRUE(finished->exit.ok()) << os::summary(finished->exit) << "\n"
                                   << finished->out.text() << finished->err.text();
  for (const char* expected :
       {"misses 0,", "false alarms 0,", "other verdicts 0,", "not judged 0"}) {
    EXPECT_NE(finished->out.text().find(expected), std::string::npos) << finished->out.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Manifests, Hostile,
                         ::testing::Values("manifest.toml", "manifest_more.toml"),
                         [](const auto& each) { return each.index == 0 ? "Chosen" : "More"; });

}  // namespace
}  // namespace ptxb
