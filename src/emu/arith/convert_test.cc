// Checks cvt: exhaustively where the source has at most 16 bits, against host conversions and
// neighbour searches elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/convert.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "emu/arith/random_bits.h"

namespace ptxb::emu::arith {
namespace {

float value(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t bits_of(float v) { return std::bit_cast<uint32_t>(v); }

double half_value(Half format, uint16_t bits) {
  return double{format == Half::F16 ? f16_value(bits) : bf16_value(bits)};
}
uint16_t infinity_of(Half format) { return format == Half::F16 ? 0x7c00 : 0x7f80; }

TEST(Convert, EveryHalfSurvivesTheWayThroughF32AndF64) {
  for (Half format : {Half::F16, Half::BF16}) {
    Scalar scalar = format == Half::F16 ? Scalar::F16 : Scalar::BF16;
    for (uint32_t i = 0; i < 65536; ++i) {
      uint16_t bits = static_cast<uint16_t>(i);
      if ((bits & 0x7fff) > infinity_of(format)) {
        EXPECT_EQ(half_from_f32(format, half_to_f32(format, bits)), 0x7fff);
        continue;
      }
      ASSERT_EQ(value(half_to_f32(format, bits)), half_value(format, bits));
      ASSERT_EQ(half_from_f32(format, half_to_f32(format, bits)), bits);
      ASSERT_EQ(convert(scalar, Scalar::F64, convert(Scalar::F64, scalar, bits)), bits);
    }
  }
}

// What rounding f32 `x` into the half format must give, from the two representable neighbours.
uint16_t rounded_half(Half format, float x, Round round) {
  if (std::isnan(x)) return 0x7fff;
  uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  double magnitude = std::fabs(double{x});
  if (std::isinf(x)) return sign | infinity_of(format);
  uint16_t low = 0, high = infinity_of(format);
  double top = 2 * half_value(format, static_cast<uint16_t>(high - 1)) -
               half_value(format, static_cast<uint16_t>(high - 2));
  auto of = [&](uint16_t bits) {
    return bits == infinity_of(format) ? top : half_value(format, bits);
  };
  while (high - low > 1) {
    uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (of(middle) <= magnitude ? low : high) = middle;
  }
  if (of(low) == magnitude) return sign | low;
  double down = magnitude - of(low), up = of(high) - magnitude;
  bool beyond = magnitude >= of(high);  // past the largest finite and its would-be successor
  bool take_high = false;
  switch (round) {
    case Round::NearestEven:
      take_high = beyond || up < down || (up == down && (low & 1) != 0);
      break;
    case Round::Up:
      take_high = sign == 0;
      break;
    case Round::Down:
      take_high = sign != 0;
      break;
    default:
      break;
  }
  return sign | (take_high ? high : low);
}

TEST(Convert, F32ToHalfRoundsToTheRightNeighbour) {
  RandomBits random(11);
  for (Half format : {Half::F16, Half::BF16}) {
    for (int i = 0; i < 60000; ++i) {
      uint32_t x = random.f32();
      if (i % 2 == 0) {  // a half, or a point between two, plus or minus one f32 ulp
        uint16_t half = static_cast<uint16_t>(random.next());
        x = half_to_f32(format, half) +
            (format == Half::F16 ? 0x1000u : 0x8000u) * random.below(2) + random.below(3) - 1;
      }
      for (Round round : {Round::NearestEven, Round::TowardZero, Round::Down, Round::Up}) {
        ASSERT_EQ(half_from_f32(format, x, {.round = round}), rounded_half(format, value(x), round))
            << std::hex << x;
      }
    }
  }
}

TEST(Convert, ModifiersOfHalfConversions) {
  EXPECT_EQ(half_from_f32(Half::F16, bits_of(1e9f)), 0x7c00);
  EXPECT_EQ(half_from_f32(Half::F16, bits_of(1e9f), {.satfinite = true}), 0x7bff);
  EXPECT_EQ(half_from_f32(Half::F16, 0xff800000, {.satfinite = true}), 0xfbff);
  EXPECT_EQ(half_from_f32(Half::BF16, bits_of(-3.0f), {.relu = true}), 0);
  EXPECT_EQ(half_from_f32(Half::BF16, 0x7fc00000, {.relu = true}), 0x7fff);
  EXPECT_EQ(half_from_f32(Half::F16, bits_of(70000.0f), {.round = Round::TowardZero}), 0x7bff);
  EXPECT_EQ(pack_half2(Half::F16, bits_of(1.0f), bits_of(-2.0f)), 0x3c00'c000u);
  EXPECT_EQ(convert(Scalar::F16, Scalar::F32, bits_of(3.5f), {.sat = true}), 0x3c00u);
  EXPECT_EQ(convert(Scalar::F32, Scalar::F32, 0x00000001, {.ftz = true}), 0u);
  EXPECT_EQ(convert(Scalar::F32, Scalar::F64, std::bit_cast<uint64_t>(1e-40), {.ftz = true}), 0u);
}

TEST(Convert, NanIsCanonicalExceptOnTheWayToAndFromF64) {
  EXPECT_EQ(convert(Scalar::F32, Scalar::F16, 0x7e01), 0x7fffffffu);
  EXPECT_EQ(convert(Scalar::F32, Scalar::BF16, 0xff81), 0xff810000u);
  EXPECT_EQ(convert(Scalar::F32, Scalar::F32, 0x7f800001), 0x7f800001u);
  EXPECT_EQ(convert(Scalar::F32, Scalar::F32, 0x7f800001, {.ftz = true}), 0x7fffffffu);
  EXPECT_EQ(convert(Scalar::F64, Scalar::F32, 0x7f800001), 0x7ff8000020000000ull);
  EXPECT_EQ(convert(Scalar::F64, Scalar::F32, 0xff800001, {.ftz = true}), 0x7fffffffe0000000ull);
  EXPECT_EQ(convert(Scalar::F64, Scalar::F16, 0x7f1e), 0x7ffc780000000000ull);
  EXPECT_EQ(convert(Scalar::F64, Scalar::BF16, 0xff81), 0xfff8200000000000ull);
  EXPECT_EQ(convert(Scalar::F32, Scalar::F64, 0xfff0000000000001), 0xffc00000u);
  EXPECT_EQ(convert(Scalar::F32, Scalar::F64, 0xfff0000000000001, {.sat = true}), 0u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0xff800001, {.round = Round::NearestEven}),
            0x7fffe000u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0xffffffff, {.round = Round::NearestAway}),
            0xffffe000u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0x7fffffff,
                    {.round = Round::NearestAway, .satfinite = true}),
            0x7fffc000u);
}

TEST(Convert, F64ToF32MatchesTheHostInEveryMode) {
  RandomBits random(12);
  const std::pair<Round, int> modes[] = {{Round::NearestEven, FE_TONEAREST},
                                         {Round::TowardZero, FE_TOWARDZERO},
                                         {Round::Down, FE_DOWNWARD},
                                         {Round::Up, FE_UPWARD}};
  for (int i = 0; i < 60000; ++i) {
    uint64_t bits = random.f64();
    if (i % 2 == 0)
      bits = (bits & 0x800fffffffffffffull) | (uint64_t{860 + random.below(330)} << 52);
    volatile double source = std::bit_cast<double>(bits);
    for (auto [round, host] : modes) {
      std::fesetround(host);
      volatile float narrowed = static_cast<float>(source);
      std::fesetround(FE_TONEAREST);
      float expected = narrowed;
      uint32_t expected_bits = bits_of(expected);
      if (std::isnan(expected)) continue;
      ASSERT_EQ(convert(Scalar::F32, Scalar::F64, bits, {.round = round}), expected_bits)
          << std::hex << bits;
    }
  }
}

TEST(Convert, FloatToIntegerRoundsThenClamps) {
  struct Case {
    Scalar to;
    float from;
    Round round;
    uint64_t expected;
  };
  const Case cases[] = {
      {Scalar::S32, 2.5f, Round::NearestEven, 2},
      {Scalar::S32, 3.5f, Round::NearestEven, 4},
      {Scalar::S32, -2.5f, Round::TowardZero, static_cast<uint64_t>(-2)},
      {Scalar::S32, -2.1f, Round::Down, static_cast<uint64_t>(-3)},
      {Scalar::S32, 2.1f, Round::Up, 3},
      {Scalar::S32, 3e9f, Round::TowardZero, 0x7fffffff},
      {Scalar::S32, -3e9f, Round::TowardZero, 0xffffffff80000000ull},
      {Scalar::U32, 3e9f, Round::TowardZero, 3000000000u},
      {Scalar::U32, -1.0f, Round::TowardZero, 0},
      {Scalar::U32, INFINITY, Round::TowardZero, 0xffffffffu},
      {Scalar::U8, 300.0f, Round::TowardZero, 255},
      {Scalar::S8, -300.0f, Round::TowardZero, static_cast<uint64_t>(-128)},
      {Scalar::S64, 1e30f, Round::TowardZero, 0x7fffffffffffffffull},
      {Scalar::U64, 1.8e19f, Round::TowardZero, static_cast<uint64_t>(1.8e19f)},
      {Scalar::U64, -0.5f, Round::NearestEven, 0},
      {Scalar::S32, NAN, Round::TowardZero, 0},
      {Scalar::S64, NAN, Round::TowardZero, 0x8000000000000000ull},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(convert(c.to, Scalar::F32, bits_of(c.from), {.round = c.round}), c.expected)
        << c.from;
  }
  RandomBits random(13);
  for (int i = 0; i < 50000; ++i) {
    uint32_t bits = random.f32();
    double exact = double{value(bits)};
    if (!(std::fabs(exact) < 2147483647.0)) continue;
    auto expect = [&](Round round, double rounded) {
      ASSERT_EQ(static_cast<uint32_t>(convert(Scalar::S32, Scalar::F32, bits, {.round = round})),
                static_cast<uint32_t>(static_cast<int64_t>(rounded)));
    };
    expect(Round::NearestEven, std::nearbyint(exact));
    expect(Round::TowardZero, std::trunc(exact));
    expect(Round::Down, std::floor(exact));
    expect(Round::Up, std::ceil(exact));
  }
}

TEST(Convert, IntegerToFloatMatchesTheHostInEveryMode) {
  RandomBits random(14);
  const std::pair<Round, int> modes[] = {{Round::NearestEven, FE_TONEAREST},
                                         {Round::TowardZero, FE_TOWARDZERO},
                                         {Round::Down, FE_DOWNWARD},
                                         {Round::Up, FE_UPWARD}};
  for (int i = 0; i < 20000; ++i) {
    uint64_t bits = random.next() >> random.below(64);
    volatile int64_t as_signed = static_cast<int64_t>(bits);
    volatile int32_t as_word = static_cast<int32_t>(bits);
    for (auto [round, host] : modes) {
      ConvertControl control{.round = round};
      std::fesetround(host);
      volatile float f_signed = static_cast<float>(as_signed);
      volatile float f_word = static_cast<float>(as_word);
      volatile double d_signed = static_cast<double>(as_signed);
      std::fesetround(FE_TONEAREST);
      float a = f_signed, b = f_word;
      double c = d_signed;
      ASSERT_EQ(convert(Scalar::F32, Scalar::S64, bits, control), bits_of(a)) << bits;
      ASSERT_EQ(convert(Scalar::F32, Scalar::S32, bits, control), bits_of(b)) << bits;
      ASSERT_EQ(convert(Scalar::F64, Scalar::S64, bits, control), std::bit_cast<uint64_t>(c))
          << bits;
    }
  }
  EXPECT_EQ(convert(Scalar::F16, Scalar::U32, 70000), 0x7c00u);
  EXPECT_EQ(convert(Scalar::BF16, Scalar::S8, 0xff), 0xbf80u);
  EXPECT_EQ(convert(Scalar::F32, Scalar::U64, 0xffffffffffffffff), 0x5f800000u);
}

TEST(Convert, IntegersTruncateOrSaturateAndExtendBySign) {
  EXPECT_EQ(convert(Scalar::S64, Scalar::S32, 0x80000000), 0xffffffff80000000ull);
  EXPECT_EQ(convert(Scalar::U64, Scalar::U32, 0xffffffff), 0xffffffffull);
  EXPECT_EQ(convert(Scalar::S8, Scalar::S32, 0x1ff), 0xffffffffffffffffull);
  EXPECT_EQ(convert(Scalar::S8, Scalar::S32, 0x1ff, {.sat = true}), 0x7full);
  EXPECT_EQ(convert(Scalar::U8, Scalar::S32, 0xffffff00, {.sat = true}), 0ull);
  EXPECT_EQ(convert(Scalar::U16, Scalar::U32, 0x12345, {.sat = true}), 0xffffull);
  EXPECT_EQ(convert(Scalar::S32, Scalar::U64, 0xffffffffffffffff, {.sat = true}), 0x7fffffffull);
  EXPECT_EQ(convert(Scalar::S16, Scalar::S64, 0x8000000000000000, {.sat = true}),
            0xffffffffffff8000ull);
}

TEST(Convert, FloatToFloatOfOneSizeRoundsToIntegralValues) {
  RandomBits random(15);
  for (int i = 0; i < 50000; ++i) {
    uint32_t bits = random.f32();
    float x = value(bits);
    if (std::isnan(x)) continue;
    auto rounded = [&](Round round) {
      return static_cast<uint32_t>(
          convert(Scalar::F32, Scalar::F32, bits, {.round = round, .integer_round = true}));
    };
    ASSERT_EQ(rounded(Round::NearestEven), bits_of(std::nearbyint(x)));
    ASSERT_EQ(rounded(Round::TowardZero), bits_of(std::trunc(x)));
    ASSERT_EQ(rounded(Round::Down), bits_of(std::floor(x)));
    ASSERT_EQ(rounded(Round::Up), bits_of(std::ceil(x)));
  }
}

TEST(Convert, Tf32RoundsTheLowThirteenBits) {
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0x3f801000, {.round = Round::NearestAway}),
            0x3f802000u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0x3f801000, {.round = Round::NearestEven}),
            0x3f800000u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0x3f803000, {.round = Round::NearestEven}),
            0x3f804000u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0x3f801fff, {.round = Round::TowardZero}),
            0x3f800000u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0x7f7fffff, {.round = Round::NearestAway}),
            0x7f800000u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0x7f7fffff,
                    {.round = Round::NearestAway, .satfinite = true}),
            0x7f7fe000u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0x00000fff, {.round = Round::NearestAway}), 0u);
  EXPECT_EQ(convert(Scalar::TF32, Scalar::F32, 0x00001000, {.round = Round::NearestAway}), 0x2000u);
}

