// SPDX-License-Identifier: Apache-2.0
#include "shim/device.h"

#include <algorithm>
#include <cstring>

#include "shim/occupancy.h"

namespace ptxb::shim {

namespace {

constexpr int kWarp = 32, kMaxBlockZ = 64, kMaxGridYZ = 65535, kMaxGridX = 0x7fffffff;
constexpr int kConstantBytes = 65536;
constexpr int kMostPitch = 0x7fffffff;
constexpr int kTextureAlignment = 512, kTexturePitch = 32;
constexpr int kWindowBytes = 128 << 20;  // accessPolicyMaxWindowSize

int as_int(uint64_t value) { return static_cast<int>(std::min<uint64_t>(value, 0x7fffffff)); }
int persisting_bytes(const ChipLimits& chip) { return as_int(uint64_t{chip.l2_bytes} / 8 * 5); }

}  // namespace

// Numbers of CUdevice_attribute. Texture and surface extents are 0: their functions are refused by
// name anyway.
std::optional<int> device_attribute(const ChipLimits& chip, int attribute) {
  constexpr int kFirst = 1, kLast = 147;
  if (attribute < kFirst || attribute > kLast) return std::nullopt;
  switch (attribute) {
    case 1:
      return as_int(chip.max_threads_per_block);
    case 2:
    case 3:
      return as_int(chip.max_threads_per_block);
    case 4:
      return kMaxBlockZ;
    case 5:
      return kMaxGridX;
    case 6:
    case 7:
      return kMaxGridYZ;
    case 8:
      return as_int(chip.shared_per_block_bytes);
    case 9:
      return kConstantBytes;
    case 10:
      return kWarp;
    case 11:
      return kMostPitch;
    case 12:
      return as_int(chip.registers_per_multiprocessor);
    case 13:
      return as_int(chip.clock_khz);
    case 14:
      return kTextureAlignment;
    case 15:
      return 1;  // GPU_OVERLAP
    case 16:
      return as_int(chip.multiprocessors);
    case 19:
      return 0;  // CAN_MAP_HOST_MEMORY: the recorder has no mapped host memory
    case 31:
    case 32:
      return 1;  // CONCURRENT_KERNELS, ECC
    case 33:
      return 1;  // PCI bus
    case 36:
      return as_int(chip.memory_clock_khz);
    case 37:
      return as_int(chip.memory_bus_bits);
    case 38:
      return as_int(chip.l2_bytes);
    case 39:
      return as_int(chip.max_threads_per_multiprocessor);
    case 40:
      return 3;  // ASYNC_ENGINE_COUNT
    case 41:
      return 1;  // UNIFIED_ADDRESSING
    case 51:
      return kTexturePitch;
    case 75:
      return as_int(chip.major);
    case 76:
      return as_int(chip.minor);
    case 78:
    case 79:
    case 80:
      return 1;  // stream priorities, L1 caches
    case 81:
      return as_int(chip.shared_per_multiprocessor_bytes);
    case 82:
      return as_int(chip.registers_per_multiprocessor);
    case 87:
      return 2;  // fp32 to fp64 rate
    case 90:
      return 1;  // COMPUTE_PREEMPTION
    case 95:
      return 1;  // COOPERATIVE_LAUNCH
    case 97:
      return as_int(chip.shared_per_block_optin_bytes);
    case 106:
      return as_int(chip.max_blocks_per_multiprocessor);
    case 108:
      return persisting_bytes(chip);
    case 109:
      return kWindowBytes;
    case 111:
      return as_int(chip.reserved_shared_bytes);
    case 115:
      return 1;  // MEMORY_POOLS_SUPPORTED
    case 120:
      return 1;  // CLUSTER_LAUNCH
    case 126:
      return 4;  // MEM_SYNC_DOMAIN_COUNT
    case 127:
      return 1;  // TENSOR_MAP_ACCESS_SUPPORTED
    case 129:
      return 1;  // UNIFIED_FUNCTION_POINTERS
    default:
      return 0;
  }
}

abi::DeviceProperties device_properties(const ChipLimits& chip) {
  abi::DeviceProperties p{};
  std::strncpy(p.name, chip.product.c_str(), sizeof p.name - 1);
  p.total_memory = chip.memory_bytes;
  p.shared_per_block = chip.shared_per_block_bytes;
  p.registers_per_block = as_int(chip.registers_per_multiprocessor);
  p.warp_size = kWarp;
  p.memory_pitch = kMostPitch;
  p.max_threads_per_block = as_int(chip.max_threads_per_block);
  p.max_threads_dim[0] = p.max_threads_dim[1] = as_int(chip.max_threads_per_block);
  p.max_threads_dim[2] = kMaxBlockZ;
  p.max_grid_size[0] = kMaxGridX;
  p.max_grid_size[1] = p.max_grid_size[2] = kMaxGridYZ;
  p.total_constant = kConstantBytes;
  p.major = as_int(chip.major);
  p.minor = as_int(chip.minor);
  p.texture_alignment = kTextureAlignment;
  p.texture_pitch_alignment = kTexturePitch;
  p.multiprocessors = as_int(chip.multiprocessors);
  p.surface_alignment = kTextureAlignment;
  p.concurrent_kernels = p.ecc = p.unified_addressing = p.stream_priorities = p.global_l1 =
      p.local_l1 = 1;
  p.pci_bus = 1;
  p.async_engines = 3;
  p.memory_bus_bits = as_int(chip.memory_bus_bits);
  p.l2_bytes = as_int(chip.l2_bytes);
  p.persisting_l2_bytes = persisting_bytes(chip);
  p.max_threads_per_multiprocessor = as_int(chip.max_threads_per_multiprocessor);
  p.shared_per_multiprocessor = chip.shared_per_multiprocessor_bytes;
  p.registers_per_multiprocessor = as_int(chip.registers_per_multiprocessor);
  p.compute_preemption = p.cooperative_launch = 1;
  p.shared_per_block_optin = chip.shared_per_block_optin_bytes;
  p.max_blocks_per_multiprocessor = as_int(chip.max_blocks_per_multiprocessor);
  p.access_policy_window = kWindowBytes;
  p.reserved_shared_per_block = chip.reserved_shared_bytes;
  p.memory_pools = p.cluster_launch = p.unified_function_pointers = 1;
  return p;
}

std::optional<size_t> device_limit(const ChipLimits&, int limit) {
  switch (limit) {
    case 0:
      return 1024;  // stack
    case 1:
      return 7u << 20;  // printf FIFO
    case 2:
      return 8u << 20;  // device malloc heap
    case 3:
      return 2;
    case 4:
      return 2048;
    case 5:
      return 64;  // L2 fetch granularity
    case 6:
      return 0;  // persisting L2
    default:
      return std::nullopt;
  }
}

abi::FuncAttributes function_attributes(const ChipLimits& chip, const Kernel& kernel) {
  abi::FuncAttributes a{};
  a.shared_bytes = kernel.info.static_shared_bytes;
  a.const_bytes = kernel.info.const_bytes;
  a.local_bytes = kernel.info.stack_bytes;
  uint32_t bound = kernel.info.max_threads ? kernel.info.max_threads : chip.max_threads_per_block;
  if (uint32_t per_warp = registers_per_warp(kernel.info.registers)) {
    bound = std::min(bound, chip.registers_per_multiprocessor / per_warp * uint32_t{kWarp});
  }
  a.max_threads = as_int(bound);
  a.registers = as_int(kernel.info.registers);
  a.ptx_version = a.binary_version = as_int(chip.major * 10 + chip.minor);
  a.max_dynamic_shared_bytes = kernel.max_dynamic_shared;
  a.carveout = kernel.carveout;
  a.cluster_must_be_set = kernel.info.required_cluster.x ? 1 : 0;
  a.cluster_width = as_int(kernel.cluster_attribute.x);
  a.cluster_height = as_int(kernel.cluster_attribute.y);
  a.cluster_depth = as_int(kernel.cluster_attribute.z);
  a.cluster_scheduling = kernel.scheduling;
  a.nonportable_cluster = kernel.nonportable_cluster ? 1 : 0;
  return a;
}

std::optional<int> function_attribute(const ChipLimits& chip, const Kernel& kernel, int attribute) {
  abi::FuncAttributes a = function_attributes(chip, kernel);
  switch (attribute) {
    case abi::kFuncMaxThreads:
      return a.max_threads;
    case abi::kFuncSharedBytes:
      return as_int(a.shared_bytes);
    case abi::kFuncConstBytes:
      return as_int(a.const_bytes);
    case abi::kFuncLocalBytes:
      return as_int(a.local_bytes);
    case abi::kFuncRegisters:
      return a.registers;
    case abi::kFuncPtxVersion:
      return a.ptx_version;
    case abi::kFuncBinaryVersion:
      return a.binary_version;
    case abi::kFuncCacheModeCa:
      return a.cache_mode_ca;
    case abi::kFuncMaxDynamicShared:
      return a.max_dynamic_shared_bytes;
    case abi::kFuncCarveout:
      return a.carveout;
    case abi::kFuncClusterMustBeSet:
      return a.cluster_must_be_set;
    case abi::kFuncClusterWidth:
      return a.cluster_width;
    case abi::kFuncClusterHeight:
      return a.cluster_height;
    case abi::kFuncClusterDepth:
      return a.cluster_depth;
    case abi::kFuncNonportableCluster:
      return a.nonportable_cluster;
    case abi::kFuncClusterScheduling:
      return a.cluster_scheduling;
    default:
      return std::nullopt;
  }
}

Code set_function_attribute(Recorder& recorder, std::string_view api, Kernel& kernel, int attribute,
                            int value) {
  const ChipLimits& chip = recorder.chip();
  auto refuse = [&](const std::string& why) {
    return recorder.refuse(api, abi::kInvalidValue, kernel.info.name + ": " + why);
  };
  switch (attribute) {
    case abi::kFuncMaxDynamicShared: {
      uint32_t most = chip.shared_per_block_optin_bytes -
                      std::min(chip.shared_per_block_optin_bytes, kernel.info.static_shared_bytes);
      if (value < 0 || static_cast<uint32_t>(value) > most) {
        return refuse("MaxDynamicSharedMemorySize " + std::to_string(value) + " exceeds " +
                      std::to_string(most) + " bytes (" +
                      std::to_string(chip.shared_per_block_optin_bytes) +
                      " less its static shared memory)");
      }
      kernel.max_dynamic_shared = value;
      return abi::kSuccess;
    }
    case abi::kFuncCarveout:
      if (value < -1 || value > 100)
        return refuse("PreferredSharedMemoryCarveout is not -1 to 100");
      kernel.carveout = value;
      return abi::kSuccess;
    case abi::kFuncClusterWidth:
    case abi::kFuncClusterHeight:
    case abi::kFuncClusterDepth: {
      if (value < 0 || kernel.info.required_cluster.x)
        return refuse("the cluster dimension is fixed or negative");
      Dim3& cluster = kernel.cluster_attribute;
      if (!cluster.x) cluster = {1, 1, 1};
      (attribute == abi::kFuncClusterWidth    ? cluster.x
       : attribute == abi::kFuncClusterHeight ? cluster.y
                                              : cluster.z) = static_cast<uint32_t>(value);
      if (value == 0) cluster = {0, 0, 0};
      return abi::kSuccess;
    }
    case abi::kFuncNonportableCluster:
      kernel.nonportable_cluster = value != 0;
      return abi::kSuccess;
    case abi::kFuncClusterScheduling:
      kernel.scheduling = value;
      return abi::kSuccess;
    default:
      return refuse("attribute " + std::to_string(attribute) + " cannot be set");
  }
}

int max_cluster_size(const ChipLimits& chip, const Kernel& kernel) {
  return as_int(kernel.nonportable_cluster ? chip.max_cluster_size_nonportable
                                           : chip.max_cluster_size);
}

int active_clusters(const ChipLimits& chip, const Kernel& kernel, const LaunchShape& shape) {
  uint64_t size =
      std::max<uint64_t>(1, (shape.cluster.x ? shape.cluster : kernel.cluster_attribute).volume());
  uint64_t blocks = blocks_per_multiprocessor(chip, kernel.info, shape.block.volume(),
                                              shape.dynamic_shared_bytes);
  return as_int(blocks * chip.multiprocessors / size);
}

namespace {

struct ErrorRow {
  int code;
  const char *runtime, *driver;
};
constexpr ErrorRow kErrors[] = {
#define PTXB_ERROR(code, runtime, driver) {code, runtime, driver},
#include "shim/errors.def"
#undef PTXB_ERROR
};

const ErrorRow* error_row(int code) {
  auto found = std::find_if(std::begin(kErrors), std::end(kErrors),
                            [code](const ErrorRow& row) { return row.code == code; });
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace

const char* error_name(int code) {
  const ErrorRow* row = error_row(code);
  return row && row->runtime[0] ? row->runtime : nullptr;
}

const char* driver_error_name(int code) {
  const ErrorRow* row = error_row(code);
  return row && row->driver[0] ? row->driver : nullptr;
}

// Words for the codes that host code meets here; the name for the rest.
const char* error_text(int code) {
  switch (code) {
    case abi::kSuccess:
      return "no error";
    case abi::kInvalidValue:
      return "invalid argument";
    case abi::kOutOfMemory:
      return "out of memory";
    case abi::kInvalidConfiguration:
      return "invalid configuration argument";
    case abi::kInvalidSymbol:
      return "invalid device symbol";
    case abi::kInvalidDeviceFunction:
      return "invalid device function";
    case abi::kInvalidDevice:
      return "invalid device ordinal";
    case abi::kInvalidHandle:
      return "invalid resource handle";
    case abi::kNotFound:
      return "named symbol not found";
    case abi::kOutOfResources:
      return "too many resources requested for launch";
    case abi::kCooperativeTooLarge:
      return "too many blocks in cooperative launch";
    case abi::kNotSupported:
      return "operation not supported";
    case abi::kInvalidClusterSize:
      return "invalid cluster size";
    default:
      break;
  }
  const ErrorRow* row = error_row(code);
  return !row ? nullptr : row->runtime[0] ? row->runtime : row->driver;
}

}  // namespace ptxb::shim
