// Owns the element types of tensor instructions: how a 32-bit register splits into elements and
// what each is worth. Never does arithmetic on them. Used by mma and wgmma alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emu/arith/mma.h"

namespace ptxb::emu::arith {

struct ElementInfo {
  int bits;             // in the register
  int fraction_bits;    // of the significand
  int lowest_exponent;  // of normal numbers; subnormals use it with a significand below one
};
constexpr ElementInfo element_info(MmaType type) {
  switch (type) {
    case MmaType::F16:
      return {16, 10, -14};
    case MmaType::BF16:
      return {16, 7, -126};
    case MmaType::TF32:
      return {32, 10, -126};
    case MmaType::E4M3:
      return {8, 3, -6};
    case MmaType::E5M2:
      return {8, 2, -14};
    case MmaType::S8:
    case MmaType::U8:
      return {8, 0, 0};
    case MmaType::S4:
    case MmaType::U4:
      return {4, 0, 0};
    case MmaType::B1:
      return {1, 0, 0};
    case MmaType::F64:
      return {64, 52, -1022};
  }
  return {32, 0, 0};
}
constexpr int elements_per_register(MmaType type) { return 32 / element_info(type).bits; }
constexpr bool is_small_float(MmaType type) {
  return type == MmaType::F16 || type == MmaType::BF16 || type == MmaType::TF32 ||
         type == MmaType::E4M3 || type == MmaType::E5M2;
}

// The value of element `index` (0 = lowest bits) of a register; tf32 ignores the low 13 bits.
float element_value(MmaType type, uint32_t register_bits, int index);
int32_t element_integer(MmaType type, uint32_t register_bits, int index);  // s8, u8, s4, u4

}  // namespace ptxb::emu::arith
