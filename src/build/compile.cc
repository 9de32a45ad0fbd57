// SPDX-License-Identifier: Apache-2.0
#include "build/compile.h"

#include <optional>
#include <thread>

#include "arch/chip.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "build/binding.h"
#include "build/cache.h"
#include "build/diagnostics.h"
#include "build/inspect.h"
#include "build/stored.h"

namespace ptxb::build {

namespace {

namespace fs = std::filesystem;

constexpr const char* kInside = "/build";  // where the compilers see the work folder
constexpr int kRevision = 1;               // raise it when flags or files of a build change

// Optimisation and line information as in the published benchmark; hidden visibility: only the entry is exported.
std::vector<std::string> common_flags(const BuildSettings& settings) {
  std::vector<std::string> flags = {"-O3", "-std=" + settings.language, "-I."};
  if (const auto& tvm = settings.toolchain->tvm_ffi) {
    flags.push_back("-I" + (*tvm / "include").string());
    flags.push_back("-I" + (*tvm / "3rdparty/dlpack/include").string());
  }
  return flags;
}

std::string compute_gencode(const std::string& arch) {
  std::string compute = arch::compute_of(arch);
  return "-gencode=arch=" + compute + ",code=" + compute;
}

std::vector<std::string> ptx_command(const BuildRequest& request, const BuildSettings& settings) {
  std::vector<std::string> argv = {settings.toolchain->nvcc.string(), "-ptx", "-lineinfo", compute_gencode(request.arch)};
  for (std::string& flag : common_flags(settings)) argv.push_back(std::move(flag));
  argv.insert(argv.end(), {"candidate.cu", "-o", "candidate.ptx"});
  return argv;
}

// From that same PTX: what is emulated is what the cubin was made of.
std::vector<std::string> cubin_command(const BuildRequest& request, const BuildSettings& settings) {
  return {settings.toolchain->ptxas.string(), "-v", "-O3", "-lineinfo", "-arch=" + request.arch, "candidate.ptx", "-o", "candidate.cubin"};
}

// Host code and stubs. Its own device image is never used, so it carries PTX only and ptxas runs once, on the PTX above.
std::vector<std::string> host_command(const BuildRequest& request, const BuildSettings& settings) {
  std::vector<std::string> argv = {settings.toolchain->nvcc.string(), "-shared", "-cudart", "none", "-Xcompiler",
                                   "-fPIC,-fvisibility=hidden,-O1", compute_gencode(request.arch)};
  for (std::string& flag : common_flags(settings)) argv.push_back(std::move(flag));
  // By file name: the wheels have libcudart.so.13 without the plain name. The driver's names stay undefined; the recorder has them.
  argv.insert(argv.end(), {"candidate.cu", "-o", "candidate.so", "-L" + settings.toolchain->runtime_library.parent_path().string(),
                           "-l:" + settings.toolchain->runtime_library.filename().string()});
  if (request.candidate.binding == Binding::TvmFfi && settings.toolchain->tvm_ffi) {
    argv.push_back("-L" + (*settings.toolchain->tvm_ffi / "lib").string());
    argv.push_back("-ltvm_ffi");
  }
  return argv;
}

Result<os::Finished> compiler(const std::vector<std::string>& argv, const Path& folder, const BuildSettings& settings) {
  os::Command command;
  command.argv = argv;
  command.folder = settings.sandbox->inside(os::Bind(folder, kInside));
  command.watched_folders = {folder};
  command.limits.wall_s = settings.limits.wall_s;
  command.limits.memory_bytes = settings.limits.memory_bytes;
  command.limits.processes = settings.limits.processes;
  command.limits.output_bytes = settings.limits.output_bytes;
  command.limits.file_size_bytes = settings.limits.file_bytes;
  command.limits.folder_bytes = settings.limits.folder_bytes;
  os::SandboxRoom room;
  room.read_only.emplace_back(settings.toolchain->home);
  if (settings.toolchain->tvm_ffi) room.read_only.emplace_back(*settings.toolchain->tvm_ffi);
  room.writable.emplace_back(folder, kInside);
  room.environment = {"CUDA_CACHE_DISABLE=1"};
  room.tmp_bytes = settings.limits.tmp_bytes;
  return settings.sandbox->run(command, room);
}

// One compiler's end as a failure; nullopt when it succeeded.
std::optional<BuildFailure> failure_of(const os::Finished& finished, const std::string& what, const BuildLimits& limits) {
  if (finished.exit.ok()) return std::nullopt;
  BuildFailure failure;
  switch (finished.exit.kind) {
    case os::Exit::Kind::TimedOut:
      failure.verdict = Verdict::CompileTimeout;
      failure.cause = what + " did not end within " + std::to_string(static_cast<int>(limits.wall_s)) + " s";
      failure.hint = "fewer template instantiations and smaller unrolled loops";
      break;
    case os::Exit::Kind::OutputLimit:
      failure.cause = what + " wrote more than " + std::to_string(limits.output_bytes >> 20) + " MiB of messages";
      failure.hint = "the first errors are shown; mend those first";
      break;
    case os::Exit::Kind::MemoryLimit:
      failure.cause = what + " used more than " + std::to_string(limits.memory_bytes >> 30) + " GiB of memory";
      failure.hint = "smaller constant tables and fewer template instantiations";
      break;
    default:
      failure.cause = what + " failed (" + os::summary(finished.exit) + ")";
      failure.hint = "mend the first error";
      break;
  }
  return failure;
}

struct Compiled {
  std::optional<BuildFailure> failure;
  std::string device_log, host_log;
};

Result<void> compile_device(const BuildRequest& request, const Path& folder, const BuildSettings& settings, Compiled& out) {
  if (request.candidate.binding != Binding::Ptx) {
    PTXB_TRY(os::Finished ptx, compiler(ptx_command(request, settings), folder, settings));
    out.device_log = ptx.out.text() + ptx.err.text();
    out.failure = failure_of(ptx, "compiling the device code", settings.limits);
    if (out.failure) return {};
  }
  PTXB_TRY(os::Finished cubin, compiler(cubin_command(request, settings), folder, settings));
  out.device_log += "\n" + cubin.out.text() + cubin.err.text();
  out.failure = failure_of(cubin, "ptxas", settings.limits);
  if (!out.failure || out.failure->verdict != Verdict::CompileError) return {};
  // ptxas words are the candidate's to shape; the sizes declared in the PTX are not words.
  auto ptx = read_file(folder / "candidate.ptx", settings.limits.file_bytes);
  std::string kernel = ptx ? kernel_over_shared_limit(*ptx, request.arch) : "";
  if (!kernel.empty()) {
    out.failure->verdict = Verdict::ResourceLimit;
    out.failure->cause = "kernel " + printable(kernel, 100) + " declares more static shared memory than a block may have (48 KiB)";
    out.failure->hint = "use dynamic shared memory and cudaFuncSetAttribute for more than 48 KiB";
  }
  return {};
}

// PTX, then cubin, beside the host library; `folder` then holds candidate.{ptx,cubin,so}.
Result<Compiled> run_compilers(const BuildRequest& request, const Path& folder, const BuildSettings& settings) {
  Compiled out;
  bool has_host = request.candidate.binding != Binding::Ptx;
  std::optional<Result<os::Finished>> host;
  std::thread beside;
  if (has_host) beside = std::thread([&] { host.emplace(compiler(host_command(request, settings), folder, settings)); });
  Result<void> device = compile_device(request, folder, settings, out);
  if (beside.joinable()) beside.join();
  PTXB_CHECK_OK(std::move(device));
  if (has_host) {
    if (!*host) return std::move(*host).error();
    const os::Finished& finished = **host;
    out.host_log = finished.out.text() + finished.err.text();
    auto failure = failure_of(finished, "compiling the host code", settings.limits);
    if (failure && !out.failure) out.failure = std::move(failure);
  }
  return out;
}

// The first error belongs into the one-line cause.
void add_first_error(BuildFailure& failure) {
  if (failure.verdict != Verdict::CompileError) return;
  for (const Diagnostic& d : failure.diagnostics) {
    if (d.severity != Diagnostic::Severity::Error) continue;
    failure.cause += ": " + (d.line ? "line " + std::to_string(d.line) + ": " : std::string()) + printable(d.message, 300);
    return;
  }
}

void fill_use(const std::string& log, std::vector<KernelInfo>& kernels) {
  for (const KernelUse& use : parse_kernel_use(log)) {
    for (KernelInfo& kernel : kernels) {
      if (kernel.name != use.name) continue;
      kernel.registers = use.registers;
      kernel.spill_store_bytes = use.spill_store_bytes;
      kernel.spill_load_bytes = use.spill_load_bytes;
      kernel.stack_bytes = use.stack_bytes;
      kernel.static_shared_bytes = use.static_shared_bytes;
      kernel.const_bytes = use.const_bytes;
    }
  }
}

// What lies in the work folder as an artifact or a failure; `library` receives the bytes of candidate.so.
Result<Built> read_outputs(const BuildRequest& request, const Path& folder, const BuildSettings& settings, Compiled& compiled,
                           std::string& library) {
  bool has_host = request.candidate.binding != Binding::Ptx;
  // A compiler that ended well but left no file is the candidate's doing as far as anyone can tell (#error tricks, killed by a limit).
  auto bytes = [&](const char* file) { return read_file(folder / file, settings.limits.file_bytes); };
  Artifact artifact;
  artifact.source_sha256 = sha256_hex(request.candidate.source);
  artifact.arch = request.arch;
  artifact.binding = request.candidate.binding;
  artifact.tools = settings.toolchain->tools;
  artifact.diagnostics = parse_diagnostics(compiled.device_log + "\n" + compiled.host_log);
  auto fail = [&](BuildFailure failure) -> Built {
    failure.diagnostics = std::move(artifact.diagnostics);
    add_first_error(failure);
    return failure;
  };
  if (compiled.failure) return fail(std::move(*compiled.failure));
  auto ptx = bytes("candidate.ptx"), cubin = bytes("candidate.cubin");
  auto host = has_host ? bytes("candidate.so") : Result<std::string>(std::string());
  if (!ptx || !cubin || !host) return fail({Verdict::CompileError, "the compilers left no output", "build the file with nvcc by hand", {}});
  artifact.ptx = *std::move(ptx);
  artifact.cubin = *std::move(cubin);
  artifact.cubin_sha256 = sha256_hex(artifact.cubin);
  library = *std::move(host);
  if (has_host) {
    if (auto failure = inspect_library(library, artifact.binding)) return fail(std::move(*failure));
  }
  if (auto failure = inspect_ptx(artifact)) return fail(std::move(*failure));
  fill_use(compiled.device_log, artifact.kernels);
  return Built(std::move(artifact));
}

struct RemovedFolder {
  Path path;
  ~RemovedFolder() {
    std::error_code fault;
    fs::remove_all(path, fault);
  }
};

Result<Built> build_now(const BuildRequest& request, const BuildSettings& settings, const Cache& cache, const std::string& key) {
  PTXB_TRY(Path work, cache.make_work_folder());
  RemovedFolder removed{work};
  Path room = work / "room", finished = work / "finished";
  bool plain_ptx = request.candidate.binding == Binding::Ptx;
  PTXB_CHECK_OK(write_file(room / (plain_ptx ? "candidate.ptx" : "candidate.cu"), request.candidate.source));
  if (!request.header_folder.empty()) {
    PTXB_TRY(std::string header, read_file(request.header_folder / "ptxbench_task.h", 1u << 20));
    PTXB_CHECK_OK(write_file(room / "ptxbench_task.h", header));
  }
  PTXB_TRY(Compiled compiled, run_compilers(request, room, settings));
  std::string library;
  PTXB_TRY(Built built, read_outputs(request, room, settings, compiled, library));
  auto* failure = std::get_if<BuildFailure>(&built);
  // A timeout depends on the machine's load, an unknown instruction on our own version: told, not remembered.
  if (failure && (failure->verdict == Verdict::CompileTimeout || failure->verdict == Verdict::EmulatorUnsupported)) return built;
  PTXB_CHECK_OK(store(built, library, finished));
  PTXB_CHECK_OK(cache.publish(finished, key));
  cache.shrink(settings.cache_bytes);
  auto folder = cache.find(key);
  auto stored = folder ? load_stored(*folder) : std::nullopt;
  if (!stored) return io_error(settings.cache_folder.string() + ": the build that was just written cannot be read back");
  return *std::move(stored);
}

}  // namespace

Result<std::string> build_key(const BuildRequest& request, const BuildSettings& settings) {
  std::string all = "ptxbench build " + std::to_string(kRevision) + "\n";
  auto add = [&all](std::string_view part) { all += std::to_string(part.size()) + ":" + std::string(part) + "\n"; };
  add(request.candidate.source);
  add(request.arch);
  add(name(request.candidate.binding));
  add(settings.toolchain->identity);
  if (!request.header_folder.empty()) {
    PTXB_TRY(std::string header, read_file(request.header_folder / "ptxbench_task.h", 1u << 20));
    add(header);
  }
  for (const auto& argv : {ptx_command(request, settings), cubin_command(request, settings), host_command(request, settings)}) {
    add(join(argv, " "));
  }
  return sha256_hex(all);
}

Result<BuildOutcome> build(const BuildRequest& request, const BuildSettings& settings) {
  double begin = now_s();
  PTXB_CHECK_OK(check_source(request.candidate.source, request.candidate.file_name, settings.limits.source_bytes));
  if (!arch::default_chip(request.arch)) return bad_input("unknown architecture " + printable(request.arch, 40) + "; known: sm_90a, sm_100a");
  if (!detect_binding(request.candidate.file_name, request.candidate.source)) {
    EntrySearch found = find_entries(request.candidate.source);
    return BuildOutcome{BuildFailure{Verdict::AmbiguousCode,
                                     "two entries: a plain run at line " + std::to_string(found.plain.line) +
                                         " and a tvm-ffi export at line " + std::to_string(found.tvm_ffi.line),
                                     "keep one of them", {}},
                        Origin::Built, now_s() - begin};
  }
  if (request.candidate.binding == Binding::TvmFfi && !settings.toolchain->tvm_ffi) {
    return harness_error("this candidate uses the tvm-ffi binding, and apache-tvm-ffi is not installed: run make setup");
  }
  PTXB_TRY(std::string key, build_key(request, settings));
  PTXB_TRY(Cache cache, Cache::open(settings.cache_folder));
  PTXB_TRY(os::Descriptor lock, cache.lock(key));
  if (settings.cache == CacheUse::ReadWrite) {
    auto folder = cache.find(key);
    if (auto stored = folder ? load_stored(*folder) : std::nullopt) {
      return BuildOutcome{*std::move(stored), Origin::Cached, now_s() - begin};
    }
  }
  PTXB_TRY(Built built, build_now(request, settings, cache, key));
  return BuildOutcome{std::move(built), Origin::Built, now_s() - begin};
}

}  // namespace ptxb::build
