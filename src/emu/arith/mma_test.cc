// Checks mma.sync: fragment layouts against the formulas of PTX ISA 9.7.14.5, both numeric modes,
// vector path = portable.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/mma.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emu/arith/convert.h"
#include "emu/arith/lanes.h"
#include "emu/arith/mma_exact.h"
#include "emu/arith/random_bits.h"

namespace ptxb::emu::arith {
namespace {

using T = MmaType;
using Acc = MmaAccumulator;

struct Fragments {
  uint32_t a[4][32], b[2][32], c[4][32], d[4][32];
  MmaOperands operands() {
    for (int i = 0; i < 4; ++i) a_[i] = a[i], c_[i] = c[i], d_[i] = d[i];
    for (int i = 0; i < 2; ++i) b_[i] = b[i];
    return {a_, b_, c_, d_};
  }
  const uint32_t *a_[4], *b_[2], *c_[4];
  uint32_t* d_[4];
};

MmaForm float_form(T a, T b, int k, Acc accumulator) {
  return {16, 8, static_cast<uint16_t>(k), a, b, accumulator, accumulator};
}

const std::vector<MmaForm>& float_forms() {
  static const std::vector<MmaForm> kForms = {
      float_form(T::F16, T::F16, 16, Acc::F32),   float_form(T::F16, T::F16, 8, Acc::F32),
      float_form(T::F16, T::F16, 16, Acc::F16),   float_form(T::F16, T::F16, 8, Acc::F16),
      float_form(T::BF16, T::BF16, 16, Acc::F32), float_form(T::BF16, T::BF16, 8, Acc::F32),
      float_form(T::TF32, T::TF32, 8, Acc::F32),  float_form(T::TF32, T::TF32, 4, Acc::F32),
      float_form(T::E4M3, T::E4M3, 32, Acc::F32), float_form(T::E4M3, T::E5M2, 32, Acc::F32),
      float_form(T::E5M2, T::E4M3, 32, Acc::F16), float_form(T::E5M2, T::E5M2, 32, Acc::F32),
      float_form(T::E4M3, T::E4M3, 16, Acc::F16)};
  return kForms;
}

std::string describe(const MmaForm& form) {
  return "k" + std::to_string(form.k) + " a" + std::to_string(static_cast<int>(form.a)) + " b" +
         std::to_string(static_cast<int>(form.b)) + " d" + std::to_string(static_cast<int>(form.d));
}

int bits_per_element(T type) {
  switch (type) {
    case T::TF32:
      return 32;
    case T::F16:
    case T::BF16:
      return 16;
    case T::S4:
    case T::U4:
      return 4;
    case T::B1:
      return 1;
    default:
      return 8;
  }
}

// Where PTX puts an element: the register and lane of A(row, k) and B(k, column).
struct Place {
  int reg, lane, element;
};
Place place_of_a(const MmaForm& form, int row, int k) {
  int per_register = 32 / bits_per_element(form.a);
  int block = k / (4 * per_register);
  return {block * (form.m / 8) + row / 8, (row % 8) * 4 + k / per_register % 4, k % per_register};
}
Place place_of_b(const MmaForm& form, int k, int column) {
  int per_register = 32 / bits_per_element(form.b);
  return {k / (4 * per_register), column * 4 + k / per_register % 4, k % per_register};
}
uint32_t raw_element(const uint32_t (*registers)[32], Place place, int bits) {
  uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  return (registers[place.reg][place.lane] >> (place.element * bits)) & mask;
}

float float_of(T type, uint32_t raw) {
  switch (type) {
    case T::F16:
      return f16_value(static_cast<uint16_t>(raw));
    case T::BF16:
      return bf16_value(static_cast<uint16_t>(raw));
    case T::TF32:
      return std::bit_cast<float>(raw & 0xffffe000u);
    case T::E4M3:
      return mini_value(MiniFloat::E4M3, static_cast<uint8_t>(raw));
    default:
      return mini_value(MiniFloat::E5M2, static_cast<uint8_t>(raw));
  }
}

uint32_t random_element(RandomBits& random, T type, bool wild) {
  if (wild) {
    switch (type) {
      case T::TF32:
        return random.f32();
      case T::F16:
        return random.f16();
      case T::BF16:
        return random.bf16();
      default:
        return static_cast<uint32_t>(random.next());
    }
  }
  uint32_t r = static_cast<uint32_t>(random.next());
  switch (type) {
    case T::TF32:
      return (r & 0x807fffffu) | ((120 + random.below(12)) << 23);
    case T::F16:
      return (r & 0x83ffu) | ((8 + random.below(12)) << 10);
    case T::BF16:
      return (r & 0x807fu) | ((120 + random.below(12)) << 7);
    case T::E4M3:
    case T::E5M2:
      return r & 0xbfu;
    default:
      return r;
  }
}

void fill(Fragments& f, RandomBits& random, const MmaForm& form, bool wild) {
  auto fill_registers = [&](uint32_t(*registers)[32], int count, T type) {
    int bits = bits_per_element(type);
    for (int r = 0; r < count; ++r) {
      for (int lane = 0; lane < 32; ++lane) {
        uint32_t packed = 0;
        for (int e = 0; e < 32 / bits; ++e) {
          uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
          uint32_t element = random_element(random, type, wild && random.below(4) == 0) & mask;
          if (random.below(16) == 0) element = 0;
          packed |= element << (e * bits % 32);
        }
        registers[r][lane] = packed;
      }
    }
  };
  fill_registers(f.a, 4, form.a);
  fill_registers(f.b, 2, form.b);
  for (auto& registers : f.c) {
    for (uint32_t& x : registers) {
      if (form.c == Acc::F32)
        x = wild ? random.f32() : random_element(random, T::TF32, false);
      else if (form.c == Acc::F16)
        x = (random_element(random, T::F16, wild) << 16) | random_element(random, T::F16, wild);
      else
        x = static_cast<uint32_t>(random.next());
    }
  }
}

// fp8: the f16 model on the elements k % 4 < 2, then on the others, then C by a rounded addition.
uint32_t exact_definition(const MmaForm& form, const std::vector<float>& a,
                          const std::vector<float>& b, uint32_t c) {
  bool half_result = form.d == Acc::F16;
  auto dot = [&](const ExactModel& model, const std::vector<float>& x, const std::vector<float>& y,
                 uint32_t start) {
    int count = static_cast<int>(x.size());
    return half_result
               ? exact_dot_f16(model, count, x.data(), y.data(), 1, static_cast<uint16_t>(start))
               : exact_dot_f32(model, count, x.data(), y.data(), 1, start);
  };
  if (bits_per_element(form.a) != 8) return dot({.a = form.a, .b = form.b}, a, b, c);
  uint32_t sum = 0;
  for (size_t pair = 0; pair < 2; ++pair) {
    std::vector<float> x, y;
    for (size_t k = 0; k < a.size(); ++k) {
      if (k % 4 / 2 == pair) x.push_back(a[k]), y.push_back(b[k]);
    }
    sum = dot({.a = T::F16, .b = T::F16}, x, y, sum);
  }
  return half_result ? add_half(Half::F16, static_cast<uint16_t>(sum), static_cast<uint16_t>(c))
                     : add_f32(sum, c);
}

// The definition, matrix element by matrix element.
void expect_definition(const MmaForm& form, Numerics numerics, Fragments& f) {
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      std::vector<float> a, b;
      for (int k = 0; k < form.k; ++k) {
        a.push_back(
            float_of(form.a, raw_element(f.a, place_of_a(form, row, k), bits_per_element(form.a))));
        b.push_back(float_of(
            form.b, raw_element(f.b, place_of_b(form, k, column), bits_per_element(form.b))));
      }
      int lane = 4 * (row % 8) + column / 2;
      bool half_result = form.d == Acc::F16;
      int reg = half_result ? row / 8 : 2 * (row / 8) + column % 2;
      int shift = half_result ? 16 * (column % 2) : 0;
      uint32_t c = f.c[reg][lane] >> shift, d = f.d[reg][lane] >> shift;
      if (half_result) c &= 0xffff, d &= 0xffff;
      uint32_t expected = c;
      if (numerics == Numerics::Fast) {
        float sum = half_result ? f16_value(static_cast<uint16_t>(c)) : std::bit_cast<float>(c);
        for (int k = 0; k < form.k; ++k)
          sum = std::fma(a[static_cast<size_t>(k)], b[static_cast<size_t>(k)], sum);
        expected = std::isnan(sum) ? kNanF32 : std::bit_cast<uint32_t>(sum);
        if (half_result) expected = half_from_f32(Half::F16, expected);
      } else {
        expected = exact_definition(form, a, b, c);
      }
      ASSERT_EQ(d, expected) << describe(form) << " row " << row << " column " << column;
    }
  }
}

