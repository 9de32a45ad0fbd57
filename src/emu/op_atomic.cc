// Owns atom and red (PTX ISA 9.7.13.5-6). Global memory is shared between host threads, so that
// updates there are atomic; lanes of a warp update in lane order.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "emu/address.h"
#include "emu/arith/float_ops.h"
#include "emu/check_hooks.h"
#include "emu/emit.h"

namespace ptxb::emu {

using arith::Half;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

enum class Op : uint8_t { And, Or, Xor, Cas, Exch, Add, Inc, Dec, Min, Max };

struct Atomic {
  Op op = Op::Add;
  Type type = Type::U32;
  Window window = Window::Global;
  int bytes = 4;       // of one element
  int lane_bytes = 4;  // of its registers
  bool returns = false;
  std::vector<uint32_t> to, value, other;  // by element of a vector; `other`: new value of cas
};

// The new value. `b` is the operand, `c` the new value of cas.
template <class T>
T updated(const Atomic& a, T old, T b, T c) {
  using S = std::make_signed_t<T>;
  switch (a.op) {
    case Op::And:
      return old & b;
    case Op::Or:
      return old | b;
    case Op::Xor:
      return old ^ b;
    case Op::Cas:
      return old == b ? c : old;
    case Op::Exch:
      return b;
    case Op::Inc:
      return old >= b ? T{0} : static_cast<T>(old + 1);
    case Op::Dec:
      return old == 0 || old > b ? b : static_cast<T>(old - 1);
    default:
      break;
  }
  bool least = a.op == Op::Min, greatest = a.op == Op::Max;
  if constexpr (sizeof(T) == 4) {
    switch (a.type) {
      // atom.add.f32 flushes subnormals in global memory only (PTX ISA 9.7.13.5); sm_90 hardware
      // keeps them everywhere for .global, as does this.
      case Type::F32:
        return arith::add_f32(old, b);
      case Type::F16x2:
        return least      ? arith::min_half2(Half::F16, old, b)
               : greatest ? arith::max_half2(Half::F16, old, b)
                          : arith::add_half2(Half::F16, old, b);
      case Type::BF16x2:
        return least      ? arith::min_half2(Half::BF16, old, b)
               : greatest ? arith::max_half2(Half::BF16, old, b)
                          : arith::add_half2(Half::BF16, old, b);
      default:
        break;
    }
  }
  if constexpr (sizeof(T) == 8) {
    if (a.type == Type::F64) return arith::add_f64(old, b);
  }
  if constexpr (sizeof(T) == 2) {
    Half format = a.type == Type::BF16 ? Half::BF16 : Half::F16;
    if (a.type == Type::F16 || a.type == Type::BF16)
      return least      ? arith::min_half(format, old, b)
             : greatest ? arith::max_half(format, old, b)
                        : arith::add_half(format, old, b);
  }
  if (a.op == Op::Add) return static_cast<T>(old + b);
  bool negative = ptx::is_signed(a.type);
  bool less = negative ? static_cast<S>(b) < static_cast<S>(old) : b < old;
  if (least) return less ? b : old;
  return less ? old : b;
}

template <class T>
T update(uint8_t* at, const Atomic& a, T b, T c) {
  T* place = reinterpret_cast<T*>(at);
  T old = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(place, &old, updated<T>(a, old, b, c), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

template <class T>
void update_lane(Warp& w, const Atomic& a, size_t element, uint8_t* at, uint32_t l) {
  auto read = [&](uint32_t slot) {
    return static_cast<T>(a.lane_bytes == 8 ? lanes<U64>(w, slot)[l] : lanes<U32>(w, slot)[l]);
  };
  T old = update<T>(at, a, read(a.value[element]), a.other.empty() ? T{0} : read(a.other[element]));
  if (!a.returns) return;
  if (a.lane_bytes == 8)
    lanes<U64>(w, a.to[element])[l] = old;
  else
    lanes<U32>(w, a.to[element])[l] = static_cast<uint32_t>(old);
}

const Insn* atomic(Warp& w, const Insn* i) {
  const Atomic& a = *static_cast<const Atomic*>(i->more);
  uint8_t* at[32];
  uint32_t whole = static_cast<uint32_t>(a.bytes) * static_cast<uint32_t>(a.value.size());
  if (!resolve_all(w, i, a.window, whole, Access::Update, at)) return nullptr;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = first_lane(rest);
    for (size_t k = 0; k < a.value.size(); ++k) {
      uint8_t* place = at[l] + k * static_cast<size_t>(a.bytes);
      if (a.bytes == 8)
        update_lane<uint64_t>(w, a, k, place, l);
      else if (a.bytes == 4)
        update_lane<uint32_t>(w, a, k, place, l);
      else
        update_lane<uint16_t>(w, a, k, place, l);
    }
  }
  return i + 1;
}

std::optional<Op> op_of(const Decoder& d) {
  static constexpr std::pair<Modifier, Op> kOps[] = {
      {Modifier::And, Op::And}, {Modifier::Or, Op::Or},     {Modifier::Xor, Op::Xor},
      {Modifier::Cas, Op::Cas}, {Modifier::Exch, Op::Exch}, {Modifier::Add, Op::Add},
      {Modifier::Inc, Op::Inc}, {Modifier::Dec, Op::Dec},   {Modifier::Min, Op::Min},
      {Modifier::Max, Op::Max}};
  for (const auto& [modifier, op] : kOps)
    if (d.has(modifier)) return op;
  return std::nullopt;
}

bool slots_of(Decoder& d, const Operand& operand, int width, bool writes,
              std::vector<uint32_t>& out) {
  if (operand.kind == Operand::Kind::Vector) {
    for (const Operand& each : operand.elements)
      out.push_back(writes ? d.destination(each, width) : d.source(each, width));
  } else {
    out.push_back(writes ? d.destination(operand, width) : d.source(operand, width));
  }
  return !d.refused();
}

}  // namespace

bool decode_atomic(Decoder& d) {
  if (d.opcode() != Opcode::Atom && d.opcode() != Opcode::Red) return false;
  Atomic a;
  auto op = op_of(d);
  auto window = window_of(d);
  if (!op || !window) return d.refuse("");
  a.op = *op;
  a.window = *window;
  a.type = d.type();
  a.bytes = ptx::size_bytes(a.type);
  if (a.bytes > 8) return d.refuse("128-bit atomics");
  a.lane_bytes = a.bytes == 8 ? 8 : 4;
  if ((a.type == Type::F32 || a.type == Type::F64) && a.op != Op::Add && a.op != Op::Exch &&
      a.op != Op::Cas)
    return d.refuse("");
  a.returns = d.opcode() == Opcode::Atom;
  size_t first = a.returns ? 1 : 0;
  const Operand& address = d.operand(first);
  if (d.operands() < first + (a.op == Op::Cas ? 3 : 2)) return d.refuse("");
  uint32_t base = address_slot(d, address, a.window);
  if (d.refused()) return false;
  if (a.returns && !slots_of(d, d.operand(0), a.lane_bytes, true, a.to)) return false;
  if (!slots_of(d, d.operand(first + 1), a.lane_bytes, false, a.value)) return false;
  if (a.op == Op::Cas && !slots_of(d, d.operand(first + 2), a.lane_bytes, false, a.other))
    return false;
  if (a.returns && a.to.size() != a.value.size()) return d.refuse("");
  bool floats = ptx::is_float(a.type) && a.op == Op::Add;
  bool used = a.returns && d.operand(0).kind != Operand::Kind::Sink;
  if ((a.window == Window::Global || a.window == Window::Generic) && (floats || used))
    d.kernel().order_matters = true;
  uint32_t ordinal = d.memory_ordinal();
  emit_access_check(d, {a.window,
                        base,
                        address.offset,
                        static_cast<uint32_t>(a.bytes),
                        static_cast<uint32_t>(a.value.size()),
                        Access::Update,
                        first + 1,
                        {},
                        a.lane_bytes});
  Insn& insn = d.emit(atomic);
  insn.a = base;
  insn.imm = address.offset;
  insn.y = ordinal;
  insn.more = d.keep(std::move(a));
  return true;
}

}  // namespace ptxb::emu
