// Records hand-written candidates (testdata/) through the sandbox: what must pass, and what each
// misbehaviour is called.
// SPDX-License-Identifier: Apache-2.0
#include "shim/record.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"
#include "base/text.h"

namespace ptxb::shim {
namespace {

// AddressSanitizer reserves more address space than the sandbox gives: its builds test the
// recorder's parts, not its runs.
class Record : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "ptxbench-record cannot start in the sandbox with AddressSanitizer";
#endif
  }
};

constexpr int64_t kElements = 1 << 20;

const os::Sandbox& sandbox() {
  static auto probed = os::Sandbox::probe(os::SandboxPolicy::AllowMissing);
  PTXB_CHECK(probed.has_value());
  return *probed;
}

RecordSettings settings() {
  RecordSettings out;
  out.sandbox = &sandbox();
  out.program = PTXB_BINARY_DIR "/bin/ptxbench-record";
  return out;
}

Task task(int64_t which) {
  Task out;
  out.definition.name = "scale";
  out.definition.axes = {{"N", kElements, ""}, {"CASE", std::nullopt, ""}};
  TensorSpec x{"X", {"N"}, false, DType::F32, ""}, y{"Y", {"N"}, false, DType::F32, ""};
  out.definition.inputs = {x};
  out.definition.outputs = {y};
  out.axes = {{"N", kElements}, {"CASE", which}};
  return out;
}

Artifact artifact(const std::string& library) {
  Artifact out;
  out.arch = "sm_90a";
  out.host_library = std::string(PTXB_BINARY_DIR "/bin/testdata/") + library;
  out.ptx = ".version 9.0\n";
  KernelInfo saxpy, tma, big;
  saxpy.name = "saxpy";
  saxpy.params = {{0, 8}, {8, 8}, {16, 8}, {24, 4}};
  saxpy.registers = 16;
  tma.name = "tma";
  tma.params = {{0, 128}, {128, 8}};
  tma.registers = 32;
  big.name = "big";
  big.params = {{0, 8}};
  big.registers = 128;
  out.kernels = {saxpy, tma, big};
  out.symbols = {{"table", 64, true}};
  return out;
}

RecordOutcome record_case(int64_t which) {
  auto outcome = record(artifact("test_candidate.so"), task(which), settings());
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? *std::move(outcome) : RecordOutcome();
}

size_t launches(const std::vector<PlanOperation>& list) {
  size_t count = 0;
  for (const PlanOperation& operation : list)
    count += std::holds_alternative<KernelLaunch>(operation.action);
  return count;
}

uint64_t param(const LaunchPlan& plan, size_t operation, size_t offset) {
  uint64_t value = 0;
  std::memcpy(&value,
              std::get<KernelLaunch>(plan.steady.at(operation).action).params.data() + offset, 8);
  return value;
}

struct LegalCase {
  int64_t which;
  size_t setup, steady, launches, buffers;  // buffers: tensors and scratch
  const char* what;
};

TEST_F(Record, LegalHostCodeBecomesAPlan) {
  const LegalCase kCases[] = {
      {1, 0, 1, 1, 2, "one launch"},
      {2, 0, 2, 2, 3, "stream-ordered scratch"},
      {3, 0, 2, 2, 3, "scratch"},
      {4, 3, 2, 2, 3, "first-call workspace"},
      {5, 0, 3, 3, 2, "fork and join"},
      {6, 0, 1, 1, 2, "legacy default stream"},
      {7, 0, 1, 1, 2, "host-synchronised side stream"},
      {8, 0, 1, 1, 2, "tensor map"},
      {9, 0, 1, 1, 2, "tensor map cached by pointer"},
      {10, 0, 4, 3, 2, "updated graph"},
      {11, 0, 1, 1, 2, "cluster and PDL"},
      {12, 0, 1, 1, 2, "cooperative"},
      {13, 0, 1, 1, 2, "large shared memory"},
      {14, 0, 2, 1, 2, "symbols"},
      {15, 0, 2, 1, 3, "pointers in device memory"},
      {16, 0, 1, 1, 2, "loaded module"},
      {17, 0, 1, 1, 2, "refused launch with fallback"},
      {18, 0, 1, 1, 2, "joined thread"},
      {19, 0, 5, 1, 2, "copies and memsets"},
      {20, 0, 1, 1, 2, "graph with new parameters"},
      {21, 0, 1, 1, 2, "queries"},
      {22, 0, 1, 1, 2, "driver entry points"},
      {23, 0, 4, 3, 2, "graph captured and thrown away in each call"},
  };
  for (const LegalCase& one : kCases) {
    RecordOutcome outcome = record_case(one.which);
    ASSERT_EQ(outcome.verdict, Verdict::Passed) << one.what << ": " << outcome.cause;
    EXPECT_TRUE(validate(outcome.plan)) << one.what;
    EXPECT_EQ(outcome.plan.setup.size(), one.setup) << one.what;
    EXPECT_EQ(outcome.plan.steady.size(), one.steady) << one.what;
    EXPECT_EQ(launches(outcome.plan.steady), one.launches) << one.what;
    EXPECT_EQ(outcome.plan.buffers.size(), one.buffers) << one.what;
  }
}

