// Runtime API: registration by nvcc's host code, <<<>>>, launches, function attributes, occupancy.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "shim/cudart.h"
#include "shim/occupancy.h"

using ptxb::shim::abi::FuncAttributes;
using ptxb::shim::abi::RuntimeLaunchConfig;
using LaunchDim = ptxb::shim::abi::Dim3;

namespace ptxb::shim {
namespace {

struct Configuration {
  LaunchDim grid, block;
  size_t shared_bytes;
  void* stream;
};
thread_local std::vector<Configuration>
    configurations;  // pushed by <<<>>>, popped by the kernel's stub

Dim3 dim(const LaunchDim& d) { return {d.x, d.y, d.z}; }

LaunchShape shape_of(LaunchDim grid, LaunchDim block, size_t shared_bytes) {
  LaunchShape shape;
  shape.grid = dim(grid);
  shape.block = dim(block);
  shape.dynamic_shared_bytes = shared_bytes;
  return shape;
}

int launch_ex(const char* api, const RuntimeLaunchConfig* config, const void* func, void** args,
              DefaultStream meaning) {
  if (!config) return abi::kInvalidValue;
  LaunchShape shape = shape_of(config->grid, config->block, config->dynamic_shared_bytes);
  if (Code code =
          recorder().read_attributes(api, config->attributes, config->attribute_count, shape))
    return code;
  return recorder().launch(api, recorder().kernel_of(func), shape, args, nullptr,
                           recorder().stream_of(config->stream, meaning));
}

}  // namespace
}  // namespace ptxb::shim

extern "C" void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
extern "C" void __cudaRegisterFatBinaryEnd(void**) {}
extern "C" void __cudaUnregisterFatBinary(void**) {}
extern "C" char __cudaInitModule(void**) { return 1; }

extern "C" void __cudaRegisterFunction(void**, const char* host, char*, const char* device_name,
                                       int, void*, void*, void*, void*, int*) {
  using namespace ptxb::shim;
  Guard guard = recorder().lock();
  recorder().register_kernel(host, device_name);
}
extern "C" void __cudaRegisterVar(void**, char* host, char*, const char* device_name, int,
                                  size_t size_bytes, int, int) {
  using namespace ptxb::shim;
  Guard guard = recorder().lock();
  recorder().register_variable(host, device_name, size_bytes);
}
extern "C" void __cudaRegisterManagedVar(void**, void**, char*, const char* device_name, int,
                                         size_t, int, int) {
  using namespace ptxb::shim;
  Guard guard = recorder().lock();
  recorder().unsupported("__managed__ variable", device_name);
}

