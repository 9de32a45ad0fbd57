// Owns the mbarrier instructions (PTX ISA 9.7.13.15.9-17) and cp.async.mbarrier.arrive. A try_wait
// waits like a barrier does, so that counts do not depend on schedules. Never keeps barrier state
// (mbarrier.cc).
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "emu/address.h"
#include "emu/async.h"
#include "emu/report.h"
#include "emu/split.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;

namespace {

enum class Arrival : uint8_t { Plain, Drop };
struct Form {
  Window window = Window::Shared;
  Arrival arrival = Arrival::Plain;
  bool expects_tx = false, no_complete = false, has_count = false, returns = false, parity = false,
       copies = false;
  bool keeps_pending =
      false;            // cp.async.mbarrier.arrive without .noinc: the pending count rises first
  uint32_t replay = 0;  // instructions before this one that made its operands
};
const Form& form_of(const Insn* i) { return *static_cast<const Form*>(i->more); }

bool find(Warp& w, const Insn* i, uint32_t lane, MbarrierPlace& at) {
  Window window = form_of(i).window;
  return find_mbarrier(w, i, lane, window, lane_address(w, i, window, lane), at);
}

// b: count or bytes.
const Insn* init(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    MbarrierPlace at;
    Window window = form_of(i).window;
    if (!place_mbarrier(w, i, lane, window, lane_address(w, i, window, lane), at)) return nullptr;
    uint32_t count = lanes<U32>(w, i->b)[lane];
    if (count == 0 || count > Mbarrier::kMostArrivals) {
      return fault(w, i, FindingKind::BarrierMisuse,
                   thread_text(w, lane) + " initialises an mbarrier with a count of " +
                       std::to_string(count) + "; 1 to 1048575 are legal");
    }
    Mbarrier fresh;
    fresh.expected = fresh.pending = count;
    at.cta->mbarriers[at.offset] = fresh;
    uint64_t word = fresh.word();
    std::memcpy(at.host, &word, sizeof word);
    check_mbarrier_init(w, i, lane, at);
  }
  return i + 1;
}

const Insn* inval(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    MbarrierPlace at;
    if (!find(w, i, first_lane(rest), at)) return nullptr;
    for (const auto& warp : at.cta->warps) {
      for (const Split& s : warp->splits) {
        if (s.wait != Wait::Mbarrier || s.object != at.offset) continue;
        return fault(w, i, FindingKind::BarrierMisuse,
                     thread_text(w, first_lane(rest)) + " invalidates an mbarrier at which warp " +
                         std::to_string(warp->index) + " waits");
      }
    }
    at.cta->mbarriers.erase(at.offset);
    std::memset(at.host, 0, 8);
  }
  return i + 1;
}

const Insn* expect(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    MbarrierPlace at;
    if (!find(w, i, lane, at) || !mbarrier_expect(w, i, lane, at, lanes<U32>(w, i->b)[lane]))
      return nullptr;
  }
  return i + 1;
}
const Insn* complete(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    MbarrierPlace at;
    if (!find(w, i, lane, at) || !mbarrier_complete(w, i, lane, at, lanes<U32>(w, i->b)[lane]))
      return nullptr;
  }
  return i + 1;
}

// d: token (u64), b: count or bytes.
const Insn* arrive(Warp& w, const Insn* i) {
  const Form& form = form_of(i);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    MbarrierPlace at;
    if (!find(w, i, lane, at)) return nullptr;
    uint32_t given = form.has_count ? lanes<U32>(w, i->b)[lane] : 1;
    uint64_t token = at.barrier->word();
    uint32_t count = form.expects_tx ? 1 : given;
    if (form.expects_tx && !mbarrier_expect(w, i, lane, at, given)) return nullptr;
    if (form.keeps_pending) {
      if (at.barrier->pending == Mbarrier::kMostArrivals)
        return fault(w, i, FindingKind::BarrierMisuse,
                     thread_text(w, lane) + " raises an mbarrier's pending count beyond 1048575");
      ++at.barrier->pending;
    }
    if (form.no_complete && count >= at.barrier->pending) {
      return fault(w, i, FindingKind::BarrierMisuse,
                   thread_text(w, lane) + " completes a phase with .noComplete at " +
                       mbarrier_text(w.worker->launch, *at.cta, at.offset),
                   "the last arrival of a phase must be one without .noComplete");
    }
    bool went_well = form.arrival == Arrival::Drop ? mbarrier_drop(w, i, lane, at, count)
                                                   : mbarrier_arrive(w, i, lane, at, count);
    if (!went_well) return nullptr;
    if (form.returns) lanes<U64>(w, i->d)[lane] = token;
  }
  return i + 1;
}

bool is_complete(Warp& w, const Insn* i, uint32_t lane, const Mbarrier& b) {
  if (form_of(i).parity) return (b.phase & 1) != (lanes<U32>(w, i->b)[lane] & 1);
  return phase_of_token(lanes<U64>(w, i->b)[lane]) != (b.phase & 0x7fffff);
}

