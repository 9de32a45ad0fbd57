// Owns communication inside a warp: shfl, vote, match, redux, activemask, elect, bar.warp.sync
// (PTX ISA 9.7.9.6, 9.7.13.2, 9.7.13.9-14). The decoder has brought the named lanes together
// before.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "emu/arith/float_ops.h"
#include "emu/check_hooks.h"
#include "emu/control.h"
#include "emu/emit.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

enum class Shuffle : uint16_t { Up, Down, Bfly, Idx };

// d|p, a, b, c: PTX ISA 9.7.9.6. Reading a lane that does not execute gives an undefined value;
// here the lane's own. imm: p or -1; n: mode.
const Insn* shuffle(Warp& w, const Insn* i) {
  const U32 *a = lanes<U32>(w, i->a), *b = lanes<U32>(w, i->b), *c = lanes<U32>(w, i->c);
  alignas(64) uint32_t t[32];
  uint32_t valid = 0;
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t clamp = c[l] & 31, segment = c[l] >> 8 & 31, by = b[l] & 31;
    uint32_t low = l & segment, high = low | (clamp & ~segment & 31);
    int32_t from = 0;
    bool in = false;
    int32_t lane = static_cast<int32_t>(l), step = static_cast<int32_t>(by);
    switch (static_cast<Shuffle>(i->n)) {
      case Shuffle::Up:
        from = lane - step;
        in = from >= static_cast<int32_t>(high);
        break;
      case Shuffle::Down:
        from = lane + step;
        in = from <= static_cast<int32_t>(high);
        break;
      case Shuffle::Bfly:
        from = lane ^ step;
        in = from <= static_cast<int32_t>(high);
        break;
      case Shuffle::Idx:
        from = static_cast<int32_t>(low | (by & ~segment & 31));
        in = from <= static_cast<int32_t>(high);
        break;
    }
    uint32_t source = in ? static_cast<uint32_t>(from) & 31 : l;
    t[l] = a[source];
    valid |= static_cast<uint32_t>(in) << l;
  }
  blend(lanes<U32>(w, i->d), t, w.mask);
  if (i->imm >= 0) set_predicate(w, static_cast<uint32_t>(i->imm), valid);
  return i + 1;
}

bool decode_shuffle(Decoder& d) {
  if (!d.has(Modifier::Sync)) return d.refuse("shfl without .sync is gone since sm_70");
  const Operand& first = d.operand(0);
  bool pair = first.kind == Operand::Kind::Pair;
  uint32_t a = d.source(1, 4), b = d.source(2, 4), c = d.source(3, 4);
  uint32_t to = d.destination(pair ? first.elements[0] : first, 4);
  int64_t p = pair ? static_cast<int64_t>(d.predicate_destination(first.elements[1])) : -1;
  if (d.refused()) return false;
  Shuffle mode = d.has(Modifier::Up)     ? Shuffle::Up
                 : d.has(Modifier::Down) ? Shuffle::Down
                 : d.has(Modifier::Bfly) ? Shuffle::Bfly
                                         : Shuffle::Idx;
  Insn& insn = d.emit(shuffle);
  insn.d = to;
  insn.a = a;
  insn.b = b;
  insn.c = c;
  insn.imm = p;
  insn.n = static_cast<uint16_t>(mode);
  return true;
}

// Lanes that take part with lane l: the executing ones of its member mask (slot b).
uint32_t partners(Warp& w, const Insn* i, uint32_t l) { return lanes<U32>(w, i->b)[l] & w.mask; }

enum class Vote : uint16_t { All, Any, Uni, Ballot };
const Insn* vote(Warp& w, const Insn* i) {
  uint32_t votes = predicate(w, i->a) ^ i->x, result = 0;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = static_cast<uint32_t>(std::countr_zero(rest));
    uint32_t with = partners(w, i, l), yes = votes & with;
    bool value = false;
    switch (static_cast<Vote>(i->n)) {
      case Vote::All:
        value = yes == with;
        break;
      case Vote::Any:
        value = yes != 0;
        break;
      case Vote::Uni:
        value = yes == 0 || yes == with;
        break;
      case Vote::Ballot:
        lanes<U32>(w, i->d)[l] = yes;
        break;
    }
    result |= static_cast<uint32_t>(value) << l;
  }
  if (static_cast<Vote>(i->n) != Vote::Ballot) set_predicate(w, i->d, result);
  return i + 1;
}
bool decode_vote(Decoder& d) {
  if (!d.has(Modifier::Sync)) return d.refuse("vote without .sync is gone since sm_70");
  Vote kind = d.has(Modifier::All)   ? Vote::All
              : d.has(Modifier::Any) ? Vote::Any
              : d.has(Modifier::Uni) ? Vote::Uni
                                     : Vote::Ballot;
  uint32_t p = d.predicate_source(d.operand(1)), mask = d.source(2, 4);
  uint32_t to = kind == Vote::Ballot ? d.destination(0, 4) : d.predicate_destination(d.operand(0));
  if (d.refused()) return false;
  Insn& insn = d.emit(vote);
  insn.d = to;
  insn.a = p;
  insn.b = mask;
  insn.x = d.operand(1).negated ? kAll : 0;
  insn.n = static_cast<uint16_t>(kind);
  return true;
}

