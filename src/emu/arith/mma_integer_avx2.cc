// Owns the vector kernels of s8/u8/s4/u4 mma.sync: operands as int16 pairs, vpmaddwd into int32 accumulators.
// Never saturates inside the sum: the dot product cannot overflow, only the final addition of C can.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/mma_avx2.h"
#include "emu/arith/mma_element.h"
#include "emu/arith/simd.h"

namespace ptxb::emu::arith {

#if PTXB_ARITH_AVX2
namespace {

template <MmaType type>
constexpr int kPairs = elements_per_register(type) / 2;
constexpr bool is_signed(MmaType type) { return type == MmaType::S8 || type == MmaType::S4; }

// Elements 2 * pair and 2 * pair + 1 of each register as two int16.
template <MmaType type, int pair>
PTXB_STEP __m256i widen_pair(__m256i registers) {
  if constexpr (element_info(type).bits == 8) {
    __m256i order = _mm256_set1_epi32(static_cast<int>(0x00800080u | (2u * pair << 8) | ((2u * pair + 1) << 24)));
    order = _mm256_add_epi8(order, _mm256_setr_epi32(0, 0x04000400, 0x08000800, 0x0c000c00, 0, 0x04000400, 0x08000800, 0x0c000c00));
    __m256i spread = _mm256_shuffle_epi8(registers, order);
    return is_signed(type) ? _mm256_srai_epi16(spread, 8) : _mm256_srli_epi16(spread, 8);
  } else {
    __m256i byte = _mm256_and_si256(_mm256_srli_epi32(registers, 8 * pair), word(0xffu));
    __m256i spread = _mm256_or_si256(_mm256_slli_epi32(byte, 12), _mm256_slli_epi32(byte, 24));
    // The low int16 holds the low nibble at its top, the high int16 the high nibble at its top.
    spread = _mm256_or_si256(_mm256_and_si256(spread, word(0x0000f000u)), _mm256_and_si256(spread, word(0xf0000000u)));
    return is_signed(type) ? _mm256_srai_epi16(spread, 12) : _mm256_srli_epi16(spread, 12);
  }
}

template <MmaType type, int pair = 0>
PTXB_STEP void widen_all(uint32_t* out, int stride, __m256i registers) {
  store_lanes(out + pair * stride, widen_pair<type, pair>(registers));
  if constexpr (pair + 1 < kPairs<type>) widen_all<type, pair + 1>(out, stride, registers);
}

template <MmaType type>
PTXB_STEP void fill_a(uint32_t* panel, const uint32_t* a) {
  for (int i = 0; i < kLanes; i += 8) widen_all<type>(panel + i, kLanes, load_lanes(a + i));
}

// Same order as the float panels: even columns, then odd ones.
template <MmaType type>
PTXB_STEP void fill_b(uint32_t* panel, const uint32_t* b) {
  __m256 r0 = as_float(load_lanes(b));
  __m256 r1 = as_float(load_lanes(b + 8));
  __m256 r2 = as_float(load_lanes(b + 16));
  __m256 r3 = as_float(load_lanes(b + 24));
  __m256 low01 = _mm256_unpacklo_ps(r0, r1);
  __m256 low23 = _mm256_unpacklo_ps(r2, r3);
  __m256 high01 = _mm256_unpackhi_ps(r0, r1);
  __m256 high23 = _mm256_unpackhi_ps(r2, r3);
  constexpr int kStep = 8 * kPairs<type>;
  widen_all<type>(panel, 8, as_bits(_mm256_shuffle_ps(low01, low23, 0x44)));
  widen_all<type>(panel + kStep, 8, as_bits(_mm256_shuffle_ps(low01, low23, 0xee)));
  widen_all<type>(panel + 2 * kStep, 8, as_bits(_mm256_shuffle_ps(high01, high23, 0x44)));
  widen_all<type>(panel + 3 * kStep, 8, as_bits(_mm256_shuffle_ps(high01, high23, 0xee)));
}

struct IntTile {
  __m256i v[8];  // v[2 * q + parity]
};

PTXB_STEP __m256i broadcast_four(const uint32_t* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

template <int t, int q>
PTXB_STEP void add_products(IntTile& acc, const uint32_t* a, __m256i even, __m256i odd) {
  __m256i x = _mm256_shuffle_epi32(load_lanes(a + 8 * q), t * 0x55);
  acc.v[2 * q] = _mm256_add_epi32(acc.v[2 * q], _mm256_madd_epi16(x, even));
  acc.v[2 * q + 1] = _mm256_add_epi32(acc.v[2 * q + 1], _mm256_madd_epi16(x, odd));
}

template <int pairs, int t>
PTXB_STEP void lane_group(IntTile& acc, const uint32_t* a, const uint32_t* b) {
  for (int pair = 0; pair < pairs; ++pair) {
    __m256i even = broadcast_four(b + (t * pairs + pair) * 8);
    __m256i odd = broadcast_four(b + (t * pairs + pair) * 8 + 4);
    add_products<t, 0>(acc, a + pair * kLanes, even, odd);
    add_products<t, 1>(acc, a + pair * kLanes, even, odd);
    add_products<t, 2>(acc, a + pair * kLanes, even, odd);
    add_products<t, 3>(acc, a + pair * kLanes, even, odd);
  }
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

template <MmaType a_type, MmaType b_type, int halves, int blocks, bool clamp>
PTXB_TARGET void integer_mma(const MmaOperands& o) {
  constexpr int kP = kPairs<a_type>;
  constexpr int kHalfSize = kP * blocks * kLanes;
  alignas(32) uint32_t a[halves * kHalfSize];
  alignas(32) uint32_t b[kP * blocks * 32];
  for (int block = 0; block < blocks; ++block) {
    for (int half = 0; half < halves; ++half) {
      fill_a<a_type>(a + half * kHalfSize + block * kP * kLanes, o.a[block * halves + half]);
    }
    fill_b<b_type>(b + block * kP * 32, o.b[block]);
  }
  alignas(32) uint32_t result[2 * halves * kLanes];
  for (int half = 0; half < halves; ++half) {
    IntTile acc;
    for (int i = 0; i < 8; ++i) acc.v[i] = _mm256_setzero_si256();
    for (int block = 0; block < blocks; ++block) {
      const uint32_t* block_a = a + half * kHalfSize + block * kP * kLanes;
      const uint32_t* block_b = b + block * kP * 32;
      lane_group<kP, 0>(acc, block_a, block_b);
      lane_group<kP, 1>(acc, block_a, block_b);
      lane_group<kP, 2>(acc, block_a, block_b);
      lane_group<kP, 3>(acc, block_a, block_b);
    }
    for (int i = 0; i < 8; ++i) {
      int r = 2 * half + i % 2;
      store_lanes(result + r * kLanes + 8 * (i / 2), add_c<clamp>(load_lanes(o.c[r] + 8 * (i / 2)), acc.v[i]));
    }
  }
  for (int r = 0; r < 2 * halves; ++r) {
    for (int i = 0; i < kLanes; i += 8) store_lanes(o.d[r] + i, load_lanes(result + r * kLanes + i));
  }
}

template <MmaType a, MmaType b, bool clamp>
MmaFunction pick_shape(const MmaForm& form) {
  if (form.m == 8) return integer_mma<a, b, 1, 1, clamp>;
  bool two = form.k == 8 * elements_per_register(a);
  return two ? integer_mma<a, b, 2, 2, clamp> : integer_mma<a, b, 2, 1, clamp>;
}
template <MmaType a, MmaType b>
MmaFunction pick_clamp(const MmaForm& form) {
  return form.satfinite ? pick_shape<a, b, true>(form) : pick_shape<a, b, false>(form);
}

}  // namespace

MmaFunction avx2_integer_mma(const MmaForm& form) {
  using T = MmaType;
  switch (form.a) {
    case T::S8: return form.b == T::S8 ? pick_clamp<T::S8, T::S8>(form) : pick_clamp<T::S8, T::U8>(form);
    case T::U8: return form.b == T::S8 ? pick_clamp<T::U8, T::S8>(form) : pick_clamp<T::U8, T::U8>(form);
    case T::S4: return form.b == T::S4 ? pick_clamp<T::S4, T::S4>(form) : pick_clamp<T::S4, T::U4>(form);
    case T::U4: return form.b == T::S4 ? pick_clamp<T::U4, T::S4>(form) : pick_clamp<T::U4, T::U4>(form);
    default: return nullptr;
  }
}

#else

MmaFunction avx2_integer_mma(const MmaForm&) { return nullptr; }

#endif

}  // namespace ptxb::emu::arith