// d: predicate, b: parity or token. n: 1 waits.
const Insn* wait(Warp& w, const Insn* i) {
  uint32_t done = 0;
  MbarrierPlace at;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    if (!find(w, i, lane, at)) return nullptr;
    if (!is_complete(w, i, lane, *at.barrier)) continue;
    done |= 1u << lane;
    check_mbarrier_wait(w, i, at);
  }
  // Lanes that wait at different barriers: those that are through go on, the others try again (PTX
  // allows a false).
  Split& s = w.split();
  if (i->n && done == 0 && !s.expired) {
    s.object = at.offset;
    s.expired = false;
    return suspend(w, i - form_of(i).replay, Wait::Mbarrier);
  }
  s.expired = false;
  set_predicate(w, i->d, done);
  return i + 1;
}

const Insn* pending_count(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1)
    lanes<U32>(w, i->d)[first_lane(rest)] = pending_of_token(lanes<U64>(w, i->a)[first_lane(rest)]);
  return i + 1;
}

bool decode_on_object(Decoder& d, Handler handler, size_t address_at, size_t value_at,
                      int value_bytes, Form form) {
  size_t before = d.code().insns.size();
  std::optional<Window> window = window_of(d);
  form.window = window ? *window : Window::Generic;
  const Operand& address = d.operand(address_at);
  uint32_t base = address_slot(d, address, form.window);
  uint32_t value = value_bytes && value_at < d.operands() ? d.source(value_at, value_bytes) : 0;
  if (d.refused()) return false;
  uint32_t to = 0;
  if (handler == wait) to = d.predicate_destination(d.operand(0));
  if (form.returns) to = d.destination(0, 8);
  if (d.refused()) return false;
  form.replay = static_cast<uint32_t>(d.code().insns.size() - before);
  Insn& insn = d.emit(handler);
  insn.a = base;
  insn.imm = address.offset;
  insn.b = value;
  insn.d = to;
  insn.more = d.keep(form);
  return true;
}

bool decode_arrive(Decoder& d, Arrival arrival) {
  Form form;
  form.arrival = arrival;
  size_t address_at = d.operand(0).kind == Operand::Kind::Address ? 0 : 1;
  form.returns = address_at == 1 && d.operand(0).kind != Operand::Kind::Sink;
  form.expects_tx = d.has(Modifier::ExpectTx);
  form.no_complete = d.has(Modifier::NoComplete);
  form.has_count = d.operands() > address_at + 1;
  if (form.expects_tx && !form.has_count) return d.refuse("needs the number of bytes");
  if (form.returns && d.has(Modifier::SharedCluster))
    return d.refuse("no state comes back from another block's barrier");
  return decode_on_object(d, arrive, address_at, address_at + 1, form.has_count ? 4 : 0, form);
}

bool decode_wait(Decoder& d, uint16_t waits) {
  Form form;
  form.parity = d.has(Modifier::Parity);
  // A suspend-time hint says nothing about what the program computes.
  if (!decode_on_object(d, wait, 1, 2, form.parity ? 4 : 8, form)) return false;
  d.code().insns.back().n = waits;
  return true;
}

bool decode_copy_arrival(Decoder& d) {
  Form form;
  form.copies = true;
  form.keeps_pending = !d.has(Modifier::Noinc);
  return decode_on_object(d, arrive, 0, 1, 0, form);
}

bool decode_pending(Decoder& d) {
  uint32_t token = d.source(1, 8), to = d.destination(0, 4);
  if (d.refused()) return false;
  Insn& insn = d.emit(pending_count);
  insn.a = token;
  insn.d = to;
  return true;
}

}  // namespace

namespace {
bool decode_object(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::MbarrierInit:
      return decode_on_object(d, init, 0, 1, 4, {});
    case Opcode::MbarrierInval:
      return decode_on_object(d, inval, 0, 1, 0, {});
    case Opcode::MbarrierExpectTx:
      return decode_on_object(d, expect, 0, 1, 4, {});
    case Opcode::MbarrierCompleteTx:
      return decode_on_object(d, complete, 0, 1, 4, {});
    case Opcode::MbarrierArrive:
      return decode_arrive(d, Arrival::Plain);
    case Opcode::MbarrierArriveDrop:
      return decode_arrive(d, Arrival::Drop);
    case Opcode::MbarrierTestWait:
      return decode_wait(d, 0);
    case Opcode::MbarrierTryWait:
      return decode_wait(d, 1);
    case Opcode::MbarrierPendingCount:
      return decode_pending(d);
    case Opcode::CpAsyncMbarrierArrive:
      return decode_copy_arrival(d);
    default:
      return false;
  }
}
}  // namespace

bool decode_mbarrier(Decoder& d) {
  bool made = decode_object(d);
  if (made) mark_check_site(d);
  return made;
}

}  // namespace ptxb::emu