// n: 1 .all; imm: p or -1.
template <class T>
const Insn* match(Warp& w, const Insn* i) {
  const T* a = lanes<T>(w, i->a);
  alignas(64) uint32_t t[32] = {};
  uint32_t all = 0;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = static_cast<uint32_t>(std::countr_zero(rest)), with = partners(w, i, l), same = 0;
    for (uint32_t other = with; other; other &= other - 1) {
      uint32_t o = static_cast<uint32_t>(std::countr_zero(other));
      same |= static_cast<uint32_t>(a[o] == a[l]) << o;
    }
    bool whole = same == with;
    t[l] = (i->n & 1) ? (whole ? with : 0) : same;
    all |= static_cast<uint32_t>(whole) << l;
  }
  blend(lanes<U32>(w, i->d), t, w.mask);
  if (i->imm >= 0) set_predicate(w, static_cast<uint32_t>(i->imm), all);
  return i + 1;
}
bool decode_match(Decoder& d) {
  const Operand& first = d.operand(0);
  bool pair = first.kind == Operand::Kind::Pair, wide = d.type() == Type::B64;
  uint32_t a = d.source(1, wide ? 8 : 4), mask = d.source(2, 4),
           to = d.destination(pair ? first.elements[0] : first, 4);
  int64_t p = pair ? static_cast<int64_t>(d.predicate_destination(first.elements[1])) : -1;
  if (d.refused()) return false;
  Insn& insn = d.emit(wide ? match<uint64_t> : match<uint32_t>);
  insn.d = to;
  insn.a = a;
  insn.b = mask;
  insn.imm = p;
  insn.n = d.has(Modifier::All);
  return true;
}

enum class Reduce : uint16_t { Add, MinU, MaxU, MinS, MaxS, And, Or, Xor };
uint32_t reduced(Reduce op, uint32_t x, uint32_t y) {
  switch (op) {
    case Reduce::Add:
      return x + y;
    case Reduce::MinU:
      return x < y ? x : y;
    case Reduce::MaxU:
      return x > y ? x : y;
    case Reduce::MinS:
      return static_cast<int32_t>(x) < static_cast<int32_t>(y) ? x : y;
    case Reduce::MaxS:
      return static_cast<int32_t>(x) > static_cast<int32_t>(y) ? x : y;
    case Reduce::And:
      return x & y;
    case Reduce::Or:
      return x | y;
    case Reduce::Xor:
      return x ^ y;
  }
  return x;
}
const Insn* redux(Warp& w, const Insn* i) {
  const U32* a = lanes<U32>(w, i->a);
  alignas(64) uint32_t t[32] = {};
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = static_cast<uint32_t>(std::countr_zero(rest)), with = partners(w, i, l);
    uint32_t value = a[std::countr_zero(with)];
    for (uint32_t other = with & (with - 1); other; other &= other - 1)
      value = reduced(static_cast<Reduce>(i->n), value, a[std::countr_zero(other)]);
    t[l] = value;
  }
  blend(lanes<U32>(w, i->d), t, w.mask);
  return i + 1;
}
bool decode_redux(Decoder& d) {
  if (ptx::is_float(d.type())) return d.refuse("redux of f32 (sm_100)");
  bool negative = ptx::is_signed(d.type());
  Reduce op = Reduce::Add;
  if (d.has(Modifier::Min)) op = negative ? Reduce::MinS : Reduce::MinU;
  if (d.has(Modifier::Max)) op = negative ? Reduce::MaxS : Reduce::MaxU;
  if (d.has(Modifier::And)) op = Reduce::And;
  if (d.has(Modifier::Or)) op = Reduce::Or;
  if (d.has(Modifier::Xor)) op = Reduce::Xor;
  if (!emit_binary(d, redux, 4, 4, 4)) return false;
  d.code().insns.back().n = static_cast<uint16_t>(op);
  return true;
}

const Insn* activemask(Warp& w, const Insn* i) {
  for (uint32_t rest = w.mask; rest; rest &= rest - 1)
    lanes<U32>(w, i->d)[std::countr_zero(rest)] = w.exec;
  return i + 1;
}

// elect.sync d|p, mask: which lane is not specified; the lowest here.
const Insn* elect(Warp& w, const Insn* i) {
  const U32* mask = lanes<U32>(w, i->a);
  uint32_t leaders = 0;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = static_cast<uint32_t>(std::countr_zero(rest));
    uint32_t leader = static_cast<uint32_t>(std::countr_zero(mask[l] & w.mask));
    lanes<U32>(w, i->d)[l] = leader;
    leaders |= static_cast<uint32_t>(leader == l) << l;
  }
  set_predicate(w, i->b, leaders);
  return i + 1;
}
bool decode_elect(Decoder& d) {
  const Operand& first = d.operand(0);
  if (first.kind != Operand::Kind::Pair) return d.refuse("");
  uint32_t mask = d.source(1, 4), to = d.destination(first.elements[0], 4),
           p = d.predicate_destination(first.elements[1]);
  if (d.refused()) return false;
  Insn& insn = d.emit(elect);
  insn.d = to;
  insn.a = mask;
  insn.b = p;
  return true;
}

}  // namespace

bool decode_warp(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::Shfl:
      return decode_shuffle(d);
    case Opcode::Vote:
      return decode_vote(d);
    case Opcode::Match:
      return decode_match(d);
    case Opcode::Redux:
      return decode_redux(d);
    case Opcode::Elect:
      return decode_elect(d);
    case Opcode::Activemask: {
      uint32_t to = d.destination(0, 4);
      if (d.refused()) return false;
      d.emit(activemask).d = to;
      return true;
    }
    case Opcode::BarWarpSync:
      emit_warp_sync_check(d);
      d.emit(nothing_handler());
      return true;
    default:
      return false;
  }
}

}  // namespace ptxb::emu
