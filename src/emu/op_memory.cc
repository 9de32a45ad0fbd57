// Owns ld, st, prefetch and the other plain memory operations (PTX ISA 9.7.9.8-18). Never checks races (check_*.cc).
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>

#include "emu/address.h"
#include "emu/check_hooks.h"
#include "emu/control.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

struct Far {
  uint8_t* host[32];
  PTXB_INLINE uint8_t* at(uint32_t l) const { return host[l]; }
};

template <class R>
PTXB_INLINE R get(const uint8_t* p) {
  R value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Register k of a vector operand: d, b, c, x.
PTXB_INLINE uint32_t slot(const Insn* i, int k) { return k == 0 ? i->d : k == 1 ? i->b : k == 2 ? i->c : i->x; }

#if defined(__x86_64__)
// Eight rows of 16 bytes -> four registers of eight lanes, and back.
template <class Place>
PTXB_WIDE [[gnu::always_inline]] inline void load_quads(Warp& w, const Insn* i, const Place& place) {
  for (uint32_t g = 0; g < 32; g += 8) {
    auto row = [&](uint32_t l) __attribute__((always_inline, target("avx2,fma,bmi,bmi2,popcnt"))) {
      return _mm_loadu_ps(reinterpret_cast<const float*>(place.at(g + l)));
    };
    __m256 r0 = _mm256_insertf128_ps(_mm256_castps128_ps256(row(0)), row(4), 1);
    __m256 r1 = _mm256_insertf128_ps(_mm256_castps128_ps256(row(1)), row(5), 1);
    __m256 r2 = _mm256_insertf128_ps(_mm256_castps128_ps256(row(2)), row(6), 1);
    __m256 r3 = _mm256_insertf128_ps(_mm256_castps128_ps256(row(3)), row(7), 1);
    __m256 t0 = _mm256_unpacklo_ps(r0, r1), t1 = _mm256_unpackhi_ps(r0, r1);
    __m256 t2 = _mm256_unpacklo_ps(r2, r3), t3 = _mm256_unpackhi_ps(r2, r3);
    _mm256_store_ps(lanes<float>(w, i->d) + g, _mm256_shuffle_ps(t0, t2, 0x44));
    _mm256_store_ps(lanes<float>(w, i->b) + g, _mm256_shuffle_ps(t0, t2, 0xee));
    _mm256_store_ps(lanes<float>(w, i->c) + g, _mm256_shuffle_ps(t1, t3, 0x44));
    _mm256_store_ps(lanes<float>(w, i->x) + g, _mm256_shuffle_ps(t1, t3, 0xee));
  }
}
template <class Place>
PTXB_WIDE [[gnu::always_inline]] inline void store_quads(Warp& w, const Insn* i, const Place& place) {
  for (uint32_t g = 0; g < 32; g += 8) {
    __m256 a = _mm256_load_ps(lanes<float>(w, i->d) + g), b = _mm256_load_ps(lanes<float>(w, i->b) + g);
    __m256 c = _mm256_load_ps(lanes<float>(w, i->c) + g), d = _mm256_load_ps(lanes<float>(w, i->x) + g);
    __m256 t0 = _mm256_unpacklo_ps(a, b), t1 = _mm256_unpackhi_ps(a, b);
    __m256 t2 = _mm256_unpacklo_ps(c, d), t3 = _mm256_unpackhi_ps(c, d);
    __m256 r[4] = {_mm256_shuffle_ps(t0, t2, 0x44), _mm256_shuffle_ps(t0, t2, 0xee), _mm256_shuffle_ps(t1, t3, 0x44),
                   _mm256_shuffle_ps(t1, t3, 0xee)};
    for (uint32_t l = 0; l < 4; ++l) _mm_storeu_ps(reinterpret_cast<float*>(place.at(g + l)), _mm256_castps256_ps128(r[l]));
    for (uint32_t l = 0; l < 4; ++l) _mm_storeu_ps(reinterpret_cast<float*>(place.at(g + 4 + l)), _mm256_extractf128_ps(r[l], 1));
  }
}
#endif

template <class R, class D, int N, class Place>
PTXB_INLINE void load_lanes(Warp& w, const Insn* i, const Place& place) {
  using Wide = std::conditional_t<std::is_signed_v<R>, int64_t, uint64_t>;
  for (int k = 0; k < N; ++k) {
    D* d = lanes<D>(w, slot(i, k));
    if (w.mask == kAll) {
      for (uint32_t l = 0; l < 32; ++l) d[l] = static_cast<D>(static_cast<Wide>(get<R>(place.at(l) + sizeof(R) * static_cast<size_t>(k))));
    } else {
      alignas(64) D t[32];
      for (uint32_t l = 0; l < 32; ++l) t[l] = static_cast<D>(static_cast<Wide>(get<R>(place.at(l) + sizeof(R) * static_cast<size_t>(k))));
      blend(d, t, w.mask);
    }
  }
}

template <class R, class S, int N, class Place>
PTXB_INLINE void store_lanes(Warp& w, const Insn* i, const Place& place) {
  if (w.mask == kAll) {
    for (uint32_t l = 0; l < 32; ++l) {
      for (int k = 0; k < N; ++k) {
        R value = static_cast<R>(lanes<S>(w, slot(i, k))[l]);
        std::memcpy(place.at(l) + sizeof(R) * static_cast<size_t>(k), &value, sizeof value);
      }
    }
    return;
  }
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = first_lane(rest);
    for (int k = 0; k < N; ++k) {
      R value = static_cast<R>(lanes<S>(w, slot(i, k))[l]);
      std::memcpy(place.at(l) + sizeof(R) * static_cast<size_t>(k), &value, sizeof value);
    }
  }
}

