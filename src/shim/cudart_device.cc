// Runtime API: devices, errors, versions, the driver's entry points, libraries loaded at run time.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstring>

#include "shim/cudart.h"

// libcuda.so.1
extern "C" int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                                   int* status);

namespace ptxb::shim {
namespace {

int entry_point(const char* name, void** function, unsigned version, unsigned long long flags,
                int* result) {
  if (!name || !function) return abi::kInvalidValue;
  int status = 0;
  *function = nullptr;
  int code = cuGetProcAddress_v2(name, function, static_cast<int>(version), flags, &status);
  if (result) *result = status;
  // The runtime reports a missing symbol through `result` alone.
  return code == abi::kNotFound ? int{abi::kSuccess} : code;
}

constexpr unsigned long long kPerThreadFlag = 2;

}  // namespace
}  // namespace ptxb::shim

ENTRY(cudaGetDeviceCount, (int* count), {
  if (!count) return abi::kInvalidValue;
  *count = 1;
  return abi::kSuccess;
})
ENTRY(cudaGetDevice, (int* device), {
  if (!device) return abi::kInvalidValue;
  *device = 0;
  return abi::kSuccess;
})
ENTRY(cudaSetDevice, (int device), { return device == 0 ? abi::kSuccess : abi::kInvalidDevice; })
ENTRY(cudaInitDevice, (int device, unsigned, unsigned),
      { return device == 0 ? abi::kSuccess : abi::kInvalidDevice; })
ENTRY(cudaChooseDevice, (int* device, const void*), {
  *device = 0;
  return abi::kSuccess;
})
ENTRY(cudaGetDeviceProperties, (ptxb::shim::abi::DeviceProperties * properties, int device), {
  if (!properties) return abi::kInvalidValue;
  if (device != 0) return abi::kInvalidDevice;
  *properties = device_properties(recorder().chip());
  return abi::kSuccess;
})
ENTRY(cudaDeviceGetAttribute, (int* value, int attribute, int device), {
  if (!value) return abi::kInvalidValue;
  if (device != 0) return abi::kInvalidDevice;
  auto answer = device_attribute(recorder().chip(), attribute);
  if (!answer) return abi::kInvalidValue;
  *value = *answer;
  return abi::kSuccess;
})
ENTRY(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest), {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return abi::kSuccess;
})
ENTRY(cudaDeviceGetLimit, (size_t * value, int limit), {
  auto answer = device_limit(recorder().chip(), limit);
  if (!answer || !value) return abi::kInvalidValue;
  *value = *answer;
  return abi::kSuccess;
})
ENTRY(cudaDeviceSetLimit, (int limit, size_t), {
  if (!device_limit(recorder().chip(), limit)) return abi::kInvalidValue;
  recorder().note("cudaDeviceSetLimit was ignored");
  return abi::kSuccess;
})
ENTRY(cudaDeviceGetCacheConfig, (int* config), {
  *config = 0;
  return abi::kSuccess;
})
ENTRY(cudaDeviceSetCacheConfig, (int), { return abi::kSuccess; })
ENTRY(cudaDeviceGetSharedMemConfig, (int* config), {
  *config = 1;
  return abi::kSuccess;
})
ENTRY(cudaDeviceSetSharedMemConfig, (int), { return abi::kSuccess; })
ENTRY(cudaCtxResetPersistingL2Cache, (), { return abi::kSuccess; })
ENTRY(cudaGetDeviceFlags, (unsigned* flags), {
  *flags = 0;
  return abi::kSuccess;
})
ENTRY(cudaSetDeviceFlags, (unsigned), { return abi::kSuccess; })
ENTRY(cudaDeviceCanAccessPeer, (int* can, int device, int peer), {
  if (device != 0 || peer != 0) return abi::kInvalidDevice;
  *can = 0;
  return abi::kSuccess;
})
ENTRY(cudaDeviceEnablePeerAccess, (int, unsigned), { return abi::kInvalidDevice; })
ENTRY(cudaDeviceDisablePeerAccess, (int), { return abi::kPeerAccessNotEnabled; })
ENTRY(cudaDeviceSynchronize, (), { return recorder().synchronize(kApi, nullptr); })
ENTRY(cudaProfilerStart, (), { return abi::kSuccess; })
ENTRY(cudaProfilerStop, (), { return abi::kSuccess; })
ENTRY(cudaDriverGetVersion, (int* version), {
  *version = kCudaVersion;
  return abi::kSuccess;
})
ENTRY(cudaRuntimeGetVersion, (int* version), {
  *version = kCudaVersion;
  return abi::kSuccess;
})

extern "C" int cudaGetLastError() {
  int code = ptxb::shim::last_error;
  ptxb::shim::last_error = 0;
  return code;
}
extern "C" int cudaPeekAtLastError() { return ptxb::shim::last_error; }
extern "C" const char* cudaGetErrorName(int code) {
  const char* name = ptxb::shim::error_name(code);
  return name ? name : "unrecognized error code";
}
extern "C" const char* cudaGetErrorString(int code) {
  const char* text = ptxb::shim::error_text(code);
  return text ? text : "unrecognized error code";
}

ENTRY(cudaGetDriverEntryPoint,
      (const char* name, void** function, unsigned long long flags, int* result),
      { return entry_point(name, function, kCudaVersion, flags, result); })
ENTRY(cudaGetDriverEntryPoint_ptsz,
      (const char* name, void** function, unsigned long long flags, int* result),
      { return entry_point(name, function, kCudaVersion, flags ? flags : kPerThreadFlag, result); })
ENTRY(cudaGetDriverEntryPointByVersion,
      (const char* name, void** function, unsigned version, unsigned long long flags, int* result),
      { return entry_point(name, function, version, flags, result); })
ENTRY(cudaGetDriverEntryPointByVersion_ptsz,
      (const char* name, void** function, unsigned version, unsigned long long flags, int* result),
      { return entry_point(name, function, version, flags ? flags : kPerThreadFlag, result); })

ENTRY(cudaLibraryLoadData,
      (void** library, const void* code, void*, void**, unsigned, void*, void**, unsigned), {
        Module* module = nullptr;
        int result = recorder().load_module(kApi, code, &module);
        if (library) *library = module;
        return result;
      })
ENTRY(cudaLibraryUnload, (void* library),
      { return recorder().module_of(library) ? abi::kSuccess : abi::kInvalidHandle; })
ENTRY(cudaLibraryGetKernel, (void** kernel, void* library, const char* name), {
  Module* module = recorder().module_of(library);
  if (!module || !kernel || !name) return abi::kInvalidValue;
  auto found = module->kernels.find(name);
  if (found == module->kernels.end()) return abi::kNotFound;
  *kernel = found->second;
  return abi::kSuccess;
})
ENTRY(cudaLibraryGetGlobal, (void** pointer, size_t* size_bytes, void* library, const char* name), {
  Module* module = recorder().module_of(library);
  if (!module || !name) return abi::kInvalidValue;
  auto found = module->variables.find(name);
  if (found == module->variables.end()) return abi::kNotFound;
  if (pointer)
    *pointer = reinterpret_cast<void*>(
        recorder().symbol_address(module->index, found->first, found->second));
  if (size_bytes) *size_bytes = found->second;
  return abi::kSuccess;
})
