// Owns asynchronous work: when bulk copies and matrix products happen, who waits for them, what
// their hooks of check mode are called. Never knows a copy's shape or an opcode's syntax.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "emu/address.h"
#include "emu/arith/wgmma.h"
#include "emu/mbarrier.h"
#include "emu/warp.h"

namespace ptxb::emu {

// One bulk operation of one thread. The transfer's addresses have been checked; it moves bytes,
// nothing else.
struct AsyncWork {
  std::function<void()> transfer;
  struct Signal {
    Cta* cta = nullptr;
    uint32_t offset = 0;
    uint64_t bytes = 0;
  };
  std::vector<Signal> signals;  // complete_tx when it has happened
  bool group = false;           // belongs to the thread's bulk group
};
// Fast and Check: at once. Fuzz: some time before the wait that needs it. False after fault().
bool submit(Warp& w, const Insn* i, uint32_t lane, AsyncWork work);
void commit_bulk_group(Warp& w);
// False after fault().
bool wait_bulk_group(Warp& w, uint32_t pending);

// A new block starts in these CTAs.
void reset_async(Cta& cta);
// Nothing in the cluster can go on. First late work happens; then, joins having been broken,
// blocked try_waits give up. Both false: a deadlock.
bool wake_late(Cluster& cluster);
bool wake_asynchronous(Cluster& cluster);
// Every thread has ended: late work happens. False after fault().
bool finish_asynchronous(Cluster& cluster);

// wgmma: warps of a warpgroup whose groups others wait for (op_wgmma.cc).
bool warpgroup_may_go_on(const Warp& w, const Split& s);

// Hooks of check mode; nothing without a checker (check_async.cc).
void check_mbarrier_init(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at);
void check_mbarrier_arrive(Warp& w, const Insn* i, const MbarrierPlace& at);
void check_mbarrier_wait(Warp& w, const Insn* i, const MbarrierPlace& at);
void check_mbarrier_phase(const MbarrierPlace& at);
// A lane issues an asynchronous write of shared memory of `cta` that signals the mbarrier at
// `barrier` (0: none), or a read of its own block's; global memory likewise.
void check_bulk_write(Warp& w, const Insn* i, uint32_t lane, Cta& cta, uint32_t offset,
                      uint32_t bytes, uint32_t barrier);
void check_bulk_read(Warp& w, const Insn* i, uint32_t lane, uint32_t offset, uint32_t bytes);
void check_bulk_global(Warp& w, const Insn* i, uint32_t lane, uint64_t address, uint32_t bytes,
                       Access access);
void check_bulk_commit(Warp& w);
void check_bulk_wait(Warp& w, uint32_t pending);
void check_wgmma(Warp& w, const Insn* i, const uint64_t* a, uint64_t b,
                 const arith::WgmmaForm& form);
void check_wgmma_wait(Warp& w, uint32_t pending);
// Registers of a wgmma (check_products.cc).
struct ProductRegisters {
  std::vector<uint32_t> d, a;
};
ProductRegisters product_registers_of(const ptx::Instruction& in);
void check_product_start(Warp& w, const Insn* i, const ProductRegisters& registers);
void check_product_wait(Warp& w, uint32_t pending);
void check_product_fence(Warp& w);
// The instruction just emitted gets the place that these hooks report (Insn::y).
void mark_check_site(Decoder& d);

}  // namespace ptxb::emu