template <Window window, class R, class D, int N>
[[gnu::noinline]] const Insn* load_slow(Warp& w, const Insn* i) {
  Far far;
  if (!resolve_all(w, i, window, sizeof(R) * N, Access::Read, far.host)) return nullptr;
  load_lanes<R, D, N>(w, i, far);
  return i + 1;
}
template <Window window, class R, class D, int N>
const Insn* load_portable(Warp& w, const Insn* i) {
  Near near;
  if (!near_addresses<window>(w, i, sizeof(R) * N, near)) return load_slow<window, R, D, N>(w, i);
  load_lanes<R, D, N>(w, i, near);
  return i + 1;
}
template <Window window, class R, class D, int N>
PTXB_WIDE const Insn* load_wide(Warp& w, const Insn* i) {
  Near near;
  if (!near_addresses<window>(w, i, sizeof(R) * N, near)) return load_slow<window, R, D, N>(w, i);
#if defined(__x86_64__)
  if constexpr (N == 4 && sizeof(R) == 4 && sizeof(D) == 4) {
    if (w.mask == kAll) {
      load_quads(w, i, near);
      return i + 1;
    }
  }
#endif
  load_lanes<R, D, N>(w, i, near);
  return i + 1;
}

template <Window window, class R, class S, int N>
[[gnu::noinline]] const Insn* store_slow(Warp& w, const Insn* i) {
  Far far;
  if (!resolve_all(w, i, window, sizeof(R) * N, Access::Write, far.host)) return nullptr;
  store_lanes<R, S, N>(w, i, far);
  return i + 1;
}
template <Window window, class R, class S, int N>
const Insn* store_portable(Warp& w, const Insn* i) {
  Near near;
  if (!near_addresses<window>(w, i, sizeof(R) * N, near)) return store_slow<window, R, S, N>(w, i);
  store_lanes<R, S, N>(w, i, near);
  return i + 1;
}
template <Window window, class R, class S, int N>
PTXB_WIDE const Insn* store_wide(Warp& w, const Insn* i) {
  Near near;
  if (!near_addresses<window>(w, i, sizeof(R) * N, near)) return store_slow<window, R, S, N>(w, i);
#if defined(__x86_64__)
  if constexpr (N == 4 && sizeof(R) == 4 && sizeof(S) == 4) {
    if (w.mask == kAll) {
      store_quads(w, i, near);
      return i + 1;
    }
  }
#endif
  store_lanes<R, S, N>(w, i, near);
  return i + 1;
}

