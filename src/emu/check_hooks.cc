// Owns the hooks of plain accesses, fences and warp synchronisation in checked code.
// SPDX-License-Identifier: Apache-2.0
#include "emu/check_hooks.h"

#include <cstring>

#include "emu/check_state.h"
#include "emu/check_taint.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;

namespace {

bool checked(const Decoder& d) { return d.flavour() == Flavour::Checked; }

struct Hook {
  AccessCheck check;
  uint32_t site = 0;
  bool strong = false;                   // volatile, relaxed, acquire, release, atomic
  bool ordering = false;                 // and orders others by it
  bool acquires = false;                 // reads: not st, not red
  bool keeps = false;                    // an update whose result depends on what was there
  std::vector<uint32_t> data_registers;  // kNone: not a register
  uint32_t address_register = kNone;
};

uint32_t new_site(Decoder& d) {
  d.kernel().check_sites.push_back(
      {&d.code(), static_cast<uint32_t>(&d.in() - d.function().body.data())});
  return static_cast<uint32_t>(d.kernel().check_sites.size() - 1);
}

uint32_t register_of(const Operand& operand) {
  return operand.kind == Operand::Kind::Register ? operand.reg : kNone;
}

struct Target {
  bool shared = false;
  uint8_t* host = nullptr;
  const Allocation* allocation = nullptr;
  uint64_t offset = 0;
};

// What a lane's access touches; false for places that are not checked (local memory, other blocks,
// bad addresses).
bool find_target(Warp& w, Window window, uint64_t address, uint32_t lane, uint32_t bytes,
                 Access access, Target& t) {
  if (window == Window::Local) return false;
  if (window == Window::Generic) {
    if (address >= kLocalWindow && address < kLocalWindowEnd) return false;
    if (address >= kSharedWindow && address < kSharedWindowEnd)
      window = Window::SharedCluster, address -= kSharedWindow;
    else
      window = Window::Global;
  }
  t.host = resolve_quietly(w, lane, window, address, bytes, access, &t.allocation);
  if (!t.host) return false;
  t.shared = window != Window::Global;
  if (!t.shared) {
    t.offset = address - t.allocation->begin;
    return !t.allocation->parameters;
  }
  if ((address >> 24 & 0xff) != w.cta->rank) {
    note_remote_write(w, address, bytes, access);
    return false;
  }
  t.offset = static_cast<uint64_t>(t.host - w.cta->shared_bytes.data());
  return true;
}

void stored_bytes(Warp& w, const AccessCheck& c, uint32_t lane, uint8_t* out) {
  for (size_t k = 0; k < c.data_slots.size(); ++k) {
    const uint8_t* slot = w.r + c.data_slots[k] + static_cast<size_t>(c.lane_bytes) * lane;
    std::memcpy(out + k * c.element_bytes, slot,
                std::min<size_t>(c.element_bytes, static_cast<size_t>(c.lane_bytes)));
  }
}

void look(Warp& w, const Hook& h, uint32_t lane, uint64_t address) {
  const AccessCheck& c = h.check;
  uint32_t bytes = c.element_bytes * c.elements;
  Target t;
  if (!find_target(w, c.window, address, lane, bytes, c.access, t)) return;
  WarpShadow& own = *w.shadow;
  bool writes = c.access != Access::Read, plain_release = writes && own.fenced && c.elements == 1;
  uint64_t place = t.shared ? t.offset : address;
  if (h.ordering && h.acquires) acquire_at(w, t.shared, place);
  uint8_t data[64];
  AccessKind kind;
  kind.writes = writes;
  kind.atomic = h.strong || plain_release;
  kind.site = h.site;
  if (c.access == Access::Write) {
    stored_bytes(w, c, lane, data);
    kind.data = data;
    kind.present = t.host;
  }
  if (c.access != Access::Write)
    look_for_uninitialised(
        w, {t.shared, t.allocation, t.offset, c.element_bytes, c.elements, lane, h.site, h.keeps});
  if (t.shared)
    check_shared_access(w, {lane, t.offset, bytes}, kind);
  else
    check_global_access(w, *t.allocation, {lane, t.offset, bytes}, kind);
  if (writes)
    mark_written(
        w, {t.shared, t.allocation, t.offset, c.element_bytes, c.elements, lane, h.site, false},
        h.data_registers);
  if (writes && (h.ordering || plain_release)) release_at(w, t.shared, place);
}

const Insn* access_hook(Warp& w, const Insn* i) {
  const Hook& h = *static_cast<const Hook*>(i->more);
  WarpShadow& own = *w.shadow;
  ++own.step;
  own.load_taint.fill(0);
  own.load_site = h.site;
  report_tainted_address(w, h.address_register, h.site);
  uint32_t bytes = h.check.element_bytes * h.check.elements;
  Near near;
  if (h.check.window == Window::Shared && h.check.access == Access::Read && !h.strong &&
      bytes <= 16 && near_shared(w, i, bytes, near)) {
    for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
      uint32_t lane = first_lane(rest);
      if (!read_before(w, near.offset[lane], bytes))
        look(w, h, lane, lane_address(w, i, Window::Shared, lane));
    }
    return i + 1;
  }
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    look(w, h, lane, lane_address(w, i, h.check.window, lane));
  }
  return i + 1;
}

