// Owns the vector kernels of the floating-point mma.sync forms (see mma_avx2.h).
// Never differs in a bit from the portable kernels.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/mma_avx2.h"

#include <bit>

#include "emu/arith/convert.h"

#include "emu/arith/mma_element.h"
#include "emu/arith/mma_exact_avx2.h"
#include "emu/arith/mma_panel_avx2.h"

namespace ptxb::emu::arith {

#if PTXB_ARITH_AVX2
namespace {

// m16n8 with one or two k blocks.
template <MmaType a_type, MmaType b_type, int blocks>
struct Panels {
  static constexpr int kElements = elements_per_register(a_type);
  static constexpr int kDepth = 4 * kElements * blocks;
  static constexpr int kHalfSize = kElements * blocks * kLanes;
  alignas(32) float a[2 * kHalfSize];
  alignas(32) float b[kDepth * 8];
};

template <MmaType a_type, MmaType b_type, int blocks>
PTXB_STEP void fill(Panels<a_type, b_type, blocks>& p, const MmaOperands& o) {
  using P = Panels<a_type, b_type, blocks>;
  for (int block = 0; block < blocks; ++block) {
    fill_a<a_type>(p.a + block * P::kElements * kLanes, o.a[2 * block]);
    fill_a<a_type>(p.a + P::kHalfSize + block * P::kElements * kLanes, o.a[2 * block + 1]);
    fill_b<b_type>(p.b + block * P::kElements * 32, o.b[block]);
  }
}

template <MmaType a_type, MmaType b_type, int blocks, MmaAccumulator accumulator>
PTXB_TARGET void fast_mma(const MmaOperands& o) {
  using P = Panels<a_type, b_type, blocks>;
  P panels;
  fill(panels, o);
  HalfTile upper;
  load_tile<accumulator>(upper, o.c);
  fma_panel<P::kElements, blocks>(upper, panels.a, panels.b);
  HalfTile lower;
  load_tile<accumulator>(
      lower, o.c + kHalfRegisters<accumulator>);  // before any write: d may be c in any order
  HalfTile done = upper;
  fma_panel<P::kElements, blocks>(lower, panels.a + P::kHalfSize, panels.b);
  store_tile<accumulator>(o.d, done);
  store_tile<accumulator>(o.d + kHalfRegisters<accumulator>, lower);
}

// The eight lanes of one vector by the scalar model. row_pair: 0..7 over both halves.
template <MmaType a_type, MmaType b_type, int blocks, MmaAccumulator accumulator>
void scalar_block(float* lanes, const Panels<a_type, b_type, blocks>& p, int row_pair, int parity) {
  using P = Panels<a_type, b_type, blocks>;
  constexpr ExactModel kModel{.a = a_type, .b = b_type};
  for (int lane = 0; lane < 8; ++lane) {
    float a[P::kDepth];
    float b[P::kDepth];
    int row = 2 * (row_pair % 4) + lane / 4;
    for (int k = 0; k < P::kDepth; ++k) {
      int group = k / (4 * P::kElements) * P::kElements + k % P::kElements;
      int t = k / P::kElements % 4;
      a[k] = p.a[row_pair / 4 * P::kHalfSize + group * kLanes + 4 * row + t];
      b[k] = p.b[k * 8 + 4 * parity + lane % 4];
    }
    if constexpr (accumulator == MmaAccumulator::F32) {
      uint32_t c = std::bit_cast<uint32_t>(lanes[lane]);
      lanes[lane] = std::bit_cast<float>(exact_dot_f32(kModel, P::kDepth, a, b, 1, c));
    } else {
      uint16_t c = half_from_f32(Half::F16, std::bit_cast<uint32_t>(lanes[lane]));
      lanes[lane] = f16_value(exact_dot_f16(kModel, P::kDepth, a, b, 1, c));
    }
  }
}

template <MmaType a_type, MmaType b_type, int blocks, MmaAccumulator accumulator>
PTXB_TARGET void exact_mma(const MmaOperands& o) {
  using P = Panels<a_type, b_type, blocks>;
  constexpr bool kWide = accumulator == MmaAccumulator::F32;
  constexpr SumRounding kRounding = kWide ? SumRounding::Truncate24 : SumRounding::Odd24;
  constexpr ExactModel kModel{.a = a_type, .b = b_type};
  constexpr int kFloor = kWide ? kModel.exponent_floor : kModel.half_exponent_floor;
  P panels;
  fill(panels, o);
  alignas(32) int32_t a_exponent[2 * P::kHalfSize];
  alignas(32) int32_t b_exponent[P::kDepth * 8];
  bool safe_a =
      fill_exponents(a_exponent, panels.a, 2 * P::kHalfSize, element_info(a_type).lowest_exponent);
  bool safe_b =
      fill_exponents(b_exponent, panels.b, P::kDepth * 8, element_info(b_type).lowest_exponent);
  HalfTile tiles[2];
  load_tile<accumulator>(tiles[0], o.c);
  load_tile<accumulator>(tiles[1], o.c + kHalfRegisters<accumulator>);
  for (int row_pair = 0; row_pair < 8; ++row_pair) {
    int offset = row_pair / 4 * P::kHalfSize + row_pair % 4 * 8;
    SpreadRows<P::kDepth> rows;
    spread_rows<P::kElements, blocks>(rows, panels.a + offset, a_exponent + offset);
    for (int parity = 0; parity < 2; ++parity) {
      __m256& acc = tiles[row_pair / 4].v[2 * (row_pair % 4) + parity];
      if (safe_a && safe_b &&
          fused_block<P::kDepth, 8, kModel.fraction_bits, kRounding>(
              acc, rows.value, rows.exponent, panels.b + 4 * parity, b_exponent + 4 * parity, acc,
              kFloor)) {
        continue;
      }
      alignas(32) float lanes[8];
      _mm256_store_ps(lanes, acc);
      scalar_block<a_type, b_type, blocks, accumulator>(lanes, panels, row_pair, parity);
      acc = _mm256_load_ps(lanes);
    }
  }
  store_tile<accumulator>(o.d, tiles[0]);
  store_tile<accumulator>(o.d + kHalfRegisters<accumulator>, tiles[1]);
}

template <MmaType a, MmaType b, int blocks, MmaAccumulator accumulator>
MmaFunction pick(Numerics numerics) {
  if constexpr (element_info(a).bits == 8) {
    return fast_mma<a, b, blocks, accumulator>;  // exact: mma_fp8.cc
  } else {
    return numerics == Numerics::Fast ? fast_mma<a, b, blocks, accumulator>
                                      : exact_mma<a, b, blocks, accumulator>;
  }
}
template <MmaType a, MmaType b>
MmaFunction pick_blocks(const MmaForm& form, Numerics numerics) {
  bool two = form.k == 8 * elements_per_register(a);
  if constexpr (a == MmaType::BF16 || a == MmaType::TF32) {
    return two ? pick<a, b, 2, MmaAccumulator::F32>(numerics)
               : pick<a, b, 1, MmaAccumulator::F32>(numerics);
  } else {
    if (form.d == MmaAccumulator::F32) {
      return two ? pick<a, b, 2, MmaAccumulator::F32>(numerics)
                 : pick<a, b, 1, MmaAccumulator::F32>(numerics);
    }
    return two ? pick<a, b, 2, MmaAccumulator::F16>(numerics)
               : pick<a, b, 1, MmaAccumulator::F16>(numerics);
  }
}

}  // namespace

MmaFunction avx2_float_mma(const MmaForm& form, Numerics numerics) {
  switch (form.a) {
    case MmaType::F16:
      return pick_blocks<MmaType::F16, MmaType::F16>(form, numerics);
    case MmaType::BF16:
      return pick_blocks<MmaType::BF16, MmaType::BF16>(form, numerics);
    case MmaType::TF32:
      return pick_blocks<MmaType::TF32, MmaType::TF32>(form, numerics);
    case MmaType::E4M3:
      return form.b == MmaType::E4M3 ? pick_blocks<MmaType::E4M3, MmaType::E4M3>(form, numerics)
                                     : pick_blocks<MmaType::E4M3, MmaType::E5M2>(form, numerics);
    case MmaType::E5M2:
      return form.b == MmaType::E4M3 ? pick_blocks<MmaType::E5M2, MmaType::E4M3>(form, numerics)
                                     : pick_blocks<MmaType::E5M2, MmaType::E5M2>(form, numerics);
    default:
      return nullptr;
  }
}

#else

MmaFunction avx2_float_mma(const MmaForm&, Numerics) { return nullptr; }

#endif

}  // namespace ptxb::emu::arith
