// Owns the arithmetic of how many blocks fit on a multiprocessor. Pure; numbers come from the chip
// profile. Source: CUDA C++ Programming Guide, compute capability 9.0 and 10.0; registers go to
// warps in units of 256.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shim/recording.h"

namespace ptxb::shim {

// Registers that one warp holds: whole units of 256.
uint32_t registers_per_warp(uint32_t registers_per_thread);
// Blocks resident on one multiprocessor; 0 when not even one fits.
uint32_t blocks_per_multiprocessor(const ChipLimits& chip, const KernelInfo& kernel,
                                   uint64_t threads, uint64_t dynamic_shared_bytes);
// Most dynamic shared memory that still lets `blocks` blocks be resident.
uint64_t dynamic_shared_for(const ChipLimits& chip, const KernelInfo& kernel, uint64_t blocks);

}  // namespace ptxb::shim