TEST(Mma, FloatFormsMatchTheDefinitionInBothModes) {
  for (Numerics numerics : {Numerics::Fast, Numerics::Exact}) {
    for (const MmaForm& form : float_forms()) {
      MmaFunction function = mma_function(form, numerics);
      ASSERT_NE(function, nullptr) << describe(form);
      RandomBits random(51);
      for (int round = 0; round < 8; ++round) {
        Fragments f;
        fill(f, random, form, round % 2 == 1);
        function(f.operands());
        expect_definition(form, numerics, f);
      }
    }
  }
}

TEST(Mma, VectorAndPortablePathsGiveTheSameBits) {
  for (Numerics numerics : {Numerics::Fast, Numerics::Exact}) {
    for (const MmaForm& form : float_forms()) {
      select_lane_path(LanePath::Portable);
      MmaFunction portable = mma_function(form, numerics);
      select_lane_path(LanePath::Native);
      MmaFunction native = mma_function(form, numerics);
      RandomBits random(52);
      for (int round = 0; round < 12; ++round) {
        Fragments f, g;
        fill(f, random, form, round % 3 == 2);
        if (round == 0) std::memset(f.c, 0, sizeof f.c);
        g = f;
        portable(f.operands());
        native(g.operands());
        int registers = mma_registers(form).d;
        ASSERT_EQ(std::memcmp(f.d, g.d, sizeof f.d[0] * static_cast<size_t>(registers)), 0)
            << describe(form) << round;
      }
    }
  }
}