// b128 registers: 16 bytes a lane.
template <Window window>
const Insn* load_b128(Warp& w, const Insn* i) {
  Far far;
  if (!resolve_all(w, i, window, 16, Access::Read, far.host)) return nullptr;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) std::memcpy(w.r + i->d + 16 * first_lane(rest), far.at(first_lane(rest)), 16);
  return i + 1;
}
template <Window window>
const Insn* store_b128(Warp& w, const Insn* i) {
  Far far;
  if (!resolve_all(w, i, window, 16, Access::Write, far.host)) return nullptr;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) std::memcpy(far.at(first_lane(rest)), w.r + i->d + 16 * first_lane(rest), 16);
  return i + 1;
}

template <Window window, class R, class D>
Handlers load_of(int count) {
  if (count == 1) return {load_portable<window, R, D, 1>, load_wide<window, R, D, 1>};
  if (count == 2) return {load_portable<window, R, D, 2>, load_wide<window, R, D, 2>};
  return {load_portable<window, R, D, 4>, load_wide<window, R, D, 4>};
}
template <Window window, class R, class S>
Handlers store_of(int count) {
  if (count == 1) return {store_portable<window, R, S, 1>, store_wide<window, R, S, 1>};
  if (count == 2) return {store_portable<window, R, S, 2>, store_wide<window, R, S, 2>};
  return {store_portable<window, R, S, 4>, store_wide<window, R, S, 4>};
}

template <Window window, class D>
Handlers load_typed(Type type, int count) {
  bool negative = ptx::is_signed(type);
  switch (ptx::size_bytes(type)) {
    case 1: return negative ? load_of<window, int8_t, D>(count) : load_of<window, uint8_t, D>(count);
    case 2: return negative ? load_of<window, int16_t, D>(count) : load_of<window, uint16_t, D>(count);
    case 4:
      if constexpr (sizeof(D) == 8) {
        if (negative) return load_of<window, int32_t, D>(count);
      }
      return load_of<window, uint32_t, D>(count);
    default: return load_of<window, uint64_t, uint64_t>(count);
  }
}
template <Window window, class S>
Handlers store_typed(Type type, int count) {
  switch (ptx::size_bytes(type)) {
    case 1: return store_of<window, uint8_t, S>(count);
    case 2: return store_of<window, uint16_t, S>(count);
    case 4: return store_of<window, uint32_t, S>(count);
    default: return store_of<window, uint64_t, uint64_t>(count);
  }
}
template <Window window>
Handlers load_handler(Type type, int width, int count) {
  return width == 8 ? load_typed<window, uint64_t>(type, count) : load_typed<window, uint32_t>(type, count);
}
template <Window window>
Handlers store_handler(Type type, int width, int count) {
  return width == 8 ? store_typed<window, uint64_t>(type, count) : store_typed<window, uint32_t>(type, count);
}

