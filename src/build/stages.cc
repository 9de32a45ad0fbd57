// SPDX-License-Identifier: Apache-2.0
#include "build/stages.h"

#include <algorithm>
#include <atomic>

#include "arch/chip.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "os/sandbox.h"

namespace ptxb::build {

namespace {

using Argv = std::vector<std::string>;

constexpr const char* kInside = "/build";

void add(Argv& argv, std::initializer_list<std::string> more) {
  argv.insert(argv.end(), more.begin(), more.end());
}

// The flags that both sides share. The two --e flags only allow more (constexpr functions and
// lambdas in device code), as the published benchmark's builds do.
void add_common(Argv& argv, const BuildRequest& request, const BuildSettings& settings) {
  add(argv, {"-std=" + settings.language, "--expt-relaxed-constexpr", "--extended-lambda", "-I."});
  if (const auto& tvm = settings.toolchain->tvm_ffi)
    argv.push_back("-I" + (*tvm / "include").string());
  // The plain entry gets its visibility and the check of its signature from the task's header,
  // included or not.
  if (request.candidate.binding == Binding::Plain && !request.header_folder.empty())
    add(argv, {"-include", kTaskHeader});
}

// Exactly this architecture: -arch=sm_90a would add a second, generic image.
std::string gencode(const BuildRequest& request, std::string_view code) {
  return "arch=" + arch::compute_of(request.arch) + ",code=" + std::string(code);
}

Argv ptx_command(const BuildRequest& request, const BuildSettings& settings) {
  Argv argv{settings.toolchain->nvcc.string(), "-ptx", "-lineinfo"};
  add(argv, {"-gencode", gencode(request, arch::compute_of(request.arch))});
  add_common(argv, request, settings);
  add(argv, {kSourceFile, "-o", kPtxFile});
  return argv;
}

Argv cubin_command(const BuildRequest& request, const BuildSettings& settings) {
  return {settings.toolchain->ptxas.string(),
          "-v",
          "-lineinfo",
          "-arch=" + request.arch,
          kPtxFile,
          "-o",
          kCubinFile};
}

// The host library's own device image is never used, the recorder only notes its kernels' names: so
// it carries PTX, and the assembler runs once, on the PTX above.
Argv host_command(const BuildRequest& request, const BuildSettings& settings) {
  const Path& runtime = settings.toolchain->runtime_library;
  Argv argv{settings.toolchain->nvcc.string(), "-shared", "-cudart", "none", "-Xcompiler",
            "-fPIC,-fvisibility=hidden"};
  add(argv, {"-gencode", gencode(request, arch::compute_of(request.arch))});
  add_common(argv, request, settings);
  // The runtime by its file's name: wheels have libcudart.so.13 without libcudart.so. Driver
  // functions stay undefined, the recorder brings them.
  add(argv, {kSourceFile, "-o", kHostFile, "-L" + runtime.parent_path().string(),
             "-l:" + runtime.filename().string()});
  if (request.candidate.binding == Binding::TvmFfi && settings.toolchain->tvm_ffi) {
    add(argv, {"-L" + (*settings.toolchain->tvm_ffi / "lib").string(), "-ltvm_ffi"});
  }
  return argv;
}

struct Deadline {
  double end_s = 0;
  double left_s() const { return std::max(0.1, end_s - now_s()); }
};

// Set by the device side when it failed: nobody waits for the host side then.
using StopFlag = std::atomic<bool>;
constexpr double kLookEvery_s = 0.02;

Result<os::Finished> run_tool(const Argv& argv, const Path& folder, const BuildSettings& settings,
                              Deadline deadline, const StopFlag& stop) {
  const BuildLimits& limits = settings.limits;
  os::Command command;
  command.argv = argv;
  command.folder = settings.sandbox->inside(os::Bind(folder, kInside));
  command.limits.wall_s = deadline.left_s();
  command.limits.memory_bytes = limits.memory_bytes;
  command.limits.processes = limits.processes;
  command.limits.output_bytes = limits.output_bytes;
  command.limits.file_size_bytes = limits.file_bytes;
  command.limits.folder_bytes = limits.folder_bytes;
  os::SandboxRoom room;
  room.read_only.emplace_back(settings.toolchain->home);
  if (settings.toolchain->tvm_ffi) room.read_only.emplace_back(*settings.toolchain->tvm_ffi);
  room.writable.emplace_back(folder, kInside);
  room.tmp_bytes = limits.tmp_bytes;
  PTXB_TRY(os::Subprocess child, settings.sandbox->start(command, room));
  for (;;) {
    PTXB_TRY(std::optional<os::Finished> finished, child.poll(kLookEvery_s));
    if (finished) return *std::move(finished);
    if (stop) child.kill();
  }
}

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// By the wait status alone.
std::optional<ToolFailure> failure_of(const os::Finished& finished, const std::string& what,
                                      const BuildLimits& limits) {
  using Kind = os::Exit::Kind;
  ToolFailure failure;
  failure.repeatable = ToolFailure::Repeatable::No;
  switch (finished.exit.kind) {
    case Kind::Code:
      if (finished.exit.number == 0) return std::nullopt;
      failure.repeatable = ToolFailure::Repeatable::Yes;
      failure.cause = what + " failed (" + os::summary(finished.exit) + ")";
      failure.hint = "mend the first error";
      break;
    case Kind::Signal:
      failure.cause = what + ": the compiler crashed (" + os::summary(finished.exit) + ")";
      failure.hint = "simplify the construct that the compiler was working on";
      break;
    case Kind::TimedOut:
      failure.verdict = Verdict::CompileTimeout;
      failure.cause = what + " was not done when the " +
                      std::to_string(static_cast<int>(limits.wall_s)) + " s of the build were over";
      failure.hint = "fewer template instantiations and smaller unrolled loops";
      break;
    case Kind::OutputLimit:
      failure.cause = what + " wrote more than " + mebibytes(limits.output_bytes) + " of messages";
      failure.hint = "only the first and last messages are kept; mend those";
      break;
    case Kind::MemoryLimit:
      failure.cause = what + " needed more than " + mebibytes(limits.memory_bytes) + " of memory";
      failure.hint = "smaller constant tables and fewer template instantiations";
      break;
    case Kind::ProcessLimit:
      failure.cause =
          what + " started more than " + std::to_string(limits.processes) + " processes";
      failure.hint = "the source makes the compiler do what compilers do not do";
      break;
    case Kind::FolderLimit:
      failure.cause = what + " wrote more than " + mebibytes(limits.folder_bytes) + " of files";
      failure.hint = "smaller tables and fewer instantiations";
      break;
  }
  return failure;
}

struct Side {
  Result<void> ended;
  std::optional<ToolFailure> failure;
};

Side compile_device(const BuildRequest& request, const Path& folder, const BuildSettings& settings,
                    Deadline deadline, ToolLogs& logs) {
  Side side;
  const StopFlag never = false;
  if (request.candidate.binding != Binding::Ptx) {
    auto ptx = run_tool(ptx_command(request, settings), folder, settings, deadline, never);
    if (!ptx) return {ptx.error(), {}};
    logs.device = ptx->out.text() + ptx->err.text();
    side.failure = failure_of(*ptx, "compiling the device code", settings.limits);
    if (side.failure) return side;
  }
  // From that same PTX: what is emulated is what the cubin was made of.
  auto cubin = run_tool(cubin_command(request, settings), folder, settings, deadline, never);
  if (!cubin) return {cubin.error(), {}};
  logs.ptxas = cubin->out.text() + cubin->err.text();
  side.failure = failure_of(*cubin, "assembling the PTX", settings.limits);
  return side;
}

Side compile_host(const BuildRequest& request, const Path& folder, const BuildSettings& settings,
                  Deadline deadline, ToolLogs& logs, const StopFlag& stop) {
  auto host = run_tool(host_command(request, settings), folder, settings, deadline, stop);
  if (!host) return {host.error(), {}};
  logs.host = host->out.text() + host->err.text();
  return {{}, failure_of(*host, "compiling the host code", settings.limits)};
}

}  // namespace

std::vector<std::vector<std::string>> command_lines(const BuildRequest& request,
                                                    const BuildSettings& settings) {
  if (request.candidate.binding == Binding::Ptx) return {cubin_command(request, settings)};
  return {ptx_command(request, settings), cubin_command(request, settings),
          host_command(request, settings)};
}

Result<Compiled> run_compilers(const BuildRequest& request, const Path& folder,
                               const BuildSettings& settings) {
  Deadline deadline{now_s() + settings.limits.wall_s};
  Compiled compiled;
  Side device, host;
  size_t sides = request.candidate.binding == Binding::Ptx ? 1 : 2;
  StopFlag stop = false;
  parallel_for(sides, static_cast<int>(sides), [&](size_t side, int) {
    if (side == 0) {
      device = compile_device(request, folder, settings, deadline, compiled.logs);
      stop = device.failure || !device.ended;
    } else {
      host = compile_host(request, folder, settings, deadline, compiled.logs, stop);
    }
  });
  PTXB_CHECK_OK(std::move(device.ended));
  PTXB_CHECK_OK(std::move(host.ended));
  compiled.failure = device.failure ? device.failure : host.failure;
  return compiled;
}

}  // namespace ptxb::build