TEST_F(Record, LaunchHasTheArgumentsOfThePlan) {
  LaunchPlan plan = record_case(1).plan;
  const auto& launch = std::get<KernelLaunch>(plan.steady.at(0).action);
  EXPECT_EQ(launch.kernel, "saxpy");
  EXPECT_EQ(launch.grid, (Dim3{4, 1, 1}));
  EXPECT_EQ(launch.block, (Dim3{256, 1, 1}));
  EXPECT_EQ(param(plan, 0, 0), plan.buffers[0].address);
  EXPECT_EQ(param(plan, 0, 8), plan.buffers[1].address);
  EXPECT_EQ(param(plan, 0, 16), static_cast<uint64_t>(kElements));
  EXPECT_EQ(plan.buffers[0].role, BufferRole::Input);
  EXPECT_EQ(plan.buffers[1].role, BufferRole::Output);
}

TEST_F(Record, SetupUsesThePlansBuffers) {
  LaunchPlan plan = record_case(4).plan;
  ASSERT_EQ(plan.setup.size(), 3u);
  EXPECT_EQ(std::get<Memset>(plan.setup[0].action).address, plan.buffers[2].address);
  uint64_t x = 0;
  std::memcpy(&x, std::get<KernelLaunch>(plan.setup[1].action).params.data(), 8);
  EXPECT_EQ(x, plan.buffers[0].address);
}

TEST_F(Record, ForkAndJoinBecomeDependencies) {
  LaunchPlan plan = record_case(5).plan;
  EXPECT_EQ(plan.steady[0].stream, 1u);
  EXPECT_EQ(plan.steady[1].stream, 0u);
  EXPECT_EQ(plan.steady[2].stream, 0u);
  EXPECT_TRUE(plan.steady[1].after.empty());
  EXPECT_EQ(plan.steady[2].after, std::vector<uint32_t>{0});
}

TEST_F(Record, GraphNodesKeepTheirDependencies) {
  LaunchPlan plan = record_case(10).plan;
  ASSERT_EQ(plan.steady.size(), 4u);
  EXPECT_TRUE(std::holds_alternative<Memset>(plan.steady[0].action));
  EXPECT_NE(plan.steady[1].stream, plan.steady[2].stream);
  EXPECT_EQ(plan.steady[2].after.size() + plan.steady[1].after.size(),
            1u);  // one branch keeps the stream
  EXPECT_EQ(plan.steady[3].after.size(), 1u);
}

TEST_F(Record, TensorMapKeepsItsArguments) {
  LaunchPlan plan = record_case(9).plan;
  ASSERT_EQ(plan.tensor_maps.size(), 1u);
  EXPECT_EQ(plan.tensor_maps[0].address, plan.buffers[0].address);
  EXPECT_EQ(plan.tensor_maps[0].box[0], 32u);
  EXPECT_EQ(plan.tensor_maps[0].swizzle, 3u);
  const auto& params = std::get<KernelLaunch>(plan.steady[0].action).params;
  ASSERT_EQ(tensor_map_images(params, 0), std::vector<size_t>{0});
  EXPECT_EQ(tensor_map_index(params, 0), 0u);
}

TEST_F(Record, LaunchAttributesArePartOfTheLaunch) {
  LaunchPlan plan = record_case(11).plan;
  const auto& launch = std::get<KernelLaunch>(plan.steady[0].action);
  EXPECT_EQ(launch.cluster, (Dim3{2, 1, 1}));
  EXPECT_TRUE(launch.programmatic_serialization);
  LaunchPlan cooperative = record_case(12).plan;
  EXPECT_TRUE(std::get<KernelLaunch>(cooperative.steady[0].action).cooperative);
}

