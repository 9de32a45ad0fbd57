// Owns the integer and bit operations of PTX that are more than one C++ operator. Pure functions on
// unsigned bit patterns. Never knows registers, types or opcodes. Source: PTX ISA 9.7.1, 9.7.2,
// 9.7.8, 9.7.9.7.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace ptxb::emu::arith {

// mul.hi; the low halves are plain unsigned multiplication.
inline uint32_t mul_hi_u32(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((uint64_t{a} * b) >> 32);
}
inline uint32_t mul_hi_s32(uint32_t a, uint32_t b) {
  int64_t product = int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b);
  return static_cast<uint32_t>(static_cast<uint64_t>(product) >> 32);
}
inline uint16_t mul_hi_u16(uint16_t a, uint16_t b) {
  return static_cast<uint16_t>((uint32_t{a} * b) >> 16);
}
inline uint16_t mul_hi_s16(uint16_t a, uint16_t b) {
  int32_t product = int32_t{static_cast<int16_t>(a)} * static_cast<int16_t>(b);
  return static_cast<uint16_t>(static_cast<uint32_t>(product) >> 16);
}
uint64_t mul_hi_u64(uint64_t a, uint64_t b);
uint64_t mul_hi_s64(uint64_t a, uint64_t b);
// mul.wide / the product of mad.wide.
inline uint64_t mul_wide_u32(uint32_t a, uint32_t b) { return uint64_t{a} * b; }
inline uint64_t mul_wide_s32(uint32_t a, uint32_t b) {
  return static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b));
}
inline uint32_t mul_wide_u16(uint16_t a, uint16_t b) { return uint32_t{a} * b; }
inline uint32_t mul_wide_s16(uint16_t a, uint16_t b) {
  return static_cast<uint32_t>(int32_t{static_cast<int16_t>(a)} * static_cast<int16_t>(b));
}
uint32_t mul24_lo_u32(uint32_t a, uint32_t b);
uint32_t mul24_lo_s32(uint32_t a, uint32_t b);
uint32_t mul24_hi_u32(uint32_t a, uint32_t b);  // bits 47..16 of the product
uint32_t mul24_hi_s32(uint32_t a, uint32_t b);

// add.sat.s32 / sub.sat.s32 / mad.hi.sat.s32's final add.
uint32_t add_sat_s32(uint32_t a, uint32_t b);
uint32_t sub_sat_s32(uint32_t a, uint32_t b);
uint32_t mad_hi_sat_s32(uint32_t a, uint32_t b, uint32_t c);

// Division by zero gives all ones, and so does its remainder (unspecified in PTX; seen on an H200).
// The most negative value over -1 wraps.
uint32_t div_u32(uint32_t a, uint32_t b);
uint32_t div_s32(uint32_t a, uint32_t b);
uint64_t div_u64(uint64_t a, uint64_t b);
uint64_t div_s64(uint64_t a, uint64_t b);
uint32_t rem_u32(uint32_t a, uint32_t b);
uint32_t rem_s32(uint32_t a, uint32_t b);
uint64_t rem_u64(uint64_t a, uint64_t b);
uint64_t rem_s64(uint64_t a, uint64_t b);

inline uint32_t abs_s32(uint32_t a) { return (a & 0x80000000u) ? 0u - a : a; }
inline uint64_t abs_s64(uint64_t a) { return (a >> 63) ? 0u - a : a; }
uint32_t sad_u32(uint32_t a, uint32_t b, uint32_t c);  // c + |a - b|
uint32_t sad_s32(uint32_t a, uint32_t b, uint32_t c);
uint64_t sad_u64(uint64_t a, uint64_t b, uint64_t c);
uint64_t sad_s64(uint64_t a, uint64_t b, uint64_t c);

// shl/shr clamp the amount: at or beyond the width the result is 0 (or the sign).
inline uint32_t shl_b32(uint32_t a, uint32_t amount) { return amount > 31 ? 0 : a << amount; }
inline uint32_t shr_u32(uint32_t a, uint32_t amount) { return amount > 31 ? 0 : a >> amount; }
inline uint32_t shr_s32(uint32_t a, uint32_t amount) {
  return static_cast<uint32_t>(static_cast<int32_t>(a) >> (amount > 31 ? 31 : amount));
}
inline uint64_t shl_b64(uint64_t a, uint32_t amount) { return amount > 63 ? 0 : a << amount; }
inline uint64_t shr_u64(uint64_t a, uint32_t amount) { return amount > 63 ? 0 : a >> amount; }
inline uint64_t shr_s64(uint64_t a, uint32_t amount) {
  return static_cast<uint64_t>(static_cast<int64_t>(a) >> (amount > 63 ? 63 : amount));
}
inline uint16_t shl_b16(uint16_t a, uint32_t amount) {
  return amount > 15 ? uint16_t{0} : static_cast<uint16_t>(a << amount);
}
inline uint16_t shr_u16(uint16_t a, uint32_t amount) {
  return amount > 15 ? uint16_t{0} : static_cast<uint16_t>(a >> amount);
}
inline uint16_t shr_s16(uint16_t a, uint32_t amount) {
  return static_cast<uint16_t>(static_cast<int16_t>(a) >> (amount > 15 ? 15 : amount));
}
enum class ShiftMode : uint8_t { Clamp, Wrap };
uint32_t shf_left(ShiftMode mode, uint32_t a, uint32_t b, uint32_t c);  // b:a is the 64-bit source
uint32_t shf_right(ShiftMode mode, uint32_t a, uint32_t b, uint32_t c);

