// Owns the interface between decoding and the handlers of ld and st.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/address.h"

namespace ptxb::emu {

// `count` elements of `bytes` each; registers of `width` bytes a lane.
struct GeneralAccess {
  Window window = Window::Global;
  uint32_t bytes = 4, count = 1, width = 4;
  bool is_signed = false;
};
// Insn: d, b, c, x: registers; a, imm: address; y: last-hit allocation; more: a GeneralAccess.
Handler load_handler(const GeneralAccess& access);
Handler store_handler(const GeneralAccess& access);
// d: register of 16 bytes a lane; n: the window.
const Insn* load_b128(Warp& w, const Insn* i);
const Insn* store_b128(Warp& w, const Insn* i);

// Addresses that are not all in one place.
struct Far {
  uint8_t* host[32];
  PTXB_INLINE uint8_t* at(uint32_t l) const { return host[l]; }
};
// Register k of a vector operand.
PTXB_INLINE uint32_t slot(const Insn* i, int k) {
  return k == 0 ? i->d : k == 1 ? i->b : k == 2 ? i->c : i->x;
}

}  // namespace ptxb::emu
