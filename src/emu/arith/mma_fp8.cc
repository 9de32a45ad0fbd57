// Owns the exact mode of fp8 mma.sync on Hopper, which has no fp8 mma.sync unit: the operands are
// widened to f16, the lower and the upper element pair of every register go through the f16 unit
// one after the other, and C is added last by an ordinary rounded addition (sm_90a code of
// ptxas 13.0; bits confirmed on an H200). Never used for wgmma, whose fp8 unit is native.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/mma_fp8.h"

#include <array>
#include <cstddef>

#include "emu/arith/convert.h"
#include "emu/arith/float_ops.h"
#include "emu/arith/lanes.h"

namespace ptxb::emu::arith {
namespace {

using HalfTable = std::array<uint16_t, 256>;

template <MmaType type>
const HalfTable& half_table() {
  static const HalfTable kTable = [] {
    HalfTable table{};
    MiniFloat format = type == MmaType::E4M3 ? MiniFloat::E4M3 : MiniFloat::E5M2;
    for (size_t i = 0; i < table.size(); ++i) {
      table[i] = static_cast<uint16_t>(unpack_mini2(format, Half::F16, static_cast<uint16_t>(i)));
    }
    return table;
  }();
  return kTable;
}

// Elements 0 and 1 (first) or 2 and 3 of each lane as f16 pairs.
template <MmaType type>
void widen_pair(uint32_t* out, const uint32_t* registers, int pair) {
  const HalfTable& table = half_table<type>();
  for (int lane = 0; lane < kLanes; ++lane) {
    uint32_t bytes = registers[lane] >> (16 * pair);
    out[lane] = table[bytes & 0xff] | (uint32_t{table[(bytes >> 8) & 0xff]} << 16);
  }
}

template <MmaType a_type, MmaType b_type, int registers, MmaAccumulator accumulator>
void exact_fp8(const MmaOperands& o) {
  constexpr bool kWide = accumulator == MmaAccumulator::F32;
  constexpr int kResults = kWide ? 4 : 2;
  constexpr MmaForm kHalfForm{16,           8,           4 * registers, MmaType::F16,
                              MmaType::F16, accumulator, accumulator};
  MmaFunction half_mma = mma_function(kHalfForm, Numerics::Exact);
  uint32_t sum[4][kLanes] = {};
  uint32_t* d[4] = {sum[0], sum[1], sum[2], sum[3]};
  for (int pair = 0; pair < 2; ++pair) {
    uint32_t a[4][kLanes];
    uint32_t b[2][kLanes];
    for (int r = 0; r < registers; ++r) widen_pair<a_type>(a[r], o.a[r], pair);
    for (int r = 0; r < registers / 2; ++r) widen_pair<b_type>(b[r], o.b[r], pair);
    const uint32_t* pa[4] = {a[0], a[1], a[2], a[3]};
    const uint32_t* pb[2] = {b[0], b[1]};
    half_mma({pa, pb, d, d});
  }
  LaneBinary add = kWide ? lane_add_f32({}) : lane_add_half2(Half::F16, {});
  for (int r = 0; r < kResults; ++r) add(sum[r], sum[r], o.c[r]);
  for (int r = 0; r < kResults; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) o.d[r][lane] = sum[r][lane];
  }
}

template <MmaType a, MmaType b>
MmaFunction pick(const MmaForm& form) {
  if (form.k == 32) {
    return form.d == MmaAccumulator::F32 ? exact_fp8<a, b, 4, MmaAccumulator::F32>
                                         : exact_fp8<a, b, 4, MmaAccumulator::F16>;
  }
  return form.d == MmaAccumulator::F32 ? exact_fp8<a, b, 2, MmaAccumulator::F32>
                                       : exact_fp8<a, b, 2, MmaAccumulator::F16>;
}

}  // namespace

MmaFunction exact_fp8_mma(const MmaForm& form) {
  using T = MmaType;
  if (form.a == T::E4M3)
    return form.b == T::E4M3 ? pick<T::E4M3, T::E4M3>(form) : pick<T::E4M3, T::E5M2>(form);
  return form.b == T::E4M3 ? pick<T::E5M2, T::E4M3>(form) : pick<T::E5M2, T::E5M2>(form);
}

}  // namespace ptxb::emu::arith
