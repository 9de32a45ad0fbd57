// SPDX-License-Identifier: Apache-2.0
#include "app/session.h"

#include <random>

#include "app/commands.h"
#include "app/locate.h"
#include "arch/families.h"
#include "backend/emu_backend.h"
#include "base/parallel.h"
#include "base/text.h"
#include "build/binding.h"

namespace ptxb::app {

int thread_count(const Options& options) { return options.jobs > 0 ? options.jobs : available_cores(); }

build::ToolchainQuery toolchain_query() {
  build::ToolchainQuery query;
  if (std::string forced = environment("PTXBENCH_CUDA_HOME"); !forced.empty()) query.forced_home = forced;
  if (std::string home = environment("CUDA_HOME"); !home.empty()) query.cuda_home = home;
  if (std::string path = environment("PATH"); !path.empty()) query.path = path;
  if (!environment("PTXBENCH_HIDE_SYSTEM_CUDA").empty()) query.system = build::SystemToolkit::Ignore;
  if (auto data = data_folder()) query.venvs.push_back(*data / ".venv");
  return query;
}

Result<std::unique_ptr<Session>> open_session(const Options& options, const Terminal& terminal, Need need) {
  auto session = std::make_unique<Session>();
  PTXB_TRY(session->dataset, open_dataset(options));
  session->chip = options.chip.empty() ? arch::default_chip(options.arch) : arch::find_chip(options.chip);
  if (!session->chip || options.arch != session->chip->arch) {
    return bad_input("--chip " + options.chip + " is no " + options.arch + " chip");
  }
  Harness& harness = session->harness;
  if (need == Need::Build) {
    PTXB_TRY(session->toolchain, build::find_toolchain(toolchain_query()));
    PTXB_TRY(session->sandbox, os::Sandbox::probe(options.allow_weak_sandbox ? os::SandboxPolicy::AllowMissing
                                                                             : os::SandboxPolicy::RequireAll));
    harness.sandbox = &*session->sandbox;
    harness.build.toolchain = &*session->toolchain;
    harness.build.sandbox = &*session->sandbox;
    harness.build.cache_folder = cache_folder();
    harness.build.cache = options.no_cache ? build::CacheUse::WriteOnly : build::CacheUse::ReadWrite;
    harness.record.sandbox = &*session->sandbox;
    harness.record.chip = session->chip->name;
    harness.record.program = (program_folder() / "ptxbench-record").string();
    if (session->toolchain->tvm_ffi) harness.record.tvm_library = (*session->toolchain->tvm_ffi / "lib" / "libtvm_ffi.so").string();
  }
  session->emulator = make_emu_backend({.threads = thread_count(options)});
  harness.emulator = session->emulator.get();
  harness.backend = harness.emulator;
  if (options.backend != "emu") {
    GpuBackend gpu = open_gpu(options);
    if (gpu.backend) {
      session->gpu = std::move(gpu.backend);
      harness.backend = session->gpu.get();
    } else if (options.backend == "cuda") {
      return harness_error("--backend cuda: " + gpu.absent);
    }
  }
  harness.progress = [terminal](std::string_view text) { terminal.progress(text); };
  return session;
}

Result<Candidate> read_candidate(const std::string& source) {
  namespace fs = std::filesystem;
  Path path = source;
  std::error_code fault;
  if (fs::is_directory(path, fault)) {
    std::vector<Path> found;
    for (const auto& entry : fs::directory_iterator(path, fault)) {
      if (entry.path().extension() == ".ptx") found.push_back(entry.path());
    }
    if (found.size() != 1 || !fs::exists(path / "launch.toml", fault)) {
      return bad_input(source + ": is a folder without exactly one .ptx file and its launch.toml; name a .cu or .ptx file");
    }
    path = found.front();
  }
  Candidate candidate;
  candidate.file_name = path.filename().string();
  // One byte more than the limit, so that check_source can say what is wrong in its own words.
  PTXB_TRY(candidate.source, read_file(path, build::BuildLimits().source_bytes + 1));
  PTXB_CHECK_OK(build::check_source(candidate.source, path.string(), build::BuildLimits().source_bytes));
  auto binding = build::detect_binding(candidate.file_name, candidate.source);
  // Two certain entries: any binding will do, the build says ambiguous_code.
  candidate.binding = binding.value_or(Binding::Plain);
  if (candidate.binding == Binding::Ptx) {
    auto launch = read_file(path.parent_path() / "launch.toml", 1u << 20);
    if (!launch) return bad_input(path.string() + ": a PTX candidate needs a launch.toml beside it (docs/formats.md): " + launch.error().message);
    candidate.launch_toml = *std::move(launch);
  }
  return candidate;
}

Result<EvaluationRequest> make_request(const Options& options, const Session& session) {
  EvaluationRequest request;
  request.dataset = &session.dataset;
  request.arch = options.arch;
  request.profile = options.profile == "quick" ? Profile::Quick : Profile::Strict;
  bool emulated = session.harness.backend == session.harness.emulator;
  PTXB_TRY(request.task, bind_task(session.dataset, options.task, options.workload,
                                   emulated ? ShapeChoice::Emulator : ShapeChoice::Headline));
  if (options.seed) {
    request.seed = *options.seed;
  } else {
    // Never visible to the candidate: drawn after nothing of it ran, and only recorded in the result.
    std::random_device device;
    request.seed = (uint64_t{device()} << 32 | device()) >> 1;
  }
  if (options.target == "none") {
    request.required_families.emplace();
  } else if (options.target != "task") {
    std::vector<std::string>& families = request.required_families.emplace();
    for (std::string_view each : split(options.target, ',')) {
      std::string family(trim(each));
      std::vector<std::string> known;
      for (const arch::Family& f : arch::families()) known.push_back(f.name);
      if (!arch::find_family(family)) {
        return bad_input("--target " + printable(family, 60) + ": no such instruction family; known: " + join(known, ", "));
      }
      families.push_back(std::move(family));
    }
  }
  return request;
}

}  // namespace ptxb::app
