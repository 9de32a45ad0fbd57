// Stands in for the header that a task generates, for compiling kernels/gemm without a task.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
