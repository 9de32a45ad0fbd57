// Owns the vector form of the tensor-core bit model on the panels of mma_panel_avx2.h (model:
// mma_exact.h). Terms are exact f32 products scaled by a power of two and truncated to integers;
// vectors of operands or accumulators whose exponents could leave the f32 range, or that hold NaN
// or infinity, go to the scalar model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/arith/mma_exact.h"
#include "emu/arith/mma_panel_avx2.h"

#if PTXB_ARITH_AVX2
namespace ptxb::emu::arith {

inline constexpr int kZeroExponent = -20000;  // of a zero operand: never the maximum
inline constexpr int kSafeLowest = -48;       // products of safe operands are normal f32 ...
inline constexpr int kSafeHighest = 60;       // ... and far from infinity

// Unbiased exponents, at least `lowest` for nonzero values (subnormals of the element type are not
// normalised).
PTXB_STEP __m256i exponents(__m256 v, int lowest) {
  __m256i magnitude = _mm256_and_si256(as_bits(v), word(0x7fffffffu));
  __m256i exponent = _mm256_sub_epi32(_mm256_srli_epi32(magnitude, 23), word(127));
  exponent = _mm256_max_epi32(exponent, _mm256_set1_epi32(lowest));
  __m256i zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
  return _mm256_blendv_epi8(exponent, _mm256_set1_epi32(kZeroExponent), zero);
}

// Fills the exponents beside a panel of `count` floats (a multiple of 8); false when some value is
// not safe.
PTXB_STEP bool fill_exponents(int32_t* out, const float* panel, int count, int lowest) {
  __m256i bad = _mm256_setzero_si256();
  for (int i = 0; i < count; i += 8) {
    __m256i e = exponents(_mm256_load_ps(panel + i), lowest);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + i), e);
    __m256i low = _mm256_andnot_si256(_mm256_cmpeq_epi32(e, _mm256_set1_epi32(kZeroExponent)),
                                      _mm256_cmpgt_epi32(_mm256_set1_epi32(kSafeLowest), e));
    bad = _mm256_or_si256(
        bad, _mm256_or_si256(low, _mm256_cmpgt_epi32(e, _mm256_set1_epi32(kSafeHighest))));
  }
  return _mm256_testz_si256(bad, bad) != 0;
}

PTXB_STEP __m256 scale_of(__m256i exponent) {
  return as_float(_mm256_slli_epi32(_mm256_add_epi32(exponent, word(127)), 23));
}

// (s0 + s1) * 2^(largest - fraction_bits) as f64 in two halves; exact.
PTXB_STEP __m256d sum_half(__m128i s0, __m128i s1) {
  return _mm256_add_pd(_mm256_cvtepi32_pd(s0), _mm256_cvtepi32_pd(s1));
}
template <int fraction_bits>
PTXB_STEP __m256d scale_half(__m256d v, __m128i largest) {
  __m256i biased =
      _mm256_cvtepi32_epi64(_mm_add_epi32(largest, _mm_set1_epi32(1023 - fraction_bits)));
  return _mm256_mul_pd(v, _mm256_castsi256_pd(_mm256_slli_epi64(biased, 52)));
}

template <int dropped_bits>
PTXB_STEP __m256d truncate_bits(__m256d v) {
  return _mm256_and_pd(v, _mm256_castsi256_pd(_mm256_set1_epi64x(-(1ll << dropped_bits))));
}
// Keeps 24 bits, the last one odd when anything was dropped.
PTXB_STEP __m256d odd_bits(__m256d v) {
  __m256i dropped = _mm256_and_si256(_mm256_castpd_si256(v), _mm256_set1_epi64x((1ll << 29) - 1));
  __m256i exact = _mm256_cmpeq_epi64(dropped, _mm256_setzero_si256());
  __m256i sticky = _mm256_andnot_si256(exact, _mm256_set1_epi64x(1ll << 29));
  return _mm256_or_pd(truncate_bits<29>(v), _mm256_castsi256_pd(sticky));
}

enum class SumRounding : uint8_t { Truncate24, Truncate14, Odd24 };

template <int fraction_bits, SumRounding rounding>
PTXB_STEP __m128 finish_half(__m128i s0, __m128i s1, __m128i largest) {
  __m256d v = sum_half(s0, s1);
  if constexpr (rounding == SumRounding::Truncate24) v = truncate_bits<29>(v);
  if constexpr (rounding == SumRounding::Truncate14) v = truncate_bits<39>(v);
  if constexpr (rounding == SumRounding::Odd24) v = odd_bits(v);
  return _mm256_cvtpd_ps(scale_half<fraction_bits>(v, largest));
}

// What an f16 accumulator holds after a block: a sum that rounds to zero is +0.
PTXB_STEP __m256 round_to_f16(__m256 v) {
  __m256 rounded =
      _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  return _mm256_add_ps(rounded, _mm256_setzero_ps());  // -0 + 0 is +0
}