TEST(Mma, ResultsMayOverwriteAnyOperand) {
  for (const MmaForm& form :
       {float_forms()[4], float_forms()[2], MmaForm{16, 8, 32, T::S8, T::U8, Acc::S32, Acc::S32}}) {
    for (LanePath path : {LanePath::Native, LanePath::Portable}) {
      select_lane_path(path);
      MmaFunction function = mma_function(form, Numerics::Fast);
      select_lane_path(LanePath::Native);
      RandomBits random(53);
      Fragments f;
      fill(f, random, form, false);
      Fragments g = f;
      function(f.operands());
      MmaOperands o = g.operands();
      uint32_t* crossed[4] = {g.c[1], g.c[0], g.a[0], g.b[1]};
      if (form.d == Acc::F16) crossed[1] = g.a[0];
      function({o.a, o.b, o.c, crossed});
      for (int r = 0; r < mma_registers(form).d; ++r)
        ASSERT_EQ(std::memcmp(f.d[r], crossed[r], 128), 0);
    }
  }
}

struct IntegerForm {
  MmaForm form;
  int registers_a, registers_b;
};

int64_t integer_of(T type, uint32_t raw) {
  switch (type) {
    case T::S8:
      return static_cast<int8_t>(raw);
    case T::S4:
      return (raw & 8) != 0 ? static_cast<int64_t>(raw) - 16 : static_cast<int64_t>(raw);
    default:
      return raw;
  }
}

TEST(Mma, IntegerFormsAreExactAndSaturateOnlyWithSatfinite) {
  std::vector<MmaForm> forms;
  for (bool satfinite : {false, true}) {
    for (auto [x, y, k] : {std::tuple{T::S8, T::U8, 16}, std::tuple{T::S4, T::U4, 32}}) {
      for (T a : {x, y}) {
        for (T b : {x, y}) {
          for (auto [m, scale] : {std::pair{8, 1}, std::pair{16, 1}, std::pair{16, 2}}) {
            forms.push_back({static_cast<uint8_t>(m), 8, static_cast<uint16_t>(k * scale), a, b,
                             Acc::S32, Acc::S32, satfinite});
          }
        }
      }
    }
  }
  for (const MmaForm& form : forms) {
    for (LanePath path : {LanePath::Native, LanePath::Portable}) {
      select_lane_path(path);
      MmaFunction function = mma_function(form, Numerics::Fast);
      select_lane_path(LanePath::Native);
      ASSERT_NE(function, nullptr);
      RandomBits random(54);
      Fragments f;
      fill(f, random, form, true);
      for (auto& registers : f.c) {
        for (uint32_t& x : registers) {
          if (random.below(3) == 0)
            x = random.below(2) == 0 ? 0x7fffffffu - random.below(500)
                                     : 0x80000000u + random.below(500);
        }
      }
      function(f.operands());
      for (int row = 0; row < form.m; ++row) {
        for (int column = 0; column < 8; ++column) {
          int lane = 4 * (row % 8) + column / 2, reg = 2 * (row / 8) + column % 2;
          int64_t sum = static_cast<int32_t>(f.c[reg][lane]);
          for (int k = 0; k < form.k; ++k) {
            int bits = bits_per_element(form.a);
            sum += integer_of(form.a, raw_element(f.a, place_of_a(form, row, k), bits)) *
                   integer_of(form.b, raw_element(f.b, place_of_b(form, k, column), bits));
          }
          if (form.satfinite) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
          ASSERT_EQ(f.d[reg][lane], static_cast<uint32_t>(sum)) << describe(form);
        }
      }
    }
  }
}

