// Owns mov with its packing forms, cvta, isspacep, mapa, getctarank (PTX ISA 9.7.9.3-4,
// 9.7.9.19-24).
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "emu/address.h"
#include "emu/emit.h"
#include "emu/report.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

Handler copy_handler(int width) {
  if (width == 8) return unary<Of<[](uint64_t a) { return a; }>, uint64_t>();
  return unary<Of<[](uint32_t a) { return a; }>, uint32_t>();
}

const Insn* copy_predicate(Warp& w, const Insn* i) {
  set_predicate(w, i->d, predicate(w, i->a) ^ i->x);
  return i + 1;
}
const Insn* copy128(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1)
    std::memmove(w.r + i->d + 16 * first_lane(rest), w.r + i->a + 16 * first_lane(rest), 16);
  return i + 1;
}

// mov of vectors: bits of the parts one after the other, the first lowest.
struct Parts {
  std::vector<uint32_t> slots;  // of the parts
  int part_bits = 32;           // 8, 16, 32, 64
  int lane_bytes = 4;           // of a part's register
  int whole_bytes = 8;          // 4, 8 or 16
};
const Insn* pack(Warp& w, const Insn* i) {
  const auto& p = *static_cast<const Parts*>(i->more);
  size_t part_bytes = static_cast<size_t>(p.part_bits) / 8;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = first_lane(rest);
    uint8_t whole[16] = {};
    for (size_t k = 0; k < p.slots.size(); ++k) {
      uint64_t part =
          p.lane_bytes == 8 ? lanes<U64>(w, p.slots[k])[l] : lanes<U32>(w, p.slots[k])[l];
      std::memcpy(whole + k * part_bytes, &part, part_bytes);
    }
    std::memcpy(w.r + i->d + static_cast<size_t>(p.whole_bytes) * l, whole,
                static_cast<size_t>(p.whole_bytes));
  }
  return i + 1;
}
const Insn* unpack(Warp& w, const Insn* i) {
  const auto& p = *static_cast<const Parts*>(i->more);
  size_t part_bytes = static_cast<size_t>(p.part_bits) / 8;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = first_lane(rest);
    uint8_t whole[16];
    std::memcpy(whole, w.r + i->a + static_cast<size_t>(p.whole_bytes) * l,
                static_cast<size_t>(p.whole_bytes));
    for (size_t k = 0; k < p.slots.size(); ++k) {
      uint64_t part = 0;
      std::memcpy(&part, whole + k * part_bytes, part_bytes);
      if (p.lane_bytes == 8)
        lanes<U64>(w, p.slots[k])[l] = part;
      else
        lanes<U32>(w, p.slots[k])[l] = static_cast<uint32_t>(part);
    }
  }
  return i + 1;
}

// The frequent two-part forms, vectorised.
template <class W, class P, int shift>
Handlers pack_two() {
  return binary<
      Of<[](P a, P b) { return static_cast<W>((W{a} & ((W{1} << shift) - 1)) | (W{b} << shift)); }>,
      W, P>();
}
template <class W, class P, int shift>
PTXB_INLINE void unpack_body(Warp& w, const Insn* i) {
  const W* a = lanes<W>(w, i->a);
  alignas(64) P low[32], high[32];
  PTXB_LANES for (int l = 0; l < 32; ++l) {
    low[l] = static_cast<P>(a[l] & ((W{1} << shift) - 1));
    high[l] = static_cast<P>(a[l] >> shift);
  }
  blend(lanes<P>(w, i->d), low, w.mask);
  blend(lanes<P>(w, i->b), high, w.mask);
}
template <class W, class P, int shift>
const Insn* unpack_portable(Warp& w, const Insn* i) {
  unpack_body<W, P, shift>(w, i);
  return i + 1;
}
template <class W, class P, int shift>
PTXB_WIDE const Insn* unpack_wide(Warp& w, const Insn* i) {
  unpack_body<W, P, shift>(w, i);
  return i + 1;
}

