// Owns the integer operand panels of the vector tensor kernels: s8/u8/s4/u4 as int16 pairs for
// vpmaddwd, otherwise laid out like the float panels (mma_panel_avx2.h). Shared by mma and wgmma.
// Never saturates inside the sum: the dot product cannot overflow, only the final addition of C
// can.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/arith/mma_element.h"
#include "emu/arith/simd.h"

#if PTXB_ARITH_AVX2
namespace ptxb::emu::arith {

template <MmaType type>
inline constexpr int kPairs = elements_per_register(type) / 2;
constexpr bool is_signed_integer(MmaType type) {
  return type == MmaType::S8 || type == MmaType::S4;
}

// Elements 2 * pair and 2 * pair + 1 of each register as two int16.
template <MmaType type, int pair>
PTXB_STEP __m256i widen_pair(__m256i registers) {
  if constexpr (element_info(type).bits == 8) {
    __m256i order = _mm256_set1_epi32(
        static_cast<int>(0x00800080u | (2u * pair << 8) | ((2u * pair + 1) << 24)));
    order = _mm256_add_epi8(order, _mm256_setr_epi32(0, 0x04000400, 0x08000800, 0x0c000c00, 0,
                                                     0x04000400, 0x08000800, 0x0c000c00));
    __m256i spread = _mm256_shuffle_epi8(registers, order);
    return is_signed_integer(type) ? _mm256_srai_epi16(spread, 8) : _mm256_srli_epi16(spread, 8);
  } else {
    __m256i byte = _mm256_and_si256(_mm256_srli_epi32(registers, 8 * pair), word(0xffu));
    __m256i spread = _mm256_or_si256(_mm256_slli_epi32(byte, 12), _mm256_slli_epi32(byte, 24));
    // The low int16 holds the low nibble at its top, the high int16 the high nibble at its top.
    spread = _mm256_or_si256(_mm256_and_si256(spread, word(0x0000f000u)),
                             _mm256_and_si256(spread, word(0xf0000000u)));
    return is_signed_integer(type) ? _mm256_srai_epi16(spread, 12) : _mm256_srli_epi16(spread, 12);
  }
}

template <MmaType type, int pair = 0>
PTXB_STEP void widen_pairs_all(uint32_t* out, int stride, __m256i registers) {
  store_lanes(out + pair * stride, widen_pair<type, pair>(registers));
  if constexpr (pair + 1 < kPairs<type>) widen_pairs_all<type, pair + 1>(out, stride, registers);
}

template <MmaType type>
PTXB_STEP void fill_a_pairs(uint32_t* panel, const uint32_t* a) {
  for (int i = 0; i < kLanes; i += 8) widen_pairs_all<type>(panel + i, kLanes, load_lanes(a + i));
}

// Same order as the float panels: even columns, then odd ones.
template <MmaType type>
PTXB_STEP void fill_b_pairs(uint32_t* panel, const uint32_t* b) {
  __m256 r0 = as_float(load_lanes(b));
  __m256 r1 = as_float(load_lanes(b + 8));
  __m256 r2 = as_float(load_lanes(b + 16));
  __m256 r3 = as_float(load_lanes(b + 24));
  __m256 low01 = _mm256_unpacklo_ps(r0, r1);
  __m256 low23 = _mm256_unpacklo_ps(r2, r3);
  __m256 high01 = _mm256_unpackhi_ps(r0, r1);
  __m256 high23 = _mm256_unpackhi_ps(r2, r3);
  constexpr int kStep = 8 * kPairs<type>;
  widen_pairs_all<type>(panel, 8, as_bits(_mm256_shuffle_ps(low01, low23, 0x44)));
  widen_pairs_all<type>(panel + kStep, 8, as_bits(_mm256_shuffle_ps(low01, low23, 0xee)));
  widen_pairs_all<type>(panel + 2 * kStep, 8, as_bits(_mm256_shuffle_ps(high01, high23, 0x44)));
  widen_pairs_all<type>(panel + 3 * kStep, 8, as_bits(_mm256_shuffle_ps(high01, high23, 0xee)));
}

struct IntTile {
  __m256i v[8];  // v[2 * q + parity]
};

PTXB_STEP __m256i broadcast_four(const uint32_t* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

template <int q = 0>
PTXB_STEP void zero_tile(IntTile& t) {
  t.v[2 * q] = t.v[2 * q + 1] = _mm256_setzero_si256();
  if constexpr (q < 3) zero_tile<q + 1>(t);
}

// c + sum; clamped when the signs of both agree and the result's differs.
template <bool clamp>
PTXB_STEP __m256i add_c(__m256i c, __m256i sum) {
  __m256i result = _mm256_add_epi32(c, sum);
  if constexpr (clamp) {
    __m256i overflow = _mm256_and_si256(_mm256_xor_si256(c, result), _mm256_xor_si256(sum, result));
    __m256i limit = _mm256_xor_si256(_mm256_srai_epi32(c, 31), word(0x7fffffffu));
    result = as_bits(_mm256_blendv_ps(as_float(result), as_float(limit), as_float(overflow)));
  }
  return result;
}

// t = c + t for the two accumulator registers of a row half.
template <bool clamp, int q = 0>
PTXB_STEP void add_tile(IntTile& t, const uint32_t* const* c) {
  t.v[2 * q] = add_c<clamp>(load_lanes(c[0] + 8 * q), t.v[2 * q]);
  t.v[2 * q + 1] = add_c<clamp>(load_lanes(c[1] + 8 * q), t.v[2 * q + 1]);
  if constexpr (q < 3) add_tile<clamp, q + 1>(t, c);
}
template <int q = 0>
PTXB_STEP void store_tile(uint32_t* const* d, const IntTile& t) {
  store_lanes(d[0] + 8 * q, t.v[2 * q]);
  store_lanes(d[1] + 8 * q, t.v[2 * q + 1]);
  if constexpr (q < 3) store_tile<q + 1>(d, t);
}

}  // namespace ptxb::emu::arith
#endif  // PTXB_ARITH_AVX2