TEST(Mma, BitFormsCountXorAndAnd) {
  for (MmaBitOp op : {MmaBitOp::XorPopc, MmaBitOp::AndPopc}) {
    for (auto [m, k] : {std::pair{8, 128}, std::pair{16, 128}, std::pair{16, 256}}) {
      MmaForm form{static_cast<uint8_t>(m),
                   8,
                   static_cast<uint16_t>(k),
                   T::B1,
                   T::B1,
                   Acc::S32,
                   Acc::S32,
                   false,
                   op};
      MmaFunction function = mma_function(form, Numerics::Exact);
      ASSERT_NE(function, nullptr);
      RandomBits random(55);
      Fragments f;
      fill(f, random, form, true);
      function(f.operands());
      for (int row = 0; row < m; ++row) {
        for (int column = 0; column < 8; ++column) {
          int lane = 4 * (row % 8) + column / 2, reg = 2 * (row / 8) + column % 2;
          uint32_t sum = f.c[reg][lane];
          for (int i = 0; i < k; ++i) {
            uint32_t x = raw_element(f.a, place_of_a(form, row, i), 1),
                     y = raw_element(f.b, place_of_b(form, i, column), 1);
            sum += op == MmaBitOp::XorPopc ? x ^ y : x & y;
          }
          ASSERT_EQ(f.d[reg][lane], sum);
        }
      }
    }
  }
}

TEST(Mma, F64FormsAreFusedInAscendingK) {
  for (auto [m, k] : {std::pair{8, 4}, std::pair{16, 4}, std::pair{16, 8}, std::pair{16, 16}}) {
    MmaForm form{
        static_cast<uint8_t>(m), 8, static_cast<uint16_t>(k), T::F64, T::F64, Acc::F64, Acc::F64};
    MmaFunction64 function = mma_function_f64(form);
    ASSERT_NE(function, nullptr);
    MmaRegisters count = mma_registers(form);
    EXPECT_TRUE(count.wide);
    EXPECT_EQ(count.a, m / 8 * (k / 4));
    RandomBits random(56);
    uint64_t a[8][32], b[4][32], c[4][32], d[4][32];
    const uint64_t *pa[8], *pb[4], *pc[4];
    uint64_t* pd[4];
    for (int i = 0; i < 8; ++i) pa[i] = a[i];
    for (int i = 0; i < 4; ++i) pb[i] = b[i], pc[i] = c[i], pd[i] = d[i];
    for (auto* block : {&a[0], &a[4], &b[0], &c[0]}) {
      for (int i = 0; i < 4; ++i) {
        for (uint64_t& x : block[i]) x = random.f64();
      }
    }
    function({pa, pb, pc, pd});
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < 8; ++column) {
        int reg = 2 * (row / 8) + column % 2, lane = 4 * (row % 8) + column / 2;
        uint64_t sum = c[reg][lane];
        for (int i = 0; i < k; ++i) {
          int a_reg = i / 4 * (m / 8) + row / 8;
          sum = fma_f64(a[a_reg][row % 8 * 4 + i % 4], b[i / 4][column * 4 + i % 4], sum);
        }
        ASSERT_EQ(d[reg][lane], sum);
      }
    }
  }
}

TEST(Mma, UnknownFormsAreRefused) {
  EXPECT_EQ(mma_function({16, 8, 32, T::BF16, T::BF16, Acc::F32, Acc::F32}, Numerics::Fast),
            nullptr);
  EXPECT_EQ(mma_function({16, 8, 16, T::BF16, T::F16, Acc::F32, Acc::F32}, Numerics::Fast),
            nullptr);
  EXPECT_EQ(mma_function({16, 8, 16, T::BF16, T::BF16, Acc::F16, Acc::F16}, Numerics::Fast),
            nullptr);
  EXPECT_EQ(mma_function({8, 8, 32, T::S8, T::S8, Acc::S32, Acc::S32}, Numerics::Fast), nullptr);
  EXPECT_EQ(mma_function({16, 8, 128, T::B1, T::B1, Acc::S32, Acc::S32}, Numerics::Fast), nullptr);
  EXPECT_EQ(mma_function({16, 8, 0, T::F16, T::F16, Acc::F32, Acc::F32}, Numerics::Fast), nullptr);
  EXPECT_EQ(mma_registers({16, 8, 16, T::F16, T::F16, Acc::F16, Acc::F16}).d, 2);
  EXPECT_EQ(mma_registers({16, 8, 16, T::F16, T::F16, Acc::F32, Acc::F32}).a, 4);
}

}  // namespace
}  // namespace ptxb::emu::arith
