// Owns operand addressing and the portable wgmma kernels (see wgmma.h).
// Never uses vector instructions; wgmma_avx2.cc has the fast versions with the same bits.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/wgmma.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "emu/arith/convert.h"
#include "emu/arith/mma_element.h"
#include "emu/arith/mma_exact.h"
#include "emu/arith/simd.h"
#include "emu/arith/wgmma_avx2.h"
#include "emu/arith/wgmma_model.h"

namespace ptxb::emu::arith {
namespace {

uint32_t swizzle_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::Bytes128:
      return 128;
    case Swizzle::Bytes64:
      return 64;
    case Swizzle::Bytes32:
      return 32;
    default:
      return 16;
  }
}

// Address bits [4, 6] ^= bits [7, 9] for 128 bytes, one bit fewer on both sides for each smaller
// mode. base_offset moves the pattern's row count for patterns that do not start on their boundary.
uint32_t swizzled(const WgmmaDescriptor& d, uint32_t address) {
  uint32_t mask = swizzle_bytes(d.swizzle) / 16 - 1;
  uint32_t row = (address >> 7) - d.base_offset;
  return address ^ ((row & mask) << 4);
}

template <MmaType type>
constexpr int kElements = elements_per_register(type);
template <MmaType type>
constexpr int kDepth = 8 * kElements<type>;

// Chunks as register images: word t of chunk c of a row is lane 4 * row + t of block c's register.
uint32_t chunk_word(const uint8_t* chunk, int t) {
  uint32_t word;
  std::memcpy(&word, chunk + 4 * t, sizeof word);
  return word;
}

template <MmaType type>
void unpack_word(float* value, int32_t* word, uint32_t bits, bool negate) {
  for (int e = 0; e < kElements<type>; ++e) {
    if constexpr (is_small_float(type)) {
      float x = element_value(type, bits, e);
      value[e] = negate ? -x : x;
    } else if constexpr (type == MmaType::B1) {
      if (e == 0) word[0] = static_cast<int32_t>(bits);
    } else {
      word[e] = element_integer(type, bits, e);
    }
  }
}

// Elements a row takes in storage: bits stay packed.
template <MmaType type>
constexpr int kStored = type == MmaType::B1 ? 8 : kDepth<type>;
template <MmaType type>
constexpr int kStoredPerWord = kStored<type> / 8;

template <MmaType type>
void unpack_k_major(float* value, int32_t* word, int rows, int first, const uint8_t* shared,
                    const WgmmaDescriptor& d, bool negate) {
  for (int i = 0; i < rows; ++i) {
    for (int c = 0; c < 2; ++c) {
      const uint8_t* chunk = shared + wgmma_chunk_k_major(d, first + i, c);
      for (int t = 0; t < 4; ++t) {
        int at = i * kStored<type> + (c * 4 + t) * kStoredPerWord<type>;
        unpack_word<type>(value + at, word + at, chunk_word(chunk, t), negate);
      }
    }
  }
}

template <MmaType type>
void unpack_mn_major(float* value, int rows, int first, const uint8_t* shared,
                     const WgmmaDescriptor& d, bool negate) {
  for (int k = 0; k < 16; ++k) {
    for (int c = 0; c < rows / 8; ++c) {
      const uint8_t* chunk = shared + wgmma_chunk_mn_major(d, first / 8 + c, k);
      for (int i = 0; i < 8; ++i) {
        uint16_t bits;
        std::memcpy(&bits, chunk + 2 * i, sizeof bits);
        float x = element_value(type, bits, 0);
        value[(8 * c + i) * 16 + k] = negate ? -x : x;
      }
    }
  }
}

template <MmaType type>
void load_b(WgmmaPanel& panel, const WgmmaForm& form, const uint8_t* shared,
            const WgmmaDescriptor& d) {
  if (form.b_major == Major::MN) {
    if constexpr (kElements<type> == 2)
      unpack_mn_major<type>(panel.value, form.n, 0, shared, d, form.negate_b);
  } else {
    unpack_k_major<type>(panel.value, panel.word, form.n, 0, shared, d, form.negate_b);
  }
}

template <MmaType type>
void load_a(WgmmaRows& rows, const WgmmaForm& form, const uint8_t* shared, const WgmmaDescriptor& d,
            int warp) {
  if (form.a_major == Major::MN) {
    if constexpr (kElements<type> == 2)
      unpack_mn_major<type>(rows.value, 16, 16 * warp, shared, d, form.negate_a);
  } else {
    unpack_k_major<type>(rows.value, rows.word, 16, 16 * warp, shared, d, form.negate_a);
  }
}

