// Owns cp.async.bulk, cp.reduce.async.bulk, their prefetch and groups (PTX ISA 9.7.9.25.4, .6).
// Never knows tensor maps.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "emu/bulk.h"
#include "emu/control.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;

namespace {

struct Bulk {
  Window to_window = Window::Global, from_window = Window::Global;
  uint32_t to = 0, from = 0, size = 0, barrier = 0, mask = 0, byte_mask = 0;  // slots
  int64_t to_offset = 0, from_offset = 0, barrier_offset = 0;
  bool signals = false, multicast = false, masked = false, reduces = false;
  ReduceOp op = ReduceOp::Add;
  ReduceType type = ReduceType::UInt32;
};

uint64_t address_of(Warp& w, Window window, uint32_t slot, int64_t offset, uint32_t lane) {
  if (narrow_addresses(window)) return lanes<U32>(w, slot)[lane] + static_cast<uint32_t>(offset);
  return lanes<U64>(w, slot)[lane] + static_cast<uint64_t>(offset);
}

std::function<void()> transfer_of(const Bulk& b, std::vector<uint8_t*> to, const uint8_t* from,
                                  uint32_t bytes, uint32_t byte_mask) {
  if (b.reduces) {
    return [to, from, bytes, op = b.op, type = b.type] {
      for (uint8_t* each : to) reduce(op, type, each, from, bytes);
    };
  }
  if (b.masked) {  // bit k of the mask: byte k of each 16 is written
    return [to, from, bytes, byte_mask] {
      for (uint32_t k = 0; k < bytes; ++k)
        if (byte_mask >> (k % 16) & 1) to[0][k] = from[k];
    };
  }
  return [to, from, bytes] {
    for (uint8_t* each : to) std::memmove(each, from, bytes);
  };
}

bool copy_one(Warp& w, const Insn* i, const Bulk& b, uint32_t lane) {
  uint64_t to = address_of(w, b.to_window, b.to, b.to_offset, lane),
           from = address_of(w, b.from_window, b.from, b.from_offset, lane);
  uint32_t bytes = lanes<U32>(w, b.size)[lane];
  if (!check_alignment(w, i, lane, "size", bytes, 16) ||
      !check_alignment(w, i, lane, "destination address", to, 16) ||
      !check_alignment(w, i, lane, "source address", from, 16))
    return false;
  uint8_t* source = nullptr;
  std::vector<uint8_t*> targets;
  std::vector<Cta*> ctas;
  if (bytes) {
    source = span_bytes(w, i, lane, b.from_window, from, bytes, Access::Read);
    uint8_t* target = source ? span_bytes(w, i, lane, b.to_window, to, bytes,
                                          b.reduces ? Access::Update : Access::Write)
                             : nullptr;
    if (!target) return false;
    targets.push_back(target);
  }
  AsyncWork work;
  work.group = !b.signals;
  if (b.multicast) {
    if (!multicast_targets(w, i, lane, lanes<U32>(w, b.mask)[lane] & 0xffff, ctas)) return false;
    uint32_t offset = static_cast<uint32_t>(to & 0xffffff);
    targets.clear();
    for (Cta* cta : ctas) targets.push_back(window_of_cta(*cta) + offset);
  } else if (b.to_window == Window::SharedCluster) {
    ctas.push_back(shared_place(w, to).cta);
  }
  if (b.signals) {
    MbarrierPlace at;
    if (!find_mbarrier(w, i, lane, Window::SharedCluster,
                       address_of(w, Window::SharedCluster, b.barrier, b.barrier_offset, lane), at))
      return false;
    if (!b.multicast) ctas[0] = at.cta;
    for (Cta* cta : ctas) work.signals.push_back({cta, at.offset, bytes});
  }
  for (Cta* cta : ctas)
    check_bulk_write(w, i, lane, *cta, static_cast<uint32_t>(to & 0xffffff), bytes,
                     b.signals ? work.signals[0].offset : 0);
  if (bytes && b.to_window == Window::Global)
    check_bulk_global(w, i, lane, to, bytes, b.reduces ? Access::Update : Access::Write);
  if (bytes && b.from_window == Window::Global)
    check_bulk_global(w, i, lane, from, bytes, Access::Read);
  if (b.from_window == Window::Shared)
    check_bulk_read(w, i, lane, static_cast<uint32_t>(from & 0xffffff), bytes);
  uint32_t byte_mask = b.masked ? lanes<U32>(w, b.byte_mask)[lane] : 0;
  work.transfer = transfer_of(b, std::move(targets), source, bytes, byte_mask);
  count_bytes(w, i, bytes);
  return submit(w, i, lane, std::move(work));
}

const Insn* bulk_copy(Warp& w, const Insn* i) {
  const Bulk& b = *static_cast<const Bulk*>(i->more);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1)
    if (!copy_one(w, i, b, first_lane(rest))) return nullptr;
  return i + 1;
}

