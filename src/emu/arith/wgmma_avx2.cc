// Owns the vector wgmma kernels: A rows spread over their four lanes once per warp, B as one panel
// per n8 block (layouts: mma_panel_avx2.h), D straight in the register fragments. Never differs in
// a bit from the portable kernels.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/wgmma_avx2.h"

#include <bit>
#include <cstring>

#include "emu/arith/convert.h"
#include "emu/arith/mma_exact_avx2.h"
#include "emu/arith/mma_integer_panel.h"
#include "emu/arith/mma_panel_avx2.h"
#include "emu/arith/wgmma_model.h"

namespace ptxb::emu::arith {

#if PTXB_ARITH_AVX2
namespace {

template <MmaType type>
constexpr int kElements = elements_per_register(type);
template <MmaType type>
constexpr int kDepth = 8 * kElements<type>;
template <MmaType type>
constexpr int kHalfSize = kElements<type> * 2 * kLanes;  // floats of one row half before spreading

// K-major chunks are register fragments already: word t of a row is lane 4 * row + t.
void gather_rows(uint32_t (&image)[4][kLanes], const uint8_t* shared, const WgmmaDescriptor& d,
                 int warp) {
  for (int r = 0; r < 4; ++r) {
    for (int row = 0; row < 8; ++row) {
      std::memcpy(&image[r][4 * row],
                  shared + wgmma_chunk_k_major(d, 16 * warp + 8 * (r % 2) + row, r / 2), 16);
    }
  }
}
void gather_columns(uint32_t (&image)[kLanes], const uint8_t* shared, const WgmmaDescriptor& d,
                    int block, int c) {
  for (int row = 0; row < 8; ++row) {
    std::memcpy(&image[4 * row], shared + wgmma_chunk_k_major(d, 8 * block + row, c), 16);
  }
}

PTXB_STEP void negate_all(float* p, int count) {
  __m256 sign = as_float(word(0x80000000u));
  for (int i = 0; i < count; i += 8)
    _mm256_store_ps(p + i, _mm256_xor_ps(_mm256_load_ps(p + i), sign));
}

// rows.value[(half * depth + k) * 32 + 8 * q]: the A values of row pair q for one k, each four
// times.
template <MmaType type, int t>
PTXB_STEP void spread_values(float* to, const float* raw) {
  constexpr int kE = kElements<type>;
  for (int block = 0; block < 2; ++block) {
    for (int e = 0; e < kE; ++e) {
      const float* from = raw + (block * kE + e) * kLanes;
      float* row = to + ((block * 4 + t) * kE + e) * 32;
      for (int i = 0; i < 32; i += 8)
        _mm256_store_ps(row + i, _mm256_permute_ps(_mm256_load_ps(from + i), t * 0x55));
    }
  }
}
template <MmaType type>
PTXB_STEP void spread_half(float* to, const float* raw) {
  spread_values<type, 0>(to, raw);
  spread_values<type, 1>(to, raw);
  spread_values<type, 2>(to, raw);
  spread_values<type, 3>(to, raw);
}

template <MmaType type, Numerics numerics>
PTXB_STEP void finish_rows(WgmmaRows& rows, float* raw, bool negate) {
  constexpr int kSize = 2 * kHalfSize<type>;
  if (negate) negate_all(raw, kSize);
  spread_half<type>(rows.value, raw);
  spread_half<type>(rows.value + kDepth<type> * 32, raw + kHalfSize<type>);
  rows.safe = true;
  if constexpr (numerics == Numerics::Exact) {
    rows.safe = fill_exponents(rows.word, rows.value, 2 * kDepth<type> * 32,
                               element_info(type).lowest_exponent);
  }
}

template <MmaType type, Numerics numerics>
PTXB_TARGET void load_a_registers(WgmmaRows& rows, const WgmmaForm& form,
                                  const uint32_t* const* a) {
  alignas(32) float raw[2 * kHalfSize<type>];
  for (int r = 0; r < 4; ++r)
    fill_a<type>(raw + r % 2 * kHalfSize<type> + r / 2 * kElements<type> * kLanes, a[r]);
  finish_rows<type, numerics>(rows, raw, form.negate_a);
}

template <MmaType type, Numerics numerics>
PTXB_TARGET void load_a(WgmmaRows& rows, const WgmmaForm& form, const uint8_t* shared,
                        const WgmmaDescriptor& d, int warp) {
  if (form.a_major == Major::K) {
    uint32_t image[4][kLanes];
    gather_rows(image, shared, d, warp);
    const uint32_t* registers[4] = {image[0], image[1], image[2], image[3]};
    load_a_registers<type, numerics>(rows, form, registers);
    return;
  }
  if constexpr (kElements<type> == 2) {
    alignas(32) float raw[2 * kHalfSize<type>];
    for (int half = 0; half < 2; ++half) {
      for (int k = 0; k < 16; ++k) {
        uint16_t column[8];
        std::memcpy(column, shared + wgmma_chunk_mn_major(d, 2 * warp + half, k), 16);
        float* to = raw + half * kHalfSize<type> + (k / 8 * 2 + k % 2) * kLanes + k / 2 % 4;
        for (int row = 0; row < 8; ++row) to[4 * row] = element_value(type, column[row], 0);
      }
    }
    finish_rows<type, numerics>(rows, raw, form.negate_a);
  }
}

// Eight 16-bit elements to f32, even ones first.
template <MmaType type>
PTXB_STEP __m256 widen_column(const uint8_t* chunk) {
  __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(chunk));
  __m256 v = type == MmaType::BF16 ? as_float(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))
                                   : _mm256_cvtph_ps(halves);
  return _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

// panel.value[(block * depth + k) * 8]: the eight columns of an n8 block for one k.
template <MmaType type, Numerics numerics>
PTXB_TARGET void load_b(WgmmaPanel& panel, const WgmmaForm& form, const uint8_t* shared,
                        const WgmmaDescriptor& d) {
  for (int block = 0; block < form.n / 8; ++block) {
    float* to = panel.value + block * kDepth<type> * 8;
    if (form.b_major == Major::K) {
      for (int c = 0; c < 2; ++c) {
        alignas(32) uint32_t image[kLanes];
        gather_columns(image, shared, d, block, c);
        fill_b<type>(to + c * kElements<type> * 32, image);
      }
    } else if constexpr (kElements<type> == 2) {
      for (int k = 0; k < 16; ++k)
        _mm256_store_ps(to + k * 8, widen_column<type>(shared + wgmma_chunk_mn_major(d, block, k)));
    }
  }
  int count = form.n * kDepth<type>;
  if (form.negate_b) negate_all(panel.value, count);
  panel.safe = true;
  if constexpr (numerics == Numerics::Exact) {
    panel.safe = fill_exponents(panel.word, panel.value, count, element_info(type).lowest_exponent);
  }
}

template <MmaAccumulator accumulator>
PTXB_STEP void start_tile(HalfTile& t, uint32_t* const* d, ScaleD scale) {
  if (scale == ScaleD::Keep)
    load_tile<accumulator>(t, d);
  else
    zero_tile(t);
}

PTXB_STEP void fma_spread(HalfTile& acc, const float* a, const float* b) {
  __m256 even = broadcast_four(b);
  __m256 odd = broadcast_four(b + 4);
  __m256 a0 = _mm256_load_ps(a);
  acc.v[0] = _mm256_fmadd_ps(a0, even, acc.v[0]);
  acc.v[1] = _mm256_fmadd_ps(a0, odd, acc.v[1]);
  __m256 a1 = _mm256_load_ps(a + 8);
  acc.v[2] = _mm256_fmadd_ps(a1, even, acc.v[2]);
  acc.v[3] = _mm256_fmadd_ps(a1, odd, acc.v[3]);
  __m256 a2 = _mm256_load_ps(a + 16);
  acc.v[4] = _mm256_fmadd_ps(a2, even, acc.v[4]);
  acc.v[5] = _mm256_fmadd_ps(a2, odd, acc.v[5]);
  __m256 a3 = _mm256_load_ps(a + 24);
  acc.v[6] = _mm256_fmadd_ps(a3, even, acc.v[6]);
  acc.v[7] = _mm256_fmadd_ps(a3, odd, acc.v[7]);
}

template <MmaType a_type, MmaAccumulator accumulator>
PTXB_TARGET void multiply_fast(const WgmmaRows& rows, const WgmmaPanel& panel,
                               const WgmmaForm& form, uint32_t* const* d, ScaleD scale) {
  constexpr int kK = kDepth<a_type>;
  for (int block = 0; block < form.n / 8; ++block) {
    const float* b = panel.value + block * kK * 8;
    for (int half = 0; half < 2; ++half) {
      const float* a = rows.value + half * kK * 32;
      HalfTile acc;
      uint32_t* const* tile = d + (2 * block + half) * kHalfRegisters<accumulator>;
      start_tile<accumulator>(acc, tile, scale);
      for (int k = 0; k < kK; ++k) fma_spread(acc, a + k * 32, b + k * 8);
      store_tile<accumulator>(tile, acc);
    }
  }
}

template <MmaType a_type, MmaType b_type, MmaAccumulator accumulator>
void scalar_lanes(float* lanes, const WgmmaRows& rows, const WgmmaPanel& panel, int block,
                  int row_pair, int parity) {
  constexpr int kK = kDepth<a_type>;
  for (int lane = 0; lane < 8; ++lane) {
    float a[kK];
    float b[kK];
    for (int k = 0; k < kK; ++k) {
      a[k] = rows.value[(row_pair / 4 * kK + k) * 32 + 8 * (row_pair % 4) + lane];
      b[k] = panel.value[(block * kK + k) * 8 + 4 * parity + lane % 4];
    }
    if constexpr (accumulator == MmaAccumulator::F32) {
      uint32_t c = std::bit_cast<uint32_t>(lanes[lane]);
      lanes[lane] =
          std::bit_cast<float>(exact_dot_f32(kWgmmaModel<a_type, b_type>, kK, a, b, 1, c));
    } else {
      uint16_t c = half_from_f32(Half::F16, std::bit_cast<uint32_t>(lanes[lane]));
      lanes[lane] = f16_value(exact_dot_f16(kWgmmaModel<a_type, b_type>, kK, a, b, 1, c));
    }
  }
}

template <MmaType a_type, MmaType b_type, MmaAccumulator accumulator>
PTXB_TARGET void multiply_exact(const WgmmaRows& rows, const WgmmaPanel& panel,
                                const WgmmaForm& form, uint32_t* const* d, ScaleD scale) {
  constexpr int kK = kDepth<a_type>;
  constexpr ExactModel kModel = kWgmmaModel<a_type, b_type>;
  constexpr SumRounding kWideRounding =
      kModel.result_fraction_bits == 13 ? SumRounding::Truncate14 : SumRounding::Truncate24;
  constexpr SumRounding kRounding =
      accumulator == MmaAccumulator::F32 ? kWideRounding : SumRounding::Odd24;
  constexpr int kFloor =
      accumulator == MmaAccumulator::F32 ? kModel.exponent_floor : kModel.half_exponent_floor;
  bool safe = rows.safe && panel.safe;
  for (int block = 0; block < form.n / 8; ++block) {
    for (int half = 0; half < 2; ++half) {
      HalfTile acc;
      uint32_t* const* tile = d + (2 * block + half) * kHalfRegisters<accumulator>;
      start_tile<accumulator>(acc, tile, scale);
      for (int i = 0; i < 8; ++i) {
        int a_at = half * kK * 32 + 8 * (i / 2);
        int b_at = block * kK * 8 + 4 * (i % 2);
        if (safe && fused_block<kK, 32, kModel.fraction_bits, kRounding>(
                        acc.v[i], rows.value + a_at, rows.word + a_at, panel.value + b_at,
                        panel.word + b_at, acc.v[i], kFloor)) {
          continue;
        }
        alignas(32) float lanes[8];
        _mm256_store_ps(lanes, acc.v[i]);
        scalar_lanes<a_type, b_type, accumulator>(lanes, rows, panel, block, 4 * half + i / 2,
                                                  i % 2);
        acc.v[i] = _mm256_load_ps(lanes);
      }
      store_tile<accumulator>(tile, acc);
    }
  }
}

// Integers: rows.word[(half * pairs + p) * 32 + 8 * q] and panel.word[(block * pairs + p) * 8] hold
// int16 pairs.
constexpr int kBytePairs = 16;

template <int q = 0>
PTXB_STEP void madd_spread(IntTile& acc, const uint32_t* a, __m256i even, __m256i odd) {
  __m256i x = load_lanes(a + 8 * q);
  acc.v[2 * q] = _mm256_add_epi32(acc.v[2 * q], _mm256_madd_epi16(x, even));
  acc.v[2 * q + 1] = _mm256_add_epi32(acc.v[2 * q + 1], _mm256_madd_epi16(x, odd));
  if constexpr (q < 3) madd_spread<q + 1>(acc, a, even, odd);
}

template <int t>
PTXB_STEP void spread_pairs(uint32_t* to, const uint32_t* raw) {
  for (int block = 0; block < 2; ++block) {
    for (int pair = 0; pair < 2; ++pair) {
      const uint32_t* from = raw + (block * 2 + pair) * kLanes;
      uint32_t* row = to + ((block * 4 + t) * 2 + pair) * 32;
      for (int i = 0; i < 32; i += 8)
        store_lanes(row + i, _mm256_shuffle_epi32(load_lanes(from + i), t * 0x55));
    }
  }
}

template <MmaType type>
PTXB_TARGET void load_a_registers_integer(WgmmaRows& rows, const WgmmaForm&,
                                          const uint32_t* const* a) {
  uint32_t* words = reinterpret_cast<uint32_t*>(rows.word);
  for (int half = 0; half < 2; ++half) {
    alignas(32) uint32_t raw[4 * kLanes];
    for (int block = 0; block < 2; ++block)
      fill_a_pairs<type>(raw + block * 2 * kLanes, a[2 * block + half]);
    uint32_t* to = words + half * kBytePairs * 32;
    spread_pairs<0>(to, raw);
    spread_pairs<1>(to, raw);
    spread_pairs<2>(to, raw);
    spread_pairs<3>(to, raw);
  }
}

template <MmaType type>
PTXB_TARGET void load_a_integer(WgmmaRows& rows, const WgmmaForm& form, const uint8_t* shared,
                                const WgmmaDescriptor& d, int warp) {
  uint32_t image[4][kLanes];
  gather_rows(image, shared, d, warp);
  const uint32_t* registers[4] = {image[0], image[1], image[2], image[3]};
  load_a_registers_integer<type>(rows, form, registers);
}

template <MmaType type>
PTXB_TARGET void load_b_integer(WgmmaPanel& panel, const WgmmaForm& form, const uint8_t* shared,
                                const WgmmaDescriptor& d) {
  uint32_t* words = reinterpret_cast<uint32_t*>(panel.word);
  for (int block = 0; block < form.n / 8; ++block) {
    for (int c = 0; c < 2; ++c) {
      alignas(32) uint32_t image[kLanes];
      gather_columns(image, shared, d, block, c);
      fill_b_pairs<type>(words + (block * kBytePairs + c * 8) * 8, image);
    }
  }
}

template <bool clamp>
PTXB_STEP void multiply_integer_tiles(const WgmmaRows& rows, const WgmmaPanel& panel, int n,
                                      uint32_t* const* d, ScaleD scale) {
  const uint32_t* a_words = reinterpret_cast<const uint32_t*>(rows.word);
  const uint32_t* b_words = reinterpret_cast<const uint32_t*>(panel.word);
  for (int block = 0; block < n / 8; ++block) {
    for (int half = 0; half < 2; ++half) {
      IntTile acc;
      zero_tile(acc);
      for (int p = 0; p < kBytePairs; ++p) {
        const uint32_t* a = a_words + (half * kBytePairs + p) * 32;
        const uint32_t* b = b_words + (block * kBytePairs + p) * 8;
        madd_spread(acc, a, broadcast_four(b), broadcast_four(b + 4));
      }
      uint32_t* const* tile = d + 4 * block + 2 * half;
      if (scale == ScaleD::Keep) add_tile<clamp>(acc, tile);
      store_tile(tile, acc);
    }
  }
}

PTXB_TARGET void multiply_integer(const WgmmaRows& rows, const WgmmaPanel& panel,
                                  const WgmmaForm& form, uint32_t* const* d, ScaleD scale) {
  if (form.satfinite)
    multiply_integer_tiles<true>(rows, panel, form.n, d, scale);
  else
    multiply_integer_tiles<false>(rows, panel, form.n, d, scale);
}

template <MmaType a, MmaType b>
WgmmaKernel integer_kernel() {
  return {load_b_integer<b>, load_a_integer<a>, load_a_registers_integer<a>, multiply_integer};
}

template <MmaType a, MmaType b, MmaAccumulator accumulator>
WgmmaKernel kernel(Numerics numerics) {
  if (numerics == Numerics::Fast) {
    return {load_b<b, Numerics::Fast>, load_a<a, Numerics::Fast>,
            load_a_registers<a, Numerics::Fast>, multiply_fast<a, accumulator>};
  }
  return {load_b<b, Numerics::Exact>, load_a<a, Numerics::Exact>,
          load_a_registers<a, Numerics::Exact>, multiply_exact<a, b, accumulator>};
}
template <MmaType a, MmaType b>
WgmmaKernel pick(const WgmmaForm& form, Numerics numerics) {
  return form.d == MmaAccumulator::F32 ? kernel<a, b, MmaAccumulator::F32>(numerics)
                                       : kernel<a, b, MmaAccumulator::F16>(numerics);
}

}  // namespace

