// Owns the slow way from an address to host bytes, and the words for a bad one.
// SPDX-License-Identifier: Apache-2.0
#include "emu/address.h"

#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Operand;

std::optional<Window> window_of(const Decoder& d) {
  if (d.has(Modifier::SharedCluster)) return Window::SharedCluster;
  if (d.has(Modifier::Shared) || d.has(Modifier::SharedCta)) return Window::Shared;
  if (d.has(Modifier::Global) || d.has(Modifier::Const)) return Window::Global;
  if (d.has(Modifier::Local)) return Window::Local;
  if (d.has(Modifier::Param) || d.has(Modifier::ParamEntry) || d.has(Modifier::ParamFunc))
    return std::nullopt;
  return Window::Generic;
}

uint32_t address_slot(Decoder& d, const Operand& operand, Window window) {
  if (operand.kind != Operand::Kind::Address || operand.elements.empty()) {
    d.refuse("an address is needed");
    return 0;
  }
  return d.source(operand.elements[0], narrow_addresses(window) ? 4 : 8);
}

uint64_t lane_address(Warp& w, const Insn* i, Window window, uint32_t lane) {
  if (narrow_addresses(window)) return lanes<U32>(w, i->a)[lane] + static_cast<uint32_t>(i->imm);
  return lanes<U64>(w, i->a)[lane] + static_cast<uint64_t>(i->imm);
}

namespace {

uint8_t* shared_bytes(Warp& w, uint64_t address, uint32_t bytes, bool other_ctas) {
  uint32_t rank = static_cast<uint32_t>(address >> 24) & 0xff;
  uint32_t offset = static_cast<uint32_t>(address & 0xffffff);
  Cta* cta = w.cta;
  if (rank != cta->rank) {
    if (!other_ctas || rank >= cta->cluster->ctas.size()) return nullptr;
    cta = cta->cluster->ctas[rank].get();
  }
  if (address >> 32 || offset < kSharedBase || offset > w.shared_end ||
      w.shared_end - offset < bytes)
    return nullptr;
  return cta->shared_bytes.data() + (offset - kSharedBase);
}

uint8_t* local_bytes(Warp& w, uint32_t lane, uint64_t address, uint32_t bytes) {
  if (address > w.local_stride || w.local_stride - address < bytes) return nullptr;
  return w.local.data() + uint64_t{lane} * w.local_stride + address;
}

uint8_t* global_bytes(Warp& w, uint64_t address, uint32_t bytes, Access access,
                      const Allocation** allocation) {
  const Launch& launch = w.worker->launch;
  const Allocation* found = nullptr;
  if (address >= kParamWindow && address < kParamWindowEnd) {
    const Allocation& p = launch.parameters;
    if (address < p.end && p.end - address >= bytes) found = &p;
  } else {
    found = launch.run.memory.find(address, bytes);
  }
  if (!found || (access != Access::Read && !found->writable)) return nullptr;
  if (allocation) *allocation = found;
  return found->at(address);
}

bool is_shared(uint64_t address) { return address >= kSharedWindow && address < kSharedWindowEnd; }
bool is_local(uint64_t address) { return address >= kLocalWindow && address < kLocalWindowEnd; }

// Window and address with the generic address space taken apart.
std::pair<Window, uint64_t> specific(Window window, uint64_t address) {
  if (window == Window::Generic) {
    if (is_shared(address)) return {Window::SharedCluster, address - kSharedWindow};
    if (is_local(address)) return {Window::Local, address - kLocalWindow};
    return {Window::Global, address};
  }
  return {window, address};
}

const Insn* out_of_bounds(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                          uint32_t bytes, Access access) {
  auto [where, at] = specific(window, address);
  const char* does = access == Access::Read    ? " reads "
                     : access == Access::Write ? " writes "
                                               : " updates ";
  std::string text = thread_text(w, lane) + does + std::to_string(bytes) +
                     (bytes == 1 ? " byte at " : " bytes at ");
  FindingKind kind = FindingKind::OutOfBounds;
  std::string hint = "check the guard of the last tile and the size that the host passed";
  if (where == Window::Global) {
    Memory::State& memory = w.worker->run.memory;
    const Allocation* read_only = memory.find(at, bytes);
    text += memory.describe(at, bytes);
    if (read_only) {
      text += ", which is constant";
      hint = "constant memory cannot be written";
    } else if (!memory.near(at)) {
      kind = FindingKind::WildPointer;
      hint = "the address was never a buffer's: an uninitialised, truncated or host pointer";
    }
  } else if (where == Window::Local) {
    text += "local+" + hex_text(at) + "; the thread has " + std::to_string(w.local_stride) +
            " bytes of local memory";
  } else {
    uint64_t offset = at & 0xffffff;
    uint64_t rank = at >> 24;
    text += "shared+" + hex_text(offset < kSharedBase ? offset : offset - kSharedBase);
    if (rank != w.cta->rank && rank < w.cta->cluster->ctas.size() && window == Window::Shared) {
      text += " of block " + std::to_string(rank) + " of the cluster through a .shared::cta access";
    } else if (rank >= w.cta->cluster->ctas.size()) {
      text = thread_text(w, lane) + does + std::to_string(bytes) + " bytes at shared address " +
             hex_text(at);
      hint = "not an address of this block's shared memory";
    } else if (offset < kSharedBase) {
      text = thread_text(w, lane) + does + std::to_string(bytes) + " bytes at shared address " +
             hex_text(at) + ", before the block's shared memory";
    }
    text +=
        "; the block has " + std::to_string(w.shared_end - kSharedBase) + " bytes of shared memory";
  }
  return fault(w, i, kind, text, hint);
}

}  // namespace

