// Owns the way from PTX addresses to host bytes: windows, bounds, alignment, the last-hit
// allocation of each instruction. Never moves data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <optional>

#include "emu/decode.h"
#include "emu/lanes.h"
#include "emu/worker.h"

namespace ptxb::emu {

enum class Window : uint8_t { Shared, SharedCluster, Global, Local, Generic };
enum class Access : uint8_t { Read, Write, Update };

// Insn of a memory operation: a: address slot (u32 lanes for the shared windows, else u64), imm:
// constant offset, y: which of the worker's last-hit allocations is its own.
inline bool narrow_addresses(Window window) {
  return window == Window::Shared || window == Window::SharedCluster;
}
std::optional<Window> window_of(const Decoder& d);
// Emits what brings the base of `operand` to the width that `window` needs; REQUIRES: an Address
// operand.
uint32_t address_slot(Decoder& d, const ptx::Operand& operand, Window window);

// Host bytes of one lane's access of `bytes` at `address` (an address of `window`), or nullptr
// after fault().
uint8_t* resolve(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                 uint32_t bytes, Access access);
// The same, nullptr without a fault where it would be one. Fills `allocation` for global memory.
uint8_t* resolve_quietly(Warp& w, uint32_t lane, Window window, uint64_t address, uint32_t bytes,
                         Access access, const Allocation** allocation = nullptr);
// Every lane of w.mask; the others get the first one's. False after fault().
bool resolve_all(Warp& w, const Insn* i, Window window, uint32_t bytes, Access access,
                 uint8_t** at);
// What a place is called in findings: "shared+0x240", "C+0x1fe".
std::string place_text(Warp& w, Window window, uint64_t address, uint32_t bytes);
uint64_t lane_address(Warp& w, const Insn* i, Window window, uint32_t lane);

// Fast path: offsets from `base` of all 32 lanes when every access is in bounds and aligned.
struct Near {
  uint8_t* base = nullptr;
  alignas(64) uint64_t offset[32];
  PTXB_INLINE uint8_t* at(uint32_t l) const { return base + offset[l]; }
};

// Lanes that are masked out repeat the first active one's address.
PTXB_INLINE uint32_t first_lane(uint32_t mask) {
  return static_cast<uint32_t>(std::countr_zero(mask));
}

PTXB_INLINE bool near_shared(Warp& w, const Insn* i, uint32_t bytes, Near& near) {
  const U32* a = lanes<U32>(w, i->a);
  uint32_t from = w.shared_tag + kSharedBase - static_cast<uint32_t>(i->imm);
  uint32_t limit = w.shared_end - kSharedBase - bytes;
  alignas(64) uint32_t o[32];
  uint32_t bad = 0, low = 0;
  if (w.mask == kAll) {
    PTXB_LANES for (uint32_t l = 0; l < 32; ++l) o[l] = a[l] - from;
  } else {
    uint32_t one = a[first_lane(w.mask)] - from;
    PTXB_LANES for (uint32_t l = 0; l < 32; ++l) {
      uint32_t keep = 0u - (w.mask >> l & 1u);
      o[l] = ((a[l] - from) & keep) | (one & ~keep);
    }
  }
  PTXB_LANES for (uint32_t l = 0; l < 32; ++l) {
    bad |= o[l] | (limit - o[l]);
    low |= o[l];
  }
  if (bad >> 31 || (low & (bytes - 1))) return false;
  near.base = w.shared;
  PTXB_LANES for (uint32_t l = 0; l < 32; ++l) near.offset[l] = o[l];
  return true;
}

PTXB_INLINE bool near_wide(Warp& w, const Insn* i, uint32_t bytes, uint64_t begin, uint64_t size,
                           uint8_t* host, Near& near) {
  const U64* a = lanes<U64>(w, i->a);
  uint64_t from = begin - static_cast<uint64_t>(i->imm);
  uint64_t limit = size - bytes;
  uint64_t bad = 0, low = 0;
  uint64_t* o = near.offset;
  if (w.mask == kAll) {
    PTXB_LANES for (uint32_t l = 0; l < 32; ++l) o[l] = a[l] - from;
  } else {
    uint64_t one = a[first_lane(w.mask)] - from;
    PTXB_LANES for (uint32_t l = 0; l < 32; ++l) {
      uint64_t keep = uint64_t{0} - (w.mask >> l & 1u);
      o[l] = ((a[l] - from) & keep) | (one & ~keep);
    }
  }
  PTXB_LANES for (uint32_t l = 0; l < 32; ++l) {
    bad |= o[l] | (limit - o[l]);
    low |= o[l] + begin;
  }
  near.base = host;
  return !(bad >> 63 || (low & (bytes - 1)));
}

template <Window window>
PTXB_INLINE bool near_addresses(Warp& w, const Insn* i, uint32_t bytes, Near& near) {
  if constexpr (window == Window::Shared || window == Window::SharedCluster) {
    return near_shared(w, i, bytes, near);
  } else if constexpr (window == Window::Global) {
    const Allocation* hot = w.worker->hot[i->y];
    return hot && near_wide(w, i, bytes, hot->begin, hot->size(), hot->host, near);
  } else if constexpr (window == Window::Generic) {
    const Allocation* hot = w.worker->hot[i->y];
    if (hot && near_wide(w, i, bytes, hot->begin, hot->size(), hot->host, near)) return true;
    return near_wide(w, i, bytes, kSharedWindow + w.shared_tag + kSharedBase,
                     w.shared_end - kSharedBase, w.shared, near);
  } else {
    return false;
  }
}

}  // namespace ptxb::emu
