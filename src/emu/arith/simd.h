// Owns the AVX2 switch of the room: the target attribute, run-time detection, small vector steps
// shared by the kernels. Never included by anything outside arith. Every vector path has a portable
// twin with the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#define PTXB_ARITH_AVX2 1
#include <immintrin.h>
#define PTXB_TARGET __attribute__((target("avx2,fma,f16c")))
#define PTXB_STEP __attribute__((target("avx2,fma,f16c"), always_inline)) inline
#else
#define PTXB_ARITH_AVX2 0
#endif

namespace ptxb::emu::arith {

// True when the AVX2 kernels may run (lanes.h: select_lane_path).
bool native_path();

#if PTXB_ARITH_AVX2

PTXB_STEP __m256i load_lanes(const uint32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
PTXB_STEP void store_lanes(uint32_t* p, __m256i v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}
PTXB_STEP __m256 as_float(__m256i v) { return _mm256_castsi256_ps(v); }
PTXB_STEP __m256i as_bits(__m256 v) { return _mm256_castps_si256(v); }
PTXB_STEP __m256i word(uint32_t bits) { return _mm256_set1_epi32(static_cast<int>(bits)); }

// NaN lanes become NVIDIA's canonical NaN.
PTXB_STEP __m256 canonical(__m256 v) {
  return _mm256_blendv_ps(v, as_float(word(0x7fffffffu)), _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}

// Subnormal lanes become zeros of the same sign.
PTXB_STEP __m256i flush_subnormals(__m256i v) {
  __m256i subnormal =
      _mm256_cmpeq_epi32(_mm256_and_si256(v, word(0x7f800000u)), _mm256_setzero_si256());
  return _mm256_andnot_si256(_mm256_and_si256(subnormal, word(0x7fffffffu)), v);
}

// f32 -> bf16 in the upper half of each lane, nearest even; the lower half is garbage-free. NaN ->
// 0x7fff.
PTXB_STEP __m256i round_to_bf16(__m256 v) {
  __m256i bits = as_bits(v);
  __m256i tie = _mm256_and_si256(_mm256_srli_epi32(bits, 16), word(1));
  __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(tie, word(0x7fffu)));
  __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
  rounded = as_bits(_mm256_blendv_ps(as_float(rounded), as_float(word(0x7fff0000u)), nan));
  return _mm256_and_si256(rounded, word(0xffff0000u));
}

// s + error as one value rounded to odd: a later rounding to 22 bits or fewer is then a single
// rounding.
PTXB_STEP __m256 round_to_odd(__m256 s, __m256 error) {
  __m256i inexact = as_bits(_mm256_cmp_ps(error, _mm256_setzero_ps(), _CMP_NEQ_OQ));
  __m256i even = _mm256_cmpeq_epi32(_mm256_and_si256(as_bits(s), word(1)), _mm256_setzero_si256());
  __m256i opposite =
      _mm256_srai_epi32(_mm256_xor_si256(as_bits(s), as_bits(error)), 31);  // 0 or -1
  __m256i step = _mm256_or_si256(opposite, word(1));                        // +1 or -1
  return as_float(
      _mm256_add_epi32(as_bits(s), _mm256_and_si256(step, _mm256_and_si256(inexact, even))));
}

// p + c rounded to odd (Knuth's exact two-sum).
PTXB_STEP __m256 add_to_odd(__m256 p, __m256 c) {
  __m256 s = _mm256_add_ps(p, c);
  __m256 c_seen = _mm256_sub_ps(s, p);
  __m256 error =
      _mm256_add_ps(_mm256_sub_ps(p, _mm256_sub_ps(s, c_seen)), _mm256_sub_ps(c, c_seen));
  return round_to_odd(s, error);
}

#endif  // PTXB_ARITH_AVX2

}  // namespace ptxb::emu::arith
