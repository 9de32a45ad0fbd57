// Owns values that were never initialised: where they are read, how they spread through registers
// and shared memory, and when they matter (a global store, a branch, an address). Reading one is
// no fault by itself: tiles have unused rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "emu/address.h"
#include "emu/check_state.h"

namespace ptxb::emu {

struct MemoryPlace {
  bool shared = false;
  const Allocation* allocation = nullptr;  // of global memory
  uint64_t offset = 0;
  uint32_t element_bytes = 4, elements = 1;
  uint32_t lane = 0, site = 0;
  bool update = false;  // atomic whose result depends on what is there: reported at once
};

bool is_uninitialised(Warp& w, const MemoryPlace& place);
void look_for_uninitialised(Warp& w, const MemoryPlace& place);
// The four words of a row of 16 bytes of shared memory; true when any was never written.
bool uninitialised_words(Warp& w, uint64_t offset, bool (&bad)[4], uint32_t site);
void mark_written(Warp& w, const MemoryPlace& place, const std::vector<uint32_t>& data_registers);
void mark_uninitialised(Warp& w, uint64_t shared_offset, uint32_t bytes, uint32_t site);
void note_remote_write(Warp& w, uint64_t address, uint32_t bytes, Access access);
void report_tainted_address(Warp& w, uint32_t reg, uint32_t site);

}  // namespace ptxb::emu
