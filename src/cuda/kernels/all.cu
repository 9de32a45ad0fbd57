// One translation unit of all device kernels of the worker: one cubin an architecture, embedded in
// ptxbench-worker.
// SPDX-License-Identifier: Apache-2.0
#include "clock.cu"
#include "compare.cu"
#include "digest.cu"
#include "fill.cu"
#include "reference_attention.cu"
#include "reference_gemm.cu"
