// Owns the vector kernels of wgmma by form; multiply == nullptr where there is none.
// Never decides whether the CPU may run them: wgmma.cc does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/arith/wgmma.h"

namespace ptxb::emu::arith {

WgmmaKernel avx2_wgmma_kernel(const WgmmaForm& form, Numerics numerics);

}  // namespace ptxb::emu::arith
