// SPDX-License-Identifier: Apache-2.0
#include "build/inspect.h"

#include <algorithm>

#include "arch/chip.h"
#include "base/text.h"
#include "build/declarations.h"
#include "build/elf.h"
#include "build/stages.h"
#include "model/work_library.h"
#include "ptx/parse.h"

namespace ptxb::build {

namespace {

uint64_t static_shared_bytes(const std::vector<ptx::Variable>& variables) {
  uint64_t total = 0;
  for (const ptx::Variable& variable : variables) {
    bool here =
        variable.space == ptx::Space::Shared && !variable.is_extern_array && !variable.is_extern;
    if (here) total += variable.size_bytes;
  }
  return total;
}

KernelInfo kernel_info(const ptx::Function& entry) {
  KernelInfo info;
  info.name = entry.name;
  for (const ptx::ParamPlace& place : ptx::param_layout(entry))
    info.params.push_back({place.offset_bytes, place.size_bytes});
  const Dim3& threads = entry.required_threads.x ? entry.required_threads : entry.max_threads;
  if (threads.x)
    info.max_threads = static_cast<uint32_t>(std::min<uint64_t>(1024, threads.volume()));
  info.required_cluster = entry.required_cluster;
  return info;
}

bool starts_with_any(std::string_view name, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

bool is_driver_name(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
}

// Names that would stand in for the runtime, the harness or the system when the library is loaded.
bool stands_in(std::string_view name) {
  constexpr const char* kSystem[] = {"dlopen",  "dlsym",  "dlclose",      "malloc", "calloc",
                                     "realloc", "free",   "exit",         "_exit",  "abort",
                                     "write",   "read",   "open",         "openat", "mmap",
                                     "memcpy",  "memset", "gettimeofday", "fork",   "clone"};
  if (name.starts_with("ptxbench_call")) return false;  // the generated header's own
  if (starts_with_any(
          name, {"cuda", "__cuda", "nvml", "cupti", "ptxbench_", "clock_", "pthread_", "TVMFFI"}))
    return true;
  return is_driver_name(name) ||
         std::find(std::begin(kSystem), std::end(kSystem), name) != std::end(kSystem);
}

BuildFailure failure(Verdict verdict, std::string cause, std::string hint) {
  return {verdict, std::move(cause), std::move(hint), {}};
}

std::string shown(std::string_view name) { return printable(name, 100); }

std::optional<BuildFailure> check_entry(const DynamicSymbols& symbols, Binding binding) {
  bool plain = symbols.defines("run"), tvm = symbols.defines("__tvm_ffi_run");
  if (plain && tvm) {
    return failure(Verdict::AmbiguousCode,
                   "two entries: the host library exports a plain run and a tvm-ffi run",
                   "keep one of them");
  }
  if (binding == Binding::Plain && !plain) {
    return failure(Verdict::NoEntry, "no entry: the host library does not export a function run",
                   "define extern \"C\" void run(...) exactly as ptxbench_task.h declares it");
  }
  if (binding == Binding::TvmFfi && !tvm) {
    return failure(Verdict::NoEntry,
                   "no entry: the host library does not export run through tvm-ffi",
                   "add TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, your_function)");
  }
  return std::nullopt;
}

// Undefined names that no library had when it was linked (libraries with versioned symbols leave a
// mark).
std::optional<BuildFailure> check_undefined(const DynamicSymbols& symbols,
                                            const std::vector<std::string>& tvm_exports) {
  for (const DynamicSymbols::Symbol& symbol : symbols.undefined) {
    if (symbol.weak || symbol.versioned || is_driver_name(symbol.name)) continue;
    if (std::find(tvm_exports.begin(), tvm_exports.end(), symbol.name) != tvm_exports.end())
      continue;
    return failure(Verdict::CompileError,
                   "linking the host code: nothing defines " + shown(symbol.name),
                   "define the function or remove its use");
  }
  return std::nullopt;
}

}  // namespace

void inspect_ptx(Artifact& artifact) {
  auto module = ptx::parse(artifact.ptx, kPtxFile);
  if (!module) {
    Declarations declared = read_declarations(artifact.ptx);
    artifact.kernels = std::move(declared.kernels);
    artifact.symbols = std::move(declared.symbols);
    return;
  }
  for (const ptx::Function& function : module->functions) {
    if (function.is_entry && !function.is_declaration)
      artifact.kernels.push_back(kernel_info(function));
  }
  for (const ptx::Variable& variable : module->variables) {
    bool constant = variable.space == ptx::Space::Const;
    if (!constant && variable.space != ptx::Space::Global) continue;
    artifact.symbols.push_back({variable.name, variable.size_bytes, constant});
  }
}

void add_kernel_use(const std::vector<KernelUse>& use, Artifact& artifact) {
  for (const KernelUse& one : use) {
    for (KernelInfo& kernel : artifact.kernels) {
      if (kernel.name != one.name) continue;
      kernel.registers = one.registers;
      kernel.spill_store_bytes = one.spill_store_bytes;
      kernel.spill_load_bytes = one.spill_load_bytes;
      kernel.stack_bytes = one.stack_bytes;
      kernel.static_shared_bytes = one.static_shared_bytes;
      kernel.const_bytes = one.const_bytes;
    }
  }
}

std::optional<BuildFailure> inspect_library(std::string_view bytes, Binding binding,
                                            const std::vector<std::string>& tvm_exports) {
  auto symbols = read_dynamic_symbols(bytes, kHostFile);
  if (!symbols) {
    return failure(Verdict::ForbiddenConstruct, symbols.error().message,
                   "no sections or linker tricks in assembler text");
  }
  std::vector<std::string> wanted = symbols->needed;
  for (const DynamicSymbols::Symbol& symbol : symbols->undefined) wanted.push_back(symbol.name);
  for (const std::string& name : wanted) {
    if (!is_work_library(name)) continue;
    return failure(
        Verdict::ForbiddenLibrary,
        "the host code needs " + shown(name) + ", of a library that would do the work",
        "write the kernel itself; only the CUDA runtime and driver interfaces may be called");
  }
  for (const DynamicSymbols::Symbol& symbol : symbols->exported) {
    if (!stands_in(symbol.name)) continue;
    return failure(
        Verdict::ForbiddenConstruct,
        "the host library exports " + shown(symbol.name) + ", a name of the system or the harness",
        "give the function another name or make it static");
  }
  if (auto missing = check_entry(*symbols, binding)) return missing;
  return check_undefined(*symbols, tvm_exports);
}

std::optional<SharedOveruse> find_shared_overuse(std::string_view ptx, std::string_view arch) {
  auto module = ptx::parse(ptx, kPtxFile);
  const arch::Chip* chip = arch::default_chip(arch);
  if (!module || !chip) return std::nullopt;
  for (const ptx::Function& function : module->functions) {
    if (!function.is_entry) continue;
    // nvcc puts a kernel's arrays into its body; what stands at module scope may belong to another
    // kernel.
    uint64_t used = static_shared_bytes(function.locals);
    if (used > chip->shared_per_block_optin_bytes)
      return SharedOveruse{function.name, used, chip->shared_per_block_optin_bytes};
  }
  return std::nullopt;
}

std::optional<SourceLine> source_line(std::string_view ptx, int line) {
  std::optional<std::pair<std::string, int>> at;  // file number and line
  std::vector<std::pair<std::string, std::string>> files;
  int number = 0;
  for (std::string_view text : split_lines(ptx)) {
    ++number;
    std::string_view trimmed = trim(text);
    if (trimmed.starts_with(".file")) {
      auto words = split(trimmed.substr(5), '"');  // \t1 "path"
      if (words.size() >= 2) files.emplace_back(std::string(trim(words[0])), std::string(words[1]));
    }
    if (number > line) continue;  // the .file table stands at the end
    if (trimmed.find(".entry ") != std::string_view::npos ||
        trimmed.find(".func ") != std::string_view::npos)
      at.reset();
    if (!trimmed.starts_with(".loc")) continue;
    std::string_view rest = trim(trimmed.substr(4));
    size_t space = rest.find(' ');
    if (space == std::string_view::npos) continue;
    std::string_view after = trim(rest.substr(space));
    auto source = parse_int(after.substr(0, after.find(' ')));
    if (source && *source > 0) at = {std::string(rest.substr(0, space)), static_cast<int>(*source)};
  }
  if (!at) return std::nullopt;
  for (const auto& [file, path] : files) {
    if (file == at->first)
      return SourceLine{printable(Path(path).filename().string(), 200), at->second};
  }
  return std::nullopt;
}

void locate_in_source(std::string_view ptx, std::vector<Diagnostic>& diagnostics) {
  for (Diagnostic& one : diagnostics) {
    if (one.tool != "ptxas" || one.line <= 0) continue;
    auto source = source_line(ptx, one.line);
    if (!source) continue;
    one.message += " (PTX line " + std::to_string(one.line) + ")";
    one.file = source->file;
    one.line = source->line;
  }
}

}  // namespace ptxb::build
