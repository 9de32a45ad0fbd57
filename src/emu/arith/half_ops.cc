// Owns scalar f16 and bf16 arithmetic: every operation exact, then rounded once to nearest even
// (PTX ISA 9.7.4). Never the fast path: lanes.h has vector forms with the same bits.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "emu/arith/convert.h"
#include "emu/arith/float_ops.h"
#include "emu/arith/soft_float.h"

namespace ptxb::emu::arith {
namespace {

constexpr uint16_t kSign = 0x8000;

Format format_of(Half format) { return format == Half::F16 ? kFormatF16 : kFormatBF16; }
uint16_t infinity_of(Half format) { return format == Half::F16 ? 0x7c00 : 0x7f80; }
uint16_t one_of(Half format) { return format == Half::F16 ? 0x3c00 : 0x3f80; }
bool is_nan(Half format, uint16_t bits) { return (bits & 0x7fff) > infinity_of(format); }

uint16_t flush(Half format, uint16_t bits, bool ftz) {
  bool subnormal = (bits & infinity_of(format)) == 0;
  return ftz && subnormal ? static_cast<uint16_t>(bits & kSign) : bits;
}

Soft load(Half format, uint16_t bits, FloatControl control) {
  return unpack(format_of(format), flush(format, bits, control.ftz));
}

uint16_t store(Half format, const Soft& result, FloatControl control) {
  if (result.kind == SoftKind::NaN) return control.sat ? uint16_t{0} : kNanHalf;
  uint16_t bits = static_cast<uint16_t>(pack(format_of(format), result, Round::NearestEven));
  bits = flush(format, bits, control.ftz);
  if ((control.sat || control.relu) && (bits & kSign) != 0) return 0;
  if (control.sat && bits > one_of(format)) return one_of(format);
  return bits;
}

// The NaN that stands for an out-of-bounds element (PTX ISA 5.5.3.3 leaves the pattern open; found
// on an H200 by trying all, for f16 and bf16 alike). Only the factors count, not the addend.
bool is_out_of_bounds_nan(uint16_t bits) { return (bits & 0x7fff) == kOutOfBoundsNan; }

int32_t ordered(uint16_t bits) {
  int32_t magnitude = bits & 0x7fff;
  return (bits & kSign) != 0 ? -1 - magnitude : magnitude;
}

enum class Extreme : uint8_t { Least, Greatest };

uint16_t extreme(Extreme which, Half format, uint16_t a, uint16_t b, MinMaxControl control) {
  a = flush(format, a, control.ftz);
  b = flush(format, b, control.ftz);
  uint16_t sign = (a ^ b) & kSign;
  if (control.xorsign_abs || control.abs) {
    a &= 0x7fff;
    b &= 0x7fff;
  }
  uint16_t result;
  if (is_nan(format, a) || is_nan(format, b)) {
    if (control.nan || (is_nan(format, a) && is_nan(format, b))) return kNanHalf;
    result = is_nan(format, a) ? b : a;
  } else {
    bool take_a = which == Extreme::Least ? ordered(a) < ordered(b) : ordered(a) > ordered(b);
    result = take_a ? a : b;
  }
  return control.xorsign_abs ? static_cast<uint16_t>((result & 0x7fff) | sign) : result;
}

uint16_t low(uint32_t pair) { return static_cast<uint16_t>(pair); }
uint16_t high(uint32_t pair) { return static_cast<uint16_t>(pair >> 16); }
uint32_t pair_of(uint16_t low_half, uint16_t high_half) {
  return uint32_t{low_half} | (uint32_t{high_half} << 16);
}

}  // namespace

uint16_t add_half(Half format, uint16_t a, uint16_t b, FloatControl control) {
  return store(format,
               soft_add(load(format, a, control), load(format, b, control), Round::NearestEven),
               control);
}

uint16_t sub_half(Half format, uint16_t a, uint16_t b, FloatControl control) {
  Soft subtrahend = soft_negate(load(format, b, control));
  return store(format, soft_add(load(format, a, control), subtrahend, Round::NearestEven), control);
}

uint16_t mul_half(Half format, uint16_t a, uint16_t b, FloatControl control) {
  return store(format, soft_mul(load(format, a, control), load(format, b, control)), control);
}

uint16_t fma_half(Half format, uint16_t a, uint16_t b, uint16_t c, FloatControl control) {
  if (control.oob && (is_out_of_bounds_nan(a) || is_out_of_bounds_nan(b))) return 0;
  Soft result = soft_fma(load(format, a, control), load(format, b, control),
                         load(format, c, control), Round::NearestEven);
  return store(format, result, control);
}

uint16_t min_half(Half format, uint16_t a, uint16_t b, MinMaxControl control) {
  return extreme(Extreme::Least, format, a, b, control);
}
uint16_t max_half(Half format, uint16_t a, uint16_t b, MinMaxControl control) {
  return extreme(Extreme::Greatest, format, a, b, control);
}

uint16_t neg_half(Half format, uint16_t a, FloatControl control) {
  if (is_nan(format, a)) return kNanHalf;
  return flush(format, a, control.ftz) ^ kSign;
}

uint16_t abs_half(Half format, uint16_t a, FloatControl control) {
  if (is_nan(format, a)) return kNanHalf;
  return flush(format, a, control.ftz) & 0x7fff;
}

bool compare_half(FloatCompare code, Half format, uint16_t a, uint16_t b, FloatControl control) {
  uint32_t wide_a = half_to_f32(format, flush(format, a, control.ftz));
  uint32_t wide_b = half_to_f32(format, flush(format, b, control.ftz));
  return compare_f32(code, wide_a, wide_b);
}

uint32_t add_half2(Half format, uint32_t a, uint32_t b, FloatControl control) {
  return pair_of(add_half(format, low(a), low(b), control),
                 add_half(format, high(a), high(b), control));
}
uint32_t sub_half2(Half format, uint32_t a, uint32_t b, FloatControl control) {
  return pair_of(sub_half(format, low(a), low(b), control),
                 sub_half(format, high(a), high(b), control));
}
uint32_t mul_half2(Half format, uint32_t a, uint32_t b, FloatControl control) {
  return pair_of(mul_half(format, low(a), low(b), control),
                 mul_half(format, high(a), high(b), control));
}
uint32_t fma_half2(Half format, uint32_t a, uint32_t b, uint32_t c, FloatControl control) {
  return pair_of(fma_half(format, low(a), low(b), low(c), control),
                 fma_half(format, high(a), high(b), high(c), control));
}
uint32_t min_half2(Half format, uint32_t a, uint32_t b, MinMaxControl control) {
  return pair_of(min_half(format, low(a), low(b), control),
                 min_half(format, high(a), high(b), control));
}
uint32_t max_half2(Half format, uint32_t a, uint32_t b, MinMaxControl control) {
  return pair_of(max_half(format, low(a), low(b), control),
                 max_half(format, high(a), high(b), control));
}
uint32_t neg_half2(Half format, uint32_t a, FloatControl control) {
  return pair_of(neg_half(format, low(a), control), neg_half(format, high(a), control));
}
uint32_t abs_half2(Half format, uint32_t a, FloatControl control) {
  return pair_of(abs_half(format, low(a), control), abs_half(format, high(a), control));
}

uint32_t compare_half2(FloatCompare code, Half format, uint32_t a, uint32_t b,
                       FloatControl control) {
  return uint32_t{compare_half(code, format, low(a), low(b), control)} |
         (uint32_t{compare_half(code, format, high(a), high(b), control)} << 1);
}

}  // namespace ptxb::emu::arith