// Every finite value of a small format, from its definition.
double definition(MiniFloat format, int bits) {
  int exponent_bits = 4, fraction_bits = 3;
  if (format == MiniFloat::E5M2) exponent_bits = 5, fraction_bits = 2;
  if (format == MiniFloat::E2M3) exponent_bits = 2, fraction_bits = 3;
  if (format == MiniFloat::E3M2) exponent_bits = 3, fraction_bits = 2;
  if (format == MiniFloat::E2M1) exponent_bits = 2, fraction_bits = 1;
  int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  int fraction = bits & ((1 << fraction_bits) - 1);
  int bias = (1 << (exponent_bits - 1)) - 1;
  double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                    : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return ((bits >> (exponent_bits + fraction_bits)) & 1) != 0 ? -magnitude : magnitude;
}
struct MiniCase {
  MiniFloat format;
  int largest;  // bits of the largest finite value
  int sign_bit;
  uint8_t nan;
};
constexpr MiniCase kMinis[] = {{MiniFloat::E4M3, 0x7e, 0x80, 0x7f},
                               {MiniFloat::E5M2, 0x7b, 0x80, 0x7f},
                               {MiniFloat::E2M3, 0x1f, 0x20, 0x1f},
                               {MiniFloat::E3M2, 0x1f, 0x20, 0x1f},
                               {MiniFloat::E2M1, 0x07, 0x08, 0x07}};

