// Owns the .approx and .full functions: computed to well within the documented error, special cases
// as the PTX tables say. Never claims the hardware's bits: they come from undocumented tables.
// Source: PTX ISA 9.7.3.8-9.7.3.22, 9.7.4.9-10.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emu/arith/controls.h"
#include "emu/arith/float_ops.h"

namespace ptxb::emu::arith {

// Only .ftz of the control applies. Lane form of ex2: lanes.h (same bits).
uint32_t ex2_approx_f32(uint32_t a, FloatControl control = {});
uint32_t lg2_approx_f32(uint32_t a, FloatControl control = {});
uint32_t rcp_approx_f32(uint32_t a, FloatControl control = {});
uint32_t rsqrt_approx_f32(uint32_t a, FloatControl control = {});
uint32_t sqrt_approx_f32(uint32_t a, FloatControl control = {});
uint32_t sin_approx_f32(uint32_t a, FloatControl control = {});
uint32_t cos_approx_f32(uint32_t a, FloatControl control = {});
uint32_t tanh_approx_f32(uint32_t a);
uint32_t div_approx_f32(uint32_t a, uint32_t b, FloatControl control = {});
uint32_t div_full_f32(uint32_t a, uint32_t b, FloatControl control = {});

uint64_t rcp_approx_ftz_f64(uint64_t a);
uint64_t rsqrt_approx_f64(uint64_t a);
uint64_t rsqrt_approx_ftz_f64(uint64_t a);

// ex2.approx.f16 keeps subnormals, ex2.approx.ftz.bf16 flushes them: pass .ftz as written.
uint16_t ex2_approx_half(Half format, uint16_t a, FloatControl control = {});
uint16_t tanh_approx_half(Half format, uint16_t a);
uint32_t ex2_approx_half2(Half format, uint32_t a, FloatControl control = {});
uint32_t tanh_approx_half2(Half format, uint32_t a);

}  // namespace ptxb::emu::arith
