// Owns the vector kernels of mma.sync by form; null where there is none.
// Never decides whether the CPU may run them: mma.cc does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/arith/mma.h"

namespace ptxb::emu::arith {

MmaFunction avx2_float_mma(const MmaForm& form, Numerics numerics);
MmaFunction avx2_integer_mma(const MmaForm& form);

}  // namespace ptxb::emu::arith