TEST(ConvertMini, EveryPatternHasItsDefinedValueAndComesBack) {
  for (const MiniCase& c : kMinis) {
    for (int magnitude = 0; magnitude <= c.largest; ++magnitude) {
      for (int bits : {magnitude, magnitude | c.sign_bit}) {
        float v = mini_value(c.format, static_cast<uint8_t>(bits));
        ASSERT_EQ(double{v}, definition(c.format, bits));
        ASSERT_EQ(std::signbit(v), (bits & c.sign_bit) != 0);
        ASSERT_EQ(mini_from_f32(c.format, bits_of(v)), bits);
      }
    }
  }
  EXPECT_TRUE(std::isnan(mini_value(MiniFloat::E4M3, 0x7f)));
  EXPECT_TRUE(std::isnan(mini_value(MiniFloat::E4M3, 0xff)));
  EXPECT_TRUE(std::isinf(mini_value(MiniFloat::E5M2, 0xfc)));
  EXPECT_TRUE(std::isnan(mini_value(MiniFloat::E5M2, 0x7d)));
}

TEST(ConvertMini, RoundsToTheNearestEvenAndSaturates) {
  RandomBits random(16);
  for (const MiniCase& c : kMinis) {
    for (int i = 0; i < 20000; ++i) {
      uint32_t bits = random.f32();
      if (i % 2 == 0) {  // around the middle of two neighbours
        int pattern = static_cast<int>(random.below(static_cast<uint32_t>(c.largest)));
        double middle = (definition(c.format, pattern) + definition(c.format, pattern + 1)) / 2;
        bits = bits_of(static_cast<float>(middle)) + random.below(3) - 1;
      }
      float x = value(bits);
      if (std::isnan(x)) {
        ASSERT_EQ(mini_from_f32(c.format, bits), c.nan);
        continue;
      }
      double magnitude = std::fabs(double{x});
      int best = 0;
      for (int pattern = 0; pattern <= c.largest; ++pattern) {
        double gap = std::fabs(definition(c.format, pattern) - magnitude);
        double best_gap = std::fabs(definition(c.format, best) - magnitude);
        if (gap < best_gap || (gap == best_gap && (pattern & 1) == 0)) best = pattern;
      }
      if (magnitude > definition(c.format, c.largest)) best = c.largest;
      int expected = best | (std::signbit(x) ? c.sign_bit : 0);
      ASSERT_EQ(mini_from_f32(c.format, bits), expected) << x;
      ASSERT_EQ(mini_from_f32(c.format, bits, {.relu = true}), std::signbit(x) ? 0 : expected);
    }
  }
}

