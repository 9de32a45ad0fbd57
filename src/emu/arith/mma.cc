// Owns the table of mma.sync forms and the portable kernels: unpack to a tile, compute, write the
// fragments. Never uses vector instructions; mma_avx2.cc has the fast versions with the same bits.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/mma.h"

#include <bit>
#include <cmath>

#include "base/minifloat.h"
#include "emu/arith/convert.h"
#include "emu/arith/fragments.h"
#include "emu/arith/mma_avx2.h"
#include "emu/arith/mma_element.h"
#include "emu/arith/mma_exact.h"
#include "emu/arith/mma_fp8.h"
#include "emu/arith/simd.h"

namespace ptxb::emu::arith {
namespace {

// Register r of A holds row half r % halves and k block r / halves; B has one register a k block.
template <int halves, int registers>
struct Shape {
  static constexpr int kHalves = halves;
  static constexpr int kBlocks = registers / halves;
  static constexpr int kRows = 8 * halves;
};

template <MmaType type>
constexpr int kElements = elements_per_register(type);

template <class S, MmaType type>
constexpr int kDepth = S::kBlocks * 4 * kElements<type>;

template <class S, MmaType type>
void unpack_a(float* tile, const uint32_t* const* a) {
  for (int r = 0; r < S::kHalves * S::kBlocks; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) {
      int row = lane / 4 + 8 * (r % S::kHalves);
      int k = (r / S::kHalves * 4 + lane % 4) * kElements<type>;
      for (int e = 0; e < kElements<type>; ++e) {
        tile[row * kDepth<S, type> + k + e] = element_value(type, a[r][lane], e);
      }
    }
  }
}

// Column-major: tile[column * depth + k].
template <class S, MmaType type>
void unpack_b(float* tile, const uint32_t* const* b) {
  for (int r = 0; r < S::kBlocks; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) {
      int k = (r * 4 + lane % 4) * kElements<type>;
      for (int e = 0; e < kElements<type>; ++e) {
        tile[lane / 4 * kDepth<S, type> + k + e] = element_value(type, b[r][lane], e);
      }
    }
  }
}

uint32_t dot_fast(int count, const float* a, const float* b, float sum) {
  for (int k = 0; k < count; ++k) sum = std::fma(a[k], b[k], sum);
  return std::isnan(sum) ? kNanF32 : std::bit_cast<uint32_t>(sum);
}

template <Numerics numerics, MmaType a_type, MmaType b_type>
uint32_t dot_f32(int count, const float* a, const float* b, uint32_t c) {
  if constexpr (numerics == Numerics::Fast)
    return dot_fast(count, a, b, std::bit_cast<float>(c));
  else
    return exact_dot_f32({.a = a_type, .b = b_type}, count, a, b, 1, c);
}

template <Numerics numerics, MmaType a_type, MmaType b_type>
uint16_t dot_f16(int count, const float* a, const float* b, uint16_t c) {
  if constexpr (numerics == Numerics::Fast)
    return half_from_f32(Half::F16, dot_fast(count, a, b, f16_value(c)));
  else
    return exact_dot_f16({.a = a_type, .b = b_type}, count, a, b, 1, c);
}

template <class S, MmaType a_type, MmaType b_type, MmaAccumulator accumulator, Numerics numerics>
void float_mma(const MmaOperands& o) {
  constexpr int kK = kDepth<S, a_type>;
  float a[S::kRows * kK];
  float b[8 * kK];
  unpack_a<S, a_type>(a, o.a);
  unpack_b<S, b_type>(b, o.b);
  uint32_t result[2 * S::kHalves][kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int half = 0; half < S::kHalves; ++half) {
      const float* row = a + (lane / 4 + 8 * half) * kK;
      const float* column = b + 2 * (lane % 4) * kK;
      if constexpr (accumulator == MmaAccumulator::F32) {
        for (int parity = 0; parity < 2; ++parity) {
          uint32_t c = o.c[2 * half + parity][lane];
          result[2 * half + parity][lane] =
              dot_f32<numerics, a_type, b_type>(kK, row, column + parity * kK, c);
        }
      } else {
        uint32_t c = o.c[half][lane];
        uint16_t low = dot_f16<numerics, a_type, b_type>(kK, row, column, static_cast<uint16_t>(c));
        uint16_t high =
            dot_f16<numerics, a_type, b_type>(kK, row, column + kK, static_cast<uint16_t>(c >> 16));
        result[half][lane] = uint32_t{low} | (uint32_t{high} << 16);
      }
    }
  }
  constexpr int kResults = accumulator == MmaAccumulator::F32 ? 2 * S::kHalves : S::kHalves;
  for (int r = 0; r < kResults; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) o.d[r][lane] = result[r][lane];
  }
}

