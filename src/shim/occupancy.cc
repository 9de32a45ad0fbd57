// SPDX-License-Identifier: Apache-2.0
#include "shim/occupancy.h"

#include <algorithm>

namespace ptxb::shim {

namespace {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kRegisterUnit = 256;
constexpr uint32_t kPartitions = 4;  // register files of a multiprocessor
constexpr uint64_t kSharedUnit = 128;

}  // namespace

uint32_t registers_per_warp(uint32_t registers_per_thread) {
  return static_cast<uint32_t>(round_up(uint64_t{registers_per_thread} * kWarp, kRegisterUnit));
}

uint32_t blocks_per_multiprocessor(const ChipLimits& chip, const KernelInfo& kernel,
                                   uint64_t threads, uint64_t dynamic_shared_bytes) {
  if (threads == 0 || threads > chip.max_threads_per_block) return 0;
  uint64_t warps = (threads + kWarp - 1) / kWarp;
  uint64_t blocks = std::min<uint64_t>(chip.max_blocks_per_multiprocessor,
                                       chip.max_threads_per_multiprocessor / (warps * kWarp));
  if (uint32_t per_warp = registers_per_warp(kernel.registers)) {
    uint64_t resident_warps =
        chip.registers_per_multiprocessor / kPartitions / per_warp * kPartitions;
    blocks = std::min(blocks, resident_warps / warps);
  }
  if (dynamic_shared_bytes > chip.shared_per_multiprocessor_bytes) return 0;
  uint64_t shared = round_up(
      kernel.static_shared_bytes + dynamic_shared_bytes + chip.reserved_shared_bytes, kSharedUnit);
  if (shared) blocks = std::min(blocks, chip.shared_per_multiprocessor_bytes / shared);
  return static_cast<uint32_t>(blocks);
}

uint64_t dynamic_shared_for(const ChipLimits& chip, const KernelInfo& kernel, uint64_t blocks) {
  if (blocks == 0) return 0;
  uint64_t each = chip.shared_per_multiprocessor_bytes / blocks / kSharedUnit * kSharedUnit;
  uint64_t fixed = uint64_t{kernel.static_shared_bytes} + chip.reserved_shared_bytes;
  uint64_t most = chip.shared_per_block_optin_bytes -
                  std::min(chip.shared_per_block_optin_bytes, kernel.static_shared_bytes);
  return each > fixed ? std::min(each - fixed, most) : 0;
}

}  // namespace ptxb::shim
