// Owns the operands of the captured tensor instructions: the same on the GPU that answered and in
// the test that replays. Never computes a result. The instructions and their hashes:
// hardware_cases.def.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "emu/arith/random_bits.h"

namespace ptxb::emu::arith::hardware {

enum class Element : uint8_t { F16, BF16, TF32, E4M3, E5M2, S8, U8, S4, U4, B1 };
enum class Accumulator : uint8_t { F32, F16, S32 };

inline constexpr int kClasses = 8;      // of operands: see exponent_of
inline constexpr int kMmaRuns = 1200;   // mma.sync of each case
inline constexpr int kWgmmaRuns = 320;  // wgmma of each case
inline constexpr int kLayoutRuns = 200;

inline bool is_integer(Element e) { return e >= Element::S8; }
inline int bits_of(Element e) { return e == Element::TF32 ? 32 : e <= Element::BF16 ? 16 : 8; }

struct Fields {
  int exponent_bits, fraction_bits;
};
inline Fields fields_of(Element e) {
  switch (e) {
    case Element::F16:
      return {5, 10};
    case Element::BF16:
      return {8, 7};
    case Element::TF32:
      return {8, 23};
    case Element::E4M3:
      return {4, 3};
    default:
      return {5, 2};
  }
}

// The exponent field of a random element: 0 narrow range, 1 wide range, 2 many subnormals, 5 any
// exponent, 6 products near the bottom of f32, 7 near the top, others a middle range.
inline uint32_t exponent_of(uint32_t top, int operand_class, RandomBits& random) {
  uint32_t bias = top >> 1;
  switch (operand_class) {
    case 0:
      return bias - 2 + random.below(4);
    case 1: {
      uint32_t width = top > 40 ? 40 : top - 2;
      return bias - width / 2 + random.below(width);
    }
    case 2:
      return random.below(3) == 0 ? 0 : bias - 6 + random.below(8);
    case 5:
      return random.below(top);
    case 6:
      return top > 200 ? 44 + random.below(24) : random.below(4);
    case 7:
      return top > 200 ? 180 + random.below(20) : top - 1 - random.below(3);
    default:
      return bias - 3 + random.below(6);
  }
}

inline uint32_t float_element(Element e, RandomBits& random, int operand_class) {
  if (operand_class == 6 && random.below(3) == 0) return 0;
  Fields f = fields_of(e);
  uint32_t top = (1u << f.exponent_bits) - 1;
  uint32_t sign = static_cast<uint32_t>(random.next() & 1) << (f.exponent_bits + f.fraction_bits);
  uint32_t fraction = static_cast<uint32_t>(random.next()) & ((1u << f.fraction_bits) - 1);
  if (operand_class == 3 && random.below(2) != 0) return random.below(2) != 0 ? 0 : sign;
  if (operand_class == 4 && random.below(40) == 0) {  // infinities and NaN
    uint32_t infinity = e == Element::E4M3 ? (1u << f.fraction_bits) - 1 : 0;
    return sign | (top << f.fraction_bits) | (random.below(3) == 0 ? fraction : infinity);
  }
  return sign | (exponent_of(top, operand_class, random) << f.fraction_bits) | fraction;
}

inline uint32_t operand_register(Element e, RandomBits& random, int operand_class) {
  if (is_integer(e)) {
    uint32_t word = static_cast<uint32_t>(random.next());
    return operand_class % 4 == 1 ? 0x7f7f7f7fu : operand_class % 4 == 2 ? 0x80808080u : word;
  }
  uint32_t packed = 0;
  for (int i = 0; i < 32; i += bits_of(e)) packed |= float_element(e, random, operand_class) << i;
  return packed;
}

inline uint32_t accumulator_register(Accumulator accumulator, RandomBits& random,
                                     int operand_class) {
  uint32_t word;
  switch (accumulator) {
    case Accumulator::S32:
      word = static_cast<uint32_t>(random.next());
      if (random.below(3) != 0) return word;
      return random.below(2) != 0 ? 0x7fffffffu - random.below(300000)
                                  : 0x80000000u + random.below(300000);
    case Accumulator::F16:
      word = float_element(Element::F16, random, operand_class) << 16;
      return word | float_element(Element::F16, random, operand_class == 3 ? 0 : operand_class);
    default:
      break;
  }
  if (operand_class == 3 && random.below(2) != 0) return random.below(2) != 0 ? 0 : 0x80000000u;
  if (operand_class == 6 && random.below(2) != 0) {
    return random.below(2) != 0 ? 0 : static_cast<uint32_t>(random.next() & 0x8000000fu);
  }
  if (operand_class == 6 || operand_class == 7) {
    word = static_cast<uint32_t>(random.next() & 0x80000000u);
    word |= (operand_class == 6 ? random.below(30) : 240 + random.below(15)) << 23;
    return word | (static_cast<uint32_t>(random.next()) & 0x7fffffu);
  }
  return float_element(Element::TF32, random, operand_class);
}

struct MmaOperandRegisters {
  uint32_t a[4][32], b[2][32], c[4][32];
};
inline void fill_mma(MmaOperandRegisters& r, int index, int run, Element a, Element b,
                     Accumulator accumulator) {
  RandomBits random(static_cast<uint64_t>(500000 + index * 10000 + run));
  int operand_class = run % kClasses;
  for (auto& registers : r.a)
    for (uint32_t& x : registers) x = operand_register(a, random, operand_class);
  for (auto& registers : r.b) {
    for (uint32_t& x : registers)
      x = operand_register(b, random, operand_class == 3 ? 0 : operand_class);
  }
  for (auto& registers : r.c)
    for (uint32_t& x : registers) x = accumulator_register(accumulator, random, operand_class);
}

// A: 64 rows of 32 bytes, K-major without swizzle, at image[0]; B: 16 rows at image[512]. LBO 128,
// SBO 256 bytes.
struct WgmmaOperands {
  uint32_t image[640];
  uint32_t d[32][32];  // [8 * warp + register][lane]
};
inline void fill_wgmma(WgmmaOperands& w, int index, int run, Element a, Element b,
                       Accumulator accumulator) {
  RandomBits random(static_cast<uint64_t>(900000 + index * 10000 + run));
  int operand_class = run % kClasses;
  for (int i = 0; i < 512; ++i) w.image[i] = operand_register(a, random, operand_class);
  for (int i = 512; i < 640; ++i)
    w.image[i] = operand_register(b, random, operand_class == 3 ? 0 : operand_class);
  for (auto& registers : w.d)
    for (uint32_t& x : registers) x = accumulator_register(accumulator, random, operand_class);
}
inline bool keeps_d(int run) { return run % 16 != 15; }  // scale-d

struct LayoutDescriptor {
  uint32_t start, leading_bytes, stride_bytes, base_offset, mode;
};
inline uint64_t encode(const LayoutDescriptor& d, uint32_t window) {
  return uint64_t{((d.start + window) & 0x3ffffu) >> 4} | (uint64_t{d.leading_bytes >> 4} << 16) |
         (uint64_t{d.stride_bytes >> 4} << 32) | (uint64_t{d.base_offset} << 49) |
         (uint64_t{d.mode} << 62);
}

// Kinds: 0 canonical, 1 start inside an atom's row, 2 strides of any multiple of 16, 3 pattern off
// its boundary with the matching base offset, 4 with any base offset.
inline LayoutDescriptor random_layout(RandomBits& random, int kind, uint32_t region) {
  LayoutDescriptor d{};
  d.mode = random.below(4);
  uint32_t width = d.mode == 1 ? 128 : d.mode == 2 ? 64 : d.mode == 3 ? 32 : 16;
  d.start = region + random.below(4) * 1024;
  d.leading_bytes = (1 + random.below(4)) * (width * 8);
  d.stride_bytes = (1 + random.below(4)) * (width * 8);
  if (kind == 1) d.start += random.below(width / 16) * 16;
  if (kind == 2) {
    d.leading_bytes = (1 + random.below(100)) * 16;
    d.stride_bytes = (1 + random.below(100)) * 16;
  }
  if (kind == 3 || kind == 4) d.start += random.below(8) * 128;
  if (kind == 3) d.base_offset = (d.start >> 7) & 7;
  if (kind == 4) d.base_offset = random.below(8);
  return d;
}

struct LayoutOperands {
  LayoutDescriptor a, b;
};
inline LayoutOperands layout_operands(int index, int run) {
  RandomBits random(static_cast<uint64_t>(2000000 + index * 10000 + run));
  LayoutOperands o{{0, 128, 256, 0, 0}, {32768, 128, 256, 0, 0}};
  if ((index & 1) != 0) o.a = {0, 1024, 128, 0, 0};
  if ((index & 2) != 0) o.b = {32768, 1024, 128, 0, 0};
  int kind = run / 2 % 5;
  if (run % 2 != 0)
    o.a = random_layout(random, kind, 0);
  else
    o.b = random_layout(random, kind, 32768);
  return o;
}
inline constexpr uint32_t kLayoutWindow = 1024;  // where dynamic shared memory began
inline constexpr uint32_t kLayoutBytes = 65536;
inline std::vector<uint16_t> layout_image() {  // small integers: sums are exact
  RandomBits random(77);
  std::vector<uint16_t> image(kLayoutBytes / 2);
  for (uint16_t& x : image) {
    float value = static_cast<float>(static_cast<int>(random.below(255)) - 127);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    x = static_cast<uint16_t>(bits >> 16);
  }
  return image;
}

inline constexpr uint64_t kHashStart = 0xcbf29ce484222325ull;
inline uint64_t hash_words(uint64_t hash, const uint32_t* words, int count) {
  for (int i = 0; i < count; ++i) hash = (hash ^ words[i]) * 0x100000001b3ull;
  return hash;
}

}  // namespace ptxb::emu::arith::hardware