bool decode_vector(Decoder& d) {
  bool packs = d.operand(1).kind == Operand::Kind::Vector;
  const std::vector<Operand>& members = d.operand(packs ? 1 : 0).elements;
  int whole_bits = ptx::size_bits(d.type());
  if (members.size() < 2 || members.size() > 4 || whole_bits % static_cast<int>(members.size()))
    return d.refuse("");
  Parts parts;
  parts.part_bits = whole_bits / static_cast<int>(members.size());
  parts.lane_bytes = parts.part_bits == 64 ? 8 : 4;
  parts.whole_bytes = whole_bits == 128 ? 16 : whole_bits == 64 ? 8 : 4;
  if (parts.part_bits < 8) return d.refuse("");
  for (const Operand& member : members) {
    parts.slots.push_back(packs ? d.source(member, parts.lane_bytes)
                                : d.destination(member, parts.lane_bytes));
  }
  const Operand& whole = d.operand(packs ? 0 : 1);
  uint32_t slot = parts.whole_bytes == 16
                      ? (whole.kind == Operand::Kind::Sink ? d.scratch(16) : d.source128(whole))
                  : packs ? d.destination(whole, parts.whole_bytes)
                          : d.source(whole, parts.whole_bytes);
  if (d.refused()) return false;
  bool two = parts.slots.size() == 2;
  bool words = two && parts.part_bits == 32 && parts.whole_bytes == 8,
       halves = two && parts.part_bits == 16 && parts.whole_bytes == 4;
  if (packs && (words || halves)) {
    Insn& insn =
        d.emit(words ? pack_two<uint64_t, uint32_t, 32>() : pack_two<uint32_t, uint32_t, 16>());
    insn.d = slot;
    insn.a = parts.slots[0];
    insn.b = parts.slots[1];
    return true;
  }
  if (!packs && (words || halves)) {
    Handlers handler = words ? Handlers{unpack_portable<uint64_t, uint32_t, 32>,
                                        unpack_wide<uint64_t, uint32_t, 32>}
                             : Handlers{unpack_portable<uint32_t, uint32_t, 16>,
                                        unpack_wide<uint32_t, uint32_t, 16>};
    Insn& insn = d.emit(handler);
    insn.a = slot;
    insn.d = parts.slots[0];
    insn.b = parts.slots[1];
    return true;
  }
  Insn& insn = d.emit(packs ? pack : unpack);
  (packs ? insn.d : insn.a) = slot;
  insn.more = d.keep(parts);
  return true;
}

bool decode_mov(Decoder& d) {
  if (d.operand(0).kind == Operand::Kind::Vector || d.operand(1).kind == Operand::Kind::Vector)
    return decode_vector(d);
  if (d.type() == Type::Pred) {
    uint32_t a = d.predicate_source(d.operand(1)), to = d.predicate_destination(d.operand(0));
    if (d.refused()) return false;
    Insn& insn = d.emit(copy_predicate);
    insn.d = to;
    insn.a = a;
    insn.x = d.operand(1).negated ? kAll : 0;
    return true;
  }
  if (d.type() == Type::B128) {
    uint32_t a = d.source128(d.operand(1)), to = d.source128(d.operand(0));
    if (d.refused()) return false;
    Insn& insn = d.emit(copy128);
    insn.d = to;
    insn.a = a;
    return true;
  }
  int width = ptx::size_bits(d.type()) == 64 ? 8 : 4;
  return emit_unary(d, copy_handler(width), width, width);
}

// Windows of the generic address space (memory.h): adding or subtracting their begin is the whole
// conversion.
uint64_t window_begin(const Decoder& d) {
  if (d.has(Modifier::Shared) || d.has(Modifier::SharedCta) || d.has(Modifier::SharedCluster))
    return kSharedWindow;
  if (d.has(Modifier::Local)) return kLocalWindow;
  return 0;
}