TEST_F(Record, LoadedModuleIsCarriedWithItsText) {
  LaunchPlan plan = record_case(16).plan;
  ASSERT_EQ(plan.modules.size(), 2u);
  EXPECT_NE(plan.modules[1].ptx.find("loaded"), std::string::npos);
  EXPECT_EQ(std::get<KernelLaunch>(plan.steady[0].action).module, 1u);
}

TEST_F(Record, RefusedLaunchIsReportedBesideThePlan) {
  RecordOutcome outcome = record_case(17);
  ASSERT_EQ(outcome.refused.size(), 1u);
  EXPECT_NE(outcome.refused[0].find("the grid (0,1,1) is empty"), std::string::npos)
      << outcome.refused[0];
}

struct IllegalCase {
  int64_t which;
  Verdict verdict;
  const char* cause;  // part of it
};

TEST_F(Record, EachMisbehaviourHasItsVerdict) {
  const IllegalCase kCases[] = {
      {100, Verdict::LaunchError, "run launched nothing"},
      {101, Verdict::HostCrash, "the host function called exit()"},
      {102, Verdict::HostCrash, "ended the process in run with exit code 0"},
      {103, Verdict::HostCrash, "SIGSEGV"},
      {105, Verdict::LaunchError, "no kernel today"},
      {106, Verdict::HostCrash, "SIGABRT"},
      {107, Verdict::LaunchUnsupported, "cudaMemcpy: the host reads device data (4 bytes"},
      {108, Verdict::HostCrash, "it touched device memory"},
      {109, Verdict::LaunchError, "not ordered before the end of the caller's stream"},
      {110, Verdict::LaunchError, "not ordered after the start of the caller's stream"},
      {111, Verdict::LaunchUnsupported, "thread"},
      {112, Verdict::LaunchUnsupported, "parameter 2 is"},
      {113, Verdict::LaunchUnsupported, "the grid is 2x1x1 in call 2 and 3x1x1 in call 3"},
      {114, Verdict::LaunchUnsupported, "is a kernel launch in call 2 and a memset in call 3"},
      {115, Verdict::LaunchUnsupported, "a pointer kept from an earlier call"},
      {116, Verdict::LaunchUnsupported, "a pointer kept from an earlier call"},
      {117, Verdict::LaunchError, "freed before"},
      {118, Verdict::LaunchError, "204800 bytes of dynamic shared memory"},
      {119, Verdict::LaunchUnsupported, "cudaHostRegister"},
      {120, Verdict::LaunchUnsupported, "cudaLaunchHostFunc"},
      {121, Verdict::LaunchError, "exceeds the swizzle span of 128 bytes"},
      {122, Verdict::LaunchUnsupported, "capture was still open"},
      {123, Verdict::HostCrash, "SIGTERM"},
      {124, Verdict::LaunchUnsupported, "run left a process behind"},
      {128, Verdict::LaunchUnsupported, "more than 16384 operations"},
      {129, Verdict::LaunchError, "called exit(); cudaLaunchKernel had failed"},
      {130, Verdict::LaunchUnsupported, "2097152 bytes from the host"},
      {131, Verdict::LaunchUnsupported, "a pointer kept from an earlier call"},
      {132, Verdict::HostCrash, "exit code 3"},
      {133, Verdict::HostCrash, "exit code 0"},
      {134, Verdict::ForbiddenLibrary, "libcublas.so.99"},
  };
  for (const IllegalCase& one : kCases) {
    RecordOutcome outcome = record_case(one.which);
    EXPECT_EQ(name(outcome.verdict), name(one.verdict)) << one.which << ": " << outcome.cause;
    EXPECT_NE(outcome.cause.find(one.cause), std::string::npos)
        << one.which << ": " << outcome.cause;
    EXPECT_FALSE(outcome.hint.empty()) << one.which;
  }
}

TEST_F(Record, EndlessHostCodeTimesOut) {
  RecordSettings quick = settings();
  quick.wall_s = 0.5;
  auto outcome = record(artifact("test_candidate.so"), task(104), quick);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->verdict, Verdict::HostTimeout) << outcome->cause;
}

