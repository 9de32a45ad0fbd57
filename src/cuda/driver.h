// The one door to NVIDIA's libraries: driver, cuBLASLt, cuDNN, CUPTI and NVML are loaded at run
// time, never linked. Functions are resolved when their library is first asked for. Only src/cuda
// includes CUDA headers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>
#include <cuda.h>
#include <cudnn_backend.h>
#include <cupti_profiler_target.h>
#include <cupti_result.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>

#include <string>
#include <string_view>

#include "base/result.h"

// One row a function; the header's macros map the plain name to the versioned symbol this build was
// compiled against.
#define PTXB_DRIVER_FUNCTIONS(X)                                                                   \
  X(cuInit)                                                                                        \
  X(cuDriverGetVersion) X(cuDeviceGet) X(cuDeviceGetCount) X(cuDeviceGetName) X(                   \
      cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDeviceGetPCIBusId) X(cuDevicePrimaryCtxRetain) \
      X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuCtxSetLimit) X(      \
          cuCtxResetPersistingL2Cache) X(cuGetErrorName) X(cuGetErrorString) X(cuMemGetInfo)       \
          X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X( \
              cuMemUnmap) X(cuMemSetAccess) X(cuMemGetAllocationGranularity) X(cuMemAlloc)         \
              X(cuMemFree) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostGetDevicePointer) X(      \
                  cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuMemcpy2DAsync)  \
                  X(cuMemsetD8Async) X(cuMemsetD16Async) X(cuMemsetD32Async) X(cuMemsetD2D8Async)  \
                      X(cuMemsetD2D16Async) X(cuMemsetD2D32Async) X(cuModuleLoadDataEx)            \
                          X(cuModuleUnload) X(cuModuleGetFunction) X(cuModuleGetGlobal)            \
                              X(cuFuncSetAttribute) X(cuFuncGetAttribute) X(cuFuncGetParamInfo)    \
                                  X(cuLaunchKernelEx) X(cuStreamCreate) X(cuStreamDestroy)         \
                                      X(cuStreamSynchronize) X(cuStreamWaitEvent)                  \
                                          X(cuStreamWriteValue32) X(cuEventCreate)                 \
                                              X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery)   \
                                                  X(cuEventSynchronize) X(cuEventElapsedTime)      \
                                                      X(cuTensorMapEncodeTiled)

#define PTXB_CUBLASLT_FUNCTIONS(X)                                                                 \
  X(cublasLtCreate)                                                                                \
  X(cublasLtDestroy) X(cublasLtGetVersion) X(cublasLtMatmul) X(cublasLtMatmulDescCreate)           \
      X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate) \
          X(cublasLtMatrixLayoutDestroy) X(cublasLtMatmulPreferenceCreate)                         \
              X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute)           \
                  X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulAlgoConfigGetAttribute)

#define PTXB_CUDNN_FUNCTIONS(X)                                                                    \
  X(cudnnCreate)                                                                                   \
  X(cudnnDestroy) X(cudnnGetVersion) X(cudnnSetStream) X(cudnnGetErrorString)                      \
      X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendSetAttribute) \
          X(cudnnBackendGetAttribute) X(cudnnBackendFinalize) X(cudnnBackendExecute)               \
              X(cudnnGetLastErrorString)

#define PTXB_CUPTI_FUNCTIONS(X)                                                           \
  X(cuptiProfilerInitialize)                                                              \
  X(cuptiDeviceGetChipName) X(cuptiSassMetricsGetProperties) X(cuptiSassMetricsSetConfig) \
      X(cuptiSassMetricsUnsetConfig) X(cuptiSassMetricsEnable) X(cuptiSassMetricsDisable) \
          X(cuptiSassMetricsGetDataProperties) X(cuptiSassMetricsFlushData)               \
              X(cuptiGetResultString)

namespace ptxb::cuda {

#define PTXB_DECLARE(function) decltype(&::function) function = nullptr;
struct DriverFunctions {
  PTXB_DRIVER_FUNCTIONS(PTXB_DECLARE)
};
struct CublasLtFunctions {
  PTXB_CUBLASLT_FUNCTIONS(PTXB_DECLARE)
};
struct CudnnFunctions {
  PTXB_CUDNN_FUNCTIONS(PTXB_DECLARE)
};
struct CuptiFunctions {
  PTXB_CUPTI_FUNCTIONS(PTXB_DECLARE)
};
#undef PTXB_DECLARE

// NVML's header is not part of the toolkit's wheels; these signatures are its stable C interface.
struct NvmlFunctions {
  int (*init)() = nullptr;                                 // nvmlInit_v2
  int (*device_by_bus_id)(const char*, void**) = nullptr;  // nvmlDeviceGetHandleByPciBusId_v2
  int (*driver_version)(char*, unsigned) = nullptr;        // nvmlSystemGetDriverVersion
  int (*power_usage_mw)(void*, unsigned*) = nullptr;       // nvmlDeviceGetPowerUsage
  int (*clock_event_reasons)(void*, unsigned long long*) =
      nullptr;  // nvmlDeviceGetCurrentClocksEventReasons; may be null
};

// Each loads its library once a process. Error: Harness naming the library, or the first symbol it
// lacks.
Result<const DriverFunctions*> load_driver();
Result<const CublasLtFunctions*> load_cublaslt();
Result<const CudnnFunctions*> load_cudnn();
Result<const CuptiFunctions*> load_cupti();
Result<const NvmlFunctions*> load_nvml();

// REQUIRES: load_driver() succeeded before.
const DriverFunctions& driver();

// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
std::string describe(CUresult result);
// True when the context is lost: every later call fails the same way, and the process must end.
bool is_sticky(CUresult result);
// Called when the context is lost or a kernel does not end: from then on nothing is given back
// (each call would fail, or wait for ever), and the process must end after its last word.
void abandon_context();
bool context_abandoned();
// Error: Harness "<what>: <description>". For our own calls; what a candidate can cause goes
// through replay.h's Trouble.
Result<void> cuda_check(CUresult result, std::string_view what);

}  // namespace ptxb::cuda