extern "C" unsigned __cudaPushCallConfiguration(LaunchDim grid, LaunchDim block,
                                                size_t shared_bytes, void* stream) {
  ptxb::shim::configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
ENTRY(__cudaPopCallConfiguration,
      (LaunchDim * grid, LaunchDim* block, size_t* shared_bytes, void* stream), {
        constexpr int kMissingConfiguration = 52;
        if (configurations.empty()) return kMissingConfiguration;
        Configuration top = configurations.back();
        configurations.pop_back();
        *grid = top.grid;
        *block = top.block;
        *shared_bytes = top.shared_bytes;
        *static_cast<void**>(stream) = top.stream;
        return abi::kSuccess;
      })
ENTRY(__cudaGetKernel, (void** kernel, const void* func), {
  *kernel = recorder().kernel_of(func);
  return *kernel ? abi::kSuccess : abi::kInvalidDeviceFunction;
})
ENTRY(cudaGetKernel, (void** kernel, const void* func), {
  *kernel = recorder().kernel_of(func);
  return *kernel ? abi::kSuccess : abi::kInvalidDeviceFunction;
})
ENTRY(cudaGetFuncBySymbol, (void** function, const void* func), {
  *function = recorder().kernel_of(func);
  return *function ? abi::kSuccess : abi::kInvalidDeviceFunction;
})

STREAM_ENTRY(__cudaLaunchKernel, _ptsz,
             (void* kernel, LaunchDim grid, LaunchDim block, void** args, size_t shared_bytes,
              void* stream),
             {
               return recorder().launch("kernel<<<>>>", recorder().kernel_of(kernel),
                                        shape_of(grid, block, shared_bytes), args, nullptr,
                                        stream_at(stream));
             })
STREAM_ENTRY(cudaLaunchKernel, _ptsz,
             (const void* func, LaunchDim grid, LaunchDim block, void** args, size_t shared_bytes,
              void* stream),
             {
               return recorder().launch(kApi, recorder().kernel_of(func),
                                        shape_of(grid, block, shared_bytes), args, nullptr,
                                        stream_at(stream));
             })
STREAM_ENTRY(cudaLaunchCooperativeKernel, _ptsz,
             (const void* func, LaunchDim grid, LaunchDim block, void** args, size_t shared_bytes,
              void* stream),
             {
               LaunchShape shape = shape_of(grid, block, shared_bytes);
               shape.cooperative = true;
               return recorder().launch(kApi, recorder().kernel_of(func), shape, args, nullptr,
                                        stream_at(stream));
             })
STREAM_ENTRY(cudaLaunchKernelExC, _ptsz,
             (const RuntimeLaunchConfig* config, const void* func, void** args),
             { return launch_ex(kApi, config, func, args, kDefault); })

ENTRY(cudaFuncSetAttribute, (const void* func, int attribute, int value), {
  Kernel* kernel = recorder().kernel_of(func);
  if (!kernel)
    return recorder().refuse(kApi, abi::kInvalidDeviceFunction, "not a kernel of this program");
  return set_function_attribute(recorder(), kApi, *kernel, attribute, value);
})
ENTRY(cudaKernelSetAttributeForDevice, (void* func, int attribute, int value, int device), {
  Kernel* kernel = recorder().kernel_of(func);
  if (!kernel || device != 0) return abi::kInvalidValue;
  return set_function_attribute(recorder(), kApi, *kernel, attribute, value);
})
ENTRY(cudaFuncGetAttributes, (FuncAttributes * attributes, const void* func), {
  Kernel* kernel = recorder().kernel_of(func);
  if (!kernel) return abi::kInvalidDeviceFunction;
  *attributes = function_attributes(recorder().chip(), *kernel);
  return abi::kSuccess;
})
ENTRY(cudaFuncGetName, (const char** name, const void* func), {
  Kernel* kernel = recorder().kernel_of(func);
  if (!kernel || !name) return abi::kInvalidValue;
  *name = kernel->info.name.c_str();
  return abi::kSuccess;
})
ENTRY(cudaFuncGetParamInfo, (const void* func, size_t index, size_t* offset, size_t* size), {
  Kernel* kernel = recorder().kernel_of(func);
  if (!kernel || index >= kernel->info.params.size()) return abi::kInvalidValue;
  if (offset) *offset = kernel->info.params[index].offset_bytes;
  if (size) *size = kernel->info.params[index].size_bytes;
  return abi::kSuccess;
})
ENTRY(cudaFuncSetCacheConfig, (const void* func, int),
      { return recorder().kernel_of(func) ? abi::kSuccess : abi::kInvalidDeviceFunction; })
ENTRY(cudaFuncSetSharedMemConfig, (const void* func, int),
      { return recorder().kernel_of(func) ? abi::kSuccess : abi::kInvalidDeviceFunction; })

ENTRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
      (int* blocks, const void* func, int threads, size_t shared_bytes), {
        Kernel* kernel = recorder().kernel_of(func);
        if (!kernel) return abi::kInvalidDeviceFunction;
        if (threads <= 0) return abi::kInvalidValue;
        *blocks = static_cast<int>(blocks_per_multiprocessor(
            recorder().chip(), kernel->info, static_cast<uint64_t>(threads), shared_bytes));
        return abi::kSuccess;
      })
ENTRY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
      (int* blocks, const void* func, int threads, size_t shared_bytes, unsigned), {
        Kernel* kernel = recorder().kernel_of(func);
        if (!kernel) return abi::kInvalidDeviceFunction;
        if (threads <= 0) return abi::kInvalidValue;
        *blocks = static_cast<int>(blocks_per_multiprocessor(
            recorder().chip(), kernel->info, static_cast<uint64_t>(threads), shared_bytes));
        return abi::kSuccess;
      })
ENTRY(cudaOccupancyAvailableDynamicSMemPerBlock,
      (size_t * bytes, const void* func, int blocks, int threads), {
        Kernel* kernel = recorder().kernel_of(func);
        if (!kernel) return abi::kInvalidDeviceFunction;
        if (blocks <= 0 || threads <= 0) return abi::kInvalidValue;
        *bytes = dynamic_shared_for(recorder().chip(), kernel->info, static_cast<uint64_t>(blocks));
        return abi::kSuccess;
      })
ENTRY(cudaOccupancyMaxPotentialClusterSize,
      (int* size, const void* func, const RuntimeLaunchConfig*), {
        Kernel* kernel = recorder().kernel_of(func);
        if (!kernel) return abi::kInvalidDeviceFunction;
        *size = max_cluster_size(recorder().chip(), *kernel);
        return abi::kSuccess;
      })
ENTRY(cudaOccupancyMaxActiveClusters,
      (int* clusters, const void* func, const RuntimeLaunchConfig* config), {
        Kernel* kernel = recorder().kernel_of(func);
        if (!kernel) return abi::kInvalidDeviceFunction;
        if (!config) return abi::kInvalidValue;
        LaunchShape shape = shape_of(config->grid, config->block, config->dynamic_shared_bytes);
        if (Code code = recorder().read_attributes(kApi, config->attributes,
                                                   config->attribute_count, shape))
          return code;
        *clusters = active_clusters(recorder().chip(), *kernel, shape);
        return abi::kSuccess;
      })
