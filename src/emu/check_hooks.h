// Owns what the decoder places into checked code: looks at accesses before they happen. Plain code has none of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/address.h"

namespace ptxb::emu {

// How an access takes part in ordering.
enum class Order : uint8_t { Weak, Strong };  // Strong: volatile, relaxed, acquire, release, atomic

// Before an access of `bytes` a lane at [base + offset].
void emit_access_check(Decoder& d, Window window, uint32_t base, int64_t offset, uint32_t bytes, Access access);
// ldmatrix and stmatrix: 16 bytes at the address of each of the first 8 * matrices lanes.
void emit_matrix_check(Decoder& d, uint32_t base, int64_t offset, uint32_t matrices, Access access);
void emit_fence_check(Decoder& d);

void emit_warp_sync_check(Decoder& d);

struct AsyncCopyCheck {
  uint32_t to = 0;
  int64_t to_offset = 0;
  uint32_t from = 0;
  int64_t from_offset = 0;
  uint32_t bytes = 0;
  uint32_t size_slot = 0;
  bool has_size = false;
  uint32_t ignore_slot = 0, ignore_xor = 0;
  bool has_ignore = false;
};
void emit_async_copy_check(Decoder& d, AsyncCopyCheck copy);
void emit_async_commit_check(Decoder& d);
void emit_async_wait_check(Decoder& d, uint32_t pending);

}  // namespace ptxb::emu