template <MmaType type>
void load_a_registers(WgmmaRows& rows, const WgmmaForm& form, const uint32_t* const* a) {
  for (int r = 0; r < 4; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) {
      int row = lane / 4 + 8 * (r % 2);
      int at = row * kStored<type> + (r / 2 * 4 + lane % 4) * kStoredPerWord<type>;
      unpack_word<type>(rows.value + at, rows.word + at, a[r][lane], form.negate_a);
    }
  }
}

template <MmaType a, MmaType b, Numerics numerics>
uint32_t dot_f32(const float* x, const float* y, uint32_t c) {
  if constexpr (numerics == Numerics::Exact) {
    return exact_dot_f32(kWgmmaModel<a, b>, kDepth<a>, x, y, 1, c);
  }
  float sum = std::bit_cast<float>(c);
  for (int k = 0; k < kDepth<a>; ++k) sum = std::fma(x[k], y[k], sum);
  return std::isnan(sum) ? kNanF32 : std::bit_cast<uint32_t>(sum);
}

template <MmaType a, MmaType b, Numerics numerics>
uint16_t dot_f16(const float* x, const float* y, uint16_t c) {
  if constexpr (numerics == Numerics::Exact)
    return exact_dot_f16(kWgmmaModel<a, b>, kDepth<a>, x, y, 1, c);
  return half_from_f32(Half::F16, dot_f32<a, b, Numerics::Fast>(x, y, half_to_f32(Half::F16, c)));
}

template <MmaType a, MmaType b>
uint32_t dot_integer(const int32_t* x, const int32_t* y, uint32_t c, bool satfinite) {
  int64_t sum = static_cast<int32_t>(c);
  for (int k = 0; k < kStored<a>; ++k) {
    if constexpr (a == MmaType::B1)
      sum += std::popcount(static_cast<uint32_t>(x[k] & y[k]));
    else
      sum += x[k] * y[k];
  }
  if (satfinite && sum > INT32_MAX) return 0x7fffffffu;
  if (satfinite && sum < INT32_MIN) return 0x80000000u;
  return static_cast<uint32_t>(static_cast<uint64_t>(sum));
}

// D register i of a lane: n8 block i / 4, row half i / 2 % 2, column parity i % 2; f16 pairs the
// parities.
template <MmaType a, MmaType b, MmaAccumulator accumulator, Numerics numerics>
void multiply(const WgmmaRows& rows, const WgmmaPanel& panel, const WgmmaForm& form,
              uint32_t* const* d, ScaleD scale) {
  int registers = wgmma_d_registers(form);
  for (int r = 0; r < registers; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) {
      uint32_t c = scale == ScaleD::Keep ? d[r][lane] : 0;
      if constexpr (accumulator == MmaAccumulator::F16) {
        int row = lane / 4 + 8 * (r % 2), column = r / 2 * 8 + 2 * (lane % 4);
        const float* x = rows.value + row * kDepth<a>;
        const float* y = panel.value + column * kDepth<a>;
        uint16_t low = dot_f16<a, b, numerics>(x, y, static_cast<uint16_t>(c));
        uint16_t high = dot_f16<a, b, numerics>(x, y + kDepth<a>, static_cast<uint16_t>(c >> 16));
        d[r][lane] = uint32_t{low} | (uint32_t{high} << 16);
      } else {
        int row = lane / 4 + 8 * (r / 2 % 2), column = r / 4 * 8 + 2 * (lane % 4) + r % 2;
        if constexpr (accumulator == MmaAccumulator::F32) {
          d[r][lane] = dot_f32<a, b, numerics>(rows.value + row * kDepth<a>,
                                               panel.value + column * kDepth<a>, c);
        } else {
          const int32_t* x = rows.word + row * kStored<a>;
          d[r][lane] = dot_integer<a, b>(x, panel.word + column * kStored<a>, c, form.satfinite);
        }
      }
    }
  }
}

template <MmaType a, MmaType b, MmaAccumulator accumulator>
WgmmaKernel portable_kernel(Numerics numerics) {
  return {load_b<b>, load_a<a>, load_a_registers<a>,
          numerics == Numerics::Fast ? multiply<a, b, accumulator, Numerics::Fast>
                                     : multiply<a, b, accumulator, Numerics::Exact>};
}
template <MmaType a, MmaType b>
WgmmaKernel pick_float(const WgmmaForm& form, Numerics numerics) {
  return form.d == MmaAccumulator::F32 ? portable_kernel<a, b, MmaAccumulator::F32>(numerics)
                                       : portable_kernel<a, b, MmaAccumulator::F16>(numerics);
}