enum class Saturation : uint8_t { Wrap, Clamp };

template <Saturation saturation>
uint32_t finish_s32(int64_t sum) {
  if constexpr (saturation == Saturation::Clamp) {
    if (sum > INT32_MAX) return 0x7fffffffu;
    if (sum < INT32_MIN) return 0x80000000u;
  }
  return static_cast<uint32_t>(static_cast<uint64_t>(sum));
}

template <MmaType a_type, MmaType b_type>
int32_t register_dot(uint32_t a, uint32_t b) {
  int32_t sum = 0;
  for (int e = 0; e < kElements<a_type>; ++e)
    sum += element_integer(a_type, a, e) * element_integer(b_type, b, e);
  return sum;
}

// Integers need no tile: registers meet element by element.
template <class S, MmaType a_type, MmaType b_type, Saturation saturation>
void integer_mma(const MmaOperands& o) {
  uint32_t result[2 * S::kHalves][kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int r = 0; r < 2 * S::kHalves; ++r) {
      int half = r / 2;
      int column = 2 * (lane % 4) + r % 2;
      int64_t sum = static_cast<int32_t>(o.c[r][lane]);
      for (int block = 0; block < S::kBlocks; ++block) {
        for (int t = 0; t < 4; ++t) {
          sum += register_dot<a_type, b_type>(o.a[block * S::kHalves + half][lane / 4 * 4 + t],
                                              o.b[block][column * 4 + t]);
        }
      }
      result[r][lane] = finish_s32<saturation>(sum);
    }
  }
  for (int r = 0; r < 2 * S::kHalves; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) o.d[r][lane] = result[r][lane];
  }
}

template <class S, MmaBitOp op>
void bit_mma(const MmaOperands& o) {
  uint32_t result[2 * S::kHalves][kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int r = 0; r < 2 * S::kHalves; ++r) {
      uint32_t sum = o.c[r][lane];
      for (int block = 0; block < S::kBlocks; ++block) {
        for (int t = 0; t < 4; ++t) {
          uint32_t a = o.a[block * S::kHalves + r / 2][lane / 4 * 4 + t];
          uint32_t b = o.b[block][(2 * (lane % 4) + r % 2) * 4 + t];
          sum += static_cast<uint32_t>(std::popcount(op == MmaBitOp::XorPopc ? a ^ b : a & b));
        }
      }
      result[r][lane] = sum;
    }
  }
  for (int r = 0; r < 2 * S::kHalves; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) o.d[r][lane] = result[r][lane];
  }
}

template <class S>
void f64_mma(const MmaOperands64& o) {
  uint64_t result[2 * S::kHalves][kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int r = 0; r < 2 * S::kHalves; ++r) {
      uint64_t sum = o.c[r][lane];
      for (int block = 0; block < S::kBlocks; ++block) {
        for (int t = 0; t < 4; ++t) {
          sum = fma_f64(o.a[block * S::kHalves + r / 2][lane / 4 * 4 + t],
                        o.b[block][(2 * (lane % 4) + r % 2) * 4 + t], sum);
        }
      }
      result[r][lane] = sum;
    }
  }
  for (int r = 0; r < 2 * S::kHalves; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) o.d[r][lane] = result[r][lane];
  }
}

using OneRegister = Shape<1, 1>;    // m8, one k block
using TwoRegisters = Shape<2, 2>;   // m16, one k block
using FourRegisters = Shape<2, 4>;  // m16, two k blocks

