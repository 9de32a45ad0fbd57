// Owns the vector kernels of s8/u8/s4/u4 mma.sync (panels: mma_integer_panel.h).
// Never differs in a bit from the portable kernels.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/mma_avx2.h"
#include "emu/arith/mma_integer_panel.h"

namespace ptxb::emu::arith {

#if PTXB_ARITH_AVX2
namespace {

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

template <int pairs, int blocks>
PTXB_STEP void add_panel(IntTile& acc, const uint32_t* a, const uint32_t* b) {
  for (int block = 0; block < blocks; ++block) {
    const uint32_t* block_a = a + block * pairs * kLanes;
    const uint32_t* block_b = b + block * pairs * 32;
    lane_group<pairs, 0>(acc, block_a, block_b);
    lane_group<pairs, 1>(acc, block_a, block_b);
    lane_group<pairs, 2>(acc, block_a, block_b);
    lane_group<pairs, 3>(acc, block_a, block_b);
  }
}

template <MmaType a_type, MmaType b_type, int halves, int blocks, bool clamp>
PTXB_TARGET void integer_mma(const MmaOperands& o) {
  constexpr int kP = kPairs<a_type>;
  constexpr int kHalfSize = kP * blocks * kLanes;
  alignas(32) uint32_t a[halves * kHalfSize];
  alignas(32) uint32_t b[kP * blocks * 32];
  for (int block = 0; block < blocks; ++block) {
    for (int half = 0; half < halves; ++half) {
      fill_a_pairs<a_type>(a + half * kHalfSize + block * kP * kLanes, o.a[block * halves + half]);
    }
    fill_b_pairs<b_type>(b + block * kP * 32, o.b[block]);
  }
  IntTile upper;
  zero_tile(upper);
  add_panel<kP, blocks>(upper, a, b);
  add_tile<clamp>(upper, o.c);
  if constexpr (halves == 2) {
    IntTile done = upper;
    IntTile lower;
    zero_tile(lower);
    add_panel<kP, blocks>(lower, a + kHalfSize, b);
    add_tile<clamp>(lower, o.c + 2);  // before any write: d may be c in any order
    store_tile(o.d, done);
    store_tile(o.d + 2, lower);
  } else {
    store_tile(o.d, upper);
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
    case T::S8:
      return form.b == T::S8 ? pick_clamp<T::S8, T::S8>(form) : pick_clamp<T::S8, T::U8>(form);
    case T::U8:
      return form.b == T::S8 ? pick_clamp<T::U8, T::S8>(form) : pick_clamp<T::U8, T::U8>(form);
    case T::S4:
      return form.b == T::S4 ? pick_clamp<T::S4, T::S4>(form) : pick_clamp<T::S4, T::U4>(form);
    case T::U4:
      return form.b == T::S4 ? pick_clamp<T::U4, T::S4>(form) : pick_clamp<T::U4, T::U4>(form);
    default:
      return nullptr;
  }
}

#else

MmaFunction avx2_integer_mma(const MmaForm&) { return nullptr; }

#endif

}  // namespace ptxb::emu::arith
