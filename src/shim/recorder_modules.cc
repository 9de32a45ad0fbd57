// Kernels and variables: those that nvcc's registration code announces, and those of modules loaded
// at run time.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shim/module_image.h"
#include "shim/recorder.h"

namespace ptxb::shim {

namespace {

constexpr size_t kHashDigits = 8;

size_t hash_end(const std::string& name, size_t begin) {
  size_t end = begin;
  while (end < name.size() && end - begin < kHashDigits &&
         std::isxdigit(static_cast<unsigned char>(name[end])))
    ++end;
  return end - begin == kHashDigits ? end : begin;
}

// nvcc puts hashes of the build into the names of internal-linkage entities:
// "_GLOBAL__N__<8 hex>_<length>_<file name>_<8 hex>", "_INTERNAL_<8 hex>_<length>_<file name>_<8
// hex>". Host code and cubin come from two runs of the compiler, so these digits do not count.
std::string without_hashes(std::string name) {
  for (std::string_view mark : {"_GLOBAL__N__", "_INTERNAL_"}) {
    for (size_t at = name.find(mark); at != std::string::npos; at = name.find(mark, at + 1)) {
      size_t begin = at + mark.size(), end = hash_end(name, begin);
      if (end == begin) continue;
      std::fill(name.begin() + static_cast<ptrdiff_t>(begin),
                name.begin() + static_cast<ptrdiff_t>(end), '#');
      size_t digits = end + 1, length = 0;
      size_t after = digits;
      while (after < name.size() && after < digits + 4 &&
             std::isdigit(static_cast<unsigned char>(name[after]))) {
        length = length * 10 + static_cast<size_t>(name[after++] - '0');
      }
      begin = after + 1 + length + 1;
      if (after == digits || begin >= name.size()) continue;
      end = hash_end(name, begin);
      std::fill(name.begin() + static_cast<ptrdiff_t>(begin),
                name.begin() + static_cast<ptrdiff_t>(end), '#');
    }
  }
  return name;
}

}  // namespace

Kernel* Recorder::register_kernel(const void* host_function, const char* name) {
  auto kernel = std::make_unique<Kernel>();
  kernel->info.name = name;
  auto same = [&](const KernelInfo& info) { return info.name == kernel->info.name; };
  auto found = std::find_if(request_.kernels.begin(), request_.kernels.end(), same);
  if (found == request_.kernels.end()) {
    std::string plain = without_hashes(name);
    found =
        std::find_if(request_.kernels.begin(), request_.kernels.end(),
                     [&](const KernelInfo& info) { return without_hashes(info.name) == plain; });
  }
  if (found != request_.kernels.end()) {
    kernel->info = *found;
    kernel->known = true;
  }
  kernel->cluster_attribute = kernel->info.required_cluster;
  kernel->max_dynamic_shared =
      static_cast<int>(chip().shared_per_block_bytes -
                       std::min(chip().shared_per_block_bytes, kernel->info.static_shared_bytes));
  alive_[kernel.get()] = HandleKind::Kernel;
  if (host_function) host_functions_[host_function] = kernel.get();
  return kernels_.emplace_back(std::move(kernel)).get();
}

Kernel* Recorder::kernel_of(const void* handle) const {
  if (is_alive(handle, HandleKind::Kernel)) return static_cast<Kernel*>(const_cast<void*>(handle));
  auto found = host_functions_.find(handle);
  return found == host_functions_.end() ? nullptr : found->second;
}

void Recorder::register_variable(const void* host, const char* name, uint64_t size_bytes) {
  std::string plain = without_hashes(name);
  Variable variable{name, size_bytes};
  for (const PlanSymbol& symbol : request_.symbols) {
    if (symbol.name == name || without_hashes(symbol.name) == plain)
      variable = {symbol.name, symbol.size_bytes};
  }
  host_variables_[host] = std::move(variable);
}

const Recorder::Variable* Recorder::variable_of(const void* host) const {
  auto found = host_variables_.find(host);
  return found == host_variables_.end() ? nullptr : &found->second;
}

Code Recorder::load_module(std::string_view api, const void* image, Module** handle) {
  if (!image || !handle) return abi::kInvalidValue;
  auto bytes = image_bytes(image);
  if (!bytes) unsupported(api, bytes.error().message);
  auto index_of_same = [&]() -> size_t {
    for (size_t i = 0; i < recording_.modules.size(); ++i) {
      const PlanModule& known = recording_.modules[i];
      if ((known.ptx.empty() ? known.cubin : known.ptx) == *bytes) return i;
    }
    return recording_.modules.size();
  };
  size_t index = index_of_same();
  if (index < modules_.size()) {
    *handle = modules_[index].get();
    return abi::kSuccess;
  }
  auto parsed = read_image(*bytes);
  if (!parsed && parsed.error().code == ErrorCode::BadInput) {
    return refuse(api, abi::kInvalidImage,
                  "the module image is malformed: " + parsed.error().message);
  }
  if (!parsed) unsupported(api, parsed.error().message);
  if (!parsed->module.cubin.empty()) {
    unsupported(api,
                "machine code that was not built from the candidate's source; load PTX instead");
  }
  if (recording_.modules.size() + 1 >= PlanLimits::kModules) unsupported(api, "too many modules");
  auto module = std::make_unique<Module>();
  module->index = static_cast<uint32_t>(index + 1);
  module->variables = std::move(parsed->variables);
  for (const KernelInfo& info : parsed->module.kernels) {
    auto kernel = std::make_unique<Kernel>();
    kernel->module = module->index;
    kernel->info = info;
    kernel->known = true;
    kernel->cluster_attribute = info.required_cluster;
    kernel->max_dynamic_shared =
        static_cast<int>(chip().shared_per_block_bytes -
                         std::min(chip().shared_per_block_bytes, info.static_shared_bytes));
    alive_[kernel.get()] = HandleKind::Kernel;
    module->kernels[info.name] = kernels_.emplace_back(std::move(kernel)).get();
  }
  parsed->module.name = "loaded" + std::to_string(module->index);
  recording_.modules.push_back(std::move(parsed->module));
  alive_[module.get()] = HandleKind::Module;
  *handle = modules_.emplace_back(std::move(module)).get();
  return abi::kSuccess;
}

Module* Recorder::module_of(const void* handle) const {
  return is_alive(handle, HandleKind::Module) ? static_cast<Module*>(const_cast<void*>(handle))
                                              : nullptr;
}

}  // namespace ptxb::shim
