// Checks the bit operations against the bit-by-bit definitions of the PTX ISA.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/integer_ops.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "emu/arith/random_bits.h"

namespace ptxb::emu::arith {
namespace {

bool bit(uint64_t value, uint32_t index) { return ((value >> index) & 1) != 0; }

uint64_t bfe_definition(uint64_t a, uint32_t b, uint32_t c, uint32_t msb, bool is_signed) {
  uint32_t position = b & 0xff, length = c & 0xff;
  bool fill = is_signed && length != 0 && bit(a, std::min(position + length - 1, msb));
  uint64_t d = 0;
  for (uint32_t i = 0; i <= msb; ++i) {
    bool v = i < length && position + i <= msb ? bit(a, position + i) : fill;
    d |= uint64_t{v} << i;
  }
  return d;
}

uint64_t bfi_definition(uint64_t a, uint64_t b, uint32_t c, uint32_t d, uint32_t msb) {
  uint32_t position = c & 0xff, length = d & 0xff;
  for (uint32_t i = 0; i < length && position + i <= msb; ++i) {
    b = (b & ~(uint64_t{1} << (position + i))) | (uint64_t{bit(a, i)} << (position + i));
  }
  return b;
}

TEST(IntegerOps, BitFieldsMatchTheDefinition) {
  RandomBits random(21);
  for (int i = 0; i < 50000; ++i) {
    uint64_t a = random.next(), b = random.next();
    uint32_t position = random.below(80), length = random.below(80);
    if (i % 16 == 0) position = random.below(256), length = random.below(256);
    uint32_t low = static_cast<uint32_t>(a);
    ASSERT_EQ(bfe_u32(low, position, length), bfe_definition(low, position, length, 31, false));
    ASSERT_EQ(bfe_s32(low, position, length), bfe_definition(low, position, length, 31, true));
    ASSERT_EQ(bfe_u64(a, position, length), bfe_definition(a, position, length, 63, false));
    ASSERT_EQ(bfe_s64(a, position, length), bfe_definition(a, position, length, 63, true));
    ASSERT_EQ(bfi_b32(low, static_cast<uint32_t>(b), position, length),
              bfi_definition(low, static_cast<uint32_t>(b), position, length, 31));
    ASSERT_EQ(bfi_b64(a, b, position, length), bfi_definition(a, b, position, length, 63));
  }
}

TEST(IntegerOps, FindAndCountBits) {
  EXPECT_EQ(bfind_u32(FindResult::Position, 0), 0xffffffffu);
  EXPECT_EQ(bfind_u32(FindResult::Position, 0x00010000), 16u);
  EXPECT_EQ(bfind_u32(FindResult::ShiftAmount, 0x00010000), 15u);
  EXPECT_EQ(bfind_s32(FindResult::Position, 0xffffffff), 0xffffffffu);
  EXPECT_EQ(bfind_s32(FindResult::Position, 0xffff0000), 15u);
  EXPECT_EQ(bfind_s64(FindResult::ShiftAmount, 1), 63u);
  EXPECT_EQ(bfind_u64(FindResult::Position, 1ull << 40), 40u);
  EXPECT_EQ(clz_b32(0), 32u);
  EXPECT_EQ(clz_b64(1), 63u);
  EXPECT_EQ(popc_b64(0xf0f0), 8u);
  EXPECT_EQ(brev_b32(0x00000001), 0x80000000u);
  EXPECT_EQ(brev_b32(0x12345678), 0x1e6a2c48u);
  EXPECT_EQ(brev_b64(1), 1ull << 63);
  EXPECT_EQ(fns_b32(0b1011, 0, 2), 1u);
  EXPECT_EQ(fns_b32(0b1011, 3, -2), 1u);
  EXPECT_EQ(fns_b32(0b1011, 2, 0), 0xffffffffu);
  EXPECT_EQ(fns_b32(0b1011, 3, 0), 3u);
  EXPECT_EQ(fns_b32(0b1011, 0, 4), 0xffffffffu);
}

uint32_t bmsk_definition(bool clamp, uint32_t a, uint32_t b) {
  uint32_t from = a & 31, width = b & 31, sum = from + width;
  uint32_t mask0 = ~0u << from;
  uint32_t mask1 = ~0u << (sum & 31);
  bool position_overflow = clamp && a >= 32, width_overflow = clamp && b >= 32;
  if (position_overflow) mask0 = 0;
  if (sum >= 32 || position_overflow || width_overflow)
    mask1 = 0;
  else if (width == 0)
    mask1 = ~0u;
  return mask0 & ~mask1;
}

TEST(IntegerOps, MasksAndExtensions) {
  for (uint32_t a = 0; a < 40; ++a) {
    for (uint32_t b = 0; b < 40; ++b) {
      ASSERT_EQ(bmsk_b32(ShiftMode::Wrap, a, b), bmsk_definition(false, a, b)) << a << " " << b;
      ASSERT_EQ(bmsk_b32(ShiftMode::Clamp, a, b), bmsk_definition(true, a, b)) << a << " " << b;
    }
  }
  EXPECT_EQ(szext_s32(ShiftMode::Wrap, 0x80, 8), 0xffffff80u);
  EXPECT_EQ(szext_u32(ShiftMode::Wrap, 0xfff, 8), 0xffu);
  EXPECT_EQ(szext_s32(ShiftMode::Wrap, 0x80, 40), 0xffffff80u);
  EXPECT_EQ(szext_s32(ShiftMode::Clamp, 0x80, 40), 0x80u);
  EXPECT_EQ(szext_u32(ShiftMode::Clamp, 0xffffffff, 0), 0u);
}

TEST(IntegerOps, LogicAndPermute) {
  RandomBits random(22);
  for (int i = 0; i < 300; ++i) {
    uint32_t a = static_cast<uint32_t>(random.next()), b = static_cast<uint32_t>(random.next());
    uint32_t c = static_cast<uint32_t>(random.next());
    for (uint32_t table = 0; table < 256; ++table) {
      uint32_t expected = 0;
      for (uint32_t k = 0; k < 32; ++k) {
        uint32_t index =
            (uint32_t{bit(a, k)} << 2) | (uint32_t{bit(b, k)} << 1) | uint32_t{bit(c, k)};
        expected |= uint32_t{bit(table, index)} << k;
      }
      ASSERT_EQ(lop3(a, b, c, static_cast<uint8_t>(table)), expected);
    }
  }
  EXPECT_EQ(lop3(0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0x80), 0x80808080u);
  constexpr uint32_t kA = 0x83020100, kB = 0x07060584;
  EXPECT_EQ(prmt(PermuteMode::Index, kA, kB, 0x7531), 0x07058301u);
  EXPECT_EQ(prmt(PermuteMode::Index, kA, kB, 0x000b), 0x000000ffu);  // sign of byte 3
  EXPECT_EQ(prmt(PermuteMode::Index, kA, kB, 0xc000), 0xff000000u);
  EXPECT_EQ(prmt(PermuteMode::F4e, kA, kB, 1), 0x84830201u);
  EXPECT_EQ(prmt(PermuteMode::B4e, kA, kB, 1), 0x06070001u);
  EXPECT_EQ(prmt(PermuteMode::Rc8, kA, kB, 2), 0x02020202u);
  EXPECT_EQ(prmt(PermuteMode::Ecl, kA, kB, 2), 0x83020202u);
  EXPECT_EQ(prmt(PermuteMode::Ecr, kA, kB, 2), 0x02020100u);
  EXPECT_EQ(prmt(PermuteMode::Rc16, kA, kB, 3), 0x83028302u);
}

TEST(IntegerOps, ShiftsClampAndFunnel) {
  EXPECT_EQ(shl_b32(1, 32), 0u);
  EXPECT_EQ(shr_s32(0x80000000, 99), 0xffffffffu);
  EXPECT_EQ(shr_u64(~0ull, 64), 0ull);
  EXPECT_EQ(shr_s16(0x8000, 20), 0xffff);
  EXPECT_EQ(shf_left(ShiftMode::Wrap, 0x80000000, 0x1, 33), 0x3u);
  EXPECT_EQ(shf_left(ShiftMode::Clamp, 0x12345678, 0x1, 33), 0x12345678u);
  EXPECT_EQ(shf_right(ShiftMode::Wrap, 0x2, 0x1, 1), 0x80000001u);
  EXPECT_EQ(shf_right(ShiftMode::Clamp, 0x2, 0x9abcdef0, 40), 0x9abcdef0u);
}

TEST(IntegerOps, WideProductsAndSaturation) {
  EXPECT_EQ(mul_hi_s32(0x80000000, 0x80000000), 0x40000000u);
  EXPECT_EQ(mul_hi_u32(0xffffffff, 0xffffffff), 0xfffffffeu);
  EXPECT_EQ(mul_hi_s64(~0ull, 2), ~0ull);
  EXPECT_EQ(mul_hi_u64(~0ull, ~0ull), ~0ull - 1);
  EXPECT_EQ(mul_hi_s64(0x8000000000000000, 0x8000000000000000), 0x4000000000000000ull);
  EXPECT_EQ(mul_wide_s32(0xffffffff, 0xffffffff), 1ull);
  EXPECT_EQ(mul_wide_s16(0xffff, 2), 0xfffffffeu);
  EXPECT_EQ(mul24_hi_u32(0xff800000, 0x00ffffff), 0x7fffff80u);
  EXPECT_EQ(mul24_lo_s32(0x00ffffff, 3), 0xfffffffdu);
  EXPECT_EQ(add_sat_s32(0x7fffffff, 1), 0x7fffffffu);
  EXPECT_EQ(sub_sat_s32(0x80000000, 1), 0x80000000u);
  EXPECT_EQ(mad_hi_sat_s32(0x7fffffff, 0x7fffffff, 0x70000000), 0x7fffffffu);
  EXPECT_EQ(sad_s32(0xfffffffe, 3, 10), 15u);
  EXPECT_EQ(sad_u32(0xfffffffe, 3, 0), 0xfffffffbu);
  EXPECT_EQ(div_s32(0x80000000, 0xffffffff), 0x80000000u);
  EXPECT_EQ(rem_s64(0x8000000000000000, ~0ull), 0ull);
  EXPECT_EQ(div_u32(5, 0), 0xffffffffu);
  EXPECT_EQ(rem_s32(5, 0), 0xffffffffu);
  EXPECT_EQ(rem_u64(5, 0), ~0ull);
  EXPECT_EQ(bfe_u32(0x80, 0x107, 1), 1u);           // the low byte of the position counts
  EXPECT_EQ(bfe_s64(1ull << 63, 0x100, 1), ~0ull);  // clamped beyond the word
  EXPECT_EQ(abs_s32(0x80000000), 0x80000000u);
}

TEST(IntegerOps, CarriesChainAcrossWords) {
  RandomBits random(23);
  for (int i = 0; i < 20000; ++i) {
    uint64_t a = random.next(), b = random.next();
    if (i % 4 == 0) a |= 0xffffffff;
    auto low = add_carry<uint32_t>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), 0);
    auto high = add_carry<uint32_t>(static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b >> 32),
                                    low.carry);
    ASSERT_EQ((uint64_t{high.value} << 32) | low.value, a + b);
    ASSERT_EQ(high.carry, a + b < a ? 1u : 0u);
    auto low_difference =
        sub_borrow<uint32_t>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), 0);
    auto high_difference = sub_borrow<uint32_t>(
        static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b >> 32), low_difference.carry);
    ASSERT_EQ((uint64_t{high_difference.value} << 32) | low_difference.value, a - b);
    ASSERT_EQ(high_difference.carry, a < b ? 1u : 0u);
  }
}

