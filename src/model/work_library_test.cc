// SPDX-License-Identifier: Apache-2.0
#include "model/work_library.h"

#include <gtest/gtest.h>

namespace ptxb {
namespace {

TEST(WorkLibrary, FilesAndFunctionsAreKnownByTheirBeginning) {
  for (const char* name : {"cublasGemmEx", "libcublas.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13", "libcudnn_ops.so.9",
                           "nvrtcCompileProgram", "libtorch_cuda.so", "libnvJitLink.so.13", "libc10.so"}) {
    EXPECT_TRUE(is_work_library(name)) << name;
  }
  for (const char* name : {"libcudart.so.13", "libcuda.so.1", "libstdc++.so.6", "libc.so.6", "", "/", "lib", "libtvm_ffi.so",
                           "/cublas/libmine.so", "linux-vdso.so.1"}) {
    EXPECT_FALSE(is_work_library(name)) << name;
  }
}

}  // namespace
}  // namespace ptxb
