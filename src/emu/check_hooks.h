// Owns what the decoder places into checked code: looks at accesses before they happen, the
// spreading of values that were never initialised. Every function does nothing for plain code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/address.h"

namespace ptxb::emu {

// An access of each lane at [base + offset], `operand_at` being the data operand.
struct AccessCheck {
  Window window = Window::Global;
  uint32_t base = 0;
  int64_t offset = 0;
  uint32_t element_bytes = 4, elements = 1;
  Access access = Access::Read;
  size_t data_operand = 0;
  std::vector<uint32_t> data_slots;  // of stores
  int lane_bytes = 4;
};
void emit_access_check(Decoder& d, AccessCheck check);
// ldmatrix and stmatrix: 16 bytes at the address of each of the first 8 * matrices lanes.
void emit_matrix_check(Decoder& d, uint32_t base, int64_t offset, uint32_t matrices, Access access);
// Handlers that look for themselves: their place in reports, and one plain access of a lane.
uint32_t check_site(Decoder& d);
void check_plain_access(Warp& w, uint32_t site, uint32_t lane, Window window, uint64_t address,
                        uint32_t bytes, Access access);
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

// After the instruction: its results are uninitialised where its operands are. Before a branch: it
// must not depend on them.
void emit_taint_step(Decoder& d);
void emit_branch_check(Decoder& d);
// After an instruction that touches registers of wgmma (check_products.cc).
void emit_product_check(Decoder& d);

}  // namespace ptxb::emu
