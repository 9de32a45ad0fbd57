// Owns the operand panels of the vector tensor kernels and their inner steps, shared by mma and
// wgmma. A panel: per k group (k block, element) the 32 lanes of one row half, lane = 4 * row + t,
// k = (block*4 + t)*E + element. B panel: per k the eight columns of an n8 block, even ones first:
// {0, 2, 4, 6, 1, 3, 5, 7}. Accumulators stay in the register-fragment layout: a vector is two rows
// times four columns of one parity.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/arith/mma_element.h"
#include "emu/arith/simd.h"

#if PTXB_ARITH_AVX2
namespace ptxb::emu::arith {

PTXB_STEP __m256 widen_f16(__m256i low_halves) {
  __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low_halves, low_halves), 0xd8);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

// Element e of each register of the vector.
template <MmaType type, int e>
PTXB_STEP __m256 widen_element(__m256i registers) {
  if constexpr (type == MmaType::TF32) {
    return as_float(_mm256_and_si256(registers, word(0xffffe000u)));
  } else if constexpr (type == MmaType::BF16) {
    return as_float(e == 0 ? _mm256_slli_epi32(registers, 16)
                           : _mm256_and_si256(registers, word(0xffff0000u)));
  } else if constexpr (type == MmaType::F16) {
    return widen_f16(e == 0 ? _mm256_and_si256(registers, word(0xffffu))
                            : _mm256_srli_epi32(registers, 16));
  } else {
    __m256i byte = _mm256_and_si256(_mm256_srli_epi32(registers, 8 * e), word(0xffu));
    if constexpr (type == MmaType::E5M2) return widen_f16(_mm256_slli_epi32(byte, 8));
    // e4m3 as f16 has an exponent 8 too low; subnormals come out right, NaN does not.
    __m256i magnitude = _mm256_and_si256(byte, word(0x7fu));
    __m256i sign = _mm256_slli_epi32(_mm256_and_si256(byte, word(0x80u)), 8);
    __m256 value = _mm256_mul_ps(widen_f16(_mm256_or_si256(sign, _mm256_slli_epi32(magnitude, 7))),
                                 _mm256_set1_ps(256.0f));
    __m256i nan = _mm256_cmpeq_epi32(magnitude, word(0x7fu));
    return _mm256_blendv_ps(value, as_float(word(0x7fffffffu)), as_float(nan));
  }
}

template <MmaType type, int e = 0>
PTXB_STEP void widen_all(float* out, int stride, __m256i registers) {
  _mm256_store_ps(out + e * stride, widen_element<type, e>(registers));
  if constexpr (e + 1 < elements_per_register(type)) widen_all<type, e + 1>(out, stride, registers);
}

// One register of A (32 lanes) into the E groups of its k block.
template <MmaType type>
PTXB_STEP void fill_a(float* panel, const uint32_t* a) {
  for (int i = 0; i < kLanes; i += 8) widen_all<type>(panel + i, kLanes, load_lanes(a + i));
}

// One register of B (lane = 4 * column + t) into 4 * E rows of the panel.
template <MmaType type>
PTXB_STEP void fill_b(float* panel, const uint32_t* b) {
  constexpr int kStep = 8 * elements_per_register(type);
  __m256 r0 = as_float(load_lanes(b));  // columns 0 | 1
  __m256 r1 = as_float(load_lanes(b + 8));
  __m256 r2 = as_float(load_lanes(b + 16));
  __m256 r3 = as_float(load_lanes(b + 24));
  __m256 low01 = _mm256_unpacklo_ps(r0, r1);
  __m256 low23 = _mm256_unpacklo_ps(r2, r3);
  __m256 high01 = _mm256_unpackhi_ps(r0, r1);
  __m256 high23 = _mm256_unpackhi_ps(r2, r3);
  widen_all<type>(panel, 8, as_bits(_mm256_shuffle_ps(low01, low23, 0x44)));
  widen_all<type>(panel + kStep, 8, as_bits(_mm256_shuffle_ps(low01, low23, 0xee)));
  widen_all<type>(panel + 2 * kStep, 8, as_bits(_mm256_shuffle_ps(high01, high23, 0x44)));
  widen_all<type>(panel + 3 * kStep, 8, as_bits(_mm256_shuffle_ps(high01, high23, 0xee)));
}

PTXB_STEP __m256 broadcast_four(const float* p) {
  return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(p));
}

// Sixteen rows by eight columns need 16 vectors; half of it, 8 rows, is what fits the register
// file.
struct HalfTile {
  __m256 v[8];  // v[2 * q + parity]: rows 2q and 2q + 1
};