TEST_F(Record, AllMemoryIsNotToBeHad) {
  RecordSettings small = settings();
  small.memory_bytes = 256u << 20;
  auto outcome = record(artifact("test_candidate.so"), task(127), small);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->verdict == Verdict::HostCrash || outcome->verdict == Verdict::LaunchError)
      << outcome->cause;
}

TEST_F(Record, SandboxKeepsHostCodeFromSocketsAndFiles) {
  if (!sandbox().missing_names().empty()) GTEST_SKIP() << join(sandbox().missing_names(), "; ");
  for (int64_t which : {125, 126}) {
    RecordOutcome outcome = record_case(which);
    EXPECT_TRUE(outcome.verdict == Verdict::HostCrash || outcome.verdict == Verdict::LaunchError)
        << which << " " << name(outcome.verdict) << ": " << outcome.cause;
  }
}

TEST_F(Record, BrokenLibrariesAreNamed) {
  struct {
    const char* library;
    Verdict verdict;
    const char* cause;
  } const kCases[] = {
      {"test_broken1.so", Verdict::NoEntry, "exports no extern \"C\" function run"},
      {"test_broken2.so", Verdict::NoEntry, "does not define run"},
      {"test_broken3.so", Verdict::HostCrash, "called exit()"},
      {"test_broken4.so", Verdict::NoEntry, "cublasCreate_v2"},
  };
  for (const auto& one : kCases) {
    auto outcome = record(artifact(one.library), task(1), settings());
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(name(outcome->verdict), name(one.verdict)) << one.library << ": " << outcome->cause;
    EXPECT_NE(outcome->cause.find(one.cause), std::string::npos)
        << one.library << ": " << outcome->cause;
  }
}

Task tvm_task(double scale, int64_t rows) {
  Task out;
  out.definition.name = "scale";
  out.definition.axes = {{"M", rows, ""}, {"N", 64, ""}};
  out.definition.inputs = {{"X", {"M", "N"}, false, DType::F32, ""},
                           {"scale", {}, true, DType::F32, ""}};
  out.definition.outputs = {{"Y", {"M", "N"}, false, DType::F32, ""}};
  out.axes = {{"M", rows}, {"N", 64}};
  out.workload.inputs["scale"] = {WorkloadInput::Kind::Scalar, scale, "", ""};
  return out;
}

TEST_F(Record, TvmBindingGetsTensorsScalarsAndStream) {
  Artifact candidate = artifact("test_tvm_candidate.so");
  candidate.binding = Binding::TvmFfi;
  RecordSettings with_tvm = settings();
  with_tvm.tvm_library = PTXB_BINARY_DIR "/bin/testdata/libtvm_ffi.so";
  auto outcome = record(candidate, tvm_task(0.5, 4), with_tvm);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->verdict, Verdict::Passed) << outcome->cause;
  const auto& launch = std::get<KernelLaunch>(outcome->plan.steady.at(0).action);
  EXPECT_EQ(outcome->plan.steady[0].stream, 0u);
  EXPECT_EQ(param(outcome->plan, 0, 16), 256u);
  float scale = 0;
  std::memcpy(&scale, launch.params.data() + 24, 4);
  EXPECT_EQ(scale, 0.5f);
}

TEST_F(Record, TvmErrorIsTheCause) {
  Artifact candidate = artifact("test_tvm_candidate.so");
  candidate.binding = Binding::TvmFfi;
  RecordSettings with_tvm = settings();
  with_tvm.tvm_library = PTXB_BINARY_DIR "/bin/testdata/libtvm_ffi.so";
  Task wrong = tvm_task(0.5, 4);
  wrong.definition.inputs[0].dtype = DType::F16;
  auto outcome = record(candidate, wrong, with_tvm);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->verdict, Verdict::LaunchError);
  EXPECT_NE(outcome->cause.find("ValueError: M must be even"), std::string::npos) << outcome->cause;
}

TEST_F(Record, MissingProgramIsOurError) {
  RecordSettings wrong = settings();
  wrong.program = PTXB_BINARY_DIR "/bin/no-such-program";
  EXPECT_FALSE(record(artifact("test_candidate.so"), task(1), wrong));
  RecordSettings chip = settings();
  chip.chip = "H2000";
  auto outcome = record(artifact("test_candidate.so"), task(1), chip);
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("H2000"), std::string::npos);
}

}  // namespace
}  // namespace ptxb::shim
