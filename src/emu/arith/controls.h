// Owns the modifier sets shared by all arithmetic of the emulator: rounding, flushing, saturation,
// comparison codes. Never names an opcode: the decoder maps PTX modifiers to these. Source: PTX ISA
// 6.5.2, 9.3.1, 9.7.3.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ptxb::emu::arith {

inline constexpr int kLanes = 32;

enum class Round : uint8_t {
  NearestEven,  // .rn, .rni
  TowardZero,   // .rz, .rzi
  Down,         // .rm, .rmi
  Up,           // .rp, .rpi
  NearestAway,  // .rna (tf32 only)
};

// Modifiers of add/sub/mul/fma/div/rcp/sqrt. A field the instruction does not have stays at its
// default.
struct FloatControl {
  Round round = Round::NearestEven;
  bool ftz = false;   // subnormal inputs and results become zeros of the same sign
  bool sat = false;   // clamp to [0, 1], NaN -> +0
  bool relu = false;  // f16/bf16: negative -> +0, NaN -> canonical NaN
  bool oob =
      false;  // f16/bf16 fma: an out-of-bounds NaN factor makes the result +0 (PTX ISA 5.5.3.3)
};

struct MinMaxControl {
  bool ftz = false;
  bool nan = false;          // .NaN: any NaN operand gives the canonical NaN
  bool xorsign_abs = false;  // .xorsign.abs
  bool abs = false;          // .abs of the three-operand form
};

// Float comparison codes of setp/set; the *u forms are true when an operand is NaN.
enum class FloatCompare : uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan
};

// Integer codes. Signedness comes from the operand type (lo, ls, hi, hs are lt, le, gt, ge of the
// unsigned type).
enum class IntCompare : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };

enum class FloatProperty : uint8_t {
  Finite,
  Infinite,
  Number,
  NotANumber,
  Normal,
  Subnormal
};  // testp

inline constexpr uint32_t kNanF32 = 0x7fffffffu;
inline constexpr uint64_t kNanF64 = 0xfff8000000000000ull;
inline constexpr uint16_t kNanHalf = 0x7fffu;         // f16 and bf16
inline constexpr uint16_t kOutOfBoundsNan = 0x7ff7u;  // f16 and bf16, either sign: see fma.oob

}  // namespace ptxb::emu::arith