// One k: the A values of lane group t of each row meet the eight columns.
template <int t>
PTXB_STEP void fma_step(HalfTile& acc, const float* a, const float* b) {
  constexpr int kPick = t * 0x55;
  __m256 even = broadcast_four(b);
  __m256 odd = broadcast_four(b + 4);
  __m256 a0 = _mm256_permute_ps(_mm256_load_ps(a), kPick);
  acc.v[0] = _mm256_fmadd_ps(a0, even, acc.v[0]);
  acc.v[1] = _mm256_fmadd_ps(a0, odd, acc.v[1]);
  __m256 a1 = _mm256_permute_ps(_mm256_load_ps(a + 8), kPick);
  acc.v[2] = _mm256_fmadd_ps(a1, even, acc.v[2]);
  acc.v[3] = _mm256_fmadd_ps(a1, odd, acc.v[3]);
  __m256 a2 = _mm256_permute_ps(_mm256_load_ps(a + 16), kPick);
  acc.v[4] = _mm256_fmadd_ps(a2, even, acc.v[4]);
  acc.v[5] = _mm256_fmadd_ps(a2, odd, acc.v[5]);
  __m256 a3 = _mm256_permute_ps(_mm256_load_ps(a + 24), kPick);
  acc.v[6] = _mm256_fmadd_ps(a3, even, acc.v[6]);
  acc.v[7] = _mm256_fmadd_ps(a3, odd, acc.v[7]);
}

template <int elements, int t>
PTXB_STEP void fma_lane_group(HalfTile& acc, const float* a, const float* b) {
  for (int e = 0; e < elements; ++e) fma_step<t>(acc, a + e * kLanes, b + (t * elements + e) * 8);
}

// All k of the panels in ascending order.
template <int elements, int blocks>
PTXB_STEP void fma_panel(HalfTile& acc, const float* a, const float* b) {
  for (int block = 0; block < blocks; ++block) {
    const float* block_a = a + block * elements * kLanes;
    const float* block_b = b + block * elements * 32;
    fma_lane_group<elements, 0>(acc, block_a, block_b);
    fma_lane_group<elements, 1>(acc, block_a, block_b);
    fma_lane_group<elements, 2>(acc, block_a, block_b);
    fma_lane_group<elements, 3>(acc, block_a, block_b);
  }
}

// f16 pairs (even column low, odd column high) <-> two accumulator vectors.
PTXB_STEP void widen_pairs(__m256i pairs, __m256& even, __m256& odd) {
  even = widen_f16(_mm256_and_si256(pairs, word(0xffffu)));
  odd = widen_f16(_mm256_srli_epi32(pairs, 16));
}
PTXB_STEP __m256i narrow_pairs(__m256 even, __m256 odd) {
  __m128i low = _mm256_cvtps_ph(canonical(even), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m128i high = _mm256_cvtps_ph(canonical(odd), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return _mm256_or_si256(_mm256_cvtepu16_epi32(low),
                         _mm256_slli_epi32(_mm256_cvtepu16_epi32(high), 16));
}

// The accumulator registers of one row half (two of f32, one of f16 pairs). Unrolled by hand:
// constant indices keep the tile in vector registers.
template <MmaAccumulator accumulator, int q = 0>
PTXB_STEP void load_tile(HalfTile& t, const uint32_t* const* c) {
  if constexpr (accumulator == MmaAccumulator::F32) {
    t.v[2 * q] = as_float(load_lanes(c[0] + 8 * q));
    t.v[2 * q + 1] = as_float(load_lanes(c[1] + 8 * q));
  } else {
    widen_pairs(load_lanes(c[0] + 8 * q), t.v[2 * q], t.v[2 * q + 1]);
  }
  if constexpr (q < 3) load_tile<accumulator, q + 1>(t, c);
}
template <int q = 0>
PTXB_STEP void zero_tile(HalfTile& t) {
  t.v[2 * q] = t.v[2 * q + 1] = _mm256_setzero_ps();
  if constexpr (q < 3) zero_tile<q + 1>(t);
}
template <MmaAccumulator accumulator, int q = 0>
PTXB_STEP void store_tile(uint32_t* const* d, const HalfTile& t) {
  if constexpr (accumulator == MmaAccumulator::F32) {
    store_lanes(d[0] + 8 * q, as_bits(canonical(t.v[2 * q])));
    store_lanes(d[1] + 8 * q, as_bits(canonical(t.v[2 * q + 1])));
  } else {
    store_lanes(d[0] + 8 * q, narrow_pairs(t.v[2 * q], t.v[2 * q + 1]));
  }
  if constexpr (q < 3) store_tile<accumulator, q + 1>(d, t);
}
// Registers of a row half: the distance between the first ones of two halves.
template <MmaAccumulator accumulator>
inline constexpr int kHalfRegisters = accumulator == MmaAccumulator::F32 ? 2 : 1;

}  // namespace ptxb::emu::arith
#endif  // PTXB_ARITH_AVX2
