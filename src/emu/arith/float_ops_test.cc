// Checks scalar float arithmetic against the host's rounding modes and against exact integer
// arithmetic.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/float_ops.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "emu/arith/convert.h"
#include "emu/arith/random_bits.h"
#include "emu/arith/soft_float.h"

namespace ptxb::emu::arith {
namespace {

struct Mode {
  Round round;
  int host;
};
constexpr Mode kModes[] = {{Round::NearestEven, FE_TONEAREST},
                           {Round::TowardZero, FE_TOWARDZERO},
                           {Round::Down, FE_DOWNWARD},
                           {Round::Up, FE_UPWARD}};

constexpr uint64_t kAnyNan = kNanF64;  // f64 payloads have their own test
uint64_t any_nan(uint64_t bits) { return std::isnan(std::bit_cast<double>(bits)) ? kAnyNan : bits; }

// The host's answer in one rounding mode; volatile keeps the operation between the mode switches.
template <class Float, class Operation>
auto in_mode(int host_mode, Operation operation) {
  std::fesetround(host_mode);
  volatile Float result = operation();
  std::fesetround(FE_TONEAREST);
  Float value = result;
  if constexpr (sizeof(Float) == 4) {
    return std::isnan(value) ? kNanF32 : std::bit_cast<uint32_t>(value);
  } else {
    return std::isnan(value) ? kAnyNan : std::bit_cast<uint64_t>(value);
  }
}

TEST(FloatOps, F32MatchesTheHostInEveryRoundingMode) {
  RandomBits random(1);
  for (int i = 0; i < 40000; ++i) {
    uint32_t a = random.f32(), b = random.f32(), c = random.f32();
    volatile float x = std::bit_cast<float>(a), y = std::bit_cast<float>(b),
                   z = std::bit_cast<float>(c);
    for (Mode mode : kModes) {
      FloatControl control{.round = mode.round};
      ASSERT_EQ(add_f32(a, b, control), in_mode<float>(mode.host, [&] { return x + y; }))
          << a << " " << b;
      ASSERT_EQ(sub_f32(a, b, control), in_mode<float>(mode.host, [&] { return x - y; }))
          << a << " " << b;
      ASSERT_EQ(mul_f32(a, b, control), in_mode<float>(mode.host, [&] { return x * y; }))
          << a << " " << b;
      ASSERT_EQ(div_f32(a, b, control), in_mode<float>(mode.host, [&] { return x / y; }))
          << a << " " << b;
      ASSERT_EQ(fma_f32(a, b, c, control),
                in_mode<float>(mode.host, [&] { return std::fma(x, y, z); }))
          << a << " " << b << " " << c;
      ASSERT_EQ(sqrt_f32(a, control), in_mode<float>(mode.host, [&] { return std::sqrt(x); })) << a;
    }
  }
}

TEST(FloatOps, F64MatchesTheHostInEveryRoundingMode) {
  RandomBits random(2);
  for (int i = 0; i < 40000; ++i) {
    uint64_t a = random.f64(), b = random.f64(), c = random.f64();
    volatile double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b),
                    z = std::bit_cast<double>(c);
    for (Mode mode : kModes) {
      FloatControl control{.round = mode.round};
      ASSERT_EQ(any_nan(add_f64(a, b, control)), in_mode<double>(mode.host, [&] { return x + y; }))
          << a << " " << b;
      ASSERT_EQ(any_nan(sub_f64(a, b, control)), in_mode<double>(mode.host, [&] { return x - y; }))
          << a << " " << b;
      ASSERT_EQ(any_nan(mul_f64(a, b, control)), in_mode<double>(mode.host, [&] { return x * y; }))
          << a << " " << b;
      ASSERT_EQ(any_nan(div_f64(a, b, control)), in_mode<double>(mode.host, [&] { return x / y; }))
          << a << " " << b;
      ASSERT_EQ(any_nan(fma_f64(a, b, c, control)),
                in_mode<double>(mode.host, [&] { return std::fma(x, y, z); }))
          << a << " " << b << " " << c;
      ASSERT_EQ(any_nan(sqrt_f64(a, control)),
                in_mode<double>(mode.host, [&] { return std::sqrt(x); }))
          << a;
    }
  }
}

TEST(FloatOps, IntegerModelAgreesWithTheHostToNearest) {
  RandomBits random(3);
  for (int i = 0; i < 60000; ++i) {
    uint32_t a = random.f32(), b = random.f32(), c = random.f32();
    Soft x = unpack(kFormatF32, a), y = unpack(kFormatF32, b), z = unpack(kFormatF32, c);
    auto near = [](const Soft& value) {
      return static_cast<uint32_t>(pack(kFormatF32, value, Round::NearestEven));
    };
    ASSERT_EQ(near(soft_add(x, y, Round::NearestEven)), add_f32(a, b)) << a << " " << b;
    ASSERT_EQ(near(soft_fma(x, y, z, Round::NearestEven)), fma_f32(a, b, c))
        << a << " " << b << " " << c;
    ASSERT_EQ(near(soft_div(x, y)), div_f32(a, b)) << a << " " << b;
    ASSERT_EQ(near(soft_sqrt(x)), sqrt_f32(a)) << a;
  }
}

struct UnaryCase {
  uint32_t a, expected;
};

TEST(FloatOps, FtzFlushesInputsAndResultsKeepingTheSign) {
  FloatControl ftz{.ftz = true};
  EXPECT_EQ(add_f32(0x00000001, 0x80000001, ftz), 0u);
  EXPECT_EQ(add_f32(0x80000001, 0x80000001, ftz), 0x80000000u);
  EXPECT_EQ(mul_f32(0x00800000, 0x3f000000, ftz), 0u);  // 2^-126 / 2
  EXPECT_EQ(mul_f32(0x80800000, 0x3f000000, ftz), 0x80000000u);
  EXPECT_EQ(fma_f32(0x007fffff, 0x7f000000, 0x3f800000, ftz), 0x3f800000u);
  EXPECT_EQ(neg_f32(0x00000005, ftz), 0x80000000u);
  EXPECT_EQ(abs_f32(0x80000005, ftz), 0u);
  EXPECT_TRUE(compare_f32(FloatCompare::Eq, 0x00000005, 0x80000007, ftz));
  EXPECT_FALSE(compare_f32(FloatCompare::Eq, 0x00000005, 0x80000007));
}

TEST(FloatOps, SatClampsToUnitAndTurnsNanIntoZero) {
  FloatControl sat{.sat = true};
  const UnaryCase cases[] = {{0x40000000, 0x3f800000}, {0xbf800000, 0},          {0x7fc00000, 0},
                             {0x80000000, 0},          {0x3f000000, 0x3f000000}, {0xff800000, 0},
                             {0x7f800000, 0x3f800000}, {0x00000001, 1}};
  for (UnaryCase c : cases) {
    EXPECT_EQ(add_f32(c.a, 0x80000000, sat), c.expected) << std::hex << c.a;
    EXPECT_EQ(mul_f32(c.a, 0x3f800000, {.round = Round::Up, .sat = true}), c.expected)
        << std::hex << c.a;
  }
}

TEST(FloatOps, NanResultsAreCanonical) {
  EXPECT_EQ(add_f32(0x7f800001, 0x3f800000), 0x7fffffffu);
  EXPECT_EQ(add_f32(0xffc12345, 0), 0x7fffffffu);
  EXPECT_EQ(mul_f32(0x7f800000, 0), 0x7fffffffu);
  EXPECT_EQ(sqrt_f32(0xbf800000), 0x7fffffffu);
  EXPECT_EQ(mul_f64(0x7ff0000000000000, 0), 0xfff8000000000000ull);
  EXPECT_EQ(sqrt_f64(0xbff0000000000000), 0xfff8000000000000ull);
  EXPECT_EQ(add_half(Half::F16, 0x7c01, 0), 0x7fff);
  EXPECT_EQ(fma_half(Half::BF16, 0x7f80, 0x0000, 0x3f80), 0x7fff);
}

TEST(FloatOps, F64CarriesTheNanOfTheLaterFactorThenTheAddendThenTheFirst) {
  constexpr uint64_t kX = 0x7ff0000000000001, kY = 0xfff0000000000002, kZ = 0x7ff8000000000003,
                     kOne = 0x3ff0000000000000;
  EXPECT_EQ(add_f64(kX, kOne), 0x7ff8000000000001ull);
  EXPECT_EQ(add_f64(kX, kY), 0xfff8000000000002ull);
  EXPECT_EQ(fma_f64(kX, kY, kZ), 0xfff8000000000002ull);
  EXPECT_EQ(fma_f64(kX, kOne, kZ), kZ);
  EXPECT_EQ(fma_f64(kX, kOne, kOne, {.round = Round::Up}), 0x7ff8000000000001ull);
  EXPECT_EQ(min_f64(kX, kY), 0xfff8000000000002ull);
  EXPECT_EQ(neg_f64(kY), 0xfff8000000000002ull);
  EXPECT_EQ(abs_f64(kY), 0xfff8000000000002ull);
}

TEST(FloatOps, MinMaxOrderZerosAndSkipNan) {
  EXPECT_EQ(min_f32(0x00000000, 0x80000000), 0x80000000u);
  EXPECT_EQ(max_f32(0x80000000, 0x00000000), 0x00000000u);
  EXPECT_EQ(min_f32(0x7fc00000, 0x3f800000), 0x3f800000u);
  EXPECT_EQ(max_f32(0x3f800000, 0xffffffff), 0x3f800000u);
  EXPECT_EQ(max_f32(0x7fc00000, 0xffc00001), 0x7fffffffu);
  EXPECT_EQ(max_f32(0x7fc00000, 0x3f800000, {.nan = true}), 0x7fffffffu);
  EXPECT_EQ(max_f32(0xc0000000, 0x3f800000, {.xorsign_abs = true}),
            0xc0000000u);  // |2| > |1|, signs differ
  EXPECT_EQ(min_f32(0xc0000000, 0xbf800000, {.xorsign_abs = true}), 0x3f800000u);
  EXPECT_EQ(max3_f32(0x3f800000, 0xc0400000, 0x40000000, {.abs = true}), 0x40400000u);
  EXPECT_EQ(min_f64(0x7ff8000000000000, 0x3ff0000000000000), 0x3ff0000000000000ull);
  EXPECT_EQ(min_half(Half::F16, 0x0000, 0x8000), 0x8000);
  EXPECT_EQ(max_half2(Half::BF16, 0x3f80'7fc0, 0x4000'3f80), 0x4000'3f80u);
}

TEST(FloatOps, ComparisonsFollowTheOrderedAndUnorderedTable) {
  struct Row {
    FloatCompare code;
    bool less, equal, greater, unordered;
  };
  const Row rows[] = {{FloatCompare::Eq, false, true, false, false},
                      {FloatCompare::Ne, true, false, true, false},
                      {FloatCompare::Lt, true, false, false, false},
                      {FloatCompare::Le, true, true, false, false},
                      {FloatCompare::Gt, false, false, true, false},
                      {FloatCompare::Ge, false, true, true, false},
                      {FloatCompare::Equ, false, true, false, true},
                      {FloatCompare::Neu, true, false, true, true},
                      {FloatCompare::Ltu, true, false, false, true},
                      {FloatCompare::Leu, true, true, false, true},
                      {FloatCompare::Gtu, false, false, true, true},
                      {FloatCompare::Geu, false, true, true, true},
                      {FloatCompare::Num, true, true, true, false},
                      {FloatCompare::Nan, false, false, false, true}};
  for (Row row : rows) {
    EXPECT_EQ(compare_f32(row.code, 0xbf800000, 0x3f800000), row.less);
    EXPECT_EQ(compare_f32(row.code, 0x80000000, 0x00000000), row.equal);
    EXPECT_EQ(compare_f32(row.code, 0x40000000, 0x3f800000), row.greater);
    EXPECT_EQ(compare_f32(row.code, 0x7fc00000, 0x3f800000), row.unordered);
    EXPECT_EQ(compare_f64(row.code, 0x3ff0000000000000, 0x4000000000000000), row.less);
    EXPECT_EQ(compare_half(row.code, Half::F16, 0x4000, 0x3c00), row.greater);
    EXPECT_EQ(compare_half2(row.code, Half::BF16, 0x7fff'3f80, 0x3f80'3f80),
              (row.unordered ? 2u : 0u) | (row.equal ? 1u : 0u));
  }
}

TEST(FloatOps, TestpPropertiesTreatZeroAsNormal) {
  EXPECT_TRUE(test_f32(FloatProperty::Normal, 0x80000000));
  EXPECT_FALSE(test_f32(FloatProperty::Subnormal, 0));
  EXPECT_TRUE(test_f32(FloatProperty::Subnormal, 0x807fffff));
  EXPECT_FALSE(test_f32(FloatProperty::Normal, 0x7f800000));
  EXPECT_TRUE(test_f32(FloatProperty::Infinite, 0xff800000));
  EXPECT_TRUE(test_f32(FloatProperty::NotANumber, 0x7f800001));
  EXPECT_TRUE(test_f32(FloatProperty::Number, 0x7f800000));
  EXPECT_FALSE(test_f32(FloatProperty::Finite, 0x7fffffff));
  EXPECT_TRUE(test_f64(FloatProperty::Subnormal, 1));
  EXPECT_TRUE(test_f64(FloatProperty::Finite, 0x7fefffffffffffff));
  EXPECT_EQ(copysign_f32(0x80000000, 0x3f800000), 0xbf800000u);
  EXPECT_EQ(copysign_f64(0, 0xbff0000000000000), 0x3ff0000000000000ull);
}

// f16 values are multiples of 2^-24 below 2^16: a product plus a term is an integer of 2^-48 that
// fits 128 bits.
__extension__ typedef __int128 Exact;

Exact fixed_point(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  Exact magnitude = exponent == 0 ? bits & 1023 : Exact{(bits & 1023) + 1024} << (exponent - 1);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Nearest f16 of value * 2^-48 by comparing distances to the candidates around it.
uint16_t nearest_f16(Exact value, bool negative_zero) {
  bool negative = value < 0;
  Exact magnitude = negative ? -value : value;
  uint16_t low = 0, high = 0x7c00;  // binary search for the largest f16 not above the magnitude
  auto scaled = [](uint16_t bits) {
    return bits == 0x7c00 ? Exact{1} << (16 + 48) : fixed_point(bits) << 24;
  };
  while (high - low > 1) {
    uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (scaled(middle) <= magnitude ? low : high) = middle;
  }
  Exact down = magnitude - scaled(low), up = scaled(high) - magnitude;
  uint16_t chosen = up < down || (up == down && (low & 1) != 0) ? high : low;
  if (value == 0) negative = negative_zero;
  return static_cast<uint16_t>(chosen | (negative ? 0x8000 : 0));
}

TEST(HalfOps, F16IsRoundedOnceFromTheExactValue) {
  RandomBits random(4);
  for (int i = 0; i < 200000; ++i) {
    uint16_t a = random.f16(), b = random.f16(), c = random.f16();
    if ((a & 0x7c00) == 0x7c00 || (b & 0x7c00) == 0x7c00 || (c & 0x7c00) == 0x7c00) continue;
    Exact x = fixed_point(a), y = fixed_point(b), z = fixed_point(c);
    bool product_negative = ((a ^ b) & 0x8000) != 0;
    bool fma_negative_zero = x * y == 0 && z == 0 && product_negative && (c & 0x8000) != 0;
    ASSERT_EQ(fma_half(Half::F16, a, b, c),
              nearest_f16(x * y + z * (Exact{1} << 24), fma_negative_zero));
    ASSERT_EQ(mul_half(Half::F16, a, b), nearest_f16(x * y, product_negative));
    bool sum_negative_zero = x == 0 && y == 0 && (a & b & 0x8000) != 0;
    ASSERT_EQ(add_half(Half::F16, a, b),
              nearest_f16((x + y) * (Exact{1} << 24), sum_negative_zero));
  }
}

TEST(HalfOps, Bf16SumsAndProductsMatchRoundingOfTheExactDouble) {
  RandomBits random(5);
  for (int i = 0; i < 100000; ++i) {
    uint16_t a = random.bf16(), b = random.bf16();
    double x = double{bf16_value(a)}, y = double{bf16_value(b)};
    auto rounded = [](double value) {  // exact in double, one rounding
      if (std::isnan(value)) return kNanHalf;
      return static_cast<uint16_t>(
          convert(Scalar::BF16, Scalar::F64, std::bit_cast<uint64_t>(value)));
    };
    ASSERT_EQ(mul_half(Half::BF16, a, b), rounded(x * y)) << a << " " << b;
    int exponent_gap = std::abs(((a >> 7) & 255) - ((b >> 7) & 255));
    if (exponent_gap >= 40) continue;
    ASSERT_EQ(add_half(Half::BF16, a, b), rounded(x + y)) << a << " " << b;
  }
}

TEST(HalfOps, ModifiersFollowThePtxTables) {
  EXPECT_EQ(fma_half(Half::F16, 0x4000, 0x3c00, 0x0000, {.sat = true}), 0x3c00);
  EXPECT_EQ(fma_half(Half::F16, 0xbc00, 0x3c00, 0x0000, {.relu = true}), 0x0000);
  EXPECT_EQ(fma_half(Half::F16, 0x7e00, 0x3c00, 0x0000, {.relu = true}), 0x7fff);
  EXPECT_EQ(add_half(Half::F16, 0x7e00, 0x3c00, {.sat = true}), 0x0000);
  EXPECT_EQ(mul_half(Half::F16, 0x0001, 0x3c00, {.ftz = true}), 0x0000);
  EXPECT_EQ(mul_half(Half::F16, 0x0400, 0xb800, {.ftz = true}), 0x8000);  // 2^-14 * -0.5
  EXPECT_EQ(fma_half(Half::BF16, 0xfff7, 0x3f80, 0x3f80, {.oob = true}), 0x0000);
  EXPECT_EQ(fma_half(Half::F16, 0x3c00, 0x7ff7, 0x3c00, {.oob = true}), 0x0000);
  EXPECT_EQ(fma_half(Half::F16, 0x3c00, 0x3c00, 0x7ff7, {.oob = true}), 0x7fff);
  EXPECT_EQ(fma_half(Half::F16, 0x7fff, 0x3c00, 0x3c00, {.oob = true}), 0x7fff);
  EXPECT_EQ(fma_half2(Half::BF16, 0x3f80'7ff7, 0x3f80'3f80, 0x3f80'3f80, {.oob = true}),
            0x4000'0000u);
  EXPECT_EQ(neg_half(Half::BF16, 0x0001), 0x8001);
  EXPECT_EQ(neg_half2(Half::F16, 0x3c00'8000), 0xbc00'0000u);
  EXPECT_EQ(abs_half2(Half::F16, 0xbc00'8001, {.ftz = true}), 0x3c00'0000u);
  EXPECT_EQ(min_half(Half::F16, 0x7e00, 0x3c00, {.nan = true}), 0x7fff);
  EXPECT_EQ(max_half(Half::F16, 0xc000, 0x3c00, {.xorsign_abs = true}), 0xc000);
}

}  // namespace
}  // namespace ptxb::emu::arith
