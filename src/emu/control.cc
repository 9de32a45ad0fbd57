// Owns the handlers that the decoder places by itself: counters, guards, branches, joins, ends.
// Never knows an opcode.
// SPDX-License-Identifier: Apache-2.0
#include "emu/control.h"

#include <bit>

#include "emu/check.h"
#include "emu/lanes.h"
#include "emu/report.h"
#include "emu/split.h"
#include "emu/worker.h"
#include "ptx/opcodes.h"

namespace ptxb::emu {
namespace {

PTXB_INLINE const Insn* count_body(Warp& w, const Insn* i) {
  if (w.fuel <= 0) return pause(w, i, Pause::Fuel);
  Counter& counter = w.counters[i->x];
  ++counter.warps;
  counter.lanes += static_cast<uint32_t>(std::popcount(w.exec));
  w.fuel -= i->imm;
  return i + 1;
}
const Insn* count_portable(Warp& w, const Insn* i) { return count_body(w, i); }
PTXB_WIDE const Insn* count_wide(Warp& w, const Insn* i) { return count_body(w, i); }

void count_lanes(Warp& w, uint32_t counter, uint32_t mask) {
  w.counters[counter].warps += 1;
  w.counters[counter].lanes += static_cast<uint32_t>(std::popcount(mask));
}

const Insn* guard(Warp& w, const Insn* i) {
  uint32_t on = (predicate(w, i->a) ^ i->b) & w.exec;
  const Insn* end = i + 1 + i->n;
  if (on == 0) return end;
  count_lanes(w, i->x, on);
  w.mask = on;
  for (const Insn* p = i + 1; p < end;) {
    p = p->fn(w, p);
    if (!p) return nullptr;
  }
  w.mask = w.exec;
  return end;
}

const Insn* join_place(Warp& w, const Insn* i) {
  return i->imm < 0 ? nullptr : w.frame().code->insns.data() + i->imm;
}

const Insn* poll(Warp& w, const Insn* target) {
  w.worker->run.polled = true;
  return pause(w, target, Pause::Poll);
}

const Insn* branch(Warp& w, const Insn* i) {
  if (i->flags & kPolling) return poll(w, i->target);
  return i->target;
}

const Insn* branch_if(Warp& w, const Insn* i) {
  uint32_t taken = (predicate(w, i->a) ^ i->b) & w.exec;
  if (taken == 0) return i + 1;
  count_lanes(w, i->x, taken);
  if (taken == w.exec) return (i->flags & kPolling) ? poll(w, i->target) : i->target;
  return diverge(w, i + 1, i->target, taken, join_place(w, i));
}

const Insn* skip_if(Warp& w, const Insn* i) {
  uint32_t taken = (predicate(w, i->a) ^ i->b) & w.exec;
  if (taken == 0) return i + 1;
  if (taken == w.exec) return i->target;
  return diverge(w, i + 1, i->target, taken, join_place(w, i));
}

// brx.idx: lanes with the same index go together; the first one's group goes on here.
const Insn* branch_indexed(Warp& w, const Insn* i) {
  const auto& table = static_cast<const BranchTargets*>(i->more)->targets;
  const Insn* base = w.frame().code->insns.data();
  const U32* index = lanes<U32>(w, i->a);
  const Insn* join = join_place(w, i);
  for (uint32_t rest = w.exec; rest;) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    uint32_t at = index[lane];
    if (at >= table.size()) {
      return fault(w, i, FindingKind::IllegalInstruction,
                   thread_text(w, lane) + " takes target " + std::to_string(at) +
                       " of a branch table of " + std::to_string(table.size()));
    }
    uint32_t same = 0;
    for (uint32_t k = 0; k < 32; ++k) same |= static_cast<uint32_t>(index[k] == at) << k;
    same &= rest;
    if (same == rest) return base + table[at];
    // diverge() keeps the current split for the lanes not taken.
    diverge(w, i, base + table[at], same, join);
    rest &= ~same;
  }
  return i + 1;
}

const Insn* join(Warp& w, const Insn* i) { return arrive_at_join(w, i); }

const Insn* converge_all(Warp& w, const Insn* i) {
  uint32_t live = w.live();
  if ((w.exec & live) == live) return i + 1;
  return converge(w, i, live) ? i + 1 : nullptr;
}

uint32_t named_lanes(Warp& w, const Insn* i) {
  const U32* mask = lanes<U32>(w, i->a);
  uint32_t needed = 0;
  for (uint32_t rest = w.exec; rest; rest &= rest - 1) needed |= mask[std::countr_zero(rest)];
  return needed & w.live();
}

const Insn* unnamed_lane(Warp& w, const Insn* i) {
  const U32* mask = lanes<U32>(w, i->a);
  for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (mask[lane] >> lane & 1) continue;
    return fault(w, i, FindingKind::BarrierMisuse,
                 thread_text(w, lane) + " executes an instruction whose member mask " +
                     hex_text(mask[lane]) + " does not name it (lane " + std::to_string(lane) + ")",
                 "every lane that executes a .sync instruction must be in its mask");
  }
  return nullptr;
}

