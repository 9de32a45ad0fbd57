// Owns the AVX2 forms of packed f16 and bf16 arithmetic (see lanes_avx2.h). Never rounds twice: fma
// sums are rounded to odd before the final rounding; bf16 products that leave the f32 range are
// left to the scalar function.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "emu/arith/lanes_avx2.h"
#include "emu/arith/simd.h"

namespace ptxb::emu::arith {

#if PTXB_ARITH_AVX2
namespace {

// Sixteen halves as two vectors of f32 and back. F16 keeps memory order (0-7, 8-15); BF16 splits
// even and odd.
template <Half format>
struct Pairs;

template <>
struct Pairs<Half::F16> {
  PTXB_STEP static __m256 first(__m256i v) { return _mm256_cvtph_ps(_mm256_castsi256_si128(v)); }
  PTXB_STEP static __m256 second(__m256i v) {
    return _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1));
  }
  PTXB_STEP static __m256i join(__m256 x, __m256 y) {
    __m128i low = _mm256_cvtps_ph(canonical(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m128i high = _mm256_cvtps_ph(canonical(y), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
  }
};

template <>
struct Pairs<Half::BF16> {
  PTXB_STEP static __m256 first(__m256i v) { return as_float(_mm256_slli_epi32(v, 16)); }
  PTXB_STEP static __m256 second(__m256i v) {
    return as_float(_mm256_and_si256(v, word(0xffff0000u)));
  }
  PTXB_STEP static __m256i join(__m256 x, __m256 y) {
    return _mm256_or_si256(_mm256_srli_epi32(round_to_bf16(x), 16), round_to_bf16(y));
  }
};

template <Half format>
constexpr uint32_t kInfinityPair = format == Half::F16 ? 0x7c007c00u : 0x7f807f80u;

template <Half format>
PTXB_STEP __m256i flush_pairs(__m256i v) {
  __m256i subnormal =
      _mm256_cmpeq_epi16(_mm256_and_si256(v, word(kInfinityPair<format>)), _mm256_setzero_si256());
  return _mm256_andnot_si256(_mm256_and_si256(subnormal, word(0x7fff7fffu)), v);
}

template <Half format, bool ftz>
PTXB_STEP __m256i operand(const uint32_t* p) {
  __m256i v = load_lanes(p);
  return ftz ? flush_pairs<format>(v) : v;
}

template <Half format, bool ftz, bool sat, bool relu>
PTXB_STEP void finish(uint32_t* d, __m256 x, __m256 y) {
  if constexpr (sat) {
    x = _mm256_min_ps(_mm256_max_ps(x, _mm256_setzero_ps()), _mm256_set1_ps(1.0f));
    y = _mm256_min_ps(_mm256_max_ps(y, _mm256_setzero_ps()), _mm256_set1_ps(1.0f));
  }
  __m256i v = Pairs<format>::join(x, y);
  if constexpr (relu)
    v = _mm256_andnot_si256(_mm256_srai_epi16(v, 15), v);  // canonical NaN is positive
  store_lanes(d, ftz ? flush_pairs<format>(v) : v);
}

// Double rounding through f32 is harmless for sums (24 >= 2 * 11 + 2 bits, and subnormal sums are
// exact).
struct Add {
  PTXB_STEP static __m256 of(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
};
struct Sub {
  PTXB_STEP static __m256 of(__m256 a, __m256 b) { return _mm256_sub_ps(a, b); }
};

template <class Op, Half format, bool ftz, bool sat>
PTXB_TARGET void sum(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; i += 8) {
    __m256i x = operand<format, ftz>(a + i);
    __m256i y = operand<format, ftz>(b + i);
    finish<format, ftz, sat, false>(d + i, Op::of(Pairs<format>::first(x), Pairs<format>::first(y)),
                                    Op::of(Pairs<format>::second(x), Pairs<format>::second(y)));
  }
}

// Lanes whose exact bf16 product has no exact f32: a nonzero product below 2^-126, or an overflow
// of finite factors.
PTXB_STEP bool product_inexact(__m256 a, __m256 b, __m256 p) {
  __m256 magnitude = _mm256_and_ps(p, as_float(word(0x7fffffffu)));
  __m256 tiny = _mm256_cmp_ps(magnitude, as_float(word(0x00800000u)), _CMP_LT_OQ);
  __m256 zero_factor = _mm256_or_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_EQ_OQ),
                                    _mm256_cmp_ps(b, _mm256_setzero_ps(), _CMP_EQ_OQ));
  __m256 infinity = as_float(word(0x7f800000u));
  __m256 huge = _mm256_cmp_ps(magnitude, infinity, _CMP_EQ_OQ);
  __m256 infinite_factor = _mm256_or_ps(
      _mm256_cmp_ps(_mm256_and_ps(a, as_float(word(0x7fffffffu))), infinity, _CMP_EQ_OQ),
      _mm256_cmp_ps(_mm256_and_ps(b, as_float(word(0x7fffffffu))), infinity, _CMP_EQ_OQ));
  __m256 bad =
      _mm256_or_ps(_mm256_andnot_ps(zero_factor, tiny), _mm256_andnot_ps(infinite_factor, huge));
  return _mm256_movemask_ps(bad) != 0;
}

template <Half format, bool ftz, bool sat>
PTXB_TARGET void mul(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; i += 8) {
    __m256i x = operand<format, ftz>(a + i);
    __m256i y = operand<format, ftz>(b + i);
    __m256 first = _mm256_mul_ps(Pairs<format>::first(x), Pairs<format>::first(y));
    __m256 second = _mm256_mul_ps(Pairs<format>::second(x), Pairs<format>::second(y));
    if constexpr (format == Half::BF16) {
      if (product_inexact(Pairs<format>::first(x), Pairs<format>::first(y), first) ||
          product_inexact(Pairs<format>::second(x), Pairs<format>::second(y), second)) {
        for (int j = i; j < i + 8; ++j)
          d[j] = mul_half2(format, a[j], b[j], {.ftz = ftz, .sat = sat});
        continue;
      }
    }
    finish<format, ftz, sat, false>(d + i, first, second);
  }
}