template <int fraction_bits, SumRounding rounding>
PTXB_STEP __m256 finish_sum(__m256i s0, __m256i s1, __m256i largest) {
  __m128 low = finish_half<fraction_bits, rounding>(
      _mm256_castsi256_si128(s0), _mm256_castsi256_si128(s1), _mm256_castsi256_si128(largest));
  __m128 high = finish_half<fraction_bits, rounding>(_mm256_extracti128_si256(s0, 1),
                                                     _mm256_extracti128_si256(s1, 1),
                                                     _mm256_extracti128_si256(largest, 1));
  __m256 sum = _mm256_set_m128(high, low);
  return rounding == SumRounding::Odd24 ? round_to_f16(sum) : sum;
}

// The A values and exponents of one row pair, each spread over the four lanes of its row, k after
// k.
template <int depth>
struct SpreadRows {
  alignas(32) float value[depth * 8];
  alignas(32) int32_t exponent[depth * 8];
};

template <int elements, int t>
PTXB_STEP void spread_lane_group(float* value, int32_t* exponent, const float* a,
                                 const int32_t* a_exponent) {
  for (int e = 0; e < elements; ++e) {
    int k = t * elements + e;
    __m256 x = _mm256_permute_ps(_mm256_load_ps(a + e * kLanes), t * 0x55);
    _mm256_store_ps(value + k * 8, x);
    __m256i y = _mm256_load_si256(reinterpret_cast<const __m256i*>(a_exponent + e * kLanes));
    _mm256_store_si256(reinterpret_cast<__m256i*>(exponent + k * 8),
                       _mm256_shuffle_epi32(y, t * 0x55));
  }
}

// a: panel at the first group and row pair.
template <int elements, int blocks>
PTXB_STEP void spread_rows(SpreadRows<elements * blocks * 4>& rows, const float* a,
                           const int32_t* a_exponent) {
  for (int block = 0; block < blocks; ++block) {
    int from = block * elements * kLanes;
    int to = block * elements * 32;
    spread_lane_group<elements, 0>(rows.value + to, rows.exponent + to, a + from,
                                   a_exponent + from);
    spread_lane_group<elements, 1>(rows.value + to, rows.exponent + to, a + from,
                                   a_exponent + from);
    spread_lane_group<elements, 2>(rows.value + to, rows.exponent + to, a + from,
                                   a_exponent + from);
    spread_lane_group<elements, 3>(rows.value + to, rows.exponent + to, a + from,
                                   a_exponent + from);
  }
}

// One fused block of `terms` products and c. a and a_exponent advance by a_step a k. b and
// b_exponent point at the four columns of one parity. False when a lane needs the scalar model.
template <int terms, int a_step, int fraction_bits, SumRounding rounding>
PTXB_STEP bool fused_block(__m256& result, const float* a, const int32_t* a_exponent,
                           const float* b, const int32_t* b_exponent, __m256 c,
                           int exponent_floor) {
  __m256i c_exponent = exponents(c, -126);
  __m256i largest = _mm256_max_epi32(c_exponent, _mm256_set1_epi32(exponent_floor));
  for (int k = 0; k < terms; ++k) {
    __m256i ea = _mm256_load_si256(reinterpret_cast<const __m256i*>(a_exponent + k * a_step));
    __m256i eb = _mm256_broadcastsi128_si256(
        _mm_load_si128(reinterpret_cast<const __m128i*>(b_exponent + k * 8)));
    largest = _mm256_max_epi32(largest, _mm256_add_epi32(ea, eb));
  }
  __m256i low =
      _mm256_andnot_si256(_mm256_cmpeq_epi32(c_exponent, _mm256_set1_epi32(kZeroExponent)),
                          _mm256_cmpgt_epi32(_mm256_set1_epi32(2 * kSafeLowest), largest));
  __m256i bad =
      _mm256_or_si256(low, _mm256_cmpgt_epi32(largest, _mm256_set1_epi32(2 * kSafeHighest)));
  if (!_mm256_testz_si256(bad, bad)) return false;
  largest = _mm256_max_epi32(largest, _mm256_set1_epi32(2 * kSafeLowest));  // all-zero lanes
  __m256 scale = scale_of(_mm256_sub_epi32(_mm256_set1_epi32(fraction_bits), largest));
  // A term is below 2^(fraction_bits + 2): of 25 bits eight and c fit an int32, and so do eight
  // more in another one.
  static_assert(terms <= 16 || fraction_bits <= 24 - 6);
  constexpr int kFirst = terms / 2;
  __m256i s0 = _mm256_cvttps_epi32(_mm256_mul_ps(c, scale));
  __m256i s1 = _mm256_setzero_si256();
  for (int k = 0; k < kFirst; ++k) {
    __m256 product = _mm256_mul_ps(_mm256_load_ps(a + k * a_step), broadcast_four(b + k * 8));
    s0 = _mm256_add_epi32(s0, _mm256_cvttps_epi32(_mm256_mul_ps(product, scale)));
  }
  for (int k = kFirst; k < terms; ++k) {
    __m256 product = _mm256_mul_ps(_mm256_load_ps(a + k * a_step), broadcast_four(b + k * 8));
    s1 = _mm256_add_epi32(s1, _mm256_cvttps_epi32(_mm256_mul_ps(product, scale)));
  }
  result = finish_sum<fraction_bits, rounding>(s0, s1, largest);
  return true;
}

}  // namespace ptxb::emu::arith
#endif  // PTXB_ARITH_AVX2
