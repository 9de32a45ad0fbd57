// Owns ld, st, prefetch and the other plain memory operations (PTX ISA 9.7.9.8-18). Never checks
// races (check_*.cc).
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>

#include "emu/address.h"
#include "emu/check_hooks.h"
#include "emu/control.h"
#include "emu/load_store.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

const Insn* copy32(Warp& w, const Insn* i) {
  blend(lanes<U32>(w, i->d), lanes<U32>(w, i->a), w.mask);
  return i + 1;
}
const Insn* copy64(Warp& w, const Insn* i) {
  blend(lanes<U64>(w, i->d), lanes<U64>(w, i->a), w.mask);
  return i + 1;
}

const std::vector<Operand>& members(const Operand& operand, std::vector<Operand>& single) {
  if (operand.kind == Operand::Kind::Vector) return operand.elements;
  single.assign(1, operand);
  return single;
}

uint32_t wide_base(const ptx::Operand& operand) { return static_cast<uint32_t>(operand.offset); }

// ld.param of a kernel at a constant place: constants of the launch.
bool load_parameter(Decoder& d, const std::vector<Operand>& targets, const Operand& address,
                    Type type) {
  const Operand& base = address.elements[0];
  uint32_t at = d.symbols().params.find(base.symbol)->second + wide_base(base) +
                static_cast<uint32_t>(address.offset);
  uint32_t size = static_cast<uint32_t>(ptx::size_bytes(type));
  if (at % size || uint64_t{at} + size * targets.size() > d.code().param_bytes)
    return d.refuse("outside the kernel's parameters");
  for (const Operand& target : targets) {
    if (target.kind == Operand::Kind::Sink) {
      at += size;
      continue;
    }
    int width = d.width_of(target);
    if (width == 16 || size == 16) return d.refuse("128-bit parameter");
    Constant c;
    c.kind = Constant::Kind::Parameter;
    c.width_bytes = static_cast<uint8_t>(width);
    c.bytes = static_cast<uint8_t>(size);
    c.is_signed = ptx::is_signed(type);
    c.value = at;
    uint32_t from = d.constant(c), to = d.destination(target, width);
    if (d.refused()) return false;
    Insn& insn = d.emit(width == 8 ? copy64 : copy32);
    insn.d = to;
    insn.a = from;
    at += size;
  }
  return true;
}

// State space of the operation; .param is local memory for device functions, the parameter window
// for kernels.
std::optional<Window> memory_window(Decoder& d, const Operand& address) {
  if (auto window = window_of(d)) return window;
  const Operand& base = address.elements[0];
  if (base.kind == Operand::Kind::Symbol && d.symbols().local.count(base.symbol))
    return Window::Local;
  if (d.function().is_entry) return Window::Global;
  return Window::Local;
}

bool emit_access(Decoder& d, const std::vector<Operand>& regs, const Operand& address,
                 Window window, Type type, bool loads) {
  size_t count = regs.size();
  if (count != 1 && count != 2 && count != 4) return d.refuse("vectors of more than four elements");
  uint32_t size = static_cast<uint32_t>(ptx::size_bytes(type));
  if (size * count > 32) return d.refuse("more than 32 bytes a thread");
  uint32_t base = address_slot(d, address, window);
  if (d.refused()) return false;
  uint32_t ordinal = d.memory_ordinal();
  AccessCheck check{window,
                    base,
                    address.offset,
                    size,
                    static_cast<uint32_t>(count),
                    loads ? Access::Read : Access::Write,
                    loads ? 0u : 1u,
                    {},
                    16};
  if (type == Type::B128) {
    if (count != 1) return d.refuse("vectors of b128");
    emit_access_check(d, std::move(check));
    uint32_t reg = d.source128(regs[0]);
    if (d.refused()) return false;
    Insn& insn = d.emit(loads ? load_b128 : store_b128);
    insn.n = static_cast<uint16_t>(window);
    insn.a = base;
    insn.imm = address.offset;
    insn.y = ordinal;
    insn.d = reg;
    return true;
  }
  int width = size == 8 ? 8 : 4;
  for (const Operand& reg : regs) width = std::max(width, d.width_of(reg));
  if (width > 8) return d.refuse("128-bit register for a smaller type");
  uint32_t slots[4] = {};
  for (size_t k = 0; k < count; ++k)
    slots[k] = loads ? d.destination(regs[k], width) : d.source(regs[k], width);
  if (d.refused()) return false;
  if (!loads) check.data_slots.assign(slots, slots + count);
  check.lane_bytes = width;
  emit_access_check(d, std::move(check));
  GeneralAccess shape{window, size, static_cast<uint32_t>(count), static_cast<uint32_t>(width),
                      ptx::is_signed(type)};
  Insn& insn = d.emit(loads ? load_handler(shape) : store_handler(shape));
  insn.more = d.keep(shape);
  insn.a = base;
  insn.imm = address.offset;
  insn.y = ordinal;
  insn.d = slots[0];
  insn.b = slots[1];
  insn.c = slots[2];
  insn.x = slots[3];
  return true;
}

bool decode_load(Decoder& d) {
  const Operand& address = d.operand(1);
  if (address.kind != Operand::Kind::Address || address.elements.empty())
    return d.refuse("an address is needed");
  std::vector<Operand> single;
  const std::vector<Operand>& targets = members(d.operand(0), single);
  Type type = d.type();
  const Operand& base = address.elements[0];
  bool parameter = !window_of(d);
  if (parameter && base.kind == Operand::Kind::Symbol && d.symbols().params.count(base.symbol))
    return load_parameter(d, targets, address, type);
  return emit_access(d, targets, address, *memory_window(d, address), type, true);
}

bool decode_store(Decoder& d) {
  const Operand& address = d.operand(0);
  if (address.kind != Operand::Kind::Address || address.elements.empty())
    return d.refuse("an address is needed");
  std::vector<Operand> single;
  return emit_access(d, members(d.operand(1), single), address, *memory_window(d, address),
                     d.type(), false);
}

// Hints: what they name must be legal, nothing moves.
bool decode_hint(Decoder& d, const Operand& address, uint32_t alignment) {
  (void)alignment;
  auto window = window_of(d);
  if (!window) window = Window::Generic;
  address_slot(d, address, *window);
  if (d.refused()) return false;
  d.emit(nothing_handler());
  return true;
}

// createpolicy makes an opaque value that only cache hints take.
bool decode_policy(Decoder& d) {
  uint32_t to = d.destination(0, 8), from = d.bits(0x12f0000000000000u, 8);
  if (d.refused()) return false;
  Insn& insn = d.emit(copy64);
  insn.d = to;
  insn.a = from;
  return true;
}

const Insn* fence(Warp&, const Insn* i) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return i + 1;
}

}  // namespace

bool decode_memory(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::Ld:
    case Opcode::Ldu:
      return decode_load(d);
    case Opcode::St:
      return decode_store(d);
    case Opcode::Prefetch:
    case Opcode::Prefetchu:
    case Opcode::Applypriority:
    case Opcode::Discard:
      return decode_hint(d, d.operand(0), 128);
    case Opcode::Createpolicy:
      return decode_policy(d);
    case Opcode::Membar:
    case Opcode::MembarProxy:
    case Opcode::Fence:
    case Opcode::FenceMbarrierInit:
    case Opcode::FenceProxy:
      if (d.operands() != 0) return d.refuse("");
      emit_fence_check(d);
      d.emit(fence);
      return true;
    default:
      return false;
  }
}

}  // namespace ptxb::emu