bool all_named(Warp& w, const Insn* i) {
  const U32* mask = lanes<U32>(w, i->a);
  uint32_t named = 0;
  for (uint32_t l = 0; l < 32; ++l) named |= (mask[l] >> l & 1) << l;
  return (named & w.exec) == w.exec;
}

const Insn* converge_mask(Warp& w, const Insn* i) {
  if (!all_named(w, i)) return unnamed_lane(w, i);
  return converge(w, i, named_lanes(w, i)) ? i + 1 : nullptr;
}

// bar.warp.sync: lanes may come from different places (PTX ISA 9.7.13.2), unlike .aligned
// instructions.
const Insn* sync_warp(Warp& w, const Insn* i) {
  if (!all_named(w, i)) return unnamed_lane(w, i);
  return rendezvous(w, i, named_lanes(w, i)) ? i + 1 : nullptr;
}

const Insn* exit(Warp& w, const Insn* i) {
  bool left = exit_lanes(w);
  warp_done(w);
  return left ? i + 1 : nullptr;
}

const Insn* return_from(Warp& w, const Insn*) { return return_lanes(w); }

const Insn* narrow(Warp& w, const Insn* i) {
  U32* d = lanes<U32>(w, i->d);
  const U64* a = lanes<U64>(w, i->a);
  PTXB_LANES for (int l = 0; l < 32; ++l) d[l] = static_cast<U32>(a[l]);
  return i + 1;
}
const Insn* widen(Warp& w, const Insn* i) {
  U64* d = lanes<U64>(w, i->d);
  const U32* a = lanes<U32>(w, i->a);
  PTXB_LANES for (int l = 0; l < 32; ++l) d[l] = a[l];
  return i + 1;
}

const Insn* nothing(Warp&, const Insn* i) { return i + 1; }

// No clock is emulated: time only rises, by the warp's instructions and by looking at it.
uint64_t read_clock(Warp& w, uint32_t which) {
  w.clock += 64;
  switch (static_cast<ptx::Special>(which)) {
    case ptx::Special::ClockHi:
    case ptx::Special::GlobaltimerHi:
      return w.clock >> 32;
    default:
      return w.clock;
  }
}
const Insn* clock32(Warp& w, const Insn* i) {
  uint32_t now = static_cast<uint32_t>(read_clock(w, i->x));
  U32* d = lanes<U32>(w, i->d);
  for (int l = 0; l < 32; ++l) d[l] = now;
  return i + 1;
}
const Insn* clock64(Warp& w, const Insn* i) {
  uint64_t now = read_clock(w, i->x);
  U64* d = lanes<U64>(w, i->d);
  for (int l = 0; l < 32; ++l) d[l] = now;
  return i + 1;
}

}  // namespace

Handler count_handler() { return wide_lanes() ? count_wide : count_portable; }
Handler guard_handler() { return guard; }
Handler branch_handler() { return branch; }
Handler branch_if_handler() { return branch_if; }
Handler skip_if_handler() { return skip_if; }
Handler branch_indexed_handler() { return branch_indexed; }
Handler join_handler() { return join; }
Handler converge_all_handler() { return converge_all; }
Handler converge_mask_handler() { return converge_mask; }
Handler sync_warp_handler() { return sync_warp; }
Handler exit_handler() { return exit; }
Handler return_handler() { return return_from; }
Handler narrow_handler() { return narrow; }
Handler widen_handler() { return widen; }
Handler nothing_handler() { return nothing; }
Handler clock_handler(int width_bytes) { return width_bytes == 8 ? clock64 : clock32; }

}  // namespace ptxb::emu
