// Compares the declared interface with the toolkit's own headers; compiled only where they are
// found.
// SPDX-License-Identifier: Apache-2.0
#include "shim/abi.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace ptxb::shim::abi {
namespace {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_PLACE(ours, our_field, theirs, their_field) \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field))

SAME_SIZE(LaunchAttribute, cudaLaunchAttribute);
SAME_SIZE(LaunchAttribute, CUlaunchAttribute);
SAME_PLACE(LaunchAttribute, value, cudaLaunchAttribute, val);
SAME_SIZE(RuntimeLaunchConfig, cudaLaunchConfig_t);
SAME_PLACE(RuntimeLaunchConfig, stream, cudaLaunchConfig_t, stream);
SAME_PLACE(RuntimeLaunchConfig, attribute_count, cudaLaunchConfig_t, numAttrs);
SAME_SIZE(DriverLaunchConfig, CUlaunchConfig);
SAME_PLACE(DriverLaunchConfig, dynamic_shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_PLACE(DriverLaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(FuncAttributes, cudaFuncAttributes);
SAME_PLACE(FuncAttributes, registers, cudaFuncAttributes, numRegs);
SAME_PLACE(FuncAttributes, carveout, cudaFuncAttributes, preferredShmemCarveout);
SAME_PLACE(FuncAttributes, cluster_must_be_set, cudaFuncAttributes, clusterDimMustBeSet);
SAME_PLACE(FuncAttributes, nonportable_cluster, cudaFuncAttributes, nonPortableClusterSizeAllowed);
SAME_PLACE(FuncAttributes, reserved, cudaFuncAttributes, reserved);
SAME_SIZE(PointerAttributes, cudaPointerAttributes);
SAME_PLACE(PointerAttributes, host_pointer, cudaPointerAttributes, hostPointer);
SAME_SIZE(KernelNodeParams, cudaKernelNodeParams);
SAME_PLACE(KernelNodeParams, params, cudaKernelNodeParams, kernelParams);
SAME_SIZE(DriverKernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2);
SAME_PLACE(DriverKernelNodeParams, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_SIZE(MemsetNodeParams, cudaMemsetParams);
SAME_PLACE(MemsetNodeParams, element_bytes, cudaMemsetParams, elementSize);
SAME_PLACE(MemsetNodeParams, height, cudaMemsetParams, height);
SAME_SIZE(MemsetNodeParams, CUDA_MEMSET_NODE_PARAMS);
SAME_SIZE(Memcpy3DParams, cudaMemcpy3DParms);
SAME_PLACE(Memcpy3DParams, destination, cudaMemcpy3DParms, dstPtr);
SAME_PLACE(Memcpy3DParams, kind, cudaMemcpy3DParms, kind);
SAME_SIZE(DriverMemcpy2D, CUDA_MEMCPY2D);
SAME_PLACE(DriverMemcpy2D, destination_device, CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(DriverMemcpy2D, height, CUDA_MEMCPY2D, Height);
SAME_SIZE(GraphInstantiateParams, cudaGraphInstantiateParams);
SAME_SIZE(GraphUpdateInfo, cudaGraphExecUpdateResultInfo);
SAME_SIZE(DeviceProperties, cudaDeviceProp);
SAME_PLACE(DeviceProperties, total_memory, cudaDeviceProp, totalGlobalMem);
SAME_PLACE(DeviceProperties, max_grid_size, cudaDeviceProp, maxGridSize);
SAME_PLACE(DeviceProperties, multiprocessors, cudaDeviceProp, multiProcessorCount);
SAME_PLACE(DeviceProperties, texture_limits, cudaDeviceProp, maxTexture1D);
SAME_PLACE(DeviceProperties, surface_alignment, cudaDeviceProp, surfaceAlignment);
SAME_PLACE(DeviceProperties, l2_bytes, cudaDeviceProp, l2CacheSize);
SAME_PLACE(DeviceProperties, shared_per_multiprocessor, cudaDeviceProp, sharedMemPerMultiprocessor);
SAME_PLACE(DeviceProperties, cooperative_launch, cudaDeviceProp, cooperativeLaunch);
SAME_PLACE(DeviceProperties, shared_per_block_optin, cudaDeviceProp, sharedMemPerBlockOptin);
SAME_PLACE(DeviceProperties, reserved_shared_per_block, cudaDeviceProp, reservedSharedMemPerBlock);
SAME_PLACE(DeviceProperties, cluster_launch, cudaDeviceProp, clusterLaunch);
SAME_PLACE(DeviceProperties, reserved, cudaDeviceProp, reserved);

TEST(Abi, NumbersAreTheToolkits) {
  EXPECT_EQ(int{kInvalidConfiguration}, int{cudaErrorInvalidConfiguration});
  EXPECT_EQ(int{kInvalidClusterSize}, int{cudaErrorInvalidClusterSize});
  EXPECT_EQ(int{kInvalidHandle}, int{CUDA_ERROR_INVALID_HANDLE});
  EXPECT_EQ(int{kCaptureUnjoined}, int{cudaErrorStreamCaptureUnjoined});
  EXPECT_EQ(int{kGraphUpdateFailure}, int{cudaErrorGraphExecUpdateFailure});
  EXPECT_EQ(int{kInvalidDeviceFunction}, int{cudaErrorInvalidDeviceFunction});
  EXPECT_EQ(int{kPeerAccessNotEnabled}, int{cudaErrorPeerAccessNotEnabled});
  EXPECT_EQ(int{kCooperativeTooLarge}, int{cudaErrorCooperativeLaunchTooLarge});
  EXPECT_EQ(int{kAttrClusterDimension}, int{cudaLaunchAttributeClusterDimension});
  EXPECT_EQ(int{kAttrProgrammaticSerialization},
            int{cudaLaunchAttributeProgrammaticStreamSerialization});
  EXPECT_EQ(int{kAttrCooperative}, int{CU_LAUNCH_ATTRIBUTE_COOPERATIVE});
  EXPECT_EQ(int{kAttrNvlinkScheduling}, int{CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING});
  EXPECT_EQ(int{kFuncMaxDynamicShared}, int{cudaFuncAttributeMaxDynamicSharedMemorySize});
  EXPECT_EQ(int{kFuncNonportableCluster}, int{CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED});
  EXPECT_EQ(int{kDeviceToDevice}, int{cudaMemcpyDeviceToDevice});
  EXPECT_EQ(int{kDevice}, int{cudaMemoryTypeDevice});
  EXPECT_EQ(sizeof(CUtensorMap), size_t{128});
}

}  // namespace
}  // namespace ptxb::shim::abi