inline uint32_t popc_b32(uint32_t a) { return static_cast<uint32_t>(std::popcount(a)); }
inline uint32_t popc_b64(uint64_t a) { return static_cast<uint32_t>(std::popcount(a)); }
inline uint32_t clz_b32(uint32_t a) { return static_cast<uint32_t>(std::countl_zero(a)); }
inline uint32_t clz_b64(uint64_t a) { return static_cast<uint32_t>(std::countl_zero(a)); }
uint32_t brev_b32(uint32_t a);
uint64_t brev_b64(uint64_t a);
uint32_t bfe_u32(uint32_t a, uint32_t position, uint32_t length);
uint32_t bfe_s32(uint32_t a, uint32_t position, uint32_t length);
uint64_t bfe_u64(uint64_t a, uint32_t position, uint32_t length);
uint64_t bfe_s64(uint64_t a, uint32_t position, uint32_t length);
uint32_t bfi_b32(uint32_t a, uint32_t b, uint32_t position, uint32_t length);
uint64_t bfi_b64(uint64_t a, uint64_t b, uint32_t position, uint32_t length);
enum class FindResult : uint8_t { Position, ShiftAmount };
uint32_t bfind_u32(FindResult result, uint32_t a);
uint32_t bfind_s32(FindResult result, uint32_t a);
uint32_t bfind_u64(FindResult result, uint64_t a);
uint32_t bfind_s64(FindResult result, uint64_t a);
uint32_t fns_b32(uint32_t mask, uint32_t base, int32_t offset);
uint32_t bmsk_b32(ShiftMode mode, uint32_t a, uint32_t b);
uint32_t szext_u32(ShiftMode mode, uint32_t a, uint32_t b);
uint32_t szext_s32(ShiftMode mode, uint32_t a, uint32_t b);

// The table is lop3's immLut: bit (4a + 2b + c) of it is the result for one bit position.
uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint8_t table);
enum class PermuteMode : uint8_t { Index, F4e, B4e, Rc8, Ecl, Ecr, Rc16 };
uint32_t prmt(PermuteMode mode, uint32_t a, uint32_t b, uint32_t c);

enum class Sign : uint8_t { Unsigned, Signed };
uint32_t dp4a(Sign a_sign, Sign b_sign, uint32_t a, uint32_t b, uint32_t c);
uint32_t dp2a_lo(Sign a_sign, Sign b_sign, uint32_t a, uint32_t b, uint32_t c);
uint32_t dp2a_hi(Sign a_sign, Sign b_sign, uint32_t a, uint32_t b, uint32_t c);

// add.cc, addc, sub.cc, subc: carry is 0 or 1; for subtraction it is the borrow (the CC register as
// PTX ISA 9.7.2 has it).
template <class Word>
struct Carried {
  Word value;
  uint32_t carry;
};
template <class Word>
Carried<Word> add_carry(Word a, Word b, uint32_t carry_in) {
  Word partial = static_cast<Word>(a + b);
  Word sum = static_cast<Word>(partial + carry_in);
  return {sum, uint32_t{partial < a} | uint32_t{sum < partial}};
}
template <class Word>
Carried<Word> sub_borrow(Word a, Word b, uint32_t borrow_in) {
  Word partial = static_cast<Word>(a - b);
  return {static_cast<Word>(partial - borrow_in), uint32_t{a < b} | uint32_t{partial < borrow_in}};
}

// Packed 16-bit pairs.
uint32_t add_u16x2(uint32_t a, uint32_t b);
uint32_t sub_u16x2(uint32_t a, uint32_t b);
uint32_t min_u16x2(uint32_t a, uint32_t b);
uint32_t max_u16x2(uint32_t a, uint32_t b);
uint32_t min_s16x2(uint32_t a, uint32_t b);
uint32_t max_s16x2(uint32_t a, uint32_t b);
// .relu of min/max .s32 and .s16x2, applied to the result.
inline uint32_t relu_s32(uint32_t a) { return (a & 0x80000000u) ? 0 : a; }
uint32_t relu_s16x2(uint32_t a);

}  // namespace ptxb::emu::arith
