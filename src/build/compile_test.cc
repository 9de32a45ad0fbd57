// Runs the real compilers where they are installed: about ten short runs. The reading of their
// words is tested in diagnostics_test.cc.
// SPDX-License-Identifier: Apache-2.0
#include "build/compile.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "build/cache.h"
#include "build/elf.h"

namespace ptxb::build {
namespace {

const char* const kHeader =
    "#pragma once\n#include <cuda_runtime_api.h>\n#include <stdint.h>\n"
    "extern \"C\" __attribute__((visibility(\"default\"))) void run(const float* A, float* C, "
    "int64_t M, cudaStream_t stream);\n";

const char* const kGood = R"(#include "ptxbench_task.h"
__device__ int calls;
__constant__ float table[16];
struct Pair { char tag; double value; };
__global__ void __launch_bounds__(128) scale(const float* A, float* C, char flag, Pair pair, int64_t M) {
  __shared__ float tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x] = i < M ? A[i] : 0.0f;
  __syncthreads();
  if (i < M) C[i] = tile[threadIdx.x ^ 1] * table[i & 15] + static_cast<float>(pair.value) + flag;
  if (i == 0) ++calls;
}
extern "C" void run(const float* A, float* C, int64_t M, cudaStream_t stream) {
  scale<<<static_cast<unsigned>((M + 127) / 128), 128, 0, stream>>>(A, C, 1, {'a', 2.0}, M);
}
)";

// Ten instructions of PTX by hand.
std::string small_ptx(const std::string& body, const std::string& before = "") {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n" + before +
         ".visible .entry k(.param .u64 out, .param .align 4 .b8 pad[12], .param .u8 flag, .param "
         ".f64 scale)\n.reqntid 64, 2\n{\n"
         "  .reg .b32 %r<4>;\n  .reg .b64 %rd<4>;\n" +
         body + "  ret;\n}\n";
}

struct Tools {
  Result<Toolchain> toolchain;
  Result<os::Sandbox> sandbox;
};

const Tools& tools() {
  static const Tools kTools = [] {
    ToolchainQuery query;
    if (const char* home = std::getenv("CUDA_HOME")) query.cuda_home = home;
    if (const char* forced = std::getenv("PTXBENCH_CUDA_HOME")) query.forced_home = forced;
    if (std::getenv("PTXBENCH_HIDE_SYSTEM_CUDA")) query.system = SystemToolkit::Ignore;
    query.path = std::getenv("PATH");
    query.venvs = {PTXB_SOURCE_DIR "/.venv"};
    return Tools{find_toolchain(query), os::Sandbox::probe(os::SandboxPolicy::AllowMissing)};
  }();
  return kTools;
}

class CompileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!tools().toolchain) GTEST_SKIP() << tools().toolchain.error().message;
    ASSERT_TRUE(tools().sandbox) << tools().sandbox.error().message;
    auto made = TempFolder::make("ptxb-build-");
    ASSERT_TRUE(made);
    folder_.emplace(*std::move(made));
    ASSERT_TRUE(write_file(folder_->path() / "headers" / "ptxbench_task.h", kHeader));
    settings_.toolchain = &*tools().toolchain;
    settings_.sandbox = &*tools().sandbox;
    settings_.cache_folder = folder_->path() / "cache";
    // Believed: otherwise each failing candidate would cost the proof that the tools work, which
    // has its own test.
    for (const char* arch : {"sm_90a", "sm_100a"}) {
      ASSERT_TRUE(
          write_file(settings_.cache_folder /
                         ("proven-" + settings_.toolchain->identity.substr(0, 16) + "-" + arch),
                     ""));
    }
  }

  BuildRequest request(std::string source, Binding binding = Binding::Plain) {
    BuildRequest made;
    made.candidate.file_name = binding == Binding::Ptx ? "kernel.ptx" : "kernel.cu";
    made.candidate.source = std::move(source);
    made.candidate.binding = binding;
    made.arch = "sm_90a";
    if (binding == Binding::Plain) made.header_folder = folder_->path() / "headers";
    return made;
  }
  BuildOutcome outcome(const BuildRequest& wanted) {
    auto built = build(wanted, settings_);
    EXPECT_TRUE(built) << built.error().message;
    return built ? *built : BuildOutcome();
  }
  BuildFailure failure(const BuildRequest& wanted) {
    BuildOutcome made = outcome(wanted);
    EXPECT_NE(made.failure(), nullptr) << wanted.candidate.source;
    return made.failure() ? *made.failure() : BuildFailure();
  }

  std::optional<TempFolder> folder_;
  BuildSettings settings_;
};