template <class S, MmaType a, MmaType b, MmaAccumulator accumulator>
MmaFunction pick_numerics(Numerics numerics) {
  if constexpr (element_info(a).bits == 8) {
    return float_mma<S, a, b, accumulator, Numerics::Fast>;  // exact: mma_fp8.cc
  } else {
    return numerics == Numerics::Fast ? float_mma<S, a, b, accumulator, Numerics::Fast>
                                      : float_mma<S, a, b, accumulator, Numerics::Exact>;
  }
}
template <MmaType a, MmaType b>
MmaFunction pick_float(const MmaForm& form, int registers, Numerics numerics) {
  bool wide = form.d == MmaAccumulator::F32;
  if (registers == 2) {
    return wide ? pick_numerics<TwoRegisters, a, b, MmaAccumulator::F32>(numerics)
                : pick_numerics<TwoRegisters, a, b, MmaAccumulator::F16>(numerics);
  }
  return wide ? pick_numerics<FourRegisters, a, b, MmaAccumulator::F32>(numerics)
              : pick_numerics<FourRegisters, a, b, MmaAccumulator::F16>(numerics);
}
MmaFunction portable_float(const MmaForm& form, int registers, Numerics numerics) {
  switch (form.a) {
    case MmaType::F16:
      return pick_float<MmaType::F16, MmaType::F16>(form, registers, numerics);
    case MmaType::BF16:
      return pick_float<MmaType::BF16, MmaType::BF16>(form, registers, numerics);
    case MmaType::TF32:
      return pick_float<MmaType::TF32, MmaType::TF32>(form, registers, numerics);
    case MmaType::E4M3:
      return form.b == MmaType::E4M3
                 ? pick_float<MmaType::E4M3, MmaType::E4M3>(form, registers, numerics)
                 : pick_float<MmaType::E4M3, MmaType::E5M2>(form, registers, numerics);
    case MmaType::E5M2:
      return form.b == MmaType::E4M3
                 ? pick_float<MmaType::E5M2, MmaType::E4M3>(form, registers, numerics)
                 : pick_float<MmaType::E5M2, MmaType::E5M2>(form, registers, numerics);
    default:
      return nullptr;
  }
}

template <MmaType a, MmaType b>
MmaFunction pick_integer(int registers, bool clamp) {
  if (registers == 1) {
    return clamp ? integer_mma<OneRegister, a, b, Saturation::Clamp>
                 : integer_mma<OneRegister, a, b, Saturation::Wrap>;
  }
  if (registers == 2) {
    return clamp ? integer_mma<TwoRegisters, a, b, Saturation::Clamp>
                 : integer_mma<TwoRegisters, a, b, Saturation::Wrap>;
  }
  return clamp ? integer_mma<FourRegisters, a, b, Saturation::Clamp>
               : integer_mma<FourRegisters, a, b, Saturation::Wrap>;
}
template <MmaType signed_type, MmaType unsigned_type>
MmaFunction pick_signs(const MmaForm& form, int registers) {
  if (form.a == signed_type) {
    return form.b == signed_type
               ? pick_integer<signed_type, signed_type>(registers, form.satfinite)
               : pick_integer<signed_type, unsigned_type>(registers, form.satfinite);
  }
  return form.b == signed_type
             ? pick_integer<unsigned_type, signed_type>(registers, form.satfinite)
             : pick_integer<unsigned_type, unsigned_type>(registers, form.satfinite);
}

template <MmaBitOp op>
MmaFunction pick_bits(int registers) {
  return registers == 1   ? bit_mma<OneRegister, op>
         : registers == 2 ? bit_mma<TwoRegisters, op>
                          : bit_mma<FourRegisters, op>;
}

enum class Family : uint8_t { None, Float, Integer, Bits, F64 };

bool same_accumulators(const MmaForm& form, MmaAccumulator type) {
  return form.c == type && form.d == type;
}

Family float_family(const MmaForm& form) {
  bool half_result = same_accumulators(form, MmaAccumulator::F16) && form.a != MmaType::BF16 &&
                     form.a != MmaType::TF32;
  bool accumulators = same_accumulators(form, MmaAccumulator::F32) || half_result;
  return accumulators && form.m == 16 && !form.satfinite && form.bit_op == MmaBitOp::None
             ? Family::Float
             : Family::None;
}

Family family_of(const MmaForm& form) {
  auto integer = [&](MmaType x, MmaType y) {
    bool types = (form.a == x || form.a == y) && (form.b == x || form.b == y);
    return types && same_accumulators(form, MmaAccumulator::S32) && form.bit_op == MmaBitOp::None;
  };
  switch (form.a) {
    case MmaType::F16:
    case MmaType::BF16:
    case MmaType::TF32:
      return form.b == form.a ? float_family(form) : Family::None;
    case MmaType::E4M3:
    case MmaType::E5M2:
      return form.b == MmaType::E4M3 || form.b == MmaType::E5M2 ? float_family(form) : Family::None;
    case MmaType::S8:
    case MmaType::U8:
      return integer(MmaType::S8, MmaType::U8) ? Family::Integer : Family::None;
    case MmaType::S4:
    case MmaType::U4:
      return integer(MmaType::S4, MmaType::U4) ? Family::Integer : Family::None;
    case MmaType::B1:
      return form.b == MmaType::B1 && same_accumulators(form, MmaAccumulator::S32) &&
                     !form.satfinite && form.bit_op != MmaBitOp::None
                 ? Family::Bits
                 : Family::None;
    case MmaType::F64:
      return form.b == MmaType::F64 && same_accumulators(form, MmaAccumulator::F64) &&
                     !form.satfinite
                 ? Family::F64
                 : Family::None;
  }
  return Family::None;
}

}  // namespace

