// Records what nvcc compiles (testdata/test_kernels.cu); skipped where no CUDA toolkit is
// installed.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "os/subprocess.h"
#include "shim/module_image.h"
#include "shim/record.h"
#include "shim/task_header.h"

namespace ptxb::shim {
namespace {

constexpr int64_t kElements = 4096;

Task task() {
  Task out;
  out.definition.name = "scale";
  out.definition.axes = {{"N", kElements, ""}};
  out.definition.inputs = {{"X", {"N"}, false, DType::F32, ""}};
  out.definition.outputs = {{"Y", {"N"}, false, DType::F32, ""}};
  out.axes = {{"N", kElements}};
  return out;
}

// Runs nvcc in `folder`; false with its words on failure.
::testing::AssertionResult nvcc(const Path& folder, std::vector<std::string> arguments) {
  os::Command command;
  command.argv = {PTXB_NVCC,
                  "-std=c++17",
                  "-gencode",
                  "arch=compute_90a,code=sm_90a",
                  "-I" + folder.string(),
                  PTXB_SOURCE_DIR "/src/shim/testdata/test_kernels.cu"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.limits.wall_s = 120;
  auto finished = os::run(command);
  if (!finished) return ::testing::AssertionFailure() << finished.error().message;
  if (!finished->exit.ok())
    return ::testing::AssertionFailure() << finished->err.text() << finished->out.text();
  return ::testing::AssertionSuccess();
}

TEST(Nvcc, HostCodeOfEveryKindIsRecorded) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "ptxbench-record cannot start in the sandbox with AddressSanitizer";
#endif
  if (std::strlen(PTXB_NVCC) == 0) GTEST_SKIP() << "no nvcc";
  auto folder = TempFolder::make("nvcc");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(write_file(folder->path() / "ptxbench_task.h", task_header(task().definition)));
  Path library = folder->path() / "candidate.so", cubin = folder->path() / "candidate.cubin",
       ptx = folder->path() / "candidate.ptx";
  ASSERT_TRUE(nvcc(folder->path(),
                   {"-shared", "-cudart=shared", "-Xcompiler=-fPIC", "-o", library.string()}));
  // Another flag than the host library's, so that the compiler's hashes in names may differ.
  ASSERT_TRUE(nvcc(folder->path(), {"-cubin", "-lineinfo", "-keep", "-keep-dir",
                                    folder->path().string(), "-o", cubin.string()}));
  std::filesystem::rename(folder->path() / "test_kernels.ptx", ptx);
  std::filesystem::permissions(folder->path(), std::filesystem::perms(0755));

  Artifact artifact;
  artifact.arch = "sm_90a";
  artifact.host_library = library.string();
  artifact.cubin = *read_file(cubin);
  artifact.ptx = *read_file(ptx);
  auto image = read_image(artifact.ptx);
  ASSERT_TRUE(image) << image.error().message;
  artifact.kernels = image->module.kernels;
  for (KernelInfo& kernel : artifact.kernels) kernel.registers = 32;
  auto from_cubin = read_cubin(artifact.cubin);
  ASSERT_TRUE(from_cubin) << from_cubin.error().message;
  for (const KernelInfo& kernel : artifact.kernels) {
    const auto& others = from_cubin->module.kernels;
    auto same = std::find_if(others.begin(), others.end(),
                             [&](const KernelInfo& k) { return k.name == kernel.name; });
    ASSERT_NE(same, others.end()) << kernel.name;
    ASSERT_EQ(same->params.size(), kernel.params.size()) << kernel.name;
    for (size_t i = 0; i < kernel.params.size(); ++i) {
      EXPECT_EQ(same->params[i].size_bytes, kernel.params[i].size_bytes) << kernel.name;
      EXPECT_EQ(same->params[i].offset_bytes % 64 == 0 || kernel.params[i].size_bytes != 128, true)
          << kernel.name;
    }
  }
  for (const auto& [name, size] : image->variables) artifact.symbols.push_back({name, size, false});
  ASSERT_EQ(artifact.kernels.size(), 5u);
  EXPECT_EQ(from_cubin->variables.at("table"), 64u);
  EXPECT_EQ(image->variables.at("table"), 64u);
  EXPECT_EQ(image->variables.at("counter"), 4u);

  auto sandbox = os::Sandbox::probe(os::SandboxPolicy::AllowMissing);
  ASSERT_TRUE(sandbox);
  RecordSettings settings;
  settings.sandbox = &*sandbox;
  settings.program = PTXB_BINARY_DIR "/bin/ptxbench-record";
  auto outcome = record(artifact, task(), settings);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->verdict, Verdict::Passed) << outcome->cause;
  EXPECT_TRUE(outcome->refused.empty()) << outcome->refused[0];
  const LaunchPlan& plan = outcome->plan;
  EXPECT_TRUE(plan.setup.empty());
  ASSERT_EQ(plan.steady.size(), 7u) << show(plan);
  ASSERT_EQ(plan.symbols.size(), 2u);

  const auto& internal = std::get<KernelLaunch>(plan.steady[0].action);
  EXPECT_EQ(internal.grid.x, 16u);
  EXPECT_EQ(std::get<WriteBytes>(plan.steady[1].action).bytes.size(), 64u);
  EXPECT_EQ(std::get<Memset>(plan.steady[2].action).address, plan.symbols[1].address);

  const auto& packed = std::get<KernelLaunch>(plan.steady[3].action);
  ASSERT_EQ(packed.params.size(), 40u);  // {char, pointer, short}, int, pointer
  uint64_t x = 0;
  std::memcpy(&x, packed.params.data() + 8, 8);
  EXPECT_EQ(x, plan.buffers[0].address + 16);

  EXPECT_EQ(std::get<KernelLaunch>(plan.steady[4].action).cluster, (Dim3{2, 1, 1}));
  const auto& templated = std::get<KernelLaunch>(plan.steady[5].action);
  EXPECT_EQ(templated.cluster, (Dim3{4, 1, 1}));
  EXPECT_TRUE(templated.programmatic_serialization);
  EXPECT_EQ(templated.dynamic_shared_bytes, 100u << 10);
  EXPECT_EQ(tensor_map_images(templated.params, 0), std::vector<size_t>{0});
  ASSERT_EQ(plan.tensor_maps.size(), 1u);
  EXPECT_EQ(plan.tensor_maps[0].address, plan.buffers[0].address);
  const auto& cooperative = std::get<KernelLaunch>(plan.steady[6].action);
  EXPECT_TRUE(cooperative.cooperative);
  EXPECT_EQ(cooperative.grid.x % 132, 0u);
}

TEST(Nvcc, WrongSignatureDoesNotCompile) {
  if (std::strlen(PTXB_NVCC) == 0) GTEST_SKIP() << "no nvcc";
  auto folder = TempFolder::make("nvcc");
  ASSERT_TRUE(folder);
  Task other = task();
  other.definition.inputs[0].dtype = DType::BF16;
  ASSERT_TRUE(write_file(folder->path() / "ptxbench_task.h", task_header(other.definition)));
  auto built = nvcc(folder->path(), {"-shared", "-cudart=shared", "-Xcompiler=-fPIC", "-o",
                                     (folder->path() / "c.so").string()});
  ASSERT_FALSE(built);
  EXPECT_NE(std::string(built.message()).find("run"), std::string::npos);
}

}  // namespace
}  // namespace ptxb::shim
