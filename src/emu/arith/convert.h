// Owns cvt: every scalar pair, the packed forms, the 8-, 6- and 4-bit floats, cvt.pack. Bit
// patterns in and out; never touches the host's rounding mode. Source: PTX ISA 9.7.9.21, 9.7.9.22,
// 5.2.3.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emu/arith/controls.h"
#include "emu/arith/float_ops.h"

namespace ptxb::emu::arith {

enum class Scalar : uint8_t { U8, U16, U32, U64, S8, S16, S32, S64, F16, BF16, F32, F64, TF32 };

struct ConvertControl {
  Round round = Round::NearestEven;
  bool integer_round =
      false;  // .rni/.rzi/.rmi/.rpi on float to float of one size: round to an integral value
  bool ftz = false;  // f32 inputs and results
  bool sat = false;  // integers: clamp to the destination; floats: [0, 1], NaN -> +0
  bool relu = false;
  bool satfinite = false;  // overflow -> largest finite value
};

// cvt.<to>.<from>: the low bits of `bits` are the source; the result is zero-extended for unsigned
// and float types and sign-extended to 64 bits for signed ones (take the low 32 for a 32-bit
// register, as cvt does for wide destinations). Float to integer clamps also without .sat; NaN ->
// 0, but 1 << (width - 1) when the source is f64 or the integer has 64 bits.
uint64_t convert(Scalar to, Scalar from, uint64_t bits, ConvertControl control = {});

// One conversion with everything decided at decode time; convert_function() never returns null for
// a pair convert() takes.
using ConvertFunction = uint64_t (*)(uint64_t bits, ConvertControl control);
ConvertFunction convert_function(Scalar to, Scalar from);

// Often needed by others.
float f16_value(uint16_t bits);
float bf16_value(uint16_t bits);
uint16_t half_from_f32(Half format, uint32_t bits, ConvertControl control = {});
uint32_t half_to_f32(Half format, uint16_t bits);  // NaN payload kept, as cvt.f32.{f16,bf16}

// cvt.{rn,rz}{.relu}{.satfinite}.{f16x2,bf16x2}.f32 d, a, b: a fills the upper half.
uint32_t pack_half2(Half format, uint32_t a, uint32_t b, ConvertControl control = {});

// The small floats. Values are right-aligned in a byte.
enum class MiniFloat : uint8_t { E4M3, E5M2, E2M3, E3M2, E2M1, UE8M0 };

// Satfinite, round to nearest even; UE8M0 takes round TowardZero or Up and honours
// control.satfinite. .relu applies.
uint8_t mini_from_f32(MiniFloat format, uint32_t bits, ConvertControl control = {});
float mini_value(MiniFloat format, uint8_t bits);  // exact
// cvt.rn.satfinite{.relu}.<mini>x2.f32 d, a, b: a fills the upper part (E2M1: nibbles of one byte,
// others: bytes).
uint16_t pack_mini2(MiniFloat format, uint32_t a, uint32_t b, ConvertControl control = {});
// cvt.rn.satfinite{.relu}.<mini>x2.{f16x2,bf16x2} d, a.
uint16_t pack_mini2_from_half2(MiniFloat format, Half source, uint32_t a,
                               ConvertControl control = {});
// cvt.rn{.relu}.f16x2.<mini>x2 d, a; bf16x2 for UE8M0.
uint32_t unpack_mini2(MiniFloat format, Half target, uint16_t a, ConvertControl control = {});

// cvt.pack.sat.<type>.s32{.b32} d, a, b, c: bits is 2, 4, 8 or 16; with 16 bits c is unused.
struct PackTarget {
  int bits = 8;
  bool is_signed = false;
};
uint32_t convert_pack(PackTarget target, int32_t a, int32_t b, uint32_t c);

}  // namespace ptxb::emu::arith
