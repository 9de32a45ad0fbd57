// Owns the AVX2 forms of the f32 lane operations and conversions (see lanes_avx2.h).
// Never differs in a bit from the scalar functions.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/lanes_avx2.h"

#include <array>
#include <cstddef>
#include <utility>

#include "emu/arith/ex2.h"
#include "emu/arith/simd.h"

namespace ptxb::emu::arith {

#if PTXB_ARITH_AVX2
namespace {

constexpr bool kFtz = true;
constexpr bool kKeep = false;

template <bool ftz>
PTXB_STEP __m256 operand(const uint32_t* p) {
  __m256i bits = load_lanes(p);
  return as_float(ftz ? flush_subnormals(bits) : bits);
}

template <bool ftz, bool sat>
PTXB_STEP void finish(uint32_t* d, __m256 r) {
  if constexpr (sat) {
    r = _mm256_max_ps(r, _mm256_setzero_ps());  // NaN and -0 give the second operand: +0
    r = _mm256_min_ps(r, _mm256_set1_ps(1.0f));
  } else {
    r = canonical(r);
  }
  __m256i bits = as_bits(r);
  store_lanes(d, ftz ? flush_subnormals(bits) : bits);
}

struct Add {
  PTXB_STEP static __m256 of(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
};
struct Sub {
  PTXB_STEP static __m256 of(__m256 a, __m256 b) { return _mm256_sub_ps(a, b); }
};
struct Mul {
  PTXB_STEP static __m256 of(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
};

template <class Op, bool ftz, bool sat>
PTXB_TARGET void binary(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; i += 8)
    finish<ftz, sat>(d + i, Op::of(operand<ftz>(a + i), operand<ftz>(b + i)));
}

template <bool ftz, bool sat>
PTXB_TARGET void fma(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c) {
  for (int i = 0; i < kLanes; i += 8) {
    finish<ftz, sat>(
        d + i, _mm256_fmadd_ps(operand<ftz>(a + i), operand<ftz>(b + i), operand<ftz>(c + i)));
  }
}

template <class Op>
LaneBinary pick_binary(FloatControl control) {
  if (control.round != Round::NearestEven) return nullptr;
  if (control.ftz) return control.sat ? binary<Op, true, true> : binary<Op, true, false>;
  return control.sat ? binary<Op, false, true> : binary<Op, false, false>;
}

// Maps non-NaN floats to integers of the same order, -0 below +0.
PTXB_STEP __m256i ordered(__m256i v) {
  return _mm256_xor_si256(v, _mm256_and_si256(_mm256_srai_epi32(v, 31), word(0x7fffffffu)));
}

template <bool least, bool ftz, bool nan>
PTXB_TARGET void extreme(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; i += 8) {
    __m256 x = operand<ftz>(a + i);
    __m256 y = operand<ftz>(b + i);
    __m256i x_greater = _mm256_cmpgt_epi32(ordered(as_bits(x)), ordered(as_bits(y)));
    __m256 r = least ? _mm256_blendv_ps(x, y, as_float(x_greater))
                     : _mm256_blendv_ps(y, x, as_float(x_greater));
    __m256 x_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    __m256 y_nan = _mm256_cmp_ps(y, y, _CMP_UNORD_Q);
    r = _mm256_blendv_ps(r, y, x_nan);
    r = _mm256_blendv_ps(r, x, y_nan);
    __m256 both = nan ? _mm256_or_ps(x_nan, y_nan) : _mm256_and_ps(x_nan, y_nan);
    r = _mm256_blendv_ps(r, as_float(word(kNanF32)), both);
    store_lanes(d + i, as_bits(r));
  }
}

template <bool least>
LaneBinary pick_extreme(MinMaxControl control) {
  if (control.xorsign_abs || control.abs) return nullptr;
  if (control.ftz) return control.nan ? extreme<least, true, true> : extreme<least, true, false>;
  return control.nan ? extreme<least, false, true> : extreme<least, false, false>;
}

// The AVX predicate of each FloatCompare.
constexpr std::array<int, 14> kPredicates = {
    _CMP_EQ_OQ,  _CMP_NEQ_OQ, _CMP_LT_OQ,  _CMP_LE_OQ,  _CMP_GT_OQ,  _CMP_GE_OQ, _CMP_EQ_UQ,
    _CMP_NEQ_UQ, _CMP_NGE_UQ, _CMP_NGT_UQ, _CMP_NLE_UQ, _CMP_NLT_UQ, _CMP_ORD_Q, _CMP_UNORD_Q};

template <size_t code>  // FloatCompare * 2 + ftz
PTXB_TARGET uint32_t compare(const uint32_t* a, const uint32_t* b) {
  uint32_t mask = 0;
  for (int i = 0; i < kLanes; i += 8) {
    __m256 hit = _mm256_cmp_ps(operand<code % 2 != 0>(a + i), operand<code % 2 != 0>(b + i),
                               kPredicates[code / 2]);
    mask |= static_cast<uint32_t>(_mm256_movemask_ps(hit)) << i;
  }
  return mask;
}
template <size_t... code>
constexpr std::array<LaneCompare, sizeof...(code)> comparisons(std::index_sequence<code...>) {
  return {compare<code>...};
}

PTXB_STEP __m256 power_of_two(__m256i exponent) {
  return as_float(_mm256_slli_epi32(_mm256_add_epi32(exponent, word(127)), 23));
}

template <bool ftz>
PTXB_TARGET void ex2(uint32_t* d, const uint32_t* a) {
  for (int i = 0; i < kLanes; i += 8) {
    __m256 x = as_float(load_lanes(a + i));
    __m256 clamped =
        _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(kEx2Lowest)), _mm256_set1_ps(kEx2Highest));
    __m256 whole = _mm256_round_ps(clamped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 rest = _mm256_sub_ps(clamped, whole);
    __m256 r = _mm256_set1_ps(kEx2Coefficients[6]);
    for (int c = 5; c >= 0; --c) r = _mm256_fmadd_ps(r, rest, _mm256_set1_ps(kEx2Coefficients[c]));
    __m256i exponent = _mm256_cvtps_epi32(whole);
    __m256i half = _mm256_srai_epi32(exponent, 1);
    r = _mm256_mul_ps(_mm256_mul_ps(r, power_of_two(half)),
                      power_of_two(_mm256_sub_epi32(exponent, half)));
    __m256i bits = ftz ? flush_subnormals(as_bits(r)) : as_bits(r);
    __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    store_lanes(d + i, as_bits(_mm256_blendv_ps(as_float(bits), as_float(word(kNanF32)), nan)));
  }
}

template <bool ftz>
PTXB_TARGET void rcp(uint32_t* d, const uint32_t* a) {
  for (int i = 0; i < kLanes; i += 8) {
    finish<ftz, false>(d + i, _mm256_div_ps(_mm256_set1_ps(1.0f), operand<ftz>(a + i)));
  }
}

PTXB_TARGET void pack_bf16(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; i += 8) {
    __m256i upper = round_to_bf16(as_float(load_lanes(a + i)));
    __m256i lower = _mm256_srli_epi32(round_to_bf16(as_float(load_lanes(b + i))), 16);
    store_lanes(d + i, _mm256_or_si256(upper, lower));
  }
}