Handlers load_handler(Window window, Type type, int width, int count) {
  switch (window) {
    case Window::Shared: return load_handler<Window::Shared>(type, width, count);
    case Window::SharedCluster: return load_handler<Window::SharedCluster>(type, width, count);
    case Window::Global: return load_handler<Window::Global>(type, width, count);
    case Window::Local: return load_handler<Window::Local>(type, width, count);
    case Window::Generic: break;
  }
  return load_handler<Window::Generic>(type, width, count);
}
Handlers store_handler(Window window, Type type, int width, int count) {
  switch (window) {
    case Window::Shared: return store_handler<Window::Shared>(type, width, count);
    case Window::SharedCluster: return store_handler<Window::SharedCluster>(type, width, count);
    case Window::Global: return store_handler<Window::Global>(type, width, count);
    case Window::Local: return store_handler<Window::Local>(type, width, count);
    case Window::Generic: break;
  }
  return store_handler<Window::Generic>(type, width, count);
}
Handler b128_handler(Window window, bool loads) {
  switch (window) {
    case Window::Shared: return loads ? load_b128<Window::Shared> : store_b128<Window::Shared>;
    case Window::SharedCluster: return loads ? load_b128<Window::SharedCluster> : store_b128<Window::SharedCluster>;
    case Window::Global: return loads ? load_b128<Window::Global> : store_b128<Window::Global>;
    case Window::Local: return loads ? load_b128<Window::Local> : store_b128<Window::Local>;
    case Window::Generic: break;
  }
  return loads ? load_b128<Window::Generic> : store_b128<Window::Generic>;
}

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
bool load_parameter(Decoder& d, const std::vector<Operand>& targets, const Operand& address, Type type) {
  const Operand& base = address.elements[0];
  uint32_t at = d.symbols().params.find(base.symbol)->second + wide_base(base) + static_cast<uint32_t>(address.offset);
  uint32_t size = static_cast<uint32_t>(ptx::size_bytes(type));
  if (at % size || uint64_t{at} + size * targets.size() > d.code().param_bytes) return d.refuse("outside the kernel's parameters");
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

struct Shape {
  Window window = Window::Global;
  const Operand* address = nullptr;
  Type type = Type::B32;
};

// State space of the operation; .param is local memory for device functions, the parameter window for kernels.
std::optional<Window> memory_window(Decoder& d, const Operand& address) {
  if (auto window = window_of(d)) return window;
  const Operand& base = address.elements[0];
  if (base.kind == Operand::Kind::Symbol && d.symbols().local.count(base.symbol)) return Window::Local;
  if (d.function().is_entry) return Window::Global;
  return Window::Local;
}

bool emit_access(Decoder& d, const std::vector<Operand>& regs, const Operand& address, Window window, Type type, bool loads) {
  size_t count = regs.size();
  if (count != 1 && count != 2 && count != 4) return d.refuse("vectors of more than four elements");
  uint32_t size = static_cast<uint32_t>(ptx::size_bytes(type));
  if (size * count > 32) return d.refuse("more than 32 bytes a thread");
  uint32_t base = address_slot(d, address, window);
  if (d.refused()) return false;
  uint32_t ordinal = d.memory_ordinal();
  AccessCheck check{window, base, address.offset, size, static_cast<uint32_t>(count), loads ? Access::Read : Access::Write, loads ? 0u : 1u, {}, 16};
  if (type == Type::B128) {
    if (count != 1) return d.refuse("vectors of b128");
    emit_access_check(d, std::move(check));
    uint32_t reg = d.source128(regs[0]);
    if (d.refused()) return false;
    Insn& insn = d.emit(b128_handler(window, loads));
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
  for (size_t k = 0; k < count; ++k) slots[k] = loads ? d.destination(regs[k], width) : d.source(regs[k], width);
  if (d.refused()) return false;
  if (!loads) check.data_slots.assign(slots, slots + count);
  check.lane_bytes = width;
  emit_access_check(d, std::move(check));
  Insn& insn = d.emit(loads ? load_handler(window, type, width, static_cast<int>(count)) : store_handler(window, type, width, static_cast<int>(count)));
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
  if (address.kind != Operand::Kind::Address || address.elements.empty()) return d.refuse("an address is needed");
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
  if (address.kind != Operand::Kind::Address || address.elements.empty()) return d.refuse("an address is needed");
  std::vector<Operand> single;
  return emit_access(d, members(d.operand(1), single), address, *memory_window(d, address), d.type(), false);
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
