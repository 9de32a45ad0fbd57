// SPDX-License-Identifier: Apache-2.0
#include "build/inspect.h"

#include <algorithm>

#include "arch/chip.h"
#include "base/text.h"
#include "build/elf.h"
#include "ptx/parse.h"

namespace ptxb::build {

namespace {

uint64_t static_shared_bytes(const std::vector<ptx::Variable>& variables) {
  uint64_t total = 0;
  for (const ptx::Variable& v : variables) {
    if (v.space == ptx::Space::Shared && !v.is_extern_array && !v.is_extern) total += v.size_bytes;
  }
  return total;
}

KernelInfo kernel_info(const ptx::Function& entry) {
  KernelInfo info;
  info.name = entry.name;
  for (const ptx::ParamPlace& place : ptx::param_layout(entry)) info.params.push_back({place.offset_bytes, place.size_bytes});
  const Dim3& threads = entry.required_threads.x ? entry.required_threads : entry.max_threads;
  if (threads.x) info.max_threads = static_cast<uint32_t>(std::min<uint64_t>(1024, threads.volume()));
  info.required_cluster = entry.required_cluster;
  return info;
}

bool starts_with_any(std::string_view name, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* prefix) { return name.starts_with(prefix); });
}

bool does_the_work(std::string_view name) {
  return starts_with_any(name, {"cublas", "cudnn", "cusparse", "cusolver", "cufft", "nvrtc", "nvJitLink", "cutensor", "libcublas",
                                "libcudnn", "libcusparse", "libcusolver", "libcufft", "libnvrtc", "libnvJitLink", "libcutensor",
                                "libtorch", "libc10"});
}

// Names that would stand in for the runtime, the harness or the system when the library is loaded.
bool stands_in(std::string_view name) {
  constexpr const char* kSystem[] = {"dlopen", "dlsym", "dlclose", "malloc", "calloc", "realloc", "free", "exit", "_exit", "abort",
                                     "write", "read", "open", "openat", "mmap", "memcpy", "memset", "gettimeofday", "fork", "clone"};
  if (starts_with_any(name, {"cuda", "__cuda", "nvml", "cupti", "ptxbench_", "clock_", "pthread_"})) {
    return !name.starts_with("ptxbench_call");  // the generated header's own trampoline
  }
  // The driver's names: "cu" and a capital letter.
  if (name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z') return true;
  return std::find(std::begin(kSystem), std::end(kSystem), name) != std::end(kSystem);
}

}  // namespace

std::optional<BuildFailure> inspect_ptx(Artifact& artifact) {
  auto module = ptx::parse(artifact.ptx, "candidate.ptx");
  if (!module) {
    return BuildFailure{Verdict::EmulatorUnsupported, "the PTX cannot be read: " + module.error().message,
                        "an instruction or directive that ptxbench does not know; nothing is said about the candidate", {}};
  }
  for (const ptx::Function& function : module->functions) {
    if (function.is_entry && !function.is_declaration) artifact.kernels.push_back(kernel_info(function));
  }
  for (const ptx::Variable& v : module->variables) {
    if (v.space != ptx::Space::Global && v.space != ptx::Space::Const) continue;
    artifact.symbols.push_back({v.name, v.size_bytes, v.space == ptx::Space::Const});
  }
  return std::nullopt;
}

std::optional<BuildFailure> inspect_library(std::string_view bytes, Binding binding) {
  auto symbols = read_dynamic_symbols(bytes, "candidate.so");
  if (!symbols) return BuildFailure{Verdict::CompileError, symbols.error().message, "build a plain shared library", {}};
  std::vector<std::string> wanted = symbols->needed;
  for (const DynamicSymbols::Symbol& symbol : symbols->undefined) wanted.push_back(symbol.name);
  for (const std::string& name : wanted) {
    if (!does_the_work(name)) continue;
    return BuildFailure{Verdict::ForbiddenLibrary, "the host code needs " + printable(name, 80) + ", of a library that would do the work",
                        "write the kernel itself; only the CUDA runtime and driver interfaces may be called", {}};
  }
  for (const DynamicSymbols::Symbol& symbol : symbols->exported) {
    if (!stands_in(symbol.name)) continue;
    return BuildFailure{Verdict::ForbiddenConstruct,
                        "the host library exports " + printable(symbol.name, 80) + ", a name of the system or the harness",
                        "give the function another name or make it static", {}};
  }
  const char* entry = binding == Binding::TvmFfi ? "__tvm_ffi_run" : "run";
  if (!symbols->defines(entry)) {
    return BuildFailure{Verdict::NoEntry, std::string("the host library has no entry ") + entry,
                        "define extern \"C\" void run(...) exactly as ptxbench_task.h declares it, or export run through tvm-ffi", {}};
  }
  return std::nullopt;
}

std::string kernel_over_shared_limit(std::string_view ptx, std::string_view arch) {
  auto module = ptx::parse(ptx, "candidate.ptx");
  const arch::Chip* chip = arch::default_chip(arch);
  if (!module || !chip) return "";
  for (const ptx::Function& function : module->functions) {
    if (!function.is_entry) continue;
    if (static_shared_bytes(module->variables) + static_shared_bytes(function.locals) > chip->shared_per_block_bytes) return function.name;
  }
  return "";
}

}  // namespace ptxb::build
