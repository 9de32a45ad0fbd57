// Owns the longer integer and bit operations (see integer_ops.h).
// Never overflows signed arithmetic: everything is done on unsigned words or in a wider type.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/integer_ops.h"

#include <array>
#include <cstddef>
#include <limits>

#include "emu/arith/soft_float.h"

namespace ptxb::emu::arith {
namespace {

int32_t as_signed(uint32_t a) { return static_cast<int32_t>(a); }
int64_t as_signed(uint64_t a) { return static_cast<int64_t>(a); }

uint32_t saturate_s32(int64_t value) {
  if (value > std::numeric_limits<int32_t>::max()) return 0x7fffffffu;
  if (value < std::numeric_limits<int32_t>::min()) return 0x80000000u;
  return static_cast<uint32_t>(value);
}

int64_t sign_extend_24(uint32_t a) { return as_signed(a << 8) >> 8; }

// PTX restricts position and length to 0..255. Beyond, 32-bit instructions use the low byte
// (9.7.1.19) and the 64-bit sequences of sm_90 clamp (seen on an H200).
template <class Word>
uint32_t restricted(uint32_t amount) {
  return sizeof(Word) == 4 ? amount & 0xff : amount > 0xff ? 0xff : amount;
}

template <class Word>
Word extract_field(Word a, uint32_t position, uint32_t length, Sign sign) {
  constexpr uint32_t kWidth = sizeof(Word) * 8;
  position = restricted<Word>(position);
  length = restricted<Word>(length);
  if (length == 0) return 0;
  uint32_t last = position + length - 1 < kWidth - 1 ? position + length - 1 : kWidth - 1;
  Word fill =
      sign == Sign::Signed && ((a >> last) & 1) != 0 ? static_cast<Word>(~Word{0}) : Word{0};
  if (position >= kWidth) return fill;
  Word field = static_cast<Word>(a >> position);
  uint32_t present = kWidth - position < length ? kWidth - position : length;
  if (present >= kWidth) return field;
  Word mask = static_cast<Word>((Word{1} << present) - 1);
  return static_cast<Word>((field & mask) | (fill & static_cast<Word>(~mask)));
}

template <class Word>
Word insert_field(Word a, Word b, uint32_t position, uint32_t length) {
  constexpr uint32_t kWidth = sizeof(Word) * 8;
  position = restricted<Word>(position);
  length = restricted<Word>(length);
  if (length == 0 || position >= kWidth) return b;
  Word mask =
      length >= kWidth ? static_cast<Word>(~Word{0}) : static_cast<Word>((Word{1} << length) - 1);
  mask = static_cast<Word>(mask << position);
  return static_cast<Word>((b & static_cast<Word>(~mask)) |
                           (static_cast<Word>(a << position) & mask));
}

template <class Word>
uint32_t find_bit(FindResult result, Word a) {
  if (a == 0) return 0xffffffffu;
  uint32_t leading = static_cast<uint32_t>(std::countl_zero(a));
  return result == FindResult::ShiftAmount ? leading
                                           : static_cast<uint32_t>(sizeof(Word) * 8 - 1) - leading;
}

int32_t extend_byte(Sign sign, uint32_t word, int index) {
  uint32_t byte = (word >> (8 * index)) & 0xff;
  return sign == Sign::Signed ? static_cast<int8_t>(byte) : static_cast<int32_t>(byte);
}
int32_t extend_half(Sign sign, uint32_t word, int index) {
  uint32_t half = (word >> (16 * index)) & 0xffff;
  return sign == Sign::Signed ? static_cast<int16_t>(half) : static_cast<int32_t>(half);
}

uint32_t dot_halves(Sign a_sign, Sign b_sign, uint32_t a, uint32_t b, uint32_t c, int first_byte) {
  for (int i = 0; i < 2; ++i) {
    int64_t product = int64_t{extend_half(a_sign, a, i)} * extend_byte(b_sign, b, first_byte + i);
    c += static_cast<uint32_t>(product);
  }
  return c;
}

template <class Choose>
uint32_t by_halves(uint32_t a, uint32_t b, Choose choose) {
  uint32_t low = choose(static_cast<uint16_t>(a), static_cast<uint16_t>(b));
  uint32_t high = choose(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16));
  return (low & 0xffff) | (high << 16);
}

// Byte selectors of prmt's named modes, lowest result byte in the lowest nibble (PTX ISA 9.7.9.7,
// table of modes).
constexpr std::array<std::array<uint16_t, 4>, 6> kPermuteModes = {{
    {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
    {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
    {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
    {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
    {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
    {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
}};

}  // namespace

uint64_t mul_hi_u64(uint64_t a, uint64_t b) { return static_cast<uint64_t>((Wide{a} * b) >> 64); }
uint64_t mul_hi_s64(uint64_t a, uint64_t b) {
  uint64_t high = mul_hi_u64(a, b);
  if (as_signed(a) < 0) high -= b;
  if (as_signed(b) < 0) high -= a;
  return high;
}

uint32_t mul24_lo_u32(uint32_t a, uint32_t b) { return (a & 0xffffff) * (b & 0xffffff); }
uint32_t mul24_lo_s32(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(sign_extend_24(a) * sign_extend_24(b));
}
uint32_t mul24_hi_u32(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((uint64_t{a & 0xffffff} * (b & 0xffffff)) >> 16);
}
uint32_t mul24_hi_s32(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((sign_extend_24(a) * sign_extend_24(b)) >> 16);
}

uint32_t add_sat_s32(uint32_t a, uint32_t b) {
  return saturate_s32(int64_t{as_signed(a)} + as_signed(b));
}
uint32_t sub_sat_s32(uint32_t a, uint32_t b) {
  return saturate_s32(int64_t{as_signed(a)} - as_signed(b));
}
uint32_t mad_hi_sat_s32(uint32_t a, uint32_t b, uint32_t c) {
  return add_sat_s32(mul_hi_s32(a, b), c);
}

uint32_t div_u32(uint32_t a, uint32_t b) { return b == 0 ? ~uint32_t{0} : a / b; }
uint32_t div_s32(uint32_t a, uint32_t b) {
  if (b == 0) return ~uint32_t{0};
  return static_cast<uint32_t>(int64_t{as_signed(a)} / as_signed(b));
}
uint64_t div_u64(uint64_t a, uint64_t b) { return b == 0 ? ~uint64_t{0} : a / b; }
uint64_t div_s64(uint64_t a, uint64_t b) {
  if (b == 0) return ~uint64_t{0};
  if (b == ~uint64_t{0}) return 0 - a;
  return static_cast<uint64_t>(as_signed(a) / as_signed(b));
}
uint32_t rem_u32(uint32_t a, uint32_t b) { return b == 0 ? ~b : a % b; }
uint32_t rem_s32(uint32_t a, uint32_t b) {
  if (b == 0) return ~b;
  return static_cast<uint32_t>(int64_t{as_signed(a)} % as_signed(b));
}
uint64_t rem_u64(uint64_t a, uint64_t b) { return b == 0 ? ~b : a % b; }
uint64_t rem_s64(uint64_t a, uint64_t b) {
  if (b == 0) return ~b;
  if (b == ~uint64_t{0}) return 0;
  return static_cast<uint64_t>(as_signed(a) % as_signed(b));
}

uint32_t sad_u32(uint32_t a, uint32_t b, uint32_t c) { return c + (a < b ? b - a : a - b); }
uint32_t sad_s32(uint32_t a, uint32_t b, uint32_t c) {
  return c + (as_signed(a) < as_signed(b) ? b - a : a - b);
}
uint64_t sad_u64(uint64_t a, uint64_t b, uint64_t c) { return c + (a < b ? b - a : a - b); }
uint64_t sad_s64(uint64_t a, uint64_t b, uint64_t c) {
  return c + (as_signed(a) < as_signed(b) ? b - a : a - b);
}

uint32_t shf_left(ShiftMode mode, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t amount = mode == ShiftMode::Wrap ? c & 31 : (c < 32 ? c : 32);
  uint64_t source = (uint64_t{b} << 32) | a;
  return static_cast<uint32_t>((source << amount) >> 32);
}
uint32_t shf_right(ShiftMode mode, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t amount = mode == ShiftMode::Wrap ? c & 31 : (c < 32 ? c : 32);
  uint64_t source = (uint64_t{b} << 32) | a;
  return static_cast<uint32_t>(source >> amount);
}

uint32_t brev_b32(uint32_t a) {
  a = ((a >> 1) & 0x55555555u) | ((a & 0x55555555u) << 1);
  a = ((a >> 2) & 0x33333333u) | ((a & 0x33333333u) << 2);
  a = ((a >> 4) & 0x0f0f0f0fu) | ((a & 0x0f0f0f0fu) << 4);
  a = ((a >> 8) & 0x00ff00ffu) | ((a & 0x00ff00ffu) << 8);
  return (a >> 16) | (a << 16);
}
uint64_t brev_b64(uint64_t a) {
  return (uint64_t{brev_b32(static_cast<uint32_t>(a))} << 32) |
         brev_b32(static_cast<uint32_t>(a >> 32));
}

uint32_t bfe_u32(uint32_t a, uint32_t position, uint32_t length) {
  return extract_field(a, position, length, Sign::Unsigned);
}
uint32_t bfe_s32(uint32_t a, uint32_t position, uint32_t length) {
  return extract_field(a, position, length, Sign::Signed);
}
uint64_t bfe_u64(uint64_t a, uint32_t position, uint32_t length) {
  return extract_field(a, position, length, Sign::Unsigned);
}
uint64_t bfe_s64(uint64_t a, uint32_t position, uint32_t length) {
  return extract_field(a, position, length, Sign::Signed);
}
uint32_t bfi_b32(uint32_t a, uint32_t b, uint32_t position, uint32_t length) {
  return insert_field(a, b, position, length);
}
uint64_t bfi_b64(uint64_t a, uint64_t b, uint32_t position, uint32_t length) {
  return insert_field(a, b, position, length);
}

uint32_t bfind_u32(FindResult result, uint32_t a) { return find_bit(result, a); }
uint32_t bfind_s32(FindResult result, uint32_t a) {
  return find_bit(result, as_signed(a) < 0 ? ~a : a);
}
uint32_t bfind_u64(FindResult result, uint64_t a) { return find_bit(result, a); }
uint32_t bfind_s64(FindResult result, uint64_t a) {
  return find_bit(result, as_signed(a) < 0 ? ~a : a);
}

uint32_t fns_b32(uint32_t mask, uint32_t base, int32_t offset) {
  int32_t position = static_cast<int32_t>(base & 31);
  if (offset == 0)
    return ((mask >> position) & 1) != 0 ? static_cast<uint32_t>(position) : 0xffffffffu;
  int32_t step = offset > 0 ? 1 : -1;
  int64_t left = offset > 0 ? int64_t{offset} : -int64_t{offset};
  for (; position >= 0 && position < 32; position += step) {
    if (((mask >> position) & 1) != 0 && --left == 0) return static_cast<uint32_t>(position);
  }
  return 0xffffffffu;
}

uint32_t bmsk_b32(ShiftMode mode, uint32_t a, uint32_t b) {
  if (mode == ShiftMode::Clamp && a >= 32) return 0;
  uint32_t from = a & 31;
  uint32_t width = mode == ShiftMode::Clamp && b >= 32 ? 32 : b & 31;
  uint64_t ones = (uint64_t{1} << width) - 1;
  return static_cast<uint32_t>(ones << from);
}

uint32_t szext_u32(ShiftMode mode, uint32_t a, uint32_t b) {
  if (mode == ShiftMode::Clamp && b >= 32) return a;
  return a & ((1u << (b & 31)) - 1);
}
uint32_t szext_s32(ShiftMode mode, uint32_t a, uint32_t b) {
  if (mode == ShiftMode::Clamp && b >= 32) return a;
  uint32_t bits = b & 31;
  if (bits == 0) return 0;
  return static_cast<uint32_t>(as_signed(a << (32 - bits)) >> (32 - bits));
}

uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint8_t table) {
  uint32_t result = 0;
  for (uint32_t index = 0; index < 8; ++index) {
    uint32_t selected =
        ((index & 4) != 0 ? a : ~a) & ((index & 2) != 0 ? b : ~b) & ((index & 1) != 0 ? c : ~c);
    result |= ((table >> index) & 1) != 0 ? selected : 0;
  }
  return result;
}

uint32_t prmt(PermuteMode mode, uint32_t a, uint32_t b, uint32_t c) {
  uint64_t source = (uint64_t{b} << 32) | a;
  uint32_t selectors =
      mode == PermuteMode::Index ? c : kPermuteModes[static_cast<size_t>(mode) - 1][c & 3];
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t selector = (selectors >> (4 * i)) & 0xf;
    uint32_t byte = static_cast<uint32_t>(source >> (8 * (selector & 7))) & 0xff;
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;  // replicate the sign
    result |= byte << (8 * i);
  }
  return result;
}

uint32_t dp4a(Sign a_sign, Sign b_sign, uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 4; ++i)
    c += static_cast<uint32_t>(extend_byte(a_sign, a, i) * extend_byte(b_sign, b, i));
  return c;
}
uint32_t dp2a_lo(Sign a_sign, Sign b_sign, uint32_t a, uint32_t b, uint32_t c) {
  return dot_halves(a_sign, b_sign, a, b, c, 0);
}
uint32_t dp2a_hi(Sign a_sign, Sign b_sign, uint32_t a, uint32_t b, uint32_t c) {
  return dot_halves(a_sign, b_sign, a, b, c, 2);
}

uint32_t add_u16x2(uint32_t a, uint32_t b) {
  return by_halves(a, b, [](uint16_t x, uint16_t y) { return uint32_t{x} + y; });
}
uint32_t sub_u16x2(uint32_t a, uint32_t b) {
  return by_halves(a, b, [](uint16_t x, uint16_t y) { return uint32_t{x} - y; });
}
uint32_t min_u16x2(uint32_t a, uint32_t b) {
  return by_halves(a, b, [](uint16_t x, uint16_t y) { return uint32_t{x < y ? x : y}; });
}
uint32_t max_u16x2(uint32_t a, uint32_t b) {
  return by_halves(a, b, [](uint16_t x, uint16_t y) { return uint32_t{x > y ? x : y}; });
}
uint32_t min_s16x2(uint32_t a, uint32_t b) {
  return by_halves(a, b, [](uint16_t x, uint16_t y) {
    return uint32_t{static_cast<int16_t>(x) < static_cast<int16_t>(y) ? x : y};
  });
}
uint32_t max_s16x2(uint32_t a, uint32_t b) {
  return by_halves(a, b, [](uint16_t x, uint16_t y) {
    return uint32_t{static_cast<int16_t>(x) > static_cast<int16_t>(y) ? x : y};
  });
}
uint32_t relu_s16x2(uint32_t a) {
  return by_halves(a, a, [](uint16_t x, uint16_t) { return (x & 0x8000) != 0 ? 0u : uint32_t{x}; });
}

}  // namespace ptxb::emu::arith
