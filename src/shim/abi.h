// Owns the few types of CUDA's public binary interface (version 13) that the shims read or fill:
// facts, not code. abi_test.cc compares every size and offset with the toolkit's headers where
// there are any. Never includes them itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptxb::shim::abi {

// Result codes; the runtime and the driver share the numbers except where noted.
enum Code : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidConfiguration = 9,  // runtime only; the driver says kInvalidValue
  kInvalidPitch = 12,         // runtime only
  kInvalidSymbol = 13,        // runtime only
  kInvalidMemcpyDirection = 21,
  kInvalidDeviceFunction = 98,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kPeerAccessUnsupported = 217,
  kInvalidPtx = 218,
  kInvalidHandle = 400,
  kNotFound = 500,
  kOutOfResources = 701,
  kPeerAccessNotEnabled = 705,
  kCooperativeTooLarge = 720,
  kNotPermitted = 800,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kGraphUpdateFailure = 910,
  kInvalidClusterSize = 912,
};

struct Dim3 {
  uint32_t x, y, z;
};

union LaunchAttributeValue {
  char pad[64];
  int flag;  // cooperative, programmaticStreamSerializationAllowed, priority ...
  Dim3 cluster;
};
struct LaunchAttribute {
  int id;
  char pad[4];
  LaunchAttributeValue value;
};
enum LaunchAttributeId : int {
  kAttrIgnore = 0,
  kAttrAccessPolicyWindow = 1,
  kAttrCooperative = 2,
  kAttrSynchronizationPolicy = 3,
  kAttrClusterDimension = 4,
  kAttrClusterScheduling = 5,
  kAttrProgrammaticSerialization = 6,
  kAttrProgrammaticEvent = 7,
  kAttrPriority = 8,
  kAttrMemSyncDomainMap = 9,
  kAttrMemSyncDomain = 10,
  kAttrPreferredCluster = 11,
  kAttrLaunchCompletionEvent = 12,
  kAttrDeviceUpdatableNode = 13,
  kAttrSharedCarveout = 14,
  kAttrNvlinkScheduling = 16,
};

struct RuntimeLaunchConfig {  // cudaLaunchConfig_t
  Dim3 grid, block;
  size_t dynamic_shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
struct DriverLaunchConfig {  // CUlaunchConfig
  Dim3 grid, block;
  unsigned dynamic_shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct FuncAttributes {  // cudaFuncAttributes
  size_t shared_bytes, const_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared_bytes,
      carveout;
  int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_scheduling,
      nonportable_cluster;
  int reserved[16];
};
enum FuncAttribute : int {  // cudaFuncAttribute and CUfunction_attribute share these
  kFuncMaxThreads = 0,
  kFuncSharedBytes = 1,
  kFuncConstBytes = 2,
  kFuncLocalBytes = 3,
  kFuncRegisters = 4,
  kFuncPtxVersion = 5,
  kFuncBinaryVersion = 6,
  kFuncCacheModeCa = 7,
  kFuncMaxDynamicShared = 8,
  kFuncCarveout = 9,
  kFuncClusterMustBeSet = 10,
  kFuncClusterWidth = 11,
  kFuncClusterHeight = 12,
  kFuncClusterDepth = 13,
  kFuncNonportableCluster = 14,
  kFuncClusterScheduling = 15,
};

enum MemoryType : int {
  kUnregistered = 0,
  kHost = 1,
  kDevice = 2,
  kManaged = 3
};  // cudaMemoryType; CUmemorytype agrees
struct PointerAttributes {
  int type, device;
  void *device_pointer, *host_pointer;
  long reserved[8];
};

enum CopyKind : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kDefaultKind = 4
};

struct KernelNodeParams {  // cudaKernelNodeParams
  void* func;
  Dim3 grid, block;
  unsigned dynamic_shared_bytes;
  void** params;
  void** extra;
};
struct DriverKernelNodeParams {  // CUDA_KERNEL_NODE_PARAMS_v2
  void* func;
  Dim3 grid, block;
  unsigned dynamic_shared_bytes;
  void** params;
  void** extra;
  void* kernel;
  void* context;
};
struct MemsetNodeParams {  // cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS
  void* destination;
  size_t pitch_bytes;
  unsigned value, element_bytes;
  size_t width_elements, height;
};
struct PitchedPtr {
  void* pointer;
  size_t pitch_bytes, width, height;
};
struct Extent {
  size_t x, y, z;  // cudaPos and cudaExtent
};
struct Memcpy3DParams {  // cudaMemcpy3DParms
  void* source_array;
  Extent source_position;
  PitchedPtr source;
  void* destination_array;
  Extent destination_position;
  PitchedPtr destination;
  Extent extent;
  int kind;
};
struct DriverMemcpy2D {  // CUDA_MEMCPY2D
  size_t source_x, source_y;
  int source_type;
  const void* source_host;
  uint64_t source_device;
  void* source_array;
  size_t source_pitch;
  size_t destination_x, destination_y;
  int destination_type;
  void* destination_host;
  uint64_t destination_device;
  void* destination_array;
  size_t destination_pitch;
  size_t width_bytes, height;
};
struct GraphInstantiateParams {  // cudaGraphInstantiateParams
  unsigned long long flags;
  void* upload_stream;
  void* error_node;
  int result;
};
struct GraphUpdateInfo {  // cudaGraphExecUpdateResultInfo
  int result;
  void *error_node, *error_from_node;
};

// cudaDeviceProp of CUDA 13: only what has a value here is named one by one.
struct DeviceProperties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_node_mask;
  size_t total_memory, shared_per_block;
  int registers_per_block, warp_size;
  size_t memory_pitch;
  int max_threads_per_block, max_threads_dim[3], max_grid_size[3];
  size_t total_constant;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int multiprocessors, integrated, can_map_host_memory;
  int texture_limits[25];
  int surface_limits[14];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, async_engines,
      unified_addressing;
  int memory_bus_bits, l2_bytes, persisting_l2_bytes, max_threads_per_multiprocessor,
      stream_priorities;
  int global_l1, local_l1;
  size_t shared_per_multiprocessor;
  int registers_per_multiprocessor, managed_memory, multi_gpu_board, multi_gpu_group,
      host_native_atomics;
  int pageable_access, concurrent_managed, compute_preemption, host_pointer_registered,
      cooperative_launch;
  size_t shared_per_block_optin;
  int pageable_host_tables, direct_managed, max_blocks_per_multiprocessor, access_policy_window;
  size_t reserved_shared_per_block;
  int host_register, sparse_array, host_register_read_only, timeline_semaphore, memory_pools, rdma;
  unsigned rdma_flush;
  int rdma_ordering;
  unsigned pool_handles;
  int deferred_array, ipc_event, cluster_launch, unified_function_pointers, numa_config, numa_id,
      mps, host_numa;
  unsigned pci_device_id, pci_subsystem_id;
  int host_numa_ipc, reserved[56];
};

}  // namespace ptxb::shim::abi