PTXB_STEP __m128i narrow_f16(const uint32_t* p) {
  return _mm256_cvtps_ph(canonical(as_float(load_lanes(p))),
                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

PTXB_TARGET void pack_f16(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; i += 8) {
    __m256i upper = _mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow_f16(a + i)), 16);
    store_lanes(d + i, _mm256_or_si256(upper, _mm256_cvtepu16_epi32(narrow_f16(b + i))));
  }
}

PTXB_TARGET void narrow_bf16_lanes(uint32_t* d, const uint32_t* a) {
  for (int i = 0; i < kLanes; i += 8) {
    store_lanes(d + i, _mm256_srli_epi32(round_to_bf16(as_float(load_lanes(a + i))), 16));
  }
}
PTXB_TARGET void narrow_f16_lanes(uint32_t* d, const uint32_t* a) {
  for (int i = 0; i < kLanes; i += 8) store_lanes(d + i, _mm256_cvtepu16_epi32(narrow_f16(a + i)));
}

PTXB_TARGET void widen_bf16_lanes(uint32_t* d, const uint32_t* a) {
  for (int i = 0; i < kLanes; i += 8) store_lanes(d + i, _mm256_slli_epi32(load_lanes(a + i), 16));
}
PTXB_TARGET void widen_f16_lanes(uint32_t* d, const uint32_t* a) {
  for (int i = 0; i < kLanes; i += 8) {
    __m256i low = _mm256_and_si256(load_lanes(a + i), word(0xffffu));
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0xd8);
    store_lanes(d + i, as_bits(canonical(_mm256_cvtph_ps(_mm256_castsi256_si128(packed)))));
  }
}

}  // namespace