struct MatrixHook {
  uint32_t site = 0, matrices = 1;
  bool loads = true, transposed = false;
  std::vector<uint32_t> data_registers;
};

// Which lanes get a register of never initialised words from matrix m whose word (row, 4-byte
// column) flags are given.
uint32_t tainted_lanes(const bool (&word)[8][4], bool transposed) {
  uint32_t mask = 0;
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t major = l / 4, minor = l % 4;
    bool bad = transposed ? word[2 * minor][major / 2] || word[2 * minor + 1][major / 2]
                          : word[major][minor];
    mask |= static_cast<uint32_t>(bad) << l;
  }
  return mask;
}

const Insn* matrix_hook(Warp& w, const Insn* i) {
  const MatrixHook& h = *static_cast<const MatrixHook*>(i->more);
  WarpShadow& own = *w.shadow;
  ++own.step;
  own.load_taint.fill(0);
  own.load_site = h.site;
  for (uint32_t m = 0; m < h.matrices; ++m) {
    bool bad[8][4] = {};
    bool any = false;
    for (uint32_t r = 0; r < 8; ++r) {
      uint32_t lane = 8 * m + r;
      Target t;
      Access access = h.loads ? Access::Read : Access::Write;
      if (!find_target(w, Window::Shared, lane_address(w, i, Window::Shared, lane), lane, 16,
                       access, t))
        continue;
      if (h.loads && read_before(w, t.offset, 16)) continue;
      AccessKind kind;
      kind.writes = !h.loads;
      kind.site = h.site;
      check_shared_access(w, {lane, t.offset, 16}, kind);
      if (h.loads) {
        any = uninitialised_words(w, t.offset, bad[r], h.site) || any;
      } else {
        mark_written(w, {true, nullptr, t.offset, 16, 1, lane, h.site, false}, {});
      }
    }
    if (any) own.load_taint[m] = tainted_lanes(bad, h.transposed);
  }
  return i + 1;
}

const Insn* fence_hook(Warp& w, const Insn* i) {
  w.shadow->fenced = true;
  return i + 1;
}
const Insn* proxy_fence_hook(Warp& w, const Insn* i) {
  check_proxy_fence(w);
  return i + 1;
}
const Insn* warp_sync_hook(Warp& w, const Insn* i) {
  ++w.sync_phase;
  return i + 1;
}

bool is_strong(const Decoder& d) {
  return d.opcode() == Opcode::Atom || d.opcode() == Opcode::Red || d.has(Modifier::Volatile) ||
         d.has(Modifier::Relaxed) || d.has(Modifier::Acquire) || d.has(Modifier::Release) ||
         d.has(Modifier::AcqRel) || d.has(Modifier::Mmio);
}

}  // namespace

uint32_t check_site(Decoder& d) { return checked(d) ? new_site(d) : 0; }

void check_plain_access(Warp& w, uint32_t site, uint32_t lane, Window window, uint64_t address,
                        uint32_t bytes, Access access) {
  Target t;
  if (!find_target(w, window, address, lane, bytes, access, t)) return;
  AccessKind kind;
  kind.writes = access != Access::Read;
  kind.site = site;
  if (t.shared)
    check_shared_access(w, {lane, t.offset, bytes}, kind);
  else
    check_global_access(w, *t.allocation, {lane, t.offset, bytes}, kind);
  if (kind.writes)
    mark_written(w, {t.shared, t.allocation, t.offset, bytes, 1, lane, site, false}, {});
}

void emit_access_check(Decoder& d, AccessCheck check) {
  if (!checked(d) || check.window == Window::Local) return;
  d.mark_checked_load();
  Hook h;
  h.site = new_site(d);
  h.strong = is_strong(d);
  // Sums of floats signal nothing: counters and flags are integers.
  h.ordering = h.strong && !(check.access == Access::Update && ptx::is_float(d.type()));
  h.acquires = check.access != Access::Write && d.opcode() != Opcode::Red;
  h.keeps = check.access == Access::Update && !d.has(Modifier::Exch);
  const Operand& data = d.operand(check.data_operand);
  if (data.kind == Operand::Kind::Vector) {
    for (const Operand& each : data.elements) h.data_registers.push_back(register_of(each));
  } else {
    h.data_registers.push_back(register_of(data));
  }
  for (const Operand& operand : d.in().operands)
    if (operand.kind == Operand::Kind::Address && !operand.elements.empty())
      h.address_register = register_of(operand.elements[0]);
  uint32_t base = check.base;
  int64_t offset = check.offset;
  h.check = std::move(check);
  const Hook* kept = d.keep(std::move(h));
  Insn& insn = d.emit(access_hook);
  insn.a = base;
  insn.imm = offset;
  insn.more = kept;
}

