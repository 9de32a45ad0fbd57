// Owns scalar IEEE arithmetic on bit patterns (see float_ops.h). Round to nearest uses the host's
// operations (compiled without contraction), everything else the integer model.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/float_ops.h"

#include <bit>
#include <cmath>

#include "emu/arith/soft_float.h"

namespace ptxb::emu::arith {
namespace {

constexpr uint32_t kSign32 = 0x80000000u;
constexpr uint32_t kInfinity32 = 0x7f800000u;

float value(uint32_t bits) { return std::bit_cast<float>(bits); }
double value(uint64_t bits) { return std::bit_cast<double>(bits); }
bool is_nan(uint32_t bits) { return (bits & ~kSign32) > kInfinity32; }
bool is_nan(uint64_t bits) { return (bits << 1) > (kFormatF64.infinity() << 1); }

uint32_t flush(uint32_t bits) { return (bits & kInfinity32) == 0 ? bits & kSign32 : bits; }
uint32_t flush(uint32_t bits, FloatControl control) { return control.ftz ? flush(bits) : bits; }

uint32_t saturate(uint32_t bits) {
  if (is_nan(bits) || (bits & kSign32) != 0) return 0;
  return bits > 0x3f800000u ? 0x3f800000u : bits;
}

uint32_t finish(uint32_t bits, FloatControl control) {
  if (is_nan(bits)) return control.sat ? 0 : kNanF32;
  if (control.ftz) bits = flush(bits);
  return control.sat ? saturate(bits) : bits;
}
uint32_t finish(float result, FloatControl control) {
  return finish(std::bit_cast<uint32_t>(result), control);
}
uint32_t finish(const Soft& result, FloatControl control) {
  return finish(static_cast<uint32_t>(pack(kFormatF32, result, control.round)), control);
}

bool nearest(FloatControl control) { return control.round == Round::NearestEven; }
Soft soft(uint32_t bits) { return unpack(kFormatF32, bits); }
Soft soft(uint64_t bits) { return unpack(kFormatF64, bits); }

// f64 keeps sign and payload of a NaN operand and makes it quiet (seen on an H200: b before c
// before a, but the dividend before the divisor); operations create kNanF64.
uint64_t quiet(uint64_t nan) { return nan | (uint64_t{1} << 51); }
uint64_t nan_of(uint64_t a, uint64_t b = 0, uint64_t c = 0) {
  if (is_nan(b)) return quiet(b);
  if (is_nan(c)) return quiet(c);
  return is_nan(a) ? quiet(a) : kNanF64;
}
uint64_t finish64(double result, uint64_t nan) {
  return std::isnan(result) ? nan : std::bit_cast<uint64_t>(result);
}
uint64_t finish64(const Soft& result, FloatControl control, uint64_t nan) {
  return result.kind == SoftKind::NaN ? nan : pack(kFormatF64, result, control.round);
}

// Orders the bits of non-NaN floats as integers, -0 below +0.
int32_t ordered(uint32_t bits) {
  int32_t word = static_cast<int32_t>(bits);
  return word < 0 ? static_cast<int32_t>(~bits | kSign32) : word;
}
int64_t ordered(uint64_t bits) {
  constexpr uint64_t kSign64 = uint64_t{1} << 63;
  int64_t word = static_cast<int64_t>(bits);
  return word < 0 ? static_cast<int64_t>(~bits | kSign64) : word;
}

enum class Extreme : uint8_t { Least, Greatest };

uint32_t extreme_f32(Extreme which, uint32_t a, uint32_t b, MinMaxControl control) {
  if (control.ftz) {
    a = flush(a);
    b = flush(b);
  }
  uint32_t sign = (a ^ b) & kSign32;
  if (control.xorsign_abs || control.abs) {
    a &= ~kSign32;
    b &= ~kSign32;
  }
  uint32_t result;
  if (is_nan(a) || is_nan(b)) {
    if (control.nan || (is_nan(a) && is_nan(b))) return kNanF32;
    result = is_nan(a) ? b : a;
  } else {
    bool take_a = which == Extreme::Least ? ordered(a) < ordered(b) : ordered(a) > ordered(b);
    result = take_a ? a : b;
  }
  return control.xorsign_abs ? (result & ~kSign32) | sign : result;
}

uint64_t extreme_f64(Extreme which, uint64_t a, uint64_t b) {
  if (is_nan(a) && is_nan(b)) return nan_of(a, b);
  if (is_nan(a)) return b;
  if (is_nan(b)) return a;
  bool take_a = which == Extreme::Least ? ordered(a) < ordered(b) : ordered(a) > ordered(b);
  return take_a ? a : b;
}

template <class Float>
bool compare_values(FloatCompare code, Float a, Float b) {
  bool unordered = std::isunordered(a, b);
  switch (code) {
    case FloatCompare::Eq:
      return a == b;
    case FloatCompare::Ne:
      return !unordered && a != b;
    case FloatCompare::Lt:
      return a < b;
    case FloatCompare::Le:
      return a <= b;
    case FloatCompare::Gt:
      return a > b;
    case FloatCompare::Ge:
      return a >= b;
    case FloatCompare::Equ:
      return unordered || a == b;
    case FloatCompare::Neu:
      return unordered || a != b;
    case FloatCompare::Ltu:
      return unordered || a < b;
    case FloatCompare::Leu:
      return unordered || a <= b;
    case FloatCompare::Gtu:
      return unordered || a > b;
    case FloatCompare::Geu:
      return unordered || a >= b;
    case FloatCompare::Num:
      return !unordered;
    case FloatCompare::Nan:
      return unordered;
  }
  return false;
}

bool test_fields(FloatProperty property, bool exponent_zero, bool exponent_ones,
                 bool fraction_zero) {
  switch (property) {
    case FloatProperty::Finite:
      return !exponent_ones;
    case FloatProperty::Infinite:
      return exponent_ones && fraction_zero;
    case FloatProperty::Number:
      return !exponent_ones || fraction_zero;
    case FloatProperty::NotANumber:
      return exponent_ones && !fraction_zero;
    case FloatProperty::Normal:
      return !exponent_ones && (!exponent_zero || fraction_zero);  // zeros count as normal
    case FloatProperty::Subnormal:
      return exponent_zero && !fraction_zero;
  }
  return false;
}

}  // namespace

uint32_t add_f32(uint32_t a, uint32_t b, FloatControl control) {
  a = flush(a, control);
  b = flush(b, control);
  if (nearest(control)) return finish(value(a) + value(b), control);
  return finish(soft_add(soft(a), soft(b), control.round), control);
}

uint32_t sub_f32(uint32_t a, uint32_t b, FloatControl control) {
  a = flush(a, control);
  b = flush(b, control);
  if (nearest(control)) return finish(value(a) - value(b), control);
  return finish(soft_add(soft(a), soft_negate(soft(b)), control.round), control);
}

uint32_t mul_f32(uint32_t a, uint32_t b, FloatControl control) {
  a = flush(a, control);
  b = flush(b, control);
  if (nearest(control)) return finish(value(a) * value(b), control);
  return finish(soft_mul(soft(a), soft(b)), control);
}

uint32_t fma_f32(uint32_t a, uint32_t b, uint32_t c, FloatControl control) {
  a = flush(a, control);
  b = flush(b, control);
  c = flush(c, control);
  if (nearest(control)) return finish(std::fma(value(a), value(b), value(c)), control);
  return finish(soft_fma(soft(a), soft(b), soft(c), control.round), control);
}

uint32_t div_f32(uint32_t a, uint32_t b, FloatControl control) {
  a = flush(a, control);
  b = flush(b, control);
  if (nearest(control)) return finish(value(a) / value(b), control);
  return finish(soft_div(soft(a), soft(b)), control);
}

uint32_t rcp_f32(uint32_t a, FloatControl control) { return div_f32(0x3f800000u, a, control); }

uint32_t sqrt_f32(uint32_t a, FloatControl control) {
  a = flush(a, control);
  if (nearest(control)) return finish(std::sqrt(value(a)), control);
  return finish(soft_sqrt(soft(a)), control);
}

uint32_t min_f32(uint32_t a, uint32_t b, MinMaxControl control) {
  return extreme_f32(Extreme::Least, a, b, control);
}
uint32_t max_f32(uint32_t a, uint32_t b, MinMaxControl control) {
  return extreme_f32(Extreme::Greatest, a, b, control);
}

uint32_t min3_f32(uint32_t a, uint32_t b, uint32_t c, MinMaxControl control) {
  return min_f32(min_f32(a, b, control), c, control);
}
uint32_t max3_f32(uint32_t a, uint32_t b, uint32_t c, MinMaxControl control) {
  return max_f32(max_f32(a, b, control), c, control);
}

uint32_t neg_f32(uint32_t a, FloatControl control) {
  if (is_nan(a)) return kNanF32;
  return flush(a, control) ^ kSign32;
}

uint32_t abs_f32(uint32_t a, FloatControl control) {
  if (is_nan(a)) return kNanF32;
  return flush(a, control) & ~kSign32;
}

bool compare_f32(FloatCompare code, uint32_t a, uint32_t b, FloatControl control) {
  return compare_values(code, value(flush(a, control)), value(flush(b, control)));
}

bool test_f32(FloatProperty property, uint32_t a) {
  uint32_t exponent = a & kInfinity32;
  return test_fields(property, exponent == 0, exponent == kInfinity32, (a & 0x007fffffu) == 0);
}

uint32_t copysign_f32(uint32_t sign_from, uint32_t magnitude_from) {
  return (sign_from & kSign32) | (magnitude_from & ~kSign32);
}

uint64_t add_f64(uint64_t a, uint64_t b, FloatControl control) {
  if (nearest(control)) return finish64(value(a) + value(b), nan_of(a, b));
  return finish64(soft_add(soft(a), soft(b), control.round), control, nan_of(a, b));
}

uint64_t sub_f64(uint64_t a, uint64_t b, FloatControl control) {
  if (nearest(control)) return finish64(value(a) - value(b), nan_of(a, b));
  return finish64(soft_add(soft(a), soft_negate(soft(b)), control.round), control, nan_of(a, b));
}

uint64_t mul_f64(uint64_t a, uint64_t b, FloatControl control) {
  if (nearest(control)) return finish64(value(a) * value(b), nan_of(a, b));
  return finish64(soft_mul(soft(a), soft(b)), control, nan_of(a, b));
}

uint64_t fma_f64(uint64_t a, uint64_t b, uint64_t c, FloatControl control) {
  if (nearest(control)) return finish64(std::fma(value(a), value(b), value(c)), nan_of(a, b, c));
  return finish64(soft_fma(soft(a), soft(b), soft(c), control.round), control, nan_of(a, b, c));
}

uint64_t div_f64(uint64_t a, uint64_t b, FloatControl control) {
  if (nearest(control)) return finish64(value(a) / value(b), nan_of(b, a));
  return finish64(soft_div(soft(a), soft(b)), control, nan_of(b, a));
}

uint64_t rcp_f64(uint64_t a, FloatControl control) {
  return div_f64(std::bit_cast<uint64_t>(1.0), a, control);
}

uint64_t sqrt_f64(uint64_t a, FloatControl control) {
  if (nearest(control)) return finish64(std::sqrt(value(a)), nan_of(a));
  return finish64(soft_sqrt(soft(a)), control, nan_of(a));
}

uint64_t min_f64(uint64_t a, uint64_t b) { return extreme_f64(Extreme::Least, a, b); }
uint64_t max_f64(uint64_t a, uint64_t b) { return extreme_f64(Extreme::Greatest, a, b); }
uint64_t neg_f64(uint64_t a) { return is_nan(a) ? quiet(a) : a ^ kFormatF64.sign_bit(); }
uint64_t abs_f64(uint64_t a) { return is_nan(a) ? quiet(a) : a & ~kFormatF64.sign_bit(); }
bool compare_f64(FloatCompare code, uint64_t a, uint64_t b) {
  return compare_values(code, value(a), value(b));
}

bool test_f64(FloatProperty property, uint64_t a) {
  uint64_t exponent = a & kFormatF64.infinity();
  bool fraction_zero = (a & ((uint64_t{1} << 52) - 1)) == 0;
  return test_fields(property, exponent == 0, exponent == kFormatF64.infinity(), fraction_zero);
}

uint64_t copysign_f64(uint64_t sign_from, uint64_t magnitude_from) {
  return (sign_from & kFormatF64.sign_bit()) | (magnitude_from & ~kFormatF64.sign_bit());
}

}  // namespace ptxb::emu::arith
