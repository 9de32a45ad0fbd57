// Owns the parameters of the bit model for Hopper's wgmma: one fused block an instruction; fp8
// keeps 13 bits. Never used for mma.sync. Sources as in mma_exact.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/arith/mma_exact.h"

namespace ptxb::emu::arith {

constexpr bool is_fp8(MmaType type) { return type == MmaType::E4M3 || type == MmaType::E5M2; }

template <MmaType a_type, MmaType b_type>
inline constexpr ExactModel kWgmmaModel{.a = a_type,
                                        .b = b_type,
                                        .fraction_bits = is_fp8(a_type) ? 13 : 25,
                                        .result_fraction_bits = is_fp8(a_type) ? 13 : 23};

}  // namespace ptxb::emu::arith