TEST(ConvertMini, PairsKeepTheirOrder) {
  EXPECT_EQ(pack_mini2(MiniFloat::E4M3, bits_of(1.0f), bits_of(-2.0f)), 0x38c0);
  EXPECT_EQ(pack_mini2(MiniFloat::E2M1, bits_of(1.0f), bits_of(-6.0f)), 0x2f);
  EXPECT_EQ(pack_mini2_from_half2(MiniFloat::E5M2, Half::F16, 0x3c00'c000), 0x3cc0);
  EXPECT_EQ(unpack_mini2(MiniFloat::E4M3, Half::F16, 0x38c0), 0x3c00'c000u);
  EXPECT_EQ(unpack_mini2(MiniFloat::E4M3, Half::F16, 0x38c0, {.relu = true}), 0x3c00'0000u);
  EXPECT_EQ(unpack_mini2(MiniFloat::E5M2, Half::F16, 0x7c7f), 0x7c00'7fffu);
  EXPECT_EQ(unpack_mini2(MiniFloat::E2M1, Half::F16, 0x2f), 0x3c00'c600u);
}

TEST(ConvertMini, Ue8m0KeepsTheExponent) {
  EXPECT_EQ(mini_from_f32(MiniFloat::UE8M0, bits_of(1.0f), {.round = Round::Up}), 127);
  EXPECT_EQ(mini_from_f32(MiniFloat::UE8M0, bits_of(1.5f), {.round = Round::Up}), 128);
  EXPECT_EQ(mini_from_f32(MiniFloat::UE8M0, bits_of(1.5f), {.round = Round::TowardZero}), 127);
  EXPECT_EQ(mini_from_f32(MiniFloat::UE8M0, 0x7f800000, {.round = Round::Up}), 0xff);
  EXPECT_EQ(mini_from_f32(MiniFloat::UE8M0, 0x7f800000, {.round = Round::Up, .satfinite = true}),
            0xfe);
  EXPECT_EQ(mini_from_f32(MiniFloat::UE8M0, 0x7fc00000, {.round = Round::Up, .satfinite = true}),
            0xff);
  for (int bits = 0; bits < 255; ++bits) {
    ASSERT_EQ(mini_value(MiniFloat::UE8M0, static_cast<uint8_t>(bits)),
              std::ldexp(1.0f, bits - 127));
  }
}

TEST(ConvertPack, ClampsBothValuesAndShiftsTheRest) {
  EXPECT_EQ(convert_pack({.bits = 8, .is_signed = false}, 300, -5, 0x12345678), 0x5678'ff00u);
  EXPECT_EQ(convert_pack({.bits = 8, .is_signed = true}, -300, 127, 0), 0x0000'807fu);
  EXPECT_EQ(convert_pack({.bits = 16, .is_signed = true}, 40000, -40000, 0), 0x7fff'8000u);
  EXPECT_EQ(convert_pack({.bits = 4, .is_signed = true}, -9, 7, 0xabc), 0xabc87u);
  EXPECT_EQ(convert_pack({.bits = 2, .is_signed = false}, 5, 1, 0x3), 0x3du);
}

}  // namespace
}  // namespace ptxb::emu::arith
