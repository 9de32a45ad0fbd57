// Owns the scalar form of the tensor-core bit model (see mma_exact.h); the oracle of the vector
// form. Never uses the host's rounding.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/mma_exact.h"

#include <bit>
#include <cmath>

#include "emu/arith/convert.h"
#include "emu/arith/soft_float.h"

namespace ptxb::emu::arith {
namespace {

constexpr int kNoExponent = -100000;

struct Term {
  bool negative = false;
  int exponent = kNoExponent;  // kNoExponent: zero
  uint64_t significand = 0;    // in units of 2^(exponent - fraction_bits)
  int fraction_bits = 0;
};

Term decompose(float value, int fraction_bits, int lowest_exponent) {
  Term term;
  term.negative = std::signbit(value);
  term.fraction_bits = fraction_bits;
  if (value == 0) return term;
  int exponent = std::ilogb(value);
  term.exponent = exponent < lowest_exponent ? lowest_exponent : exponent;
  double scaled = std::ldexp(std::fabs(double{value}), fraction_bits - term.exponent);
  term.significand = static_cast<uint64_t>(scaled);
  return term;
}

Term multiply(const Term& a, const Term& b) {
  Term product;
  product.negative = a.negative != b.negative;
  product.fraction_bits = a.fraction_bits + b.fraction_bits;
  if (a.exponent == kNoExponent || b.exponent == kNoExponent) return product;
  product.exponent = a.exponent + b.exponent;
  product.significand = a.significand * b.significand;
  return product;
}

int64_t aligned(const Term& term, int largest, int fraction_bits) {
  if (term.exponent == kNoExponent) return 0;
  int shift = term.fraction_bits - fraction_bits + (largest - term.exponent);
  uint64_t magnitude = shift <= 0   ? term.significand << -shift
                       : shift > 63 ? 0
                                    : term.significand >> shift;
  return term.negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
}

// NaN and infinities of the products and C decide alone; otherwise the fused sum.
Soft fused_sum(const ExactModel& model, int floor, int count, const float* a, const float* b,
               int b_stride, float c) {
  constexpr int kMostTerms = 33;
  ElementInfo info_a = element_info(model.a);
  ElementInfo info_b = element_info(model.b);
  Term terms[kMostTerms];
  Soft special;
  terms[0] = decompose(c, 23, -126);
  if (std::isnan(c)) special = {SoftKind::NaN, false, 0, 0};
  if (std::isinf(c)) special = {SoftKind::Infinite, std::signbit(c), 0, 0};
  int largest = terms[0].exponent;
  for (int i = 0; i < count; ++i) {
    float x = a[i];
    float y = b[i * b_stride];
    if (!std::isfinite(x) || !std::isfinite(y)) {
      Soft product = soft_mul(unpack(kFormatF32, std::bit_cast<uint32_t>(x)),
                              unpack(kFormatF32, std::bit_cast<uint32_t>(y)));
      special = soft_add(special, product, Round::NearestEven);
      terms[i + 1] = {};
      continue;
    }
    terms[i + 1] = multiply(decompose(x, info_a.fraction_bits, info_a.lowest_exponent),
                            decompose(y, info_b.fraction_bits, info_b.lowest_exponent));
    if (terms[i + 1].exponent > largest) largest = terms[i + 1].exponent;
  }
  if (special.kind != SoftKind::Zero) return special;
  if (largest < floor) largest = floor;
  int64_t sum = 0;
  for (int i = 0; i <= count; ++i) sum += aligned(terms[i], largest, model.fraction_bits);
  if (sum == 0) return {};
  uint64_t magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  return {SoftKind::Finite, sum < 0, largest - model.fraction_bits, magnitude};
}

}  // namespace

uint32_t exact_dot_f32(const ExactModel& model, int count, const float* a, const float* b,
                       int b_stride, uint32_t c) {
  Soft sum = fused_sum(model, model.exponent_floor, count, a, b, b_stride, std::bit_cast<float>(c));
  if (sum.kind == SoftKind::NaN) return kNanF32;
  int dropped = 23 - model.result_fraction_bits;
  Format format{8, model.result_fraction_bits};
  if (sum.kind == SoftKind::Finite) {
    // Truncation cannot round up to infinity, but a sum beyond the largest f32 is infinite.
    int exponent = sum.exponent + 63 - std::countl_zero(static_cast<uint64_t>(sum.mantissa));
    if (exponent > 127) sum.kind = SoftKind::Infinite;
  }
  uint32_t bits = static_cast<uint32_t>(pack(format, sum, Round::TowardZero) << dropped);
  return bits == 0x80000000u ? 0 : bits;
}

uint16_t exact_dot_f16(const ExactModel& model, int count, const float* a, const float* b,
                       int b_stride, uint16_t c) {
  Soft sum = fused_sum(model, model.half_exponent_floor, count, a, b, b_stride, f16_value(c));
  if (sum.kind == SoftKind::NaN) return kNanHalf;
  uint16_t bits = static_cast<uint16_t>(pack(kFormatF16, sum, Round::NearestEven));
  return bits == 0x8000 ? uint16_t{0} : bits;
}

}  // namespace ptxb::emu::arith