template <Half format, bool ftz, bool sat, bool relu>
PTXB_TARGET void fma(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c) {
  using P = Pairs<format>;
  for (int i = 0; i < kLanes; i += 8) {
    __m256i x = operand<format, ftz>(a + i);
    __m256i y = operand<format, ftz>(b + i);
    __m256i z = operand<format, ftz>(c + i);
    __m256 first = _mm256_mul_ps(P::first(x), P::first(y));
    __m256 second = _mm256_mul_ps(P::second(x), P::second(y));
    if constexpr (format == Half::BF16) {
      if (product_inexact(P::first(x), P::first(y), first) ||
          product_inexact(P::second(x), P::second(y), second)) {
        for (int j = i; j < i + 8; ++j)
          d[j] = fma_half2(format, a[j], b[j], c[j], {.ftz = ftz, .sat = sat, .relu = relu});
        continue;
      }
    }
    finish<format, ftz, sat, relu>(d + i, add_to_odd(first, P::first(z)),
                                   add_to_odd(second, P::second(z)));
  }
}

PTXB_STEP __m256i ordered(__m256i v) {
  return _mm256_xor_si256(v, _mm256_and_si256(_mm256_srai_epi16(v, 15), word(0x7fff7fffu)));
}

template <Half format>
PTXB_STEP __m256i nan_pairs(__m256i v) {
  return _mm256_cmpgt_epi16(_mm256_and_si256(v, word(0x7fff7fffu)), word(kInfinityPair<format>));
}

