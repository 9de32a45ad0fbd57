// Owns what bulk instructions share: checked spans of memory, element-wise reduction, their byte
// counts, the signal's barrier. Never decodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/address.h"
#include "emu/async.h"

namespace ptxb::emu {

// Host bytes of [address, address + bytes), or nullptr after fault().
uint8_t* span_bytes(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                    uint64_t bytes, Access access);
bool check_alignment(Warp& w, const Insn* i, uint32_t lane, const char* what, uint64_t value,
                     uint32_t alignment);
// CTA and offset of a shared address, after it was checked.
struct SharedPlace {
  Cta* cta = nullptr;
  uint32_t offset = 0;
};
SharedPlace shared_place(Warp& w, uint64_t address);
// Byte 0 of the CTA's shared window.
inline uint8_t* window_of_cta(Cta& cta) { return cta.shared_bytes.data() - kSharedBase; }

enum class ReduceOp : uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor };
// The element types of reductions.
enum class ReduceType : uint8_t { UInt32, SInt32, UInt64, SInt64, F16, BF16, F32, F64 };
std::optional<ReduceOp> reduce_op(const Decoder& d);
std::optional<ReduceType> reduce_type(ptx::Type type);
uint32_t reduce_bytes(ReduceType type);
// to[k] = op(to[k], from[k]); false: the pair does not exist.
bool reduce(ReduceOp op, ReduceType type, uint8_t* to, const uint8_t* from, uint64_t bytes);
bool reduces(ReduceOp op, ReduceType type);

void count_bytes(Warp& w, const Insn* i, uint64_t bytes);

// CTAs that a load goes to: that of `target`, or those of the multicast mask.
bool multicast_targets(Warp& w, const Insn* i, uint32_t lane, uint32_t mask,
                       std::vector<Cta*>& out);

}  // namespace ptxb::emu
