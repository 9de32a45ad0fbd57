// Owns the exact-mode function of fp8 mma.sync forms.
// Never checks the form: mma.cc does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/arith/mma.h"

namespace ptxb::emu::arith {

MmaFunction exact_fp8_mma(const MmaForm& form);

}  // namespace ptxb::emu::arith
