// Owns the shape of a function: basic blocks, postdominators, liveness, loops that poll memory.
// Facts only; emits nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/module.h"

namespace ptxb::emu {

inline constexpr uint32_t kNone = 0xffffffffu;

struct Block {
  uint32_t begin = 0, end = 0;  // instructions
  std::vector<uint32_t> next;   // blocks
  uint32_t postdominator = kNone;
};

struct Flow {
  std::vector<Block> blocks;
  std::vector<uint32_t> block_of;  // by instruction; body.size() -> the exit block
  uint32_t exit_block = 0;         // empty block at the end: the common return
  std::vector<bool> join;          // by block: some divergent branch meets again at its begin
  std::vector<bool> polling;  // by instruction: back edge of a loop that waits for memory to change
  bool join_at_exit = false;
};

// Operations that may block, call or wait for named lanes: when guarded they are decoded as a
// branch around them.
bool needs_own_block(const ptx::Function& f, const ptx::Instruction& in);
// Waits until named lanes of the warp are together (.sync, .aligned).
bool synchronises_lanes(const ptx::Instruction& in);
bool is_branch(const ptx::Instruction& in);

Flow analyse_flow(const ptx::Function& function);

// Virtual registers read and written by an instruction, the guard among the reads.
struct Uses {
  std::vector<uint32_t> reads, writes;
};
std::vector<ptx::Role> operand_roles(const ptx::Instruction& in);
void collect_uses(const ptx::Instruction& in, Uses& uses);

// Byte offset of each virtual register. `total` gets the bytes of all of them.
struct Slots {
  std::vector<uint32_t> offset;
  uint32_t total = 0;
  std::vector<uint32_t> undefined_at_entry;  // registers that may be read before they are written
};
enum class SlotPolicy : uint8_t { LinearScan, OneEach };
inline constexpr uint32_t kFrameLimitBytes = 16u << 20;
Slots allocate_slots(const ptx::Function& function, const Flow& flow, SlotPolicy policy);
uint32_t slot_bytes(ptx::Type type);

}  // namespace ptxb::emu
