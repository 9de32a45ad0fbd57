// Owns loading NVIDIA's libraries and naming their errors. Never links against them.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/driver.h"

#include <dlfcn.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace ptxb::cuda {

namespace {

// The loader's own path first; then where toolkits and wheels put their libraries.
std::vector<std::string> places(const std::string& file) {
  std::vector<std::string> found = {file};
  std::vector<std::string> patterns;
  if (const char* home = std::getenv("CUDA_HOME")) {
    for (const char* folder : {"/lib64/", "/extras/CUPTI/lib64/", "/lib/"})
      patterns.push_back(home + (folder + file));
  }
  for (const char* folder :
       {"/usr/local/cuda/lib64/", "/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/nvidia/lib64/",
        "/usr/lib/x86_64-linux-gnu/", "/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib/",
        "/usr/lib/python3*/site-packages/nvidia/*/lib/",
        ".venv/lib/python3*/site-packages/nvidia/*/lib/"}) {
    patterns.push_back(folder + file);
  }
  for (const std::string& pattern : patterns) {
    glob_t matches = {};
    if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
      for (size_t i = 0; i < matches.gl_pathc; ++i) found.emplace_back(matches.gl_pathv[i]);
    }
    ::globfree(&matches);
  }
  return found;
}

Result<void*> open_library(const std::vector<std::string>& files) {
  std::string reason;
  for (const std::string& file : files) {
    for (const std::string& path : places(file)) {
      // RTLD_LOCAL: nothing of a library becomes visible to another by accident.
      if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
      if (reason.empty()) {
        const char* text = ::dlerror();
        reason = text != nullptr ? text : "unknown reason";
      }
    }
  }
  return harness_error("cannot load " + files.front() + ": " + reason);
}

Result<void> resolve(void* library, const char* symbol, void** out) {
  *out = ::dlsym(library, symbol);
  if (*out == nullptr) return harness_error(std::string("a library lacks the function ") + symbol);
  return {};
}

#define PTXB_TEXT2(name) #name
#define PTXB_TEXT(name) \
  PTXB_TEXT2(name)  // after the header's macros mapped it to the versioned symbol
#define PTXB_RESOLVE(function) \
  PTXB_CHECK_OK(resolve(library, PTXB_TEXT(function), reinterpret_cast<void**>(&table.function)));

Result<DriverFunctions> open_driver() {
  PTXB_TRY(void* library, open_library({"libcuda.so.1"}));
  DriverFunctions table;
  PTXB_DRIVER_FUNCTIONS(PTXB_RESOLVE)
  return table;
}
Result<CublasLtFunctions> open_cublaslt() {
  PTXB_TRY(void* library, open_library({"libcublasLt.so.13", "libcublasLt.so"}));
  CublasLtFunctions table;
  PTXB_CUBLASLT_FUNCTIONS(PTXB_RESOLVE)
  return table;
}
Result<CudnnFunctions> open_cudnn() {
  PTXB_TRY(void* library, open_library({"libcudnn.so.9", "libcudnn.so"}));
  CudnnFunctions table;
  PTXB_CUDNN_FUNCTIONS(PTXB_RESOLVE)
  return table;
}
Result<CuptiFunctions> open_cupti() {
  PTXB_TRY(void* library, open_library({"libcupti.so.13", "libcupti.so"}));
  CuptiFunctions table;
  PTXB_CUPTI_FUNCTIONS(PTXB_RESOLVE)
  return table;
}
#undef PTXB_RESOLVE

Result<NvmlFunctions> open_nvml() {
  PTXB_TRY(void* library, open_library({"libnvidia-ml.so.1"}));
  NvmlFunctions table;
  PTXB_CHECK_OK(resolve(library, "nvmlInit_v2", reinterpret_cast<void**>(&table.init)));
  PTXB_CHECK_OK(resolve(library, "nvmlDeviceGetHandleByPciBusId_v2",
                        reinterpret_cast<void**>(&table.device_by_bus_id)));
  PTXB_CHECK_OK(
      resolve(library, "nvmlDeviceGetPowerUsage", reinterpret_cast<void**>(&table.power_usage_mw)));
  PTXB_CHECK_OK(resolve(library, "nvmlSystemGetDriverVersion",
                        reinterpret_cast<void**>(&table.driver_version)));
  table.clock_event_reasons = reinterpret_cast<int (*)(void*, unsigned long long*)>(
      ::dlsym(library, "nvmlDeviceGetCurrentClocksEventReasons"));
  if (table.init() != 0) return harness_error("nvmlInit failed");
  return table;
}

// Loaded once; a failure is remembered too, so that every asker gets the same words.
template <class Table>
Result<const Table*> remembered(const Result<Table>& loaded) {
  if (!loaded) return loaded.error();
  return &*loaded;
}

}  // namespace

Result<const DriverFunctions*> load_driver() {
  static const Result<DriverFunctions> loaded = open_driver();
  return remembered(loaded);
}
Result<const CublasLtFunctions*> load_cublaslt() {
  static const Result<CublasLtFunctions> loaded = open_cublaslt();
  return remembered(loaded);
}
Result<const CudnnFunctions*> load_cudnn() {
  static const Result<CudnnFunctions> loaded = open_cudnn();
  return remembered(loaded);
}
Result<const CuptiFunctions*> load_cupti() {
  static const Result<CuptiFunctions> loaded = open_cupti();
  return remembered(loaded);
}
Result<const NvmlFunctions*> load_nvml() {
  static const Result<NvmlFunctions> loaded = open_nvml();
  return remembered(loaded);
}

const DriverFunctions& driver() {
  const Result<const DriverFunctions*> table = load_driver();
  PTXB_CHECK(table);
  return **table;
}

std::string describe(CUresult result) {
  const char* error_name = nullptr;
  const char* text = nullptr;
  if (driver().cuGetErrorName(result, &error_name) != CUDA_SUCCESS || error_name == nullptr) {
    return "CUDA error " + std::to_string(static_cast<int>(result));
  }
  driver().cuGetErrorString(result, &text);
  return std::string(error_name) + (text != nullptr ? " (" + std::string(text) + ")" : "");
}

bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

namespace {
bool abandoned = false;
}  // namespace
void abandon_context() { abandoned = true; }
bool context_abandoned() { return abandoned; }

Result<void> cuda_check(CUresult result, std::string_view what) {
  if (result == CUDA_SUCCESS) return {};
  return harness_error(std::string(what) + ": " + describe(result));
}

}  // namespace ptxb::cuda
