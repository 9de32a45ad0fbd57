// Owns st.async and red.async: stores and reductions into the shared memory of the cluster that
// signal an mbarrier (PTX ISA 9.7.9.12, 9.7.13.7). Never knows bulk copies.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "emu/bulk.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;

namespace {

struct Remote {
  uint32_t barrier = 0;  // slot
  int64_t barrier_offset = 0;
  std::vector<uint32_t> values;  // slots
  uint32_t element_bytes = 4;
  bool reduces = false;
  ReduceOp op = ReduceOp::Add;
  ReduceType type = ReduceType::UInt32;
};

// a, imm: destination.
const Insn* store_async(Warp& w, const Insn* i) {
  const Remote& r = *static_cast<const Remote*>(i->more);
  uint32_t bytes = r.element_bytes * static_cast<uint32_t>(r.values.size());
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    uint64_t address = lane_address(w, i, Window::SharedCluster, lane);
    uint8_t* to = resolve(w, i, lane, Window::SharedCluster, address, bytes,
                          r.reduces ? Access::Update : Access::Write);
    MbarrierPlace at;
    uint32_t barrier = lanes<U32>(w, r.barrier)[lane] + static_cast<uint32_t>(r.barrier_offset);
    if (!to || !find_mbarrier(w, i, lane, Window::SharedCluster, barrier, at)) return nullptr;
    SharedPlace place = shared_place(w, address);
    if (place.cta != at.cta) {
      return fault(w, i, FindingKind::BarrierMisuse,
                   thread_text(w, lane) + " writes to " + block_text(*place.cta) +
                       " and signals an mbarrier of " + block_text(*at.cta),
                   "destination and mbarrier must lie in the same block's shared memory");
    }
    std::array<uint8_t, 32> data{};
    for (size_t k = 0; k < r.values.size(); ++k) {
      if (r.element_bytes == 8)
        std::memcpy(data.data() + 8 * k, &lanes<U64>(w, r.values[k])[lane], 8);
      else
        std::memcpy(data.data() + 4 * k, &lanes<U32>(w, r.values[k])[lane], 4);
    }
    check_bulk_write(w, i, lane, *place.cta, place.offset, bytes, at.offset);
    AsyncWork work;
    work.signals.push_back({at.cta, at.offset, bytes});
    if (r.reduces) {
      work.transfer = [to, data, bytes, op = r.op, type = r.type] {
        reduce(op, type, to, data.data(), bytes);
      };
    } else {
      work.transfer = [to, data, bytes] { std::memcpy(to, data.data(), bytes); };
    }
    if (!submit(w, i, lane, std::move(work))) return nullptr;
  }
  return i + 1;
}

bool decode(Decoder& d) {
  Remote r;
  r.reduces = d.opcode() == Opcode::RedAsync;
  if (!d.has(Modifier::MbarrierCompleteTxBytes))
    return d.refuse("only the forms that signal an mbarrier");
  int size = ptx::size_bytes(d.type());
  if (size != 4 && size != 8) return d.refuse("type");
  r.element_bytes = static_cast<uint32_t>(size);
  if (r.reduces) {
    auto op = reduce_op(d);
    auto type = reduce_type(d.type());
    if (!op || !type || !emu::reduces(*op, *type)) return d.refuse("this reduction of this type");
    r.op = *op;
    r.type = *type;
  }
  const Operand &to = d.operand(0), &value = d.operand(1), &barrier = d.operand(2);
  uint32_t base = address_slot(d, to, Window::SharedCluster);
  if (value.kind == Operand::Kind::Vector) {
    for (const Operand& each : value.elements) r.values.push_back(d.source(each, size));
  } else {
    r.values.push_back(d.source(value, size));
  }
  r.barrier = address_slot(d, barrier, Window::SharedCluster);
  r.barrier_offset = barrier.offset;
  if (d.refused()) return false;
  Insn& insn = d.emit(store_async);
  insn.a = base;
  insn.imm = to.offset;
  insn.more = d.keep(std::move(r));
  return true;
}

}  // namespace

bool decode_remote(Decoder& d) {
  if ((d.opcode() != Opcode::StAsync && d.opcode() != Opcode::RedAsync) || !decode(d)) return false;
  mark_check_site(d);
  return true;
}

}  // namespace ptxb::emu