TEST(IntegerOps, PackedDotProductsAndHalves) {
  EXPECT_EQ(dp4a(Sign::Signed, Sign::Signed, 0xff020380, 0x01ff0280, 5), 16384u + 6 - 2 - 1 + 5);
  EXPECT_EQ(dp4a(Sign::Unsigned, Sign::Signed, 0x000000ff, 0x000000ff, 0),
            static_cast<uint32_t>(-255));
  EXPECT_EQ(dp2a_lo(Sign::Signed, Sign::Unsigned, 0xffff0002, 0x0403ff01, 0),
            static_cast<uint32_t>(2 - 255));
  EXPECT_EQ(dp2a_hi(Sign::Signed, Sign::Unsigned, 0xffff0002, 0x0403ff01, 0),
            static_cast<uint32_t>(6 - 4));
  EXPECT_EQ(add_u16x2(0x0001ffff, 0x00010001), 0x00020000u);
  EXPECT_EQ(sub_u16x2(0x00010000, 0x00010001), 0x0000ffffu);
  EXPECT_EQ(min_s16x2(0xffff0001, 0x0001ffff), 0xffffffffu);
  EXPECT_EQ(max_u16x2(0xffff0001, 0x0001ffff), 0xffffffffu);
  EXPECT_EQ(max_s16x2(0x80000001, 0x00010002), 0x00010002u);
  EXPECT_EQ(min_u16x2(0x80000001, 0x00010002), 0x00010001u);
  EXPECT_EQ(relu_s16x2(0x80007fff), 0x00007fffu);
  EXPECT_EQ(relu_s32(0x80000000), 0u);
}

}  // namespace
}  // namespace ptxb::emu::arith
