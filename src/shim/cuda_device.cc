// Driver API: initialisation, devices, contexts, errors, entry points, modules, functions,
// occupancy.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstring>

#include "shim/cuda.h"
#include "shim/occupancy.h"

using ptxb::shim::abi::DriverLaunchConfig;

namespace ptxb::shim {
namespace {

int context;  // its address is the handle of the one context
void*& current_context() {
  thread_local void* current = &context;
  return current;
}

struct DriverName {
  const char* name;
  int version;
  const char* symbol;
};
constexpr DriverName kDriverNames[] = {
#define PTXB_DRIVER(name, version, symbol) {#name, version, #symbol},
#include "shim/driver_versions.def"
#undef PTXB_DRIVER
};

// This library's own function of that name, wherever else one may be loaded.
void* own_symbol(const std::string& symbol) {
  static void* self = [] {
    Dl_info info{};
    if (!dladdr(reinterpret_cast<void*>(&own_symbol), &info)) return static_cast<void*>(nullptr);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return self ? dlsym(self, symbol.c_str()) : nullptr;
}

int proc_address(const char* name, void** function, int version, uint64_t flags, int* status) {
  constexpr uint64_t kPerThread = 2;
  constexpr int kFound = 0, kMissing = 1, kTooOld = 2;
  if (!name || !function) return abi::kInvalidValue;
  *function = nullptr;
  const DriverName* best = nullptr;
  bool known = false;
  for (const DriverName& row : kDriverNames) {
    if (std::strcmp(row.name, name) != 0) continue;
    known = true;
    if (row.version <= version) best = &row;
  }
  std::string symbol = best    ? best->symbol
                       : known ? ""
                               : name;  // a versioned spelling may be asked for directly
  if (!symbol.empty() && (flags & kPerThread)) {
    for (const char* suffix : {"_ptsz", "_ptds"}) {
      if (void* found = own_symbol(symbol + suffix)) *function = found;
    }
  }
  if (!symbol.empty() && !*function && symbol.starts_with("cu")) *function = own_symbol(symbol);
  if (status) *status = *function ? kFound : known ? kTooOld : kMissing;
  return *function ? abi::kSuccess : abi::kNotFound;
}

int load(const char* api, void** module, const void* image) {
  Module* made = nullptr;
  int code = recorder().load_module(api, image, &made);
  if (module) *module = made;
  return code;
}

int get_kernel(void** kernel, void* module, const char* name) {
  Module* in = recorder().module_of(module);
  if (!in) return abi::kInvalidHandle;
  if (!kernel || !name) return abi::kInvalidValue;
  auto found = in->kernels.find(name);
  if (found == in->kernels.end()) return abi::kNotFound;
  *kernel = found->second;
  return abi::kSuccess;
}

int get_global(uint64_t* address, size_t* size_bytes, void* module, const char* name) {
  Module* in = recorder().module_of(module);
  if (!in) return abi::kInvalidHandle;
  if (!name) return abi::kInvalidValue;
  auto found = in->variables.find(name);
  if (found == in->variables.end()) return abi::kNotFound;
  if (address) *address = recorder().symbol_address(in->index, found->first, found->second);
  if (size_bytes) *size_bytes = found->second;
  return abi::kSuccess;
}

int max_blocks(int* blocks, void* function, int threads, size_t shared_bytes) {
  Kernel* kernel = recorder().kernel_of(function);
  if (!kernel) return abi::kInvalidHandle;
  if (!blocks || threads <= 0) return abi::kInvalidValue;
  *blocks = static_cast<int>(blocks_per_multiprocessor(
      recorder().chip(), kernel->info, static_cast<uint64_t>(threads), shared_bytes));
  return abi::kSuccess;
}

}  // namespace
}  // namespace ptxb::shim

ENTRY(cuInit, (unsigned flags), { return flags == 0 ? abi::kSuccess : abi::kInvalidValue; })
ENTRY(cuDriverGetVersion, (int* version), {
  *version = kCudaVersion;
  return abi::kSuccess;
})
ENTRY(cuDeviceGet, (int* device, int ordinal), {
  if (!device) return abi::kInvalidValue;
  *device = 0;
  return ordinal == 0 ? abi::kSuccess : abi::kInvalidDevice;
})
ENTRY(cuDeviceGetCount, (int* count), {
  *count = 1;
  return abi::kSuccess;
})
ENTRY(cuDeviceGetName, (char* name, int length, int device), {
  if (!name || length <= 0) return abi::kInvalidValue;
  if (device != 0) return abi::kInvalidDevice;
  std::strncpy(name, recorder().chip().product.c_str(), static_cast<size_t>(length));
  name[length - 1] = '\0';
  return abi::kSuccess;
})
ENTRY(cuDeviceTotalMem_v2, (size_t * bytes, int device), {
  if (device != 0) return abi::kInvalidDevice;
  *bytes = recorder().chip().memory_bytes;
  return abi::kSuccess;
})
ENTRY(cuDeviceGetAttribute, (int* value, int attribute, int device), {
  if (!value) return abi::kInvalidValue;
  if (device != 0) return abi::kInvalidDevice;
  auto answer = device_attribute(recorder().chip(), attribute);
  if (!answer) return abi::kInvalidValue;
  *value = *answer;
  return abi::kSuccess;
})
ENTRY(cuDeviceComputeCapability, (int* major, int* minor, int device), {
  if (device != 0) return abi::kInvalidDevice;
  *major = static_cast<int>(recorder().chip().major);
  *minor = static_cast<int>(recorder().chip().minor);
  return abi::kSuccess;
})
ENTRY(cuDeviceCanAccessPeer, (int* can, int, int), {
  *can = 0;
  return abi::kSuccess;
})

ENTRY(cuCtxGetCurrent, (void** current), {
  if (!current) return abi::kInvalidValue;
  *current = current_context();
  return abi::kSuccess;
})
ENTRY(cuCtxSetCurrent, (void* next), {
  if (next && next != &context) return abi::kInvalidContext;
  current_context() = next;
  return abi::kSuccess;
})
ENTRY(cuCtxPushCurrent_v2, (void* next), {
  if (next != &context) return abi::kInvalidContext;
  current_context() = next;
  return abi::kSuccess;
})
ENTRY(cuCtxPopCurrent_v2, (void** popped), {
  if (popped) *popped = current_context();
  return abi::kSuccess;
})
ENTRY(cuCtxGetDevice, (int* device), {
  *device = 0;
  return abi::kSuccess;
})
ENTRY(cuCtxGetDevice_v2, (int* device, void*), {
  *device = 0;
  return abi::kSuccess;
})
ENTRY(cuCtxGetApiVersion, (void*, unsigned* version), {
  *version = 3020;
  return abi::kSuccess;
})
ENTRY(cuCtxSynchronize, (), { return recorder().synchronize(kApi, nullptr); })
ENTRY(cuCtxSynchronize_v2, (void*), { return recorder().synchronize(kApi, nullptr); })
ENTRY(cuCtxResetPersistingL2Cache, (), { return abi::kSuccess; })
ENTRY(cuCtxSetCacheConfig, (int), { return abi::kSuccess; })
ENTRY(cuCtxGetLimit, (size_t * value, int limit), {
  auto answer = device_limit(recorder().chip(), limit);
  if (!answer || !value) return abi::kInvalidValue;
  *value = *answer;
  return abi::kSuccess;
})
ENTRY(cuCtxSetLimit, (int limit, size_t), {
  if (!device_limit(recorder().chip(), limit)) return abi::kInvalidValue;
  recorder().note("cuCtxSetLimit was ignored");
  return abi::kSuccess;
})
ENTRY(cuCtxGetStreamPriorityRange, (int* least, int* greatest), {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return abi::kSuccess;
})
ENTRY(cuDevicePrimaryCtxRetain, (void** handle, int device), {
  if (device != 0) return abi::kInvalidDevice;
  *handle = &context;
  return abi::kSuccess;
})
ENTRY(cuDevicePrimaryCtxRelease_v2, (int device),
      { return device == 0 ? abi::kSuccess : abi::kInvalidDevice; })
ENTRY(cuDevicePrimaryCtxSetFlags_v2, (int device, unsigned),
      { return device == 0 ? abi::kSuccess : abi::kInvalidDevice; })
ENTRY(cuDevicePrimaryCtxGetState, (int device, unsigned* flags, int* active), {
  if (device != 0) return abi::kInvalidDevice;
  *flags = 0;
  *active = 1;
  return abi::kSuccess;
})
ENTRY(cuProfilerStart, (), { return abi::kSuccess; })
ENTRY(cuProfilerStop, (), { return abi::kSuccess; })

ENTRY(cuGetErrorName, (int code, const char** name), {
  *name = driver_error_name(code);
  return *name ? abi::kSuccess : abi::kInvalidValue;
})
ENTRY(cuGetErrorString, (int code, const char** text), {
  *text = error_text(code);
  return *text ? abi::kSuccess : abi::kInvalidValue;
})
ENTRY(cuGetProcAddress_v2,
      (const char* name, void** function, int version, uint64_t flags, int* status),
      { return proc_address(name, function, version, flags, status); })
ENTRY(cuGetProcAddress, (const char* name, void** function, int version, uint64_t flags),
      { return proc_address(name, function, version, flags, nullptr); })

ENTRY(cuModuleLoadData, (void** module, const void* image), { return load(kApi, module, image); })
ENTRY(cuModuleLoadDataEx, (void** module, const void* image, unsigned, int*, void**),
      { return load(kApi, module, image); })
ENTRY(cuLibraryLoadData,
      (void** library, const void* image, int*, void**, unsigned, int*, void**, unsigned),
      { return load(kApi, library, image); })
ENTRY(cuModuleUnload, (void* module),
      { return recorder().module_of(module) ? abi::kSuccess : abi::kInvalidHandle; })
ENTRY(cuLibraryUnload, (void* library),
      { return recorder().module_of(library) ? abi::kSuccess : abi::kInvalidHandle; })
ENTRY(cuModuleGetFunction, (void** function, void* module, const char* name),
      { return get_kernel(function, module, name); })
ENTRY(cuLibraryGetKernel, (void** kernel, void* library, const char* name),
      { return get_kernel(kernel, library, name); })
ENTRY(cuLibraryGetModule, (void** module, void* library), {
  *module = recorder().module_of(library);
  return *module ? abi::kSuccess : abi::kInvalidHandle;
})
ENTRY(cuKernelGetFunction, (void** function, void* kernel), {
  *function = recorder().kernel_of(kernel);
  return *function ? abi::kSuccess : abi::kInvalidHandle;
})
ENTRY(cuModuleGetGlobal_v2, (uint64_t * address, size_t* bytes, void* module, const char* name),
      { return get_global(address, bytes, module, name); })
ENTRY(cuLibraryGetGlobal, (uint64_t * address, size_t* bytes, void* library, const char* name),
      { return get_global(address, bytes, library, name); })

ENTRY(cuFuncGetAttribute, (int* value, int attribute, void* function), {
  Kernel* kernel = recorder().kernel_of(function);
  if (!kernel) return abi::kInvalidHandle;
  auto answer = function_attribute(recorder().chip(), *kernel, attribute);
  if (!answer || !value) return abi::kInvalidValue;
  *value = *answer;
  return abi::kSuccess;
})
ENTRY(cuFuncSetAttribute, (void* function, int attribute, int value), {
  Kernel* kernel = recorder().kernel_of(function);
  return kernel ? set_function_attribute(recorder(), kApi, *kernel, attribute, value)
                : abi::kInvalidHandle;
})
ENTRY(cuKernelGetAttribute, (int* value, int attribute, void* function, int), {
  Kernel* kernel = recorder().kernel_of(function);
  if (!kernel) return abi::kInvalidHandle;
  auto answer = function_attribute(recorder().chip(), *kernel, attribute);
  if (!answer || !value) return abi::kInvalidValue;
  *value = *answer;
  return abi::kSuccess;
})
ENTRY(cuKernelSetAttribute, (int attribute, int value, void* function, int), {
  Kernel* kernel = recorder().kernel_of(function);
  return kernel ? set_function_attribute(recorder(), kApi, *kernel, attribute, value)
                : abi::kInvalidHandle;
})
ENTRY(cuFuncSetCacheConfig, (void* function, int),
      { return recorder().kernel_of(function) ? abi::kSuccess : abi::kInvalidHandle; })
ENTRY(cuFuncGetName, (const char** name, void* function), {
  Kernel* kernel = recorder().kernel_of(function);
  if (!kernel) return abi::kInvalidHandle;
  *name = kernel->info.name.c_str();
  return abi::kSuccess;
})
ENTRY(cuFuncGetParamInfo, (void* function, size_t index, size_t* offset, size_t* size), {
  Kernel* kernel = recorder().kernel_of(function);
  if (!kernel || index >= kernel->info.params.size()) return abi::kInvalidValue;
  if (offset) *offset = kernel->info.params[index].offset_bytes;
  if (size) *size = kernel->info.params[index].size_bytes;
  return abi::kSuccess;
})

ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor,
      (int* blocks, void* function, int threads, size_t shared_bytes),
      { return max_blocks(blocks, function, threads, shared_bytes); })
ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
      (int* blocks, void* function, int threads, size_t shared_bytes, unsigned),
      { return max_blocks(blocks, function, threads, shared_bytes); })
