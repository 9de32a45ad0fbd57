// Checks that the AVX2 lane functions give the scalar functions' bits for every control, in place
// as well.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/lanes.h"

#include <gtest/gtest.h>

#include "emu/arith/approx.h"
#include "emu/arith/convert.h"
#include "emu/arith/integer_ops.h"
#include "emu/arith/random_bits.h"

namespace ptxb::emu::arith {
namespace {

struct Registers {
  uint32_t a[32], b[32], c[32], d[32];
};

enum class Pattern { F32, F16Pairs, BF16Pairs };

void fill(Registers& r, RandomBits& random, Pattern pattern) {
  for (uint32_t* x : {r.a, r.b, r.c}) {
    for (int i = 0; i < 32; ++i) {
      switch (pattern) {
        case Pattern::F32:
          x[i] = random.f32();
          break;
        case Pattern::F16Pairs:
          x[i] = (uint32_t{random.f16()} << 16) | random.f16();
          break;
        case Pattern::BF16Pairs:
          x[i] = (uint32_t{random.bf16()} << 16) | random.bf16();
          break;
      }
    }
  }
}
Pattern pattern_of(Half format) {
  return format == Half::F16 ? Pattern::F16Pairs : Pattern::BF16Pairs;
}

template <class Scalar>
void expect_unary(LaneUnary lane, Pattern pattern, Scalar scalar, int rounds = 300) {
  RandomBits random(31);
  for (int round = 0; round < rounds; ++round) {
    Registers r;
    fill(r, random, pattern);
    lane(r.d, r.a);
    for (int i = 0; i < 32; ++i) ASSERT_EQ(r.d[i], scalar(r.a[i])) << std::hex << r.a[i];
  }
}
template <class Scalar>
void expect_binary(LaneBinary lane, Pattern pattern, Scalar scalar, int rounds = 300) {
  RandomBits random(32);
  for (int round = 0; round < rounds; ++round) {
    Registers r;
    fill(r, random, pattern);
    lane(r.d, r.a, r.b);
    for (int i = 0; i < 32; ++i)
      ASSERT_EQ(r.d[i], scalar(r.a[i], r.b[i])) << std::hex << r.a[i] << " " << r.b[i];
    lane(r.a, r.a, r.b);
    for (int i = 0; i < 32; ++i) ASSERT_EQ(r.a[i], r.d[i]);
  }
}
template <class Scalar>
void expect_ternary(LaneTernary lane, Pattern pattern, Scalar scalar, int rounds = 300) {
  RandomBits random(33);
  for (int round = 0; round < rounds; ++round) {
    Registers r;
    fill(r, random, pattern);
    lane(r.d, r.a, r.b, r.c);
    for (int i = 0; i < 32; ++i) {
      ASSERT_EQ(r.d[i], scalar(r.a[i], r.b[i], r.c[i]))
          << std::hex << r.a[i] << " " << r.b[i] << " " << r.c[i];
    }
    lane(r.c, r.a, r.b, r.c);
    for (int i = 0; i < 32; ++i) ASSERT_EQ(r.c[i], r.d[i]);
  }
}

TEST(Lanes, F32ArithmeticMatchesScalarForEveryControl) {
  for (Round round : {Round::NearestEven, Round::TowardZero, Round::Down, Round::Up}) {
    for (int bits = 0; bits < 4; ++bits) {
      FloatControl control{.round = round, .ftz = (bits & 1) != 0, .sat = (bits & 2) != 0};
      int rounds = round == Round::NearestEven ? 400 : 20;
      expect_binary(
          lane_add_f32(control), Pattern::F32,
          [&](auto a, auto b) { return add_f32(a, b, control); }, rounds);
      expect_binary(
          lane_sub_f32(control), Pattern::F32,
          [&](auto a, auto b) { return sub_f32(a, b, control); }, rounds);
      expect_binary(
          lane_mul_f32(control), Pattern::F32,
          [&](auto a, auto b) { return mul_f32(a, b, control); }, rounds);
      expect_ternary(
          lane_fma_f32(control), Pattern::F32,
          [&](auto a, auto b, auto c) { return fma_f32(a, b, c, control); }, rounds);
    }
  }
}

TEST(Lanes, MinMaxMatchScalarForEveryControl) {
  for (int bits = 0; bits < 8; ++bits) {
    MinMaxControl control{
        .ftz = (bits & 1) != 0, .nan = (bits & 2) != 0, .xorsign_abs = (bits & 4) != 0};
    expect_binary(lane_min_f32(control), Pattern::F32,
                  [&](auto a, auto b) { return min_f32(a, b, control); });
    expect_binary(lane_max_f32(control), Pattern::F32,
                  [&](auto a, auto b) { return max_f32(a, b, control); });
    for (Half format : {Half::F16, Half::BF16}) {
      auto least = [&](auto a, auto b) { return min_half2(format, a, b, control); };
      auto greatest = [&](auto a, auto b) { return max_half2(format, a, b, control); };
      expect_binary(lane_min_half2(format, control), pattern_of(format), least);
      expect_binary(lane_max_half2(format, control), pattern_of(format), greatest);
    }
  }
}

TEST(Lanes, ComparisonsMatchScalar) {
  RandomBits random(34);
  for (int code = 0; code < 14; ++code) {
    for (bool ftz : {false, true}) {
      for (int round = 0; round < 60; ++round) {
        Registers r;
        fill(r, random, Pattern::F32);
        for (int i = 0; i < 8; ++i) r.b[i] = r.a[i];
        uint32_t expected = 0;
        for (int i = 0; i < 32; ++i) {
          bool hit = compare_f32(static_cast<FloatCompare>(code), r.a[i], r.b[i], {.ftz = ftz});
          expected |= uint32_t{hit} << i;
        }
        ASSERT_EQ(lane_compare_f32(static_cast<FloatCompare>(code), {.ftz = ftz})(r.a, r.b),
                  expected)
            << code;
      }
    }
  }
}

TEST(Lanes, HalfArithmeticMatchesScalarForEveryControl) {
  for (Half format : {Half::F16, Half::BF16}) {
    Pattern pattern = pattern_of(format);
    for (int bits = 0; bits < 16; ++bits) {
      FloatControl control{.ftz = (bits & 1) != 0,
                           .sat = (bits & 2) != 0,
                           .relu = (bits & 4) != 0,
                           .oob = (bits & 8) != 0};
      if (format == Half::BF16 && (control.ftz || control.sat)) continue;
      int rounds = bits == 0 ? 600 : 60;
      expect_ternary(
          lane_fma_half2(format, control), pattern,
          [&](auto a, auto b, auto c) { return fma_half2(format, a, b, c, control); }, rounds);
      if (control.relu || control.oob) {
        EXPECT_EQ(lane_add_half2(format, control), nullptr);
        continue;
      }
      auto add = [&](auto a, auto b) { return add_half2(format, a, b, control); };
      auto sub = [&](auto a, auto b) { return sub_half2(format, a, b, control); };
      auto mul = [&](auto a, auto b) { return mul_half2(format, a, b, control); };
      expect_binary(lane_add_half2(format, control), pattern, add, rounds);
      expect_binary(lane_sub_half2(format, control), pattern, sub, rounds);
      expect_binary(lane_mul_half2(format, control), pattern, mul, rounds);
    }
  }
}

TEST(Lanes, ConversionsMatchScalar) {
  for (Half format : {Half::F16, Half::BF16}) {
    auto pack = [&](auto a, auto b) { return pack_half2(format, a, b); };
    auto narrow = [&](auto a) { return uint32_t{half_from_f32(format, a)}; };
    auto widen = [&](auto a) { return half_to_f32(format, static_cast<uint16_t>(a)); };
    expect_binary(lane_pack_half2(format), Pattern::F32, pack, 1500);
    expect_unary(lane_half_from_f32(format), Pattern::F32, narrow, 1500);
    expect_unary(lane_half_to_f32(format), pattern_of(format), widen, 1500);
  }
}

TEST(Lanes, ApproximationsMatchScalar) {
  for (bool ftz : {false, true}) {
    FloatControl control{.ftz = ftz};
    expect_unary(lane_rcp_approx_f32(control), Pattern::F32,
                 [&](auto a) { return rcp_approx_f32(a, control); });
    expect_unary(
        lane_lg2_approx_f32(control), Pattern::F32,
        [&](auto a) { return lg2_approx_f32(a, control); }, 50);
    expect_unary(
        lane_ex2_approx_f32(control), Pattern::F32,
        [&](auto a) { return ex2_approx_f32(a, control); }, 3000);
  }
}

TEST(Lanes, Lop3MatchesScalarForEveryTable) {
  RandomBits random(35);
  Registers r;
  fill(r, random, Pattern::F32);
  for (uint32_t table = 0; table < 256; ++table) {
    lane_lop3(r.d, r.a, r.b, r.c, static_cast<uint8_t>(table));
    for (int i = 0; i < 32; ++i)
      ASSERT_EQ(r.d[i], lop3(r.a[i], r.b[i], r.c[i], static_cast<uint8_t>(table)));
  }
}

TEST(Lanes, PortablePathIsTheScalarLoop) {
  select_lane_path(LanePath::Portable);
  LaneTernary portable = lane_fma_f32({});
  select_lane_path(LanePath::Native);
  expect_ternary(
      portable, Pattern::F32, [](auto a, auto b, auto c) { return fma_f32(a, b, c); }, 20);
}

}  // namespace
}  // namespace ptxb::emu::arith