LaneBinary avx2_add_f32(FloatControl control) { return pick_binary<Add>(control); }
LaneBinary avx2_sub_f32(FloatControl control) { return pick_binary<Sub>(control); }
LaneBinary avx2_mul_f32(FloatControl control) { return pick_binary<Mul>(control); }
LaneTernary avx2_fma_f32(FloatControl control) {
  if (control.round != Round::NearestEven) return nullptr;
  if (control.ftz) return control.sat ? fma<true, true> : fma<true, false>;
  return control.sat ? fma<false, true> : fma<false, false>;
}
LaneBinary avx2_min_f32(MinMaxControl control) { return pick_extreme<true>(control); }
LaneBinary avx2_max_f32(MinMaxControl control) { return pick_extreme<false>(control); }
LaneCompare avx2_compare_f32(FloatCompare code, FloatControl control) {
  static constexpr auto kTable = comparisons(std::make_index_sequence<28>());
  return kTable[static_cast<size_t>(code) * 2 + (control.ftz ? 1 : 0)];
}
LaneUnary avx2_ex2_approx_f32(FloatControl control) { return control.ftz ? ex2<kFtz> : ex2<kKeep>; }
LaneUnary avx2_rcp_approx_f32(FloatControl control) { return control.ftz ? rcp<kFtz> : rcp<kKeep>; }
LaneBinary avx2_pack_half2(Half format) { return format == Half::F16 ? pack_f16 : pack_bf16; }
LaneUnary avx2_half_from_f32(Half format) {
  return format == Half::F16 ? narrow_f16_lanes : narrow_bf16_lanes;
}
LaneUnary avx2_half_to_f32(Half format) {
  return format == Half::F16 ? widen_f16_lanes : widen_bf16_lanes;
}

#else

LaneBinary avx2_add_f32(FloatControl) { return nullptr; }
LaneBinary avx2_sub_f32(FloatControl) { return nullptr; }
LaneBinary avx2_mul_f32(FloatControl) { return nullptr; }
LaneTernary avx2_fma_f32(FloatControl) { return nullptr; }
LaneBinary avx2_min_f32(MinMaxControl) { return nullptr; }
LaneBinary avx2_max_f32(MinMaxControl) { return nullptr; }
LaneCompare avx2_compare_f32(FloatCompare, FloatControl) { return nullptr; }
LaneUnary avx2_ex2_approx_f32(FloatControl) { return nullptr; }
LaneUnary avx2_rcp_approx_f32(FloatControl) { return nullptr; }
LaneBinary avx2_pack_half2(Half) { return nullptr; }
LaneUnary avx2_half_from_f32(Half) { return nullptr; }
LaneUnary avx2_half_to_f32(Half) { return nullptr; }

#endif

}  // namespace ptxb::emu::arith