ENTRY(cuOccupancyAvailableDynamicSMemPerBlock,
      (size_t * bytes, void* function, int blocks, int threads), {
        Kernel* kernel = recorder().kernel_of(function);
        if (!kernel) return abi::kInvalidHandle;
        if (blocks <= 0 || threads <= 0) return abi::kInvalidValue;
        *bytes = dynamic_shared_for(recorder().chip(), kernel->info, static_cast<uint64_t>(blocks));
        return abi::kSuccess;
      })
ENTRY(cuOccupancyMaxPotentialClusterSize, (int* size, void* function, const DriverLaunchConfig*), {
  Kernel* kernel = recorder().kernel_of(function);
  if (!kernel) return abi::kInvalidHandle;
  *size = max_cluster_size(recorder().chip(), *kernel);
  return abi::kSuccess;
})
ENTRY(cuOccupancyMaxActiveClusters,
      (int* clusters, void* function, const DriverLaunchConfig* config), {
        Kernel* kernel = recorder().kernel_of(function);
        if (!kernel) return abi::kInvalidHandle;
        if (!config) return abi::kInvalidValue;
        LaunchShape shape;
        shape.block = {config->block.x, config->block.y, config->block.z};
        shape.dynamic_shared_bytes = config->dynamic_shared_bytes;
        if (Code code = recorder().read_attributes(kApi, config->attributes,
                                                   config->attribute_count, shape))
          return code;
        *clusters = active_clusters(recorder().chip(), *kernel, shape);
        return abi::kSuccess;
      })
