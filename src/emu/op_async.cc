// Owns cp.async and its groups (PTX ISA 9.7.9.25.3). Copies happen at issue; check mode keeps
// account of what may be seen.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "emu/address.h"
#include "emu/check_hooks.h"
#include "emu/control.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;

namespace {

struct Copy {
  uint32_t source = 0;  // u64 address slot
  int64_t source_offset = 0;
  uint32_t size_slot = 0;  // u32: bytes that come from memory, the rest are zeros
  bool has_size = false;
  uint32_t ignore_slot = 0, ignore_xor = 0;  // predicate: nothing comes from memory
  bool has_ignore = false;
};

uint8_t* source_bytes(Warp& w, const Insn* i, uint32_t lane, uint64_t address, uint32_t bytes) {
  const Allocation* hot = w.worker->hot[i->y];
  if (hot && address >= hot->begin && address < hot->end && hot->end - address >= bytes)
    return hot->at(address);
  const Allocation* found = nullptr;
  uint8_t* at = resolve_quietly(w, lane, Window::Global, address, bytes, Access::Read, &found);
  if (!at)
    return resolve(w, i, lane, Window::Global, address, 1, Access::Read)
               ? resolve(w, i, lane, Window::Global, address + bytes - 1, 1, Access::Read)
               : nullptr;
  w.worker->hot[i->y] = found;
  return at;
}

// a, imm: destination in shared memory; x: copy size; more: Copy.
const Insn* copy(Warp& w, const Insn* i) {
  const Copy& c = *static_cast<const Copy*>(i->more);
  uint8_t* to[32];
  Near near;
  if (near_shared(w, i, i->x, near)) {
    for (uint32_t l = 0; l < 32; ++l) to[l] = near.at(l);
  } else if (!resolve_all(w, i, Window::Shared, i->x, Access::Write, to)) {
    return nullptr;
  }
  const U64* from = lanes<U64>(w, c.source);
  uint32_t ignored = c.has_ignore ? predicate(w, c.ignore_slot) ^ c.ignore_xor : 0;
  w.async.open |= w.mask;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = first_lane(rest);
    uint32_t size = (ignored >> l & 1) ? 0 : c.has_size ? lanes<U32>(w, c.size_slot)[l] : i->x;
    if (size > i->x) {
      return fault(w, i, FindingKind::AsyncHazard,
                   thread_text(w, l) + " copies " + std::to_string(size) +
                       " source bytes with a copy size of " + std::to_string(i->x),
                   "src-size must not exceed cp-size");
    }
    uint64_t address = from[l] + static_cast<uint64_t>(c.source_offset);
    if (size && (address & (i->x - 1))) {
      return fault(w, i, FindingKind::Misaligned,
                   thread_text(w, l) + " copies from " +
                       place_text(w, Window::Global, address, size) + " (address " +
                       hex_text(address) + "), which is not a multiple of " + std::to_string(i->x));
    }
    const uint8_t* source = size ? source_bytes(w, i, l, address, size) : nullptr;
    if (size && !source) return nullptr;
    if (size == 16) {
      std::memcpy(to[l], source, 16);
    } else {
      if (size) std::memmove(to[l], source, size);
      std::memset(to[l] + size, 0, i->x - size);
    }
  }
  return i + 1;
}

bool decode_copy(Decoder& d) {
  const Operand &to = d.operand(0), &from = d.operand(1), &size = d.operand(2);
  if (size.kind != Operand::Kind::Immediate ||
      (size.bits != 4 && size.bits != 8 && size.bits != 16))
    return d.refuse("copy size");
  if (d.has(Modifier::Cg) && size.bits != 16) return d.refuse(".cg copies 16 bytes");
  size_t count = d.operands() - (d.has(Modifier::L2CacheHint) ? 1 : 0);
  if (count > 4) return d.refuse("");
  Copy c;
  if (count == 4) {
    const Operand& extra = d.operand(3);
    if (extra.kind == Operand::Kind::Register && d.width_of(extra) == 1) {
      c.has_ignore = true;
      c.ignore_slot = d.predicate_source(extra);
      c.ignore_xor = extra.negated ? kAll : 0;
    } else {
      c.has_size = true;
      c.size_slot = d.source(extra, 4);
    }
  }
  uint32_t base = address_slot(d, to, Window::Shared);
  c.source = address_slot(d, from, Window::Global);
  c.source_offset = from.offset;
  if (d.refused()) return false;
  uint32_t ordinal = d.memory_ordinal();
  emit_async_copy_check(
      d, {base, to.offset, c.source, c.source_offset, static_cast<uint32_t>(size.bits), c.size_slot,
          c.has_size, c.ignore_slot, c.ignore_xor, c.has_ignore});
  Insn& insn = d.emit(copy);
  insn.a = base;
  insn.imm = to.offset;
  insn.x = static_cast<uint32_t>(size.bits);
  insn.y = ordinal;
  insn.more = d.keep(c);
  return true;
}

}  // namespace

bool decode_async(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::CpAsync:
      return decode_copy(d);
    case Opcode::CpAsyncCommitGroup:
      emit_async_commit_check(d);
      d.emit(nothing_handler());
      return true;
    case Opcode::CpAsyncWaitGroup:
      if (d.operand(0).kind != Operand::Kind::Immediate)
        return d.refuse("a group count that is no constant");
      emit_async_wait_check(d, static_cast<uint32_t>(d.operand(0).bits));
      d.emit(nothing_handler());
      return true;
    case Opcode::CpAsyncWaitAll:
      emit_async_commit_check(d);
      emit_async_wait_check(d, 0);
      d.emit(nothing_handler());
      return true;
    default:
      return false;
  }
}

}  // namespace ptxb::emu
