// Toolkits made of shell scripts: what is looked for, in which order, and what is said when it is
// not there.
// SPDX-License-Identifier: Apache-2.0
#include "build/toolchain.h"

#include <gtest/gtest.h>

namespace ptxb::build {
namespace {

namespace fs = std::filesystem;

class ToolchainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempFolder::make("ptxb-tools-");
    ASSERT_TRUE(made);
    folder_.emplace(*std::move(made));
    query_.system = SystemToolkit::Ignore;
  }
  void script(const Path& file, const std::string& text) {
    ASSERT_TRUE(write_file(file, "#!/bin/sh\n" + text));
    fs::permissions(file, fs::perms(0755));
  }
  Path make_home(const Path& home, const std::string& version) {
    std::string says =
        "if [ \"$1\" = --list-gpu-code ]; then echo sm_80; echo sm_90; echo sm_100; else\n"
        "echo 'Cuda compilation tools, release " +
        version + ", V" + version + ".88'; fi\n";
    script(home / "bin" / "nvcc", says);
    script(home / "bin" / "ptxas", says);
    script(home / "nvvm" / "bin" / "cicc", "");
    EXPECT_TRUE(write_file(home / "include" / "cuda_runtime.h", ""));
    EXPECT_TRUE(write_file(home / "lib" / "libcudart.so.13", ""));
    EXPECT_TRUE(write_file(home / "lib" / "libcudart.so.13.0.96", ""));
    return home;
  }
  Path packages() const {
    return folder_->path() / "venv" / "lib" / "python3.11" / "site-packages";
  }

  std::optional<TempFolder> folder_;
  ToolchainQuery query_;
};

TEST_F(ToolchainTest, WheelsAreAToolkitOfTheirOwn) {
  Path home = make_home(packages() / "nvidia" / "cu13", "13.0");
  script(home / "bin" / "nvdisasm", "");
  ASSERT_TRUE(write_file(packages() / "tvm_ffi" / "include" / "tvm" / "ffi" / "function.h", ""));
  ASSERT_TRUE(write_file(packages() / "tvm_ffi" / "lib" / "libtvm_ffi.so", ""));
  ASSERT_TRUE(write_file(packages() / "apache_tvm_ffi-0.1.15.dist-info" / "METADATA", ""));
  query_.venvs = {folder_->path() / "venv"};
  auto found = find_toolchain(query_);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->home, fs::canonical(home));
  EXPECT_EQ(found->version, "13.0.88");
  EXPECT_EQ(found->runtime_library.filename(), "libcudart.so.13");
  EXPECT_EQ(found->nvdisasm, found->home / "bin" / "nvdisasm");
  EXPECT_FALSE(found->cuobjdump);
  EXPECT_EQ(found->tvm_ffi, fs::canonical(packages() / "tvm_ffi"));
  ASSERT_EQ(found->tools.size(), 4u);
  EXPECT_EQ(found->tools[0], "nvcc 13.0.88");
  EXPECT_EQ(found->tools[3], "tvm-ffi 0.1.15");
  EXPECT_EQ(found->identity.size(), 64u);

  // Another build of a tool is another identity.
  script(home / "nvvm" / "bin" / "cicc", "# newer");
  EXPECT_NE(find_toolchain(query_)->identity, found->identity);
}

TEST_F(ToolchainTest, ForcedHomeIsTheOnlyPlace) {
  make_home(packages() / "nvidia" / "cu13", "13.0");
  query_.venvs = {folder_->path() / "venv"};
  query_.forced_home = folder_->path() / "nowhere";
  auto missing = find_toolchain(query_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  EXPECT_NE(missing.error().message.find("nowhere (PTXBENCH_CUDA_HOME)"), std::string::npos)
      << missing.error().message;
  query_.forced_home = make_home(folder_->path() / "mine", "12.9");
  EXPECT_EQ(find_toolchain(query_)->version, "12.9.88");
}

TEST_F(ToolchainTest, CudaHomeComesBeforeWheels) {
  make_home(packages() / "nvidia" / "cu13", "13.0");
  query_.venvs = {folder_->path() / "venv"};
  query_.system = SystemToolkit::Use;
  query_.cuda_home = make_home(folder_->path() / "mine", "13.2");
  EXPECT_EQ(find_toolchain(query_)->version, "13.2.88");
}

TEST_F(ToolchainTest, NothingFoundSaysWhatToDo) {
  query_.venvs = {folder_->path() / "venv"};
  auto missing = find_toolchain(query_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  EXPECT_NE(missing.error().message.find("scripts/setup.sh"), std::string::npos);
  EXPECT_NE(missing.error().message.find("venv (no CUDA wheels in it)"), std::string::npos)
      << missing.error().message;
}

TEST_F(ToolchainTest, OldOrBrokenToolkitsAreHarnessErrors) {
  query_.forced_home = make_home(folder_->path() / "old", "12.4");
  auto old = find_toolchain(query_);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, ErrorCode::Harness);
  EXPECT_NE(old.error().message.find("older than 12.8"), std::string::npos) << old.error().message;
  for (const char* file : {"bin/ptxas", "nvvm/bin/cicc", "include/cuda_runtime.h", "lib"}) {
    Path home = make_home(folder_->path() / "broken", "13.0");
    fs::remove_all(home / file);
    query_.forced_home = home;
    auto broken = find_toolchain(query_);
    ASSERT_FALSE(broken) << file;
    EXPECT_EQ(broken.error().code, ErrorCode::Harness) << file;
  }
  query_.forced_home = make_home(folder_->path() / "fails", "13.0");
  script(folder_->path() / "fails" / "bin" / "nvcc", "echo no licence >&2; exit 3\n");
  EXPECT_NE(find_toolchain(query_).error().message.find("no licence"), std::string::npos);
}

TEST(Toolchain, SupportedArchitectures) {
  Toolchain toolchain;
  toolchain.archs = {"sm_80", "sm_90", "sm_100", "sm_103"};
  for (const char* arch : {"sm_80", "sm_90", "sm_90a", "sm_100a", "sm_100f", "sm_103a"})
    EXPECT_TRUE(supports(toolchain, arch)) << arch;
  for (const char* arch :
       {"", "a", "sm_80a", "sm_91a", "sm_90b", "sm_90aa", "sm_90a ", "compute_90a"}) {
    EXPECT_FALSE(supports(toolchain, arch)) << arch;
  }
}

}  // namespace
}  // namespace ptxb::build