WgmmaKernel portable(const WgmmaForm& form, Numerics numerics) {
  using T = MmaType;
  constexpr auto kS32 = MmaAccumulator::S32;
  switch (form.a) {
    case T::F16:
      return pick_float<T::F16, T::F16>(form, numerics);
    case T::BF16:
      return portable_kernel<T::BF16, T::BF16, MmaAccumulator::F32>(numerics);
    case T::TF32:
      return portable_kernel<T::TF32, T::TF32, MmaAccumulator::F32>(numerics);
    case T::E4M3:
      return form.b == T::E4M3 ? pick_float<T::E4M3, T::E4M3>(form, numerics)
                               : pick_float<T::E4M3, T::E5M2>(form, numerics);
    case T::E5M2:
      return form.b == T::E4M3 ? pick_float<T::E5M2, T::E4M3>(form, numerics)
                               : pick_float<T::E5M2, T::E5M2>(form, numerics);
    case T::S8:
      return form.b == T::S8 ? portable_kernel<T::S8, T::S8, kS32>(numerics)
                             : portable_kernel<T::S8, T::U8, kS32>(numerics);
    case T::U8:
      return form.b == T::S8 ? portable_kernel<T::U8, T::S8, kS32>(numerics)
                             : portable_kernel<T::U8, T::U8, kS32>(numerics);
    case T::B1:
      return portable_kernel<T::B1, T::B1, kS32>(numerics);
    default:
      return {};
  }
}

bool types_exist(const WgmmaForm& form) {
  using T = MmaType;
  bool half = form.d == MmaAccumulator::F16, wide = form.d == MmaAccumulator::F32;
  switch (form.a) {
    case T::F16:
      return form.b == T::F16 && (half || wide);
    case T::BF16:
    case T::TF32:
      return form.b == form.a && wide;
    case T::E4M3:
    case T::E5M2:
      return (form.b == T::E4M3 || form.b == T::E5M2) && (half || wide);
    case T::S8:
    case T::U8:
      return (form.b == T::S8 || form.b == T::U8) && form.d == MmaAccumulator::S32;
    case T::B1:
      return form.b == T::B1 && form.d == MmaAccumulator::S32 && !form.satfinite;
    default:
      return false;
  }
}

}  // namespace

WgmmaDescriptor decode_wgmma_descriptor(uint64_t bits) {
  auto field = [&](int shift) { return static_cast<uint32_t>((bits >> shift) & 0x3fff) << 4; };
  return {field(0), field(16), field(32), static_cast<uint8_t>((bits >> 49) & 7),
          static_cast<Swizzle>(bits >> 62)};
}

uint32_t wgmma_chunk_k_major(const WgmmaDescriptor& d, int mn, int chunk) {
  uint32_t row = static_cast<uint32_t>(mn);
  uint32_t address = d.start + row / 8 * d.stride_bytes + row % 8 * swizzle_bytes(d.swizzle);
  address += static_cast<uint32_t>(chunk) * (d.swizzle == Swizzle::None ? d.leading_bytes : 16);
  return swizzled(d, address);
}

uint32_t wgmma_chunk_mn_major(const WgmmaDescriptor& d, int chunk, int k) {
  uint32_t c = static_cast<uint32_t>(chunk), depth = static_cast<uint32_t>(k);
  if (d.swizzle == Swizzle::None)
    return d.start + c * d.stride_bytes + depth % 8 * 16 + depth / 8 * d.leading_bytes;
  uint32_t width = swizzle_bytes(d.swizzle);
  uint32_t per_atom = width / 16;
  uint32_t address = d.start + c / per_atom * d.leading_bytes + c % per_atom * 16;
  return swizzled(d, address + depth % 8 * width + depth / 8 * d.stride_bytes);
}

int wgmma_k(MmaType type) { return 256 / element_info(type).bits; }

int wgmma_d_registers(const WgmmaForm& form) {
  bool integer = form.d == MmaAccumulator::S32;
  // Integer shapes have n = 8, 16, 24, 32, then multiples of 16 (9.7.15.2).
  bool n_exists = form.n >= 8 && form.n <= 256 && form.n % 8 == 0 &&
                  (!integer || form.n <= 32 || form.n % 16 == 0);
  if (!n_exists || !types_exist(form)) return 0;
  bool sixteen_bits = form.a == MmaType::F16 || form.a == MmaType::BF16;
  if (!sixteen_bits && (form.a_major == Major::MN || form.b_major == Major::MN)) return 0;
  if (integer && (form.negate_a || form.negate_b)) return 0;
  if (!integer && form.satfinite) return 0;
  return form.d == MmaAccumulator::F16 ? form.n / 4 : form.n / 2;
}

WgmmaKernel wgmma_kernel(const WgmmaForm& form, Numerics numerics) {
  if (wgmma_d_registers(form) == 0) return {};
  if (native_path()) {
    WgmmaKernel vector = avx2_wgmma_kernel(form, numerics);
    if (vector.multiply != nullptr) return vector;
  }
  return portable(form, numerics);
}

}  // namespace ptxb::emu::arith
