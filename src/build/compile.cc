// SPDX-License-Identifier: Apache-2.0
#include "build/compile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "build/binding.h"
#include "build/cache.h"
#include "build/elf.h"
#include "build/inspect.h"
#include "build/stages.h"
#include "build/stored.h"

namespace ptxb::build {

namespace {

namespace fs = std::filesystem;

constexpr int kRevision =
    2;  // raised when a build's meaning changes without its command lines changing
constexpr uint64_t kHeaderBytes = 1u << 20;
// How long a proof that the tools work is believed when a candidate fails to compile.
constexpr auto kProofAge = std::chrono::minutes(10);
constexpr uint64_t kDiskFloorBytes = 64u << 20;

struct RemovedFolder {
  Path path;
  ~RemovedFolder() {
    std::error_code fault;
    fs::remove_all(path, fault);
  }
};

// Written by tools that read untrusted text: only a regular file counts, no link to somewhere else.
Result<std::string> read_output(const Path& file, uint64_t limit_bytes) {
  std::error_code fault;
  if (!fs::is_regular_file(fs::symlink_status(file, fault)))
    return not_found(file.filename().string() + " is missing");
  return read_file(file, limit_bytes);
}

Result<std::string> header_text(const BuildRequest& request) {
  if (request.header_folder.empty()) return std::string();
  return read_file(request.header_folder / kTaskHeader, kHeaderBytes);
}

Result<std::vector<std::string>> tvm_exports(const Toolchain& toolchain, Binding binding) {
  std::vector<std::string> names;
  if (binding != Binding::TvmFfi || !toolchain.tvm_ffi) return names;
  Path library = *toolchain.tvm_ffi / "lib" / "libtvm_ffi.so";
  PTXB_TRY(std::string bytes, read_file(library));
  auto symbols = read_dynamic_symbols(bytes, library.string());
  if (!symbols) return harness_error(symbols.error().message);
  for (DynamicSymbols::Symbol& symbol : symbols->exported) names.push_back(std::move(symbol.name));
  return names;
}

// The first error belongs into the one-line cause.
void add_first_error(BuildFailure& failure) {
  for (const Diagnostic& one : failure.diagnostics) {
    if (one.severity != Diagnostic::Severity::Error) continue;
    std::string place = one.line ? "line " + std::to_string(one.line) + ": " : "";
    failure.cause += ": " + place + printable(one.message, 300);
    return;
  }
}

// A tool's failure in the candidate's words. Only sizes declared in the PTX turn an assembler's
// refusal into resource_limit.
BuildFailure tool_failure(const ToolFailure& tool, const ToolLogs& logs, const std::string& ptx,
                          const BuildRequest& request) {
  BuildFailure failure{tool.verdict, tool.cause, tool.hint,
                       parse_diagnostics(logs.device + "\n" + logs.ptxas)};
  bool told = std::any_of(
      failure.diagnostics.begin(), failure.diagnostics.end(),
      [](const Diagnostic& one) { return one.severity == Diagnostic::Severity::Error; });
  // Both sides read the same source: the host side's words are needed only when it alone failed.
  if (!told) failure.diagnostics = parse_diagnostics(logs.all());
  locate_in_source(ptx, failure.diagnostics);
  if (tool.repeatable == ToolFailure::Repeatable::No) return failure;
  if (auto overuse = logs.ptxas.empty() ? std::nullopt : find_shared_overuse(ptx, request.arch)) {
    failure.verdict = Verdict::ResourceLimit;
    failure.cause = "kernel " + printable(overuse->kernel, 100) + " declares " +
                    std::to_string(overuse->used_bytes) +
                    " bytes of static shared memory, more than the " +
                    std::to_string(overuse->limit_bytes) + " of a block";
    failure.hint = "smaller tiles or fewer stages";
    return failure;
  }
  add_first_error(failure);
  return failure;
}

struct MadeBuild {
  Built built;
  std::string host_library;
  bool repeatable = true;
};

// The time of a source file gets into the cubin's line table: always the same, so that the same
// source gives the same bytes.
Result<void> write_source(const Path& file, std::string_view text) {
  PTXB_CHECK_OK(write_file(file, text));
  constexpr std::time_t kSeconds = 1'000'000'000;
  const timespec times[2] = {{kSeconds, 0}, {kSeconds, 0}};
  if (::utimensat(AT_FDCWD, file.c_str(), times, 0) != 0)
    return io_error(file.string() + ": cannot set its time");
  return {};
}

// Runs the tools in `room` and judges what they left there.
Result<MadeBuild> make(const BuildRequest& request, const BuildSettings& settings,
                       const Path& room) {
  bool is_ptx = request.candidate.binding == Binding::Ptx;
  PTXB_CHECK_OK(write_source(room / (is_ptx ? kPtxFile : kSourceFile), request.candidate.source));
  PTXB_TRY(std::string header, header_text(request));
  if (!header.empty()) PTXB_CHECK_OK(write_source(room / kTaskHeader, header));
  PTXB_TRY(Compiled compiled, run_compilers(request, room, settings));
  auto ptx = read_output(room / kPtxFile, settings.limits.file_bytes);
  if (compiled.failure) {
    BuildFailure failure = tool_failure(*compiled.failure, compiled.logs, ptx ? *ptx : "", request);
    return MadeBuild{std::move(failure), "",
                     compiled.failure->repeatable == ToolFailure::Repeatable::Yes};
  }
  auto cubin = read_output(room / kCubinFile, settings.limits.file_bytes);
  auto host = is_ptx ? Result<std::string>(std::string())
                     : read_output(room / kHostFile, settings.limits.file_bytes);
  if (!ptx || !cubin || !host)
    return harness_error("the compilers reported success and left no output");

  Artifact artifact;
  artifact.source_sha256 = sha256_hex(request.candidate.source);
  artifact.arch = request.arch;
  artifact.binding = request.candidate.binding;
  artifact.ptx = *std::move(ptx);
  artifact.cubin = *std::move(cubin);
  artifact.cubin_sha256 = sha256_hex(artifact.cubin);
  artifact.tools = settings.toolchain->tools;
  artifact.diagnostics = parse_diagnostics(compiled.logs.all());
  locate_in_source(artifact.ptx, artifact.diagnostics);
  if (!is_ptx) {
    PTXB_TRY(std::vector<std::string> exports, tvm_exports(*settings.toolchain, artifact.binding));
    if (auto failure = inspect_library(*host, artifact.binding, exports)) {
      failure->diagnostics = std::move(artifact.diagnostics);
      return MadeBuild{std::move(*failure), "", true};
    }
  }
  inspect_ptx(artifact);
  add_kernel_use(parse_kernel_use(compiled.logs.ptxas), artifact);
  return MadeBuild{std::move(artifact), *std::move(host), true};
}

Result<void> check_disk(const Path& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0 ||
      uint64_t{disk.f_bavail} * disk.f_frsize >= kDiskFloorBytes)
    return {};
  return io_error("the disk of the build cache " + folder.string() + " is full");
}

// Before a failure is blamed on the candidate: the same tools must build a file that is right.
// Broken tools are our error.
Result<void> prove_tools(const BuildRequest& request, const BuildSettings& settings,
                         const Path& work) {
  PTXB_CHECK_OK(check_disk(settings.cache_folder));
  Path proof = settings.cache_folder /
               ("proven-" + settings.toolchain->identity.substr(0, 16) + "-" + request.arch);
  std::error_code fault;
  auto proven = fs::last_write_time(proof, fault);
  if (!fault && fs::file_time_type::clock::now() - proven < kProofAge) return {};
  BuildRequest known;
  known.arch = request.arch;
  known.candidate.file_name = kSourceFile;
  known.candidate.source =
      "#include <cuda_runtime.h>\n"
      "__global__ void fill(float* out) { out[threadIdx.x] = 1.0f; }\n"
      "extern \"C\" __attribute__((visibility(\"default\"))) void run(float* out) { fill<<<1, "
      "32>>>(out); }\n";
  PTXB_TRY(MadeBuild made, make(known, settings, work / "known"));
  if (const BuildFailure* failure = std::get_if<BuildFailure>(&made.built)) {
    return harness_error("the compilers do not even build a file that is right: " + failure->cause);
  }
  return write_file(proof, "");
}

Result<Built> build_now(const BuildRequest& request, const BuildSettings& settings,
                        const Cache& cache, const std::string& key) {
  PTXB_TRY(Path work, cache.make_work_folder());
  RemovedFolder removed{work};
  PTXB_TRY(MadeBuild made, make(request, settings, work / "room"));
  if (std::holds_alternative<BuildFailure>(made.built))
    PTXB_CHECK_OK(prove_tools(request, settings, work));
  // A limit that was hit depends on the machine and its load: told, not remembered.
  if (!made.repeatable) return std::move(made.built);
  PTXB_CHECK_OK(store(made.built, made.host_library, work / "finished"));
  PTXB_CHECK_OK(cache.publish(work / "finished", key));
  cache.shrink(settings.cache_bytes);
  auto folder = cache.find(key);
  auto stored = folder ? load_stored(*folder) : std::nullopt;
  if (!stored)
    return io_error("the build cache " + settings.cache_folder.string() +
                    " does not give back what was just written");
  return *std::move(stored);
}

// The tools saw candidate.cu; people know their file's own name.
void name_file(std::vector<Diagnostic>& diagnostics, const std::string& file_name) {
  for (Diagnostic& one : diagnostics) {
    if (one.file == kSourceFile || one.file == kPtxFile) one.file = printable(file_name, 200);
  }
}

BuildOutcome outcome_of(Built built, Origin origin, const BuildRequest& request, double begin_s) {
  std::visit([&](auto& one) { name_file(one.diagnostics, request.candidate.file_name); }, built);
  return {std::move(built), origin, now_s() - begin_s};
}

Result<void> check_request(const BuildRequest& request, const BuildSettings& settings) {
  if (!settings.toolchain || !settings.sandbox)
    return harness_error("a build without a toolchain or a sandbox");
  const Candidate& candidate = request.candidate;
  std::string_view name =
      candidate.file_name.empty() ? std::string_view("the source") : candidate.file_name;
  PTXB_CHECK_OK(check_source(candidate.source, name, settings.limits.source_bytes));
  if (!supports(*settings.toolchain, request.arch)) {
    return bad_input("unknown architecture '" + printable(request.arch, 40) + "' (nvcc " +
                     settings.toolchain->version + " knows " +
                     join(settings.toolchain->archs, ", ") + ", and sm_90a, sm_100a and the like)");
  }
  if (candidate.binding == Binding::TvmFfi && !settings.toolchain->tvm_ffi) {
    return harness_error(
        "this candidate exports run through tvm-ffi, and its headers are not installed: run "
        "scripts/setup.sh");
  }
  return {};
}

std::optional<BuildFailure> ambiguity(const Candidate& candidate) {
  if (candidate.binding == Binding::Ptx || detect_binding(candidate.file_name, candidate.source))
    return std::nullopt;
  EntrySearch found = find_entries(candidate.source);
  return BuildFailure{Verdict::AmbiguousCode,
                      "two entries: a plain run in line " + std::to_string(found.plain.line) +
                          " and a tvm-ffi export in line " + std::to_string(found.tvm_ffi.line),
                      "keep one of them",
                      {}};
}

}  // namespace

