// What the hand-written test candidates need of CUDA's C interface, so that they build where no
// toolkit is installed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
using Stream = void*;
using Event = void*;

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*,
                            void*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
int cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, Stream);
int cudaLaunchKernelExC(const void*, const void*, void**);
int cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, size_t, Stream);
int cudaFuncSetAttribute(const void*, int, int);
int cudaMalloc(void**, size_t);
int cudaFree(void*);
int cudaMallocAsync(void**, size_t, Stream);
int cudaFreeAsync(void*, Stream);
int cudaMemcpy(void*, const void*, size_t, int);
int cudaMemcpyAsync(void*, const void*, size_t, int, Stream);
int cudaMemcpy2DAsync(void*, size_t, const void*, size_t, size_t, size_t, int, Stream);
int cudaMemset(void*, int, size_t);
int cudaMemsetAsync(void*, int, size_t, Stream);
int cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, int);
int cudaGetSymbolAddress(void**, const void*);
int cudaStreamCreateWithFlags(Stream*, unsigned);
int cudaStreamSynchronize(Stream);
int cudaStreamWaitEvent(Stream, Event, unsigned);
int cudaStreamBeginCapture(Stream, int);
int cudaStreamEndCapture(Stream, void**);
int cudaGraphInstantiate(void**, void*, unsigned long long);
int cudaGraphLaunch(void*, Stream);
int cudaGraphDestroy(void*);
int cudaGraphExecDestroy(void*);
int cudaGraphExecUpdate(void*, void*, void*);
int cudaGraphCreate(void**, unsigned);
int cudaGraphAddKernelNode(void**, void*, void* const*, size_t, const void*);
int cudaGraphAddMemsetNode(void**, void*, void* const*, size_t, const void*);
int cudaGraphExecKernelNodeSetParams(void*, void*, const void*);
int cudaEventCreateWithFlags(Event*, unsigned);
int cudaEventCreate(Event*);
int cudaEventRecord(Event, Stream);
int cudaEventSynchronize(Event);
int cudaEventElapsedTime(float*, Event, Event);
int cudaDeviceSynchronize();
int cudaGetLastError();
int cudaPeekAtLastError();
const char* cudaGetErrorName(int);
int cudaGetDeviceCount(int*);
int cudaGetDeviceProperties(void*, int);
int cudaDeviceGetAttribute(int*, int, int);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, size_t);
int cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long, int*);
int cudaHostRegister(void*, size_t, unsigned);
int cudaLaunchHostFunc(Stream, void (*)(void*), void*);
int cudaMallocManaged(void**, size_t, unsigned);
int cudaStreamIsCapturing(Stream, int*);
int cuGetProcAddress_v2(const char*, void**, int, uint64_t, int*);
int cuModuleLoadData(void**, const void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuModuleGetGlobal_v2(uint64_t*, size_t*, void*, const char*);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Stream, void**, void**);
int cuMemsetD32Async(uint64_t, unsigned, size_t, Stream);
}
