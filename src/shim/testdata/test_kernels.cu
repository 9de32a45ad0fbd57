// What nvcc itself makes of launches, names, symbols and tensor maps. Compiled twice, as candidates are: host library, cubin.
// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdlib.h>

#include "ptxbench_task.h"

static __global__ void internal(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i];
}
namespace {
template <int N>
__global__ void __launch_bounds__(128) templated(const __grid_constant__ CUtensorMap map, float* y) {
  y[threadIdx.x] = float(reinterpret_cast<uint64_t>(&map) % N);
}
}  // namespace
__constant__ float table[16];
__device__ int counter;
struct Pack {
  char flag;
  const float* x;
  short tail;
};
__global__ void packed(Pack pack, int n, float* y) { y[0] = pack.x[n] + table[n] + float(counter); }
__global__ void __cluster_dims__(2, 1, 1) clustered(float* y) { y[blockIdx.x] = 1; }
__global__ void cooperative(float* y) {
  cooperative_groups::this_grid().sync();
  y[0] = 1;
}

#define CHECK(call) if ((call) != 0) abort()

extern "C" void run(const float* X, float* Y, int64_t N, cudaStream_t stream) {
  internal<<<unsigned((N + 255) / 256), 256, 0, stream>>>(X, Y, N);
  float values[16] = {1, 2, 3};
  CHECK(cudaMemcpyToSymbolAsync(table, values, sizeof values, 0, cudaMemcpyHostToDevice, stream));
  void* place = nullptr;
  CHECK(cudaGetSymbolAddress(&place, counter));
  CHECK(cudaMemsetAsync(place, 0, sizeof(int), stream));
  packed<<<1, 1, 0, stream>>>(Pack{1, X + 4, 3}, 5, Y);
  clustered<<<4, 32, 0, stream>>>(Y);

  cudaDriverEntryPointQueryResult found;
  void* function = nullptr;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
  auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  CUtensorMap map;
  cuuint64_t dims[] = {64, uint64_t(N) / 64}, strides[] = {256};
  cuuint32_t box[] = {32, 8}, ones[] = {1, 1};
  CHECK(encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(X), dims, strides, box, ones,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  CHECK(cudaFuncSetAttribute(templated<7>, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4);
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = 100 << 10;
  config.stream = stream;
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {4, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  config.attrs = attributes;
  config.numAttrs = 2;
  CHECK(cudaLaunchKernelEx(&config, templated<7>, map, Y));

  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, cooperative, 64, 0));
  void* params[] = {&Y};
  CHECK(cudaLaunchCooperativeKernel(cooperative, dim3(unsigned(blocks * properties.multiProcessorCount)), dim3(64), params, 0, stream));
  CHECK(cudaGetLastError());
}