Result<std::string> build_key(const BuildRequest& request, const BuildSettings& settings) {
  PTXB_TRY(std::string header, header_text(request));
  std::string all = "ptxbench build " + std::to_string(kRevision) + "\n";
  auto add = [&all](std::string_view part) {
    all += std::to_string(part.size()) + ":";
    all += part;
  };
  for (std::string_view part :
       {std::string_view(request.candidate.source), name(request.candidate.binding),
        std::string_view(request.arch), std::string_view(header),
        std::string_view(settings.toolchain->identity)}) {
    add(part);
  }
  for (const std::vector<std::string>& argv : command_lines(request, settings)) {
    for (const std::string& argument : argv) add(argument);
  }
  return sha256_hex(all);
}

Result<BuildOutcome> build(const BuildRequest& request, const BuildSettings& settings) {
  double begin_s = now_s();
  PTXB_CHECK_OK(check_request(request, settings));
  if (auto two = ambiguity(request.candidate))
    return outcome_of(std::move(*two), Origin::Built, request, begin_s);
  PTXB_TRY(std::string key, build_key(request, settings));
  PTXB_TRY(Cache cache, Cache::open(settings.cache_folder));
  PTXB_TRY(os::Descriptor lock, cache.lock(key));
  if (settings.cache == CacheUse::ReadWrite) {
    auto folder = cache.find(key);
    if (auto stored = folder ? load_stored(*folder) : std::nullopt) {
      return outcome_of(*std::move(stored), Origin::Cached, request, begin_s);
    }
  }
  PTXB_TRY(Built built, build_now(request, settings, cache, key));
  return outcome_of(std::move(built), Origin::Built, request, begin_s);
}

}  // namespace ptxb::build