// The windows are the first two state spaces of the mnemonic, in order.
bool windows_of(Decoder& d, Bulk& b) {
  std::vector<Window> found;
  for (Modifier m : d.in().modifiers) {
    if (m == Modifier::SharedCluster) found.push_back(Window::SharedCluster);
    if (m == Modifier::SharedCta) found.push_back(Window::Shared);
    if (m == Modifier::Global) found.push_back(Window::Global);
  }
  if (found.size() != 2) return d.refuse("state spaces");
  b.to_window = found[0];
  b.from_window = found[1];
  return true;
}

bool decode_copy(Decoder& d) {
  Bulk b;
  if (!windows_of(d, b)) return false;
  b.signals = d.has(Modifier::MbarrierCompleteTxBytes);
  b.multicast = d.has(Modifier::MulticastCluster);
  b.masked = d.has(Modifier::CpMask);
  b.reduces = d.opcode() == Opcode::CpReduceAsyncBulk;
  if (b.to_window == Window::Shared)
    b.to_window = Window::SharedCluster;  // the CTA's own addresses are cluster addresses too
  if (b.reduces) {
    auto op = reduce_op(d);
    auto type = reduce_type(d.type());
    if (!op || !type || !emu::reduces(*op, *type)) return d.refuse("this reduction of this type");
    b.op = *op;
    b.type = *type;
    d.kernel().order_matters = d.kernel().order_matters || b.to_window == Window::Global;
  }
  b.to = address_slot(d, d.operand(0), b.to_window);
  b.to_offset = d.operand(0).offset;
  b.from = address_slot(d, d.operand(1), b.from_window);
  b.from_offset = d.operand(1).offset;
  b.size = d.source(2, 4);
  size_t next = 3;
  if (b.signals) {
    b.barrier = address_slot(d, d.operand(next), Window::SharedCluster);
    b.barrier_offset = d.operand(next).offset;
    ++next;
  }
  if (b.multicast) b.mask = d.source(next++, 4);
  if (d.has(Modifier::L2CacheHint)) ++next;
  if (b.masked) b.byte_mask = d.source(next++, 4);
  if (d.refused()) return false;
  d.emit(bulk_copy).more = d.keep(b);
  return true;
}

// A prefetch moves nothing, but what it names must exist.
const Insn* bulk_prefetch(Warp& w, const Insn* i) {
  const Bulk& b = *static_cast<const Bulk*>(i->more);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest), bytes = lanes<U32>(w, b.size)[lane];
    uint64_t from = address_of(w, Window::Global, b.from, b.from_offset, lane);
    if (!check_alignment(w, i, lane, "size", bytes, 16) ||
        !check_alignment(w, i, lane, "source address", from, 16))
      return nullptr;
    if (bytes && !span_bytes(w, i, lane, Window::Global, from, bytes, Access::Read)) return nullptr;
  }
  return i + 1;
}
bool decode_prefetch(Decoder& d) {
  Bulk b;
  b.from = address_slot(d, d.operand(0), Window::Global);
  b.from_offset = d.operand(0).offset;
  b.size = d.source(1, 4);
  if (d.refused()) return false;
  d.emit(bulk_prefetch).more = d.keep(b);
  return true;
}

const Insn* commit(Warp& w, const Insn* i) {
  commit_bulk_group(w);
  check_bulk_commit(w);
  return i + 1;
}
// x: groups that may stay open.
const Insn* wait(Warp& w, const Insn* i) {
  if (!wait_bulk_group(w, i->x)) return nullptr;
  check_bulk_wait(w, i->x);
  return i + 1;
}
bool decode_wait(Decoder& d) {
  if (d.operand(0).kind != Operand::Kind::Immediate)
    return d.refuse("a group count that is no constant");
  Insn& insn = d.emit(wait);
  insn.x = static_cast<uint32_t>(d.operand(0).bits);
  return true;
}

}  // namespace

namespace {
bool decode_each(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::CpAsyncBulk:
    case Opcode::CpReduceAsyncBulk:
      return decode_copy(d);
    case Opcode::CpAsyncBulkPrefetch:
      return decode_prefetch(d);
    case Opcode::CpAsyncBulkCommitGroup:
      d.emit(commit);
      return true;
    case Opcode::CpAsyncBulkWaitGroup:
      return decode_wait(d);
    default:
      return false;
  }
}
}  // namespace

bool decode_bulk(Decoder& d) {
  bool made = decode_each(d);
  if (made) mark_check_site(d);
  return made;
}

}  // namespace ptxb::emu
