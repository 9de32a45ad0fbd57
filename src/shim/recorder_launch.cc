// Kernel launches and tensor maps: the driver's own checks, and the notes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "shim/occupancy.h"
#include "shim/recorder.h"
#include "shim/tensor_map.h"

namespace ptxb::shim {

namespace {

std::string number(uint64_t value) { return std::to_string(value); }
std::string dim_text(const Dim3& d) {
  return "(" + number(d.x) + "," + number(d.y) + "," + number(d.z) + ")";
}

struct Broken {
  Code code = abi::kSuccess;
  std::string why;
};

Broken check_shape(const LaunchShape& shape) {
  const Dim3 &g = shape.grid, &b = shape.block;
  if (!g.x || !g.y || !g.z)
    return {abi::kInvalidConfiguration, "the grid " + dim_text(g) + " is empty"};
  if (!b.x || !b.y || !b.z)
    return {abi::kInvalidConfiguration, "the block " + dim_text(b) + " is empty"};
  if (g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535) {
    return {abi::kInvalidConfiguration,
            "the grid " + dim_text(g) + " exceeds (2147483647,65535,65535)"};
  }
  if (b.x > 1024 || b.y > 1024 || b.z > 64 || b.volume() > 1024) {
    return {abi::kInvalidConfiguration,
            "the block " + dim_text(b) + " exceeds 1024 threads or (1024,1024,64)"};
  }
  return {};
}

Broken check_resources(const ChipLimits& chip, const Kernel& kernel, const LaunchShape& shape) {
  uint64_t threads = shape.block.volume();
  if (kernel.info.max_threads && threads > kernel.info.max_threads) {
    return {abi::kOutOfResources, number(threads) + " threads in a block, its launch bound is " +
                                      number(kernel.info.max_threads)};
  }
  if (shape.dynamic_shared_bytes > static_cast<uint64_t>(kernel.max_dynamic_shared)) {
    return {abi::kInvalidValue, number(shape.dynamic_shared_bytes) +
                                    " bytes of dynamic shared memory, the function allows " +
                                    number(static_cast<uint64_t>(kernel.max_dynamic_shared)) +
                                    " (cudaFuncAttributeMaxDynamicSharedMemorySize raises it)"};
  }
  uint64_t warps = (threads + 31) / 32;
  if (warps * registers_per_warp(kernel.info.registers) > chip.registers_per_multiprocessor) {
    return {abi::kOutOfResources, number(threads) + " threads of " + number(kernel.info.registers) +
                                      " registers do not fit into " +
                                      number(chip.registers_per_multiprocessor)};
  }
  return {};
}

Broken check_cluster(const ChipLimits& chip, const Kernel& kernel, const LaunchShape& shape,
                     const Dim3& cluster) {
  const Dim3& required = kernel.info.required_cluster;
  if (required.x && cluster != required) {
    return {abi::kInvalidClusterSize, "the cluster " + dim_text(cluster) +
                                          " differs from the kernel's own " + dim_text(required)};
  }
  uint64_t size = cluster.volume();
  if (!cluster.x || !cluster.y || !cluster.z || size > chip.max_cluster_size_nonportable) {
    return {abi::kInvalidClusterSize, "the cluster " + dim_text(cluster) +
                                          " is larger than the chip's " +
                                          number(chip.max_cluster_size_nonportable)};
  }
  if (size > chip.max_cluster_size && !kernel.nonportable_cluster) {
    return {abi::kInvalidClusterSize,
            "the cluster " + dim_text(cluster) + " is larger than " +
                number(chip.max_cluster_size) +
                " and cudaFuncAttributeNonPortableClusterSizeAllowed is not set"};
  }
  if (shape.grid.x % cluster.x || shape.grid.y % cluster.y || shape.grid.z % cluster.z) {
    return {abi::kInvalidClusterSize, "the grid " + dim_text(shape.grid) +
                                          " is no multiple of the cluster " + dim_text(cluster)};
  }
  return {};
}

// The driver's packed form: {1, pointer, 2, size*, 0}.
bool packed_params(void** extra, const void*& buffer, size_t& size_bytes) {
  constexpr uintptr_t kEnd = 0, kPointer = 1, kSize = 2;
  for (size_t i = 0; i < 6; i += 2) {
    auto tag = reinterpret_cast<uintptr_t>(extra[i]);
    if (tag == kEnd) return buffer != nullptr;
    if (tag == kPointer)
      buffer = extra[i + 1];
    else if (tag == kSize)
      size_bytes = *static_cast<size_t*>(extra[i + 1]);
    else
      return false;
  }
  return buffer != nullptr;
}

}  // namespace

Code Recorder::read_attributes(std::string_view api, const abi::LaunchAttribute* attributes,
                               unsigned count, LaunchShape& shape) {
  constexpr unsigned kMost = 64;
  if (count > kMost || (count && !attributes))
    return refuse(api, abi::kInvalidValue, "the launch attributes are malformed");
  for (unsigned i = 0; i < count; ++i) {
    const abi::LaunchAttributeValue& value = attributes[i].value;
    switch (attributes[i].id) {
      case abi::kAttrCooperative:
        shape.cooperative = value.flag != 0;
        break;
      case abi::kAttrProgrammaticSerialization:
        shape.programmatic_serialization = value.flag != 0;
        break;
      case abi::kAttrClusterDimension:
        shape.cluster = {value.cluster.x, value.cluster.y, value.cluster.z};
        break;
      case abi::kAttrPreferredCluster:
        note("a preferred cluster dimension was ignored (it is a hint)");
        break;
      case abi::kAttrAccessPolicyWindow:
        note("an access policy window was ignored");
        break;
      case abi::kAttrIgnore:
      case abi::kAttrSynchronizationPolicy:
      case abi::kAttrClusterScheduling:
      case abi::kAttrPriority:
      case abi::kAttrMemSyncDomainMap:
      case abi::kAttrMemSyncDomain:
      case abi::kAttrSharedCarveout:
      case abi::kAttrNvlinkScheduling:
        break;
      case abi::kAttrProgrammaticEvent:
        unsupported(api, "the attribute programmaticEvent");
      case abi::kAttrLaunchCompletionEvent:
        unsupported(api, "the attribute launchCompletionEvent");
      case abi::kAttrDeviceUpdatableNode:
        unsupported(api, "the attribute deviceUpdatableKernelNode");
      default:
        return refuse(api, abi::kInvalidValue,
                      "unknown launch attribute " + std::to_string(attributes[i].id));
    }
  }
  return abi::kSuccess;
}

Code Recorder::make_launch(std::string_view api, Kernel* kernel, const LaunchShape& shape,
                           void** params, void** extra, KernelLaunch& launch) {
  if (!kernel) return refuse(api, abi::kInvalidDeviceFunction, "not a kernel of this program");
  if (!kernel->known)
    unsupported(api, "kernel " + kernel->info.name + " is not in the built module");
  auto refused = [&](const Broken& broken) {
    return refuse(api, broken.code, kernel->info.name + ": " + broken.why);
  };
  if (Broken b = check_shape(shape); b.code) return refused(b);
  if (Broken b = check_resources(chip(), *kernel, shape); b.code) return refused(b);
  Dim3 cluster = shape.cluster.x ? shape.cluster : kernel->cluster_attribute;
  if (cluster.x || shape.cluster != Dim3{0, 0, 0}) {
    if (Broken b = check_cluster(chip(), *kernel, shape, cluster); b.code) return refused(b);
  }
  if (shape.cooperative) {
    uint64_t resident = uint64_t{chip().multiprocessors} *
                        blocks_per_multiprocessor(chip(), kernel->info, shape.block.volume(),
                                                  shape.dynamic_shared_bytes);
    if (shape.grid.volume() > resident) {
      return refused({abi::kCooperativeTooLarge,
                      "a cooperative grid of " + number(shape.grid.volume()) + " blocks, at most " +
                          number(resident) + " are resident at once"});
    }
  }
  launch.module = kernel->module;
  launch.kernel = kernel->info.name;
  launch.grid = shape.grid;
  launch.block = shape.block;
  launch.cluster = cluster;
  launch.dynamic_shared_bytes = static_cast<uint32_t>(shape.dynamic_shared_bytes);
  launch.cooperative = shape.cooperative;
  launch.programmatic_serialization = shape.programmatic_serialization;
  launch.params.assign(param_bytes(kernel->info), 0);
  if (kernel->info.params.empty()) return abi::kSuccess;
  const void* packed = nullptr;
  size_t packed_bytes = 0;
  if (extra && !params) {
    if (!packed_params(extra, packed, packed_bytes) || packed_bytes < launch.params.size()) {
      return refused({abi::kInvalidValue, "the packed parameters are malformed or too short"});
    }
    std::memcpy(launch.params.data(), packed, launch.params.size());
    return abi::kSuccess;
  }
  if (!params) return refused({abi::kInvalidValue, "no parameters were given"});
  for (size_t i = 0; i < kernel->info.params.size(); ++i) {
    const KernelParam& p = kernel->info.params[i];
    if (!params[i])
      return refused({abi::kInvalidValue, "parameter " + number(i) + " is a null pointer"});
    std::memcpy(launch.params.data() + p.offset_bytes, params[i], p.size_bytes);
  }
  return abi::kSuccess;
}

Code Recorder::launch(std::string_view api, Kernel* kernel, const LaunchShape& shape, void** params,
                      void** extra, Stream* stream) {
  if (!stream) return refuse(api, abi::kInvalidHandle, "not a live stream");
  KernelLaunch action;
  if (Code code = make_launch(api, kernel, shape, params, extra, action)) return code;
  return submit(api, stream, std::move(action), kernel);
}

Code Recorder::encode_tensor_map(std::string_view api, void* image, PlanTensorMap map) {
  if (!image || reinterpret_cast<uintptr_t>(image) % 64) {
    return refuse(api, abi::kInvalidValue, "the tensor map is not aligned to 64 bytes");
  }
  if (std::string fault = tensor_map_fault(map); !fault.empty())
    return refuse(api, abi::kInvalidValue, fault);
  if (map.interleave == 0) map.element_strides[0] = 1;  // ignored by the driver
  auto& maps = recording_.tensor_maps;
  auto same = [&map](const PlanTensorMap& other) {
    return other.dtype == map.dtype && other.rank == map.rank && other.address == map.address &&
           other.dims == map.dims && other.strides_bytes == map.strides_bytes &&
           other.box == map.box && other.element_strides == map.element_strides &&
           other.interleave == map.interleave && other.swizzle == map.swizzle &&
           other.l2_promotion == map.l2_promotion && other.oob_fill == map.oob_fill;
  };
  auto found = std::find_if(maps.begin(), maps.end(), same);
  if (found == maps.end()) {
    constexpr size_t kMost = 2048;  // the search above stays short
    if (maps.size() >= kMost) unsupported(api, "more than 2048 different tensor maps");
    found = maps.insert(maps.end(), map);
  }
  auto bytes = tensor_map_image(static_cast<uint32_t>(found - maps.begin()));
  std::memcpy(image, bytes.data(), bytes.size());
  return abi::kSuccess;
}

Code Recorder::replace_tensor_address(std::string_view api, void* image, uint64_t address) {
  if (!image) return abi::kInvalidValue;
  std::span<const uint8_t> bytes(static_cast<const uint8_t*>(image), kTensorMapBytes);
  if (reinterpret_cast<uintptr_t>(image) % 64 || tensor_map_images(bytes, 0).empty() ||
      tensor_map_index(bytes, 0) >= recording_.tensor_maps.size()) {
    return refuse(api, abi::kInvalidValue, "not an encoded tensor map");
  }
  PlanTensorMap map = recording_.tensor_maps[tensor_map_index(bytes, 0)];
  map.address = address;
  return encode_tensor_map(api, image, map);
}

}  // namespace ptxb::shim