float element_value(MmaType type, uint32_t register_bits, int index) {
  switch (type) {
    case MmaType::F16:
      return f16_to_float(static_cast<uint16_t>(register_bits >> (16 * index)));
    case MmaType::BF16:
      return bf16_to_float(static_cast<uint16_t>(register_bits >> (16 * index)));
    case MmaType::TF32:
      return bits_to_float(register_bits & 0xffffe000u);
    case MmaType::E4M3:
      return e4m3_to_float(static_cast<uint8_t>(register_bits >> (8 * index)));
    case MmaType::E5M2:
      return e5m2_to_float(static_cast<uint8_t>(register_bits >> (8 * index)));
    default:
      return 0;
  }
}

int32_t element_integer(MmaType type, uint32_t register_bits, int index) {
  int bits = element_info(type).bits;
  uint32_t top = register_bits << (32 - bits * (index + 1));
  bool is_signed = type == MmaType::S8 || type == MmaType::S4;
  return is_signed ? static_cast<int32_t>(top) >> (32 - bits)
                   : static_cast<int32_t>(top >> (32 - bits));
}

MmaRegisters mma_registers(const MmaForm& form) {
  Family family = family_of(form);
  if (family == Family::None || form.n != 8 || (form.m != 8 && form.m != 16)) return {};
  int halves = form.m / 8;
  int step = family == Family::F64 ? 4 : 4 * elements_per_register(form.a);  // k of one block
  int blocks = form.k / step;
  if (blocks == 0 || form.k % step != 0) return {};
  int most_blocks = family == Family::F64 ? 4 : 2;
  if (form.m == 8) most_blocks = 1;
  if (blocks > most_blocks || blocks == 3) return {};
  MmaRegisters registers{halves * blocks, blocks, 2 * halves, 2 * halves, family == Family::F64};
  if (form.c == MmaAccumulator::F16) registers.c = halves;
  if (form.d == MmaAccumulator::F16) registers.d = halves;
  return registers;
}

MmaFunction mma_function(const MmaForm& form, Numerics numerics) {
  MmaRegisters registers = mma_registers(form);
  if (registers.a == 0) return nullptr;
  switch (family_of(form)) {
    case Family::Float: {
      if (element_info(form.a).bits == 8 && numerics == Numerics::Exact) return exact_fp8_mma(form);
      MmaFunction vector = native_path() ? avx2_float_mma(form, numerics) : nullptr;
      return vector != nullptr ? vector : portable_float(form, registers.a, numerics);
    }
    case Family::Integer: {
      MmaFunction vector = native_path() ? avx2_integer_mma(form) : nullptr;
      if (vector != nullptr) return vector;
      return element_info(form.a).bits == 8
                 ? pick_signs<MmaType::S8, MmaType::U8>(form, registers.a)
                 : pick_signs<MmaType::S4, MmaType::U4>(form, registers.a);
    }
    case Family::Bits:
      return form.bit_op == MmaBitOp::XorPopc ? pick_bits<MmaBitOp::XorPopc>(registers.a)
                                              : pick_bits<MmaBitOp::AndPopc>(registers.a);
    default:
      return nullptr;
  }
}

MmaFunction64 mma_function_f64(const MmaForm& form) {
  MmaRegisters registers = mma_registers(form);
  if (registers.a == 0 || family_of(form) != Family::F64) return nullptr;
  switch (registers.a) {
    case 1:
      return f64_mma<Shape<1, 1>>;
    case 2:
      return f64_mma<Shape<2, 2>>;
    case 4:
      return f64_mma<Shape<2, 4>>;
    default:
      return f64_mma<Shape<2, 8>>;
  }
}

}  // namespace ptxb::emu::arith
