// Owns the shapes in which decoders place lane-wise handlers: sources to slots, one instruction.
// Never picks a handler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/decode.h"
#include "emu/lanes.h"

namespace ptxb::emu {

inline bool emit_unary(Decoder& d, Handler handler, int to_bytes, int from_bytes) {
  uint32_t a = d.source(1, from_bytes), to = d.destination(0, to_bytes);
  if (d.refused()) return false;
  Insn& insn = d.emit(handler);
  insn.d = to;
  insn.a = a;
  return true;
}
inline bool emit_binary(Decoder& d, Handler handler, int to_bytes, int a_bytes, int b_bytes) {
  uint32_t a = d.source(1, a_bytes), b = d.source(2, b_bytes), to = d.destination(0, to_bytes);
  if (d.refused()) return false;
  Insn& insn = d.emit(handler);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  return true;
}
inline bool emit_ternary(Decoder& d, Handler handler, int to_bytes, int ab_bytes, int c_bytes) {
  uint32_t a = d.source(1, ab_bytes), b = d.source(2, ab_bytes), c = d.source(3, c_bytes),
           to = d.destination(0, to_bytes);
  if (d.refused()) return false;
  Insn& insn = d.emit(handler);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  insn.c = c;
  return true;
}

// A function of arith on whole registers, kept in Insn::more.
template <class Function>
const void* as_more(Function* function) {
  return reinterpret_cast<const void*>(function);
}
template <class Function>
Function as_function(const Insn* i) {
  return reinterpret_cast<Function>(const_cast<void*>(i->more));
}

}  // namespace ptxb::emu