TEST_F(CompileTest, PlainCandidateBecomesAnArtifactOnce) {
  // Two threads with the same request: one builds, the other waits and gets the same.
  std::vector<Origin> origins(2);
  std::vector<Artifact> artifacts(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      BuildOutcome made = outcome(request(kGood));
      origins[i] = made.origin;
      ASSERT_NE(made.artifact(), nullptr) << made.failure()->cause;
      artifacts[i] = *made.artifact();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(origins[0], origins[1]);
  const Artifact& artifact = artifacts[0];
  EXPECT_TRUE(artifact.cubin == artifacts[1].cubin);
  EXPECT_EQ(artifact.cubin.substr(0, 4), "\177ELF");
  EXPECT_NE(artifact.ptx.find(".target sm_90a"), std::string::npos);
  EXPECT_NE(artifact.ptx.find("\t.loc\t"), std::string::npos);
  EXPECT_EQ(artifact.binding, Binding::Plain);
  ASSERT_EQ(artifact.kernels.size(), 1u);
  const KernelInfo& kernel = artifact.kernels[0];
  std::vector<std::pair<uint32_t, uint32_t>> places;
  for (const KernelParam& param : kernel.params)
    places.emplace_back(param.offset_bytes, param.size_bytes);
  EXPECT_EQ(places, (std::vector<std::pair<uint32_t, uint32_t>>{
                        {0, 8}, {8, 8}, {16, 1}, {24, 16}, {40, 8}}));
  EXPECT_EQ(kernel.max_threads, 128u);
  EXPECT_EQ(kernel.static_shared_bytes, 512u);
  EXPECT_GT(kernel.registers, 4u);
  std::vector<std::string> symbols;
  for (const SymbolInfo& symbol : artifact.symbols)
    symbols.push_back(symbol.name + (symbol.constant ? " const " : " ") +
                      std::to_string(symbol.size_bytes));
  EXPECT_EQ(symbols, (std::vector<std::string>{"calls 4", "table const 64"}));
  auto bytes = read_file(artifact.host_library);
  ASSERT_TRUE(bytes);
  auto elf = read_dynamic_symbols(*bytes, "candidate.so");
  ASSERT_TRUE(elf) << elf.error().message;
  EXPECT_TRUE(elf->defines("run"));
  EXPECT_EQ(elf->needed[0].substr(0, 13), "libcudart.so.");

  // From the cache, unless it was damaged there.
  EXPECT_EQ(outcome(request(kGood)).origin, Origin::Cached);
  EXPECT_LT(outcome(request(kGood)).wall_s, 0.2);
  ASSERT_TRUE(write_file(Path(artifact.folder) / "candidate.cubin", "damaged"));
  BuildOutcome again = outcome(request(kGood));
  EXPECT_EQ(again.origin, Origin::Built);
  ASSERT_NE(again.artifact(), nullptr);
  EXPECT_TRUE(again.artifact()->cubin == artifact.cubin) << "the same source gives the same bytes";
  EXPECT_TRUE(again.artifact()->ptx == artifact.ptx);
}

TEST_F(CompileTest, FrontEndErrorsNameFileAndLine) {
  BuildFailure failed = failure(request("// one\n#include \"/etc/passwd\"\n"));
  EXPECT_EQ(failed.verdict, Verdict::CompileError);
  ASSERT_FALSE(failed.diagnostics.empty());
  EXPECT_EQ(failed.diagnostics[0].file, "kernel.cu");
  EXPECT_EQ(failed.diagnostics[0].line, 2);
  EXPECT_NE(failed.cause.find("line 2"), std::string::npos) << failed.cause;
  EXPECT_NE(failed.diagnostics[0].message.find("No such file"), std::string::npos)
      << "host files are out of reach: " << failed.diagnostics[0].message;
  // Failures are remembered too.
  EXPECT_EQ(outcome(request("// one\n#include \"/etc/passwd\"\n")).origin, Origin::Cached);
}

TEST_F(CompileTest, AssemblerErrorsNameTheSourceLine) {
  BuildFailure failed =
      failure(request("__global__ void k(float* o) {\n"
                      "  o[1] = 2.0f;\n"
                      "  asm volatile(\"wgmma.frobnicate.sync;\");\n"
                      "}\n"
                      "extern \"C\" void run(const float* A, float* C, int64_t M, cudaStream_t "
                      "stream) { k<<<1, 1>>>(C); }\n"));
  EXPECT_EQ(failed.verdict, Verdict::CompileError);
  ASSERT_FALSE(failed.diagnostics.empty());
  EXPECT_EQ(failed.diagnostics[0].tool, "ptxas");
  EXPECT_EQ(failed.diagnostics[0].file, "kernel.cu");
  EXPECT_EQ(failed.diagnostics[0].line, 3) << failed.diagnostics[0].message;
}

TEST_F(CompileTest, WrongSignatureAndMissingEntry) {
  BuildFailure wrong = failure(request("extern \"C\" void run(int) {}\n"));
  EXPECT_EQ(wrong.verdict, Verdict::CompileError) << wrong.cause;
  BuildFailure missing = failure(request("extern \"C\" void walk(int) {}\n"));
  EXPECT_EQ(missing.verdict, Verdict::NoEntry) << missing.cause;
}

TEST_F(CompileTest, ForbiddenAndUndefinedNamesAreFoundInTheLibrary) {
  const std::string run = "extern \"C\" void run(const float*, float*, int64_t, cudaStream_t) ";
  BuildFailure library = failure(request("extern \"C\" int cublasCreate_v2(void**);\n" + run +
                                         "{ cublasCreate_v2(nullptr); }\n"));
  EXPECT_EQ(library.verdict, Verdict::ForbiddenLibrary) << library.cause;
  BuildFailure undefined =
      failure(request("extern \"C\" int nobody_has_this();\n" + run + "{ nobody_has_this(); }\n"));
  EXPECT_EQ(undefined.verdict, Verdict::CompileError);
  EXPECT_NE(undefined.cause.find("nobody_has_this"), std::string::npos) << undefined.cause;
}

TEST_F(CompileTest, TvmFfiEntryIsFound) {
  if (!settings_.toolchain->tvm_ffi) GTEST_SKIP() << "tvm-ffi is not installed";
  BuildOutcome made = outcome(
      request("#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/function.h>\n"
              "__global__ void k() {}\n"
              "static void entry(tvm::ffi::TensorView a) { if (a.ndim() == 2) k<<<1, 1>>>(); }\n"
              "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, entry);\n",
              Binding::TvmFfi));
  ASSERT_NE(made.artifact(), nullptr) << made.failure()->cause;
  EXPECT_EQ(made.artifact()->binding, Binding::TvmFfi);
}

TEST_F(CompileTest, PtxCandidateNeedsTheAssemblerOnly) {
  BuildOutcome made = outcome(request(
      small_ptx("  ld.param.u64 %rd1, [out];\n  st.global.u32 [%rd1], 7;\n"), Binding::Ptx));
  ASSERT_NE(made.artifact(), nullptr) << made.failure()->cause;
  EXPECT_EQ(made.artifact()->host_library, "");
  ASSERT_EQ(made.artifact()->kernels.size(), 1u);
  const KernelInfo& kernel = made.artifact()->kernels[0];
  ASSERT_EQ(kernel.params.size(), 4u);
  EXPECT_EQ(kernel.params[1].offset_bytes, 8u);
  EXPECT_EQ(kernel.params[2].offset_bytes, 20u);
  EXPECT_EQ(kernel.params[3].offset_bytes, 24u);
  EXPECT_EQ(kernel.max_threads, 128u);

  BuildFailure broken = failure(request(small_ptx("  frobnicate.u32 %r1;\n"), Binding::Ptx));
  EXPECT_EQ(broken.verdict, Verdict::CompileError);
  ASSERT_FALSE(broken.diagnostics.empty());
  EXPECT_EQ(broken.diagnostics[0].file, "kernel.ptx");
  EXPECT_EQ(broken.diagnostics[0].line, 9);
}

TEST_F(CompileTest, TooMuchSharedMemoryIsAResourceLimit) {
  BuildFailure failed =
      failure(request(small_ptx("  .shared .align 4 .b8 tile[240000];\n  mov.u32 %r1, tile;\n  "
                                "ld.shared.u32 %r2, [%r1];\n"
                                "  ld.param.u64 %rd1, [out];\n  st.global.u32 [%rd1], %r2;\n"),
                      Binding::Ptx));
  EXPECT_EQ(failed.verdict, Verdict::ResourceLimit) << failed.cause;
  EXPECT_NE(failed.cause.find("240000"), std::string::npos) << failed.cause;
}

TEST_F(CompileTest, LimitsAreValuesAndAreNotRemembered) {
  settings_.limits.wall_s = 0.15;
  double begin = now_s();
  EXPECT_EQ(failure(request(kGood)).verdict, Verdict::CompileTimeout);
  EXPECT_LT(now_s() - begin, 5);
  settings_.limits = BuildLimits();
  settings_.limits.output_bytes = 50;
  std::string loud =
      "#error a message that is longer than fifty bytes, as everybody can see at once\n";
  BuildFailure flooded = failure(request(loud));
  EXPECT_EQ(flooded.verdict, Verdict::CompileError);
  EXPECT_NE(flooded.cause.find("of messages"), std::string::npos) << flooded.cause;
  settings_.limits = BuildLimits();
  EXPECT_EQ(outcome(request(loud)).origin, Origin::Built);
}

TEST_F(CompileTest, TextThatIsNoSourceIsBadInput) {
  struct Case {
    std::string source;
    const char* why;
  };
  for (const Case& one :
       {Case{"", "empty"}, Case{" \n\t", "empty"}, Case{std::string("int a;\0b", 8), "NUL"},
        Case{"int a; // \xff", "UTF-8"}, Case{std::string((1 << 20) + 1, 'a'), "more than"}}) {
    auto refused = build(request(one.source), settings_);
    ASSERT_FALSE(refused) << one.why;
    EXPECT_EQ(refused.error().code, ErrorCode::BadInput);
    EXPECT_NE(refused.error().message.find("kernel.cu: "), std::string::npos)
        << refused.error().message;
    EXPECT_NE(refused.error().message.find(one.why), std::string::npos) << refused.error().message;
  }
  BuildRequest odd = request(kGood);
  for (const char* arch : {"sm_999a", "sm_80a", "", "sm_90a -o /x", "compute_90"}) {
    odd.arch = arch;
    auto refused = build(odd, settings_);
    ASSERT_FALSE(refused) << arch;
    EXPECT_EQ(refused.error().code, ErrorCode::BadInput);
  }
}

TEST_F(CompileTest, TwoCertainEntriesAreAmbiguousWithoutCompiling) {
  BuildFailure two =
      failure(request("extern \"C\" void run(int) {}\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(run, f);\n"));
  EXPECT_EQ(two.verdict, Verdict::AmbiguousCode);
  EXPECT_EQ(two.cause, "two entries: a plain run in line 1 and a tvm-ffi export in line 2");
}

TEST_F(CompileTest, KeyDependsOnEverythingThatMayChangeTheBytes) {
  BuildRequest base = request("int a;");
  std::string key = *build_key(base, settings_);
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(*build_key(base, settings_), key);
  BuildRequest other = request("int b;");
  EXPECT_NE(*build_key(other, settings_), key);
  other = base;
  other.arch = "sm_100a";
  EXPECT_NE(*build_key(other, settings_), key);
  other = base;
  other.candidate.file_name = "renamed.cu";
  EXPECT_EQ(*build_key(other, settings_), key) << "the tools never see the name";
  BuildSettings newer = settings_;
  newer.language = "c++20";
  EXPECT_NE(*build_key(base, newer), key);
  Toolchain changed = *settings_.toolchain;
  changed.identity += "x";
  newer = settings_;
  newer.toolchain = &changed;
  EXPECT_NE(*build_key(base, newer), key);
  ASSERT_TRUE(write_file(folder_->path() / "headers" / "ptxbench_task.h", "// changed"));
  EXPECT_NE(*build_key(base, settings_), key);
}

TEST_F(CompileTest, BrokenToolsAreOurErrorAndNotTheCandidates) {
  auto home = TempFolder::make("ptxb-home-");
  ASSERT_TRUE(home);
  Toolchain broken = *settings_.toolchain;
  broken.nvcc = broken.ptxas = "/usr/bin/false";
  broken.identity = std::string(64, 'b');
  settings_.toolchain = &broken;
  auto failed = build(request(kGood), settings_);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::Harness);
  EXPECT_NE(failed.error().message.find("file that is right"), std::string::npos)
      << failed.error().message;
}

TEST_F(CompileTest, UnusableCacheFolderIsNamed) {
  ASSERT_TRUE(write_file(folder_->path() / "file", ""));
  settings_.cache_folder = folder_->path() / "file" / "cache";
  auto failed = build(request(kGood), settings_);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::Io);
  EXPECT_NE(failed.error().message.find(settings_.cache_folder.string()), std::string::npos)
      << failed.error().message;
}

}  // namespace
}  // namespace ptxb::build