std::string place_text(Warp& w, Window window, uint64_t address, uint32_t bytes) {
  auto [where, at] = specific(window, address);
  switch (where) {
    case Window::Global:
      return w.worker->run.memory.describe(at, bytes);
    case Window::Local:
      return "local+" + hex_text(at);
    default:
      return "shared+" + hex_text((at & 0xffffff) - kSharedBase);
  }
}

uint8_t* resolve_quietly(Warp& w, uint32_t lane, Window window, uint64_t address, uint32_t bytes,
                         Access access, const Allocation** allocation) {
  auto [where, at] = specific(window, address);
  switch (where) {
    case Window::Shared:
      return shared_bytes(w, at, bytes, false);
    case Window::SharedCluster:
      return shared_bytes(w, at, bytes, true);
    case Window::Local:
      return local_bytes(w, lane, at, bytes);
    default:
      return global_bytes(w, at, bytes, access, allocation);
  }
}

namespace {

uint8_t* resolve_with(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                      uint32_t bytes, Access access, const Allocation** allocation) {
  if (address & (bytes - 1)) {
    fault(w, i, FindingKind::Misaligned,
          thread_text(w, lane) + " accesses " + std::to_string(bytes) + " bytes at " +
              place_text(w, window, address, bytes) + " (address " + hex_text(address) +
              "), which is not a multiple of " + std::to_string(bytes),
          "vector accesses need the alignment of the whole vector");
    return nullptr;
  }
  uint8_t* at = resolve_quietly(w, lane, window, address, bytes, access, allocation);
  if (!at) out_of_bounds(w, i, lane, window, address, bytes, access);
  return at;
}

}  // namespace

uint8_t* resolve(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                 uint32_t bytes, Access access) {
  return resolve_with(w, i, lane, window, address, bytes, access, nullptr);
}

bool resolve_all(Warp& w, const Insn* i, Window window, uint32_t bytes, Access access,
                 uint8_t** at) {
  const Allocation* common = nullptr;
  bool same = true;
  uint32_t first = first_lane(w.mask);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t lane = first_lane(rest);
    const Allocation* found = nullptr;
    at[lane] =
        resolve_with(w, i, lane, window, lane_address(w, i, window, lane), bytes, access, &found);
    if (!at[lane]) return false;
    if (lane == first) common = found;
    same = same && found == common;
  }
  for (uint32_t rest = ~w.mask; rest; rest &= rest - 1) at[first_lane(rest)] = at[first];
  if (same && common && (window == Window::Global || window == Window::Generic))
    w.worker->hot[i->y] = common;
  return true;
}

}  // namespace ptxb::emu
