// Every kernel of kernels/manifest.toml must get exactly its expected verdict: one program run over all of them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "os/subprocess.h"

namespace ptxb {
namespace {

TEST(Manifest, EveryKernelGetsItsVerdict) {
  os::Command command;
  command.argv = {std::string(PTXB_BINARY_DIR) + "/bin/ptxbench", "selftest", "--backend", "emu", "--profile", "quick"};
  command.limits.wall_s = 900;
  auto finished = os::run(command);
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_TRUE(finished->exit.ok()) << os::summary(finished->exit) << "\n" << finished->out.text() << finished->err.text();
  EXPECT_NE(finished->out.text().find("misses 0"), std::string::npos) << finished->out.text();
  EXPECT_NE(finished->out.text().find("false alarms 0"), std::string::npos) << finished->out.text();
}

}  // namespace
}  // namespace ptxb