void emit_matrix_check(Decoder& d, uint32_t base, int64_t offset, uint32_t matrices,
                       Access access) {
  if (!checked(d)) return;
  d.mark_checked_load();
  MatrixHook h{new_site(d), matrices, access == Access::Read, d.has(Modifier::Trans), {}};
  const MatrixHook* kept = d.keep(std::move(h));
  Insn& insn = d.emit(matrix_hook);
  insn.a = base;
  insn.imm = offset;
  insn.more = kept;
}

void emit_fence_check(Decoder& d) {
  if (!checked(d)) return;
  d.emit(fence_hook);
  if (d.opcode() == Opcode::FenceProxy && d.has(Modifier::Async)) d.emit(proxy_fence_hook);
}
void emit_warp_sync_check(Decoder& d) {
  if (checked(d)) d.emit(warp_sync_hook);
}

// cp.async
// ------------------------------------------------------------------------------------------------------------

namespace {

struct CopyHook {
  AsyncCopyCheck copy;
  uint32_t site = 0;
};

const Insn* copy_hook(Warp& w, const Insn* i) {
  const CopyHook& h = *static_cast<const CopyHook*>(i->more);
  const AsyncCopyCheck& c = h.copy;
  WarpShadow& own = *w.shadow;
  ++own.step;
  uint32_t ignored = c.has_ignore ? predicate(w, c.ignore_slot) ^ c.ignore_xor : 0;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    uint32_t size = (ignored >> lane & 1) ? 0
                    : c.has_size          ? lanes<U32>(w, c.size_slot)[lane]
                                          : c.bytes;
    uint64_t from = lanes<U64>(w, c.from)[lane] + static_cast<uint64_t>(c.from_offset);
    Target source, to;
    bool tainted = false;
    if (size && size <= c.bytes &&
        find_target(w, Window::Global, from, lane, size, Access::Read, source)) {
      AccessKind read;
      read.site = h.site;
      check_global_access(w, *source.allocation, {lane, source.offset, size}, read);
      tainted = is_uninitialised(
          w, {false, source.allocation, source.offset, size, 1, lane, h.site, false});
    }
    uint64_t address = lanes<U32>(w, c.to)[lane] + static_cast<uint32_t>(c.to_offset);
    if (!find_target(w, Window::Shared, address, lane, c.bytes, Access::Write, to)) continue;
    AccessKind write;
    write.writes = write.asynchronous = true;
    write.site = h.site;
    check_shared_access(w, {lane, to.offset, c.bytes}, write);
    if (tainted) mark_uninitialised(w, to.offset, c.bytes, h.site);
    own.flights.push_back(
        {static_cast<uint32_t>(to.offset), c.bytes, own.groups[lane], static_cast<uint8_t>(lane)});
  }
  return i + 1;
}

const Insn* commit_hook(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) ++w.shadow->groups[first_lane(rest)];
  return i + 1;
}

// Copies of groups older than the last `x` have landed: from here on they are writes of their
// thread.
const Insn* wait_hook(Warp& w, const Insn* i) {
  WarpShadow& own = *w.shadow;
  std::vector<SharedWord>& words = w.cta->shadow->words;
  auto landed = [&](const Flight& f) {
    if (!(w.mask >> f.lane & 1) || own.groups[f.lane] < i->x ||
        f.group >= own.groups[f.lane] - i->x)
      return false;
    for (uint32_t k = f.offset / 4; k < (f.offset + f.bytes) / 4 && k < words.size(); ++k) {
      SharedWord& word = words[k];
      if (!word.in_flight || word.write_warp != w.index || word.write_lane != f.lane) continue;
      word.in_flight = false;
      word.write_clock = own.clock;
      word.write_phase = w.sync_phase;
    }
    return true;
  };
  std::erase_if(own.flights, landed);
  return i + 1;
}

}  // namespace

void emit_async_copy_check(Decoder& d, AsyncCopyCheck copy) {
  if (!checked(d)) return;
  const CopyHook* kept = d.keep(CopyHook{copy, new_site(d)});
  d.emit(copy_hook).more = kept;
}
void emit_async_commit_check(Decoder& d) {
  if (checked(d)) d.emit(commit_hook);
}
void emit_async_wait_check(Decoder& d, uint32_t pending) {
  if (checked(d)) d.emit(wait_hook).x = pending;
}

}  // namespace ptxb::emu
