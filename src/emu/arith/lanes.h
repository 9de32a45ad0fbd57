// Owns the 32-lane forms of the hot operations: whole registers (32 x u32, SoA) in and out, AVX2
// chosen once at run time. Never masks: every lane is computed and written (blend outside for
// partial warps). d may be any of the inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emu/arith/controls.h"
#include "emu/arith/float_ops.h"

namespace ptxb::emu::arith {

// Each pointer is to 32 consecutive u32, 32-byte alignment not required. Same bits as the scalar
// functions.
using LaneUnary = void (*)(uint32_t* d, const uint32_t* a);
using LaneBinary = void (*)(uint32_t* d, const uint32_t* a, const uint32_t* b);
using LaneTernary = void (*)(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c);
using LaneCompare = uint32_t (*)(const uint32_t* a, const uint32_t* b);  // bit i: lane i

// Returned functions are fixed at decode time. Every control the PTX instruction allows is served
// (rare ones by a loop over the scalar function); null only for controls that PTX does not have for
// the instruction.
LaneBinary lane_add_f32(FloatControl control);
LaneBinary lane_sub_f32(FloatControl control);
LaneBinary lane_mul_f32(FloatControl control);
LaneTernary lane_fma_f32(FloatControl control);
LaneBinary lane_min_f32(MinMaxControl control);
LaneBinary lane_max_f32(MinMaxControl control);
LaneCompare lane_compare_f32(FloatCompare code, FloatControl control);
LaneUnary lane_ex2_approx_f32(FloatControl control);
LaneUnary lane_lg2_approx_f32(FloatControl control);
LaneUnary lane_rcp_approx_f32(FloatControl control);

LaneBinary lane_add_half2(Half format, FloatControl control);
LaneBinary lane_sub_half2(Half format, FloatControl control);
LaneBinary lane_mul_half2(Half format, FloatControl control);
LaneTernary lane_fma_half2(Half format, FloatControl control);
LaneBinary lane_min_half2(Half format, MinMaxControl control);
LaneBinary lane_max_half2(Half format, MinMaxControl control);

// cvt.rn.{f16x2,bf16x2}.f32 d, a, b (a to the upper halves); cvt.rn.{f16,bf16}.f32;
// cvt.f32.{f16,bf16} (low half of a).
LaneBinary lane_pack_half2(Half format);
LaneUnary lane_half_from_f32(Half format);
LaneUnary lane_half_to_f32(Half format);

void lane_lop3(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c, uint8_t table);

// For tests and benchmarks: forget the CPU's features (Portable) or use them again (Native). Not
// while other threads run.
enum class LanePath : uint8_t { Native, Portable };
void select_lane_path(LanePath path);

}  // namespace ptxb::emu::arith
