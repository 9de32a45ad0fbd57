// Owns the .approx and .full functions (see approx.h): accurate values, PTX's special cases.
// Never reproduces the hardware's last bit.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/approx.h"

#include <bit>
#include <cmath>

#include "emu/arith/convert.h"
#include "emu/arith/ex2.h"
#include "emu/arith/soft_float.h"

namespace ptxb::emu::arith {
namespace {

constexpr uint32_t kSign32 = 0x80000000u;
constexpr uint32_t kInfinity32 = 0x7f800000u;
constexpr uint64_t kUpperWord = 0xffffffff00000000ull;
constexpr uint64_t kApproxNanF64 = 0x7fffffff00000000ull;

uint32_t flush(uint32_t bits, FloatControl control) {
  return control.ftz && (bits & kInfinity32) == 0 ? bits & kSign32 : bits;
}
bool is_nan(uint32_t bits) { return (bits & ~kSign32) > kInfinity32; }
bool is_infinite(uint32_t bits) { return (bits & ~kSign32) == kInfinity32; }
float value(uint32_t bits) { return std::bit_cast<float>(bits); }

uint32_t finish(float result, FloatControl control) {
  uint32_t bits = std::bit_cast<uint32_t>(result);
  return is_nan(bits) ? kNanF32 : flush(bits, control);
}
// f64 results are rounded once to f32.
uint32_t finish(double result, FloatControl control) {
  return finish(static_cast<float>(result), control);
}

float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// Flushes subnormals of the 1.11.20 format and drops the lower word.
uint64_t flush_upper(uint64_t bits) {
  bits &= kUpperWord;
  return (bits & kFormatF64.infinity()) == 0 ? bits & kFormatF64.sign_bit() : bits;
}
uint64_t finish_upper(double result) {
  if (std::isnan(result)) return kApproxNanF64;
  uint64_t bits = std::bit_cast<uint64_t>(result);
  if ((bits & kFormatF64.infinity()) != kFormatF64.infinity())
    bits += uint64_t{1} << 31;  // nearest
  return flush_upper(bits);
}

template <class Function>
uint32_t by_halves(uint32_t pair, Function function) {
  return uint32_t{function(static_cast<uint16_t>(pair))} |
         (uint32_t{function(static_cast<uint16_t>(pair >> 16))} << 16);
}

}  // namespace

uint32_t ex2_approx_f32(uint32_t a, FloatControl control) {
  if (is_nan(a)) return kNanF32;
  float clamped = value(a) < kEx2Lowest ? kEx2Lowest : value(a);
  clamped = clamped > kEx2Highest ? kEx2Highest : clamped;
  float whole = std::nearbyint(clamped);
  float rest = clamped - whole;
  float result = kEx2Coefficients[6];
  for (int i = 5; i >= 0; --i) result = std::fma(result, rest, kEx2Coefficients[i]);
  int exponent = static_cast<int>(whole);
  int half = exponent >> 1;
  return flush(std::bit_cast<uint32_t>(result * power_of_two(half) * power_of_two(exponent - half)),
               control);
}

uint32_t lg2_approx_f32(uint32_t a, FloatControl control) {
  return finish(std::log2(double{value(flush(a, control))}), control);
}

uint32_t rcp_approx_f32(uint32_t a, FloatControl control) {
  return finish(1.0f / value(flush(a, control)), control);
}

uint32_t rsqrt_approx_f32(uint32_t a, FloatControl control) {
  return finish(1.0 / std::sqrt(double{value(flush(a, control))}), control);
}

uint32_t sqrt_approx_f32(uint32_t a, FloatControl control) {
  return finish(std::sqrt(value(flush(a, control))), control);
}

uint32_t sin_approx_f32(uint32_t a, FloatControl control) {
  if (is_infinite(a)) return kNanF32;
  return finish(std::sin(double{value(flush(a, control))}), control);
}

uint32_t cos_approx_f32(uint32_t a, FloatControl control) {
  if (is_infinite(a)) return kNanF32;
  return finish(std::cos(double{value(flush(a, control))}), control);
}

uint32_t tanh_approx_f32(uint32_t a) { return finish(std::tanh(double{value(a)}), {}); }

uint32_t div_approx_f32(uint32_t a, uint32_t b, FloatControl control) {
  a = flush(a, control);
  b = flush(b, control);
  // Above 2^126 the reciprocal is flushed: the quotient is a signed zero, or NaN for an infinite
  // dividend.
  uint32_t magnitude = b & ~kSign32;
  if (magnitude > 0x7e800000u && magnitude <= kInfinity32) {
    if (is_nan(a) || is_infinite(a)) return kNanF32;
    return (a ^ b) & kSign32;
  }
  return finish(value(a) / value(b), control);
}

uint32_t div_full_f32(uint32_t a, uint32_t b, FloatControl control) {
  return finish(value(flush(a, control)) / value(flush(b, control)), control);
}

uint64_t rcp_approx_ftz_f64(uint64_t a) {
  return finish_upper(1.0 / std::bit_cast<double>(flush_upper(a)));
}

uint64_t rsqrt_approx_ftz_f64(uint64_t a) {
  double operand = std::bit_cast<double>(flush_upper(a));
  return finish_upper(1.0 / std::sqrt(operand));
}

uint64_t rsqrt_approx_f64(uint64_t a) {
  double result = 1.0 / std::sqrt(std::bit_cast<double>(a));
  return std::isnan(result) ? kNanF64 : std::bit_cast<uint64_t>(result);
}

uint16_t ex2_approx_half(Half format, uint16_t a, FloatControl control) {
  uint32_t wide = half_to_f32(format, a);
  if (is_nan(wide)) return kNanHalf;
  double result =
      std::exp2(double{value(flush(wide, {.ftz = control.ftz && format == Half::BF16}))});
  Scalar target = format == Half::F16 ? Scalar::F16 : Scalar::BF16;
  uint16_t bits =
      static_cast<uint16_t>(convert(target, Scalar::F64, std::bit_cast<uint64_t>(result)));
  uint16_t exponent_mask = format == Half::F16 ? 0x7c00 : 0x7f80;
  return control.ftz && (bits & exponent_mask) == 0 ? uint16_t{0} : bits;
}

uint16_t tanh_approx_half(Half format, uint16_t a) {
  uint32_t wide = half_to_f32(format, a);
  if (is_nan(wide)) return kNanHalf;
  double result = std::tanh(double{value(wide)});
  Scalar target = format == Half::F16 ? Scalar::F16 : Scalar::BF16;
  return static_cast<uint16_t>(convert(target, Scalar::F64, std::bit_cast<uint64_t>(result)));
}

uint32_t ex2_approx_half2(Half format, uint32_t a, FloatControl control) {
  return by_halves(a, [&](uint16_t half) { return ex2_approx_half(format, half, control); });
}

uint32_t tanh_approx_half2(Half format, uint32_t a) {
  return by_halves(a, [&](uint16_t half) { return tanh_approx_half(format, half); });
}

}  // namespace ptxb::emu::arith