WgmmaKernel avx2_wgmma_kernel(const WgmmaForm& form, Numerics numerics) {
  using T = MmaType;
  switch (form.a) {
    case T::F16:
      return pick<T::F16, T::F16>(form, numerics);
    case T::BF16:
      return kernel<T::BF16, T::BF16, MmaAccumulator::F32>(numerics);
    case T::TF32:
      return kernel<T::TF32, T::TF32, MmaAccumulator::F32>(numerics);
    case T::E4M3:
      return form.b == T::E4M3 ? pick<T::E4M3, T::E4M3>(form, numerics)
                               : pick<T::E4M3, T::E5M2>(form, numerics);
    case T::E5M2:
      return form.b == T::E4M3 ? pick<T::E5M2, T::E4M3>(form, numerics)
                               : pick<T::E5M2, T::E5M2>(form, numerics);
    case T::S8:
      return form.b == T::S8 ? integer_kernel<T::S8, T::S8>() : integer_kernel<T::S8, T::U8>();
    case T::U8:
      return form.b == T::S8 ? integer_kernel<T::U8, T::S8>() : integer_kernel<T::U8, T::U8>();
    default:
      return {};
  }
}

#else

WgmmaKernel avx2_wgmma_kernel(const WgmmaForm&, Numerics) { return {}; }

#endif

}  // namespace ptxb::emu::arith