bool decode_cvta(Decoder& d) {
  if (d.type() != Type::U64) return d.refuse("32-bit generic addresses");
  uint64_t begin = window_begin(d);
  if (d.has(Modifier::To)) begin = uint64_t{0} - begin;
  // The shared window of the other spelling: %r would be 32 bits wide; the operand may be a
  // variable.
  const Operand& from = d.operand(1);
  uint32_t a = d.source(from, 8), b = d.bits(begin, 8), to = d.destination(0, 8);
  if (d.refused()) return false;
  Insn& insn = d.emit(binary<Of<[](uint64_t x, uint64_t y) { return x + y; }>, uint64_t>());
  insn.d = to;
  insn.a = a;
  insn.b = b;
  return true;
}

// imm: 0 global, 1 shared::cta, 2 shared::cluster, 3 local, 4 const, 5 param.
const Insn* isspacep(Warp& w, const Insn* i) {
  const U64* a = lanes<U64>(w, i->a);
  uint32_t mask = 0;
  for (uint32_t l = 0; l < 32; ++l) {
    uint64_t at = a[l];
    bool shared = at >= kSharedWindow && at < kSharedWindowEnd,
         local = at >= kLocalWindow && at < kLocalWindowEnd;
    bool param = at >= kParamWindow && at < kParamWindowEnd;
    bool in = false;
    switch (i->imm) {
      case 1:
        in = shared && ((at - kSharedWindow) >> 24) == w.cta->rank;
        break;
      case 2:
        in = shared;
        break;
      case 3:
        in = local;
        break;
      case 4: {
        const Allocation* found = w.worker->run.memory.find(at, 1);
        in = found && found->constant;
        break;
      }
      case 5:
        in = param;
        break;
      default:
        in = !shared && !local && !param;
        break;
    }
    mask |= static_cast<uint32_t>(in) << l;
  }
  set_predicate(w, i->d, mask);
  return i + 1;
}

bool decode_isspacep(Decoder& d) {
  int64_t which = 0;
  if (d.has(Modifier::Shared) || d.has(Modifier::SharedCta)) which = 1;
  if (d.has(Modifier::SharedCluster)) which = 2;
  if (d.has(Modifier::Local)) which = 3;
  if (d.has(Modifier::Const)) which = 4;
  if (d.has(Modifier::Param) || d.has(Modifier::ParamEntry)) which = 5;
  uint32_t a = d.source(1, 8), to = d.predicate_destination(d.operand(0));
  if (d.refused()) return false;
  Insn& insn = d.emit(isspacep);
  insn.d = to;
  insn.a = a;
  insn.imm = which;
  return true;
}

// mapa: the same place in another block of the cluster. n: 1 generic addresses.
template <class T>
const Insn* mapa(Warp& w, const Insn* i) {
  const T* a = lanes<T>(w, i->a);
  const U32* rank = lanes<U32>(w, i->b);
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = first_lane(rest);
    if (rank[l] >= w.cta->cluster->ctas.size()) {
      return fault(w, i, FindingKind::OutOfBounds,
                   thread_text(w, l) + " maps an address to block " + std::to_string(rank[l]) +
                       " of a cluster of " + std::to_string(w.cta->cluster->ctas.size()));
    }
    lanes<T>(w, i->d)[l] = static_cast<T>((a[l] & ~T{0xff000000u}) | (T{rank[l]} << 24));
  }
  return i + 1;
}
template <class T>
const Insn* getctarank(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = first_lane(rest);
    lanes<U32>(w, i->d)[l] = static_cast<uint32_t>(lanes<T>(w, i->a)[l] >> 24) & 0xff;
  }
  return i + 1;
}

}  // namespace

bool decode_move(Decoder& d) {
  bool wide = d.type() == Type::U64;
  switch (d.opcode()) {
    case Opcode::Mov:
      return decode_mov(d);
    case Opcode::Cvta:
      return decode_cvta(d);
    case Opcode::Isspacep:
      return decode_isspacep(d);
    case Opcode::Mapa:
      return emit_binary(d, wide ? mapa<uint64_t> : mapa<uint32_t>, wide ? 8 : 4, wide ? 8 : 4, 4);
    case Opcode::Getctarank:
      return emit_unary(d, wide ? getctarank<uint64_t> : getctarank<uint32_t>, 4, wide ? 8 : 4);
    default:
      return false;
  }
}

}  // namespace ptxb::emu
