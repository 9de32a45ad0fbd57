// Owns mma.sync: D = A*B + C of one warp, straight on the register fragments. Two numeric modes,
// integers always exact. Never decodes: a form is resolved once to a function. Sources: PTX ISA
// 9.7.14.5 (fragments); the arithmetic of the exact mode: arXiv 2511.10909 and 2512.07004 (see
// mma_exact.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emu/arith/controls.h"

namespace ptxb::emu::arith {

enum class Numerics : uint8_t {
  Fast,   // f32 FMA in ascending k, one rounding at the end for f16 results; NaN canonical
  Exact,  // the published Hopper model
};

enum class MmaType : uint8_t { F16, BF16, TF32, F64, E4M3, E5M2, S8, U8, S4, U4, B1 };
enum class MmaAccumulator : uint8_t { F32, F16, S32, F64 };
enum class MmaBitOp : uint8_t { None, XorPopc, AndPopc };

struct MmaForm {
  uint8_t m = 16, n = 8;
  uint16_t k = 16;
  MmaType a = MmaType::BF16;
  MmaType b = MmaType::BF16;               // differs from a only for s8/u8, s4/u4, e4m3/e5m2
  MmaAccumulator c = MmaAccumulator::F32;  // type of C
  MmaAccumulator d = MmaAccumulator::F32;  // type of D; differs from C only in m8n8k4 f16
  bool satfinite = false;                  // integers: clamp the s32 result
  MmaBitOp bit_op = MmaBitOp::None;
  bool operator==(const MmaForm&) const = default;
};

// Registers of each operand of one lane: 32-bit ones, for f64 64-bit ones.
struct MmaRegisters {
  int a = 0, b = 0, c = 0, d = 0;
  bool wide = false;  // f64: every register is 64 bits wide
};
// a == 0: the form does not exist here.
MmaRegisters mma_registers(const MmaForm& form);

// Fragment registers in the order of the PTX operand vectors: a[i] points to 32 consecutive u32,
// lane by lane. No alignment needed. d[i] may be any of the inputs: all inputs are read before the
// first write.
struct MmaOperands {
  const uint32_t* const* a;
  const uint32_t* const* b;
  const uint32_t* const* c;
  uint32_t* const* d;
};
struct MmaOperands64 {
  const uint64_t* const* a;
  const uint64_t* const* b;
  const uint64_t* const* c;
  uint64_t* const* d;
};
using MmaFunction = void (*)(const MmaOperands& operands);
using MmaFunction64 = void (*)(const MmaOperands64& operands);

// Null when the form does not exist in PTX for row.col operands.
MmaFunction mma_function(const MmaForm& form, Numerics numerics);
// f64 forms: m8n8k4, m16n8k4, m16n8k8, m16n8k16 (fma in ascending k, both modes).
MmaFunction64 mma_function_f64(const MmaForm& form);

}  // namespace ptxb::emu::arith