template <bool least, Half format, bool ftz, bool nan>
PTXB_TARGET void extreme(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; i += 8) {
    __m256i x = operand<format, ftz>(a + i);
    __m256i y = operand<format, ftz>(b + i);
    __m256i x_greater = _mm256_cmpgt_epi16(ordered(x), ordered(y));
    __m256i r = least ? _mm256_blendv_epi8(x, y, x_greater) : _mm256_blendv_epi8(y, x, x_greater);
    __m256i x_nan = nan_pairs<format>(x);
    __m256i y_nan = nan_pairs<format>(y);
    r = _mm256_blendv_epi8(r, y, x_nan);
    r = _mm256_blendv_epi8(r, x, y_nan);
    __m256i both = nan ? _mm256_or_si256(x_nan, y_nan) : _mm256_and_si256(x_nan, y_nan);
    store_lanes(d + i, _mm256_blendv_epi8(r, word(0x7fff7fffu), both));
  }
}

template <class Op>
LaneBinary pick_sum(Half format, FloatControl control) {
  if (control.relu || control.oob) return nullptr;
  if (format == Half::BF16)
    return control.ftz || control.sat ? nullptr : sum<Op, Half::BF16, false, false>;
  if (control.ftz)
    return control.sat ? sum<Op, Half::F16, true, true> : sum<Op, Half::F16, true, false>;
  return control.sat ? sum<Op, Half::F16, false, true> : sum<Op, Half::F16, false, false>;
}

template <bool least>
LaneBinary pick_extreme(Half format, MinMaxControl control) {
  if (control.xorsign_abs || control.abs) return nullptr;
  if (format == Half::BF16) {
    if (control.ftz) return nullptr;
    return control.nan ? extreme<least, Half::BF16, false, true>
                       : extreme<least, Half::BF16, false, false>;
  }
  if (control.ftz)
    return control.nan ? extreme<least, Half::F16, true, true>
                       : extreme<least, Half::F16, true, false>;
  return control.nan ? extreme<least, Half::F16, false, true>
                     : extreme<least, Half::F16, false, false>;
}

}  // namespace

LaneBinary avx2_add_half2(Half format, FloatControl control) {
  return pick_sum<Add>(format, control);
}
LaneBinary avx2_sub_half2(Half format, FloatControl control) {
  return pick_sum<Sub>(format, control);
}

LaneBinary avx2_mul_half2(Half format, FloatControl control) {
  if (control.relu || control.oob) return nullptr;
  if (format == Half::BF16)
    return control.ftz || control.sat ? nullptr : mul<Half::BF16, false, false>;
  if (control.ftz) return control.sat ? mul<Half::F16, true, true> : mul<Half::F16, true, false>;
  return control.sat ? mul<Half::F16, false, true> : mul<Half::F16, false, false>;
}

LaneTernary avx2_fma_half2(Half format, FloatControl control) {
  if (control.oob || (control.sat && control.relu)) return nullptr;
  if (format == Half::BF16) {
    if (control.ftz || control.sat) return nullptr;
    return control.relu ? fma<Half::BF16, false, false, true>
                        : fma<Half::BF16, false, false, false>;
  }
  if (control.relu)
    return control.ftz ? fma<Half::F16, true, false, true> : fma<Half::F16, false, false, true>;
  if (control.sat)
    return control.ftz ? fma<Half::F16, true, true, false> : fma<Half::F16, false, true, false>;
  return control.ftz ? fma<Half::F16, true, false, false> : fma<Half::F16, false, false, false>;
}

LaneBinary avx2_min_half2(Half format, MinMaxControl control) {
  return pick_extreme<true>(format, control);
}
LaneBinary avx2_max_half2(Half format, MinMaxControl control) {
  return pick_extreme<false>(format, control);
}

#else

LaneBinary avx2_add_half2(Half, FloatControl) { return nullptr; }
LaneBinary avx2_sub_half2(Half, FloatControl) { return nullptr; }
LaneBinary avx2_mul_half2(Half, FloatControl) { return nullptr; }
LaneTernary avx2_fma_half2(Half, FloatControl) { return nullptr; }
LaneBinary avx2_min_half2(Half, MinMaxControl) { return nullptr; }
LaneBinary avx2_max_half2(Half, MinMaxControl) { return nullptr; }

#endif

}  // namespace ptxb::emu::arith
