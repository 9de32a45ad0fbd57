// Owns the AVX2 lane functions by name; null where there is none (other CPU family, rare control).
// Never decides whether the CPU may run them: lanes.cc does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/arith/lanes.h"

namespace ptxb::emu::arith {

LaneBinary avx2_add_f32(FloatControl control);
LaneBinary avx2_sub_f32(FloatControl control);
LaneBinary avx2_mul_f32(FloatControl control);
LaneTernary avx2_fma_f32(FloatControl control);
LaneBinary avx2_min_f32(MinMaxControl control);
LaneBinary avx2_max_f32(MinMaxControl control);
LaneCompare avx2_compare_f32(FloatCompare code, FloatControl control);
LaneUnary avx2_ex2_approx_f32(FloatControl control);
LaneUnary avx2_rcp_approx_f32(FloatControl control);

LaneBinary avx2_add_half2(Half format, FloatControl control);
LaneBinary avx2_sub_half2(Half format, FloatControl control);
LaneBinary avx2_mul_half2(Half format, FloatControl control);
LaneTernary avx2_fma_half2(Half format, FloatControl control);
LaneBinary avx2_min_half2(Half format, MinMaxControl control);
LaneBinary avx2_max_half2(Half format, MinMaxControl control);

LaneBinary avx2_pack_half2(Half format);
LaneUnary avx2_half_from_f32(Half format);
LaneUnary avx2_half_to_f32(Half format);

}  // namespace ptxb::emu::arith
