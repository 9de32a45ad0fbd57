// Owns scalar IEEE arithmetic on bit patterns: f64, f32, f16, bf16 and the packed halves, all PTX
// rounding modes. Never touches the host's rounding mode; never traps. NaN results are canonical
// (controls.h); f64 carries NaN payloads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emu/arith/controls.h"

namespace ptxb::emu::arith {

// f32 (PTX ISA 9.7.3). .round, .ftz and .sat apply.
uint32_t add_f32(uint32_t a, uint32_t b, FloatControl control = {});
uint32_t sub_f32(uint32_t a, uint32_t b, FloatControl control = {});
uint32_t mul_f32(uint32_t a, uint32_t b, FloatControl control = {});
uint32_t fma_f32(uint32_t a, uint32_t b, uint32_t c, FloatControl control = {});
uint32_t div_f32(uint32_t a, uint32_t b,
                 FloatControl control = {});  // div.rnd; .approx and .full: approx.h
uint32_t rcp_f32(uint32_t a, FloatControl control = {});
uint32_t sqrt_f32(uint32_t a, FloatControl control = {});
uint32_t min_f32(uint32_t a, uint32_t b, MinMaxControl control = {});
uint32_t max_f32(uint32_t a, uint32_t b, MinMaxControl control = {});
uint32_t min3_f32(uint32_t a, uint32_t b, uint32_t c, MinMaxControl control = {});
uint32_t max3_f32(uint32_t a, uint32_t b, uint32_t c, MinMaxControl control = {});
uint32_t neg_f32(uint32_t a, FloatControl control = {});                                 // .ftz
uint32_t abs_f32(uint32_t a, FloatControl control = {});                                 // .ftz
bool compare_f32(FloatCompare code, uint32_t a, uint32_t b, FloatControl control = {});  // .ftz
bool test_f32(FloatProperty property, uint32_t a);
uint32_t copysign_f32(uint32_t sign_from,
                      uint32_t magnitude_from);  // copysign d, a, b: sign of a, magnitude of b

// f64. Only .round applies.
uint64_t add_f64(uint64_t a, uint64_t b, FloatControl control = {});
uint64_t sub_f64(uint64_t a, uint64_t b, FloatControl control = {});
uint64_t mul_f64(uint64_t a, uint64_t b, FloatControl control = {});
uint64_t fma_f64(uint64_t a, uint64_t b, uint64_t c, FloatControl control = {});
uint64_t div_f64(uint64_t a, uint64_t b, FloatControl control = {});
uint64_t rcp_f64(uint64_t a, FloatControl control = {});
uint64_t sqrt_f64(uint64_t a, FloatControl control = {});
uint64_t min_f64(uint64_t a, uint64_t b);
uint64_t max_f64(uint64_t a, uint64_t b);
uint64_t neg_f64(uint64_t a);
uint64_t abs_f64(uint64_t a);
bool compare_f64(FloatCompare code, uint64_t a, uint64_t b);
bool test_f64(FloatProperty property, uint64_t a);
uint64_t copysign_f64(uint64_t sign_from, uint64_t magnitude_from);

// The formats of a 16-bit float. Arithmetic is rounded once, to nearest even.
enum class Half : uint8_t { F16, BF16 };

// f16 and bf16 (PTX ISA 9.7.4). .ftz and .sat exist for f16 only, .relu and .oob for fma.
uint16_t add_half(Half format, uint16_t a, uint16_t b, FloatControl control = {});
uint16_t sub_half(Half format, uint16_t a, uint16_t b, FloatControl control = {});
uint16_t mul_half(Half format, uint16_t a, uint16_t b, FloatControl control = {});
uint16_t fma_half(Half format, uint16_t a, uint16_t b, uint16_t c, FloatControl control = {});
uint16_t min_half(Half format, uint16_t a, uint16_t b, MinMaxControl control = {});
uint16_t max_half(Half format, uint16_t a, uint16_t b, MinMaxControl control = {});
uint16_t neg_half(Half format, uint16_t a, FloatControl control = {});
uint16_t abs_half(Half format, uint16_t a, FloatControl control = {});
bool compare_half(FloatCompare code, Half format, uint16_t a, uint16_t b,
                  FloatControl control = {});

// Packed pairs: the low and the high half separately. Lane forms of the hot ones: lanes.h.
uint32_t add_half2(Half format, uint32_t a, uint32_t b, FloatControl control = {});
uint32_t sub_half2(Half format, uint32_t a, uint32_t b, FloatControl control = {});
uint32_t mul_half2(Half format, uint32_t a, uint32_t b, FloatControl control = {});
uint32_t fma_half2(Half format, uint32_t a, uint32_t b, uint32_t c, FloatControl control = {});
uint32_t min_half2(Half format, uint32_t a, uint32_t b, MinMaxControl control = {});
uint32_t max_half2(Half format, uint32_t a, uint32_t b, MinMaxControl control = {});
uint32_t neg_half2(Half format, uint32_t a, FloatControl control = {});
uint32_t abs_half2(Half format, uint32_t a, FloatControl control = {});
// Bit 0: result for the low halves, bit 1: for the high halves (setp d|q).
uint32_t compare_half2(FloatCompare code, Half format, uint32_t a, uint32_t b,
                       FloatControl control = {});

}  // namespace ptxb::emu::arith
