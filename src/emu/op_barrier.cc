// Owns barriers of a CTA and of a cluster: bar, barrier, barrier.cluster (PTX ISA 9.7.13.1-3).
// Never picks who runs next.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "emu/check.h"
#include "emu/control.h"
#include "emu/decode.h"
#include "emu/lanes.h"
#include "emu/report.h"
#include "emu/split.h"
#include "emu/worker.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;

namespace {

enum class Kind : uint16_t { Sync = 1, Arrive, RedPopc, RedAnd, RedOr };
bool is_red(const Insn* i) { return i->n >= static_cast<uint16_t>(Kind::RedPopc); }

// A warp of which every living lane has arrived counts as 32 threads, as the hardware counts warps.
uint32_t arrived_threads(const Cta& cta, const Barrier& b) {
  uint32_t total = b.repeated;
  for (const auto& warp : cta.warps) {
    uint32_t there = b.lanes[warp->index];
    if (there == 0) continue;
    total +=
        (there & warp->live()) == warp->live() ? 32u : static_cast<uint32_t>(std::popcount(there));
  }
  return total;
}

bool is_complete(const Cta& cta, const Barrier& b) {
  if (b.expected) return b.arrived >= b.expected;
  for (const auto& warp : cta.warps)
    if (warp->live() & ~b.lanes[warp->index]) return false;
  return true;
}

// Lanes that wait go on behind their instruction; bar.red leaves them its result.
void release(Cta& cta, uint32_t id) {
  Barrier& b = cta.barriers[id];
  if (check_attached(cta)) check_barrier_complete(cta, id);
  for (auto& warp : cta.warps) {
    for (Split& s : warp->splits) {
      if (s.wait != Wait::Barrier || s.barrier != id) continue;
      s.wait = Wait::Ready;
      const Insn* at = s.pc - 1;
      if (!is_red(at)) continue;
      uint8_t* d = s.frame->registers + at->d;
      if (at->n == static_cast<uint16_t>(Kind::RedPopc)) {
        for (uint32_t rest = s.mask; rest; rest &= rest - 1)
          reinterpret_cast<U32*>(d)[std::countr_zero(rest)] = b.popc;
      } else {
        bool value = at->n == static_cast<uint16_t>(Kind::RedAnd) ? b.all : b.any;
        U32& p = *reinterpret_cast<U32*>(d);
        p = (p & ~s.mask) | (value ? s.mask : 0);
      }
    }
  }
  b = {};
}

const Insn* misuse(Warp& w, const Insn* i, std::string what) {
  return fault(w, i, FindingKind::BarrierMisuse,
               thread_text(w, static_cast<uint32_t>(std::countr_zero(w.exec))) + " " + what);
}

// a: barrier, b: thread count (n given by flags kBackward), c: predicate of bar.red, x: its xor
// mask.
const Insn* barrier(Warp& w, const Insn* i) {
  uint32_t lane = static_cast<uint32_t>(std::countr_zero(w.exec));
  const U32* ids = lanes<U32>(w, i->a);
  uint32_t id = ids[lane];
  uint32_t count = i->y ? lanes<U32>(w, i->b)[lane] : 0;
  for (uint32_t rest = w.exec; rest; rest &= rest - 1)
    if (ids[std::countr_zero(rest)] != id)
      return misuse(w, i, "and others of its warp name different barriers");
  if (id > 15)
    return misuse(w, i, "names barrier " + std::to_string(id) + "; there are 16, 0 to 15");
  if (i->y && (count == 0 || count % 32 || count > 1024)) {
    return misuse(w, i,
                  "gives barrier " + std::to_string(id) + " a thread count of " +
                      std::to_string(count) + "; it must be a multiple of 32 up to 1024");
  }
  Cta& cta = *w.cta;
  Barrier& b = cta.barriers[id];
  if (b.in_use && b.expected != count) {
    return misuse(w, i,
                  "gives barrier " + std::to_string(id) + " a count of " + std::to_string(count) +
                      " (0: all threads) while others wait for " + std::to_string(b.expected));
  }
  b.in_use = true;
  b.expected = count;
  b.last_arrival = i;
  // The same lanes again before the barrier completes (bar.arrive twice): the hardware counts the
  // warp again.
  if (b.lanes[w.index] & w.exec) b.repeated += 32;
  b.lanes[w.index] |= w.exec;
  if (is_red(i)) {
    uint32_t votes = (predicate(w, i->c) ^ i->x) & w.exec;
    b.popc += static_cast<uint32_t>(std::popcount(votes));
    b.all = b.all && votes == w.exec;
    b.any = b.any || votes;
  }
  b.arrived = arrived_threads(cta, b);
  if (check_attached(cta)) check_barrier_arrive(w, id);
  if (i->n != static_cast<uint16_t>(Kind::Arrive)) {
    Split& s = w.split();
    s.pc = i + 1;
    s.wait = Wait::Barrier;
    s.barrier = static_cast<uint8_t>(id);
  }
  if (is_complete(cta, b)) {
    release(cta, id);
    return i + 1;
  }
  return i->n == static_cast<uint16_t>(Kind::Arrive) ? i + 1 : nullptr;
}

bool cluster_complete(const Cluster& cluster) {
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps)
      if (warp->live() & ~warp->cluster_arrived) return false;
  return true;
}

void try_release_cluster(Cluster& cluster) {
  bool any = false;
  for (auto& cta : cluster.ctas)
    for (auto& warp : cta->warps) any = any || warp->cluster_arrived;
  if (!any || !cluster_complete(cluster)) return;
  ++cluster.barrier.phase;
  if (check_attached(*cluster.ctas[0])) check_cluster_complete(cluster);
  for (auto& cta : cluster.ctas) {
    for (auto& warp : cta->warps) {
      warp->cluster_done |= warp->cluster_arrived;
      warp->cluster_arrived = 0;
      for (Split& s : warp->splits)
        if (s.wait == Wait::Cluster && (s.mask & ~warp->cluster_done) == 0) {
          s.wait = Wait::Ready;
          warp->cluster_done &= ~s.mask;
        }
    }
  }
}

const Insn* cluster_arrive(Warp& w, const Insn* i) {
  if ((w.cluster_arrived | w.cluster_done) & w.exec)
    return misuse(w, i, "arrives at barrier.cluster twice without barrier.cluster.wait between");
  w.cluster_arrived |= w.exec;
  if (check_attached(*w.cta)) check_cluster_arrive(w);
  try_release_cluster(*w.cta->cluster);
  return i + 1;
}

const Insn* cluster_wait(Warp& w, const Insn* i) {
  if (w.exec & ~(w.cluster_arrived | w.cluster_done))
    return misuse(w, i, "waits at barrier.cluster without having arrived");
  if ((w.exec & ~w.cluster_done) == 0) {
    w.cluster_done &= ~w.exec;
    return i + 1;
  }
  return suspend(w, i + 1, Wait::Cluster);
}

bool decode_bar(Decoder& d, bool reduces) {
  Kind kind = Kind::Sync;
  if (d.opcode() == Opcode::BarArrive || d.opcode() == Opcode::BarrierArrive) kind = Kind::Arrive;
  if (reduces)
    kind = d.has(Modifier::Popc)  ? Kind::RedPopc
           : d.has(Modifier::And) ? Kind::RedAnd
                                  : Kind::RedOr;
  size_t first = reduces ? 1 : 0;
  size_t names = d.operands() - first - (reduces ? 1 : 0);
  uint32_t id = d.source(first, 4);
  uint32_t count = names > 1 ? d.source(first + 1, 4) : 0;
  uint32_t vote = 0, target = 0;
  bool negated = false;
  if (reduces) {
    const ptx::Operand& p = d.operand(d.operands() - 1);
    vote = d.predicate_source(p);
    negated = p.negated;
    target = kind == Kind::RedPopc ? d.destination(0, 4) : d.predicate_destination(d.operand(0));
  }
  if (d.refused()) return false;
  Insn& insn = d.emit(barrier);
  insn.a = id;
  insn.b = count;
  insn.y = names > 1;
  insn.c = vote;
  insn.x = negated ? kAll : 0;
  insn.d = target;
  insn.n = static_cast<uint16_t>(kind);
  return true;
}

}  // namespace

void warp_done(Warp& w) {
  Cta& cta = *w.cta;
  for (uint32_t id = 0; id < cta.barriers.size(); ++id) {
    Barrier& b = cta.barriers[id];
    if (!b.in_use) continue;
    b.arrived = arrived_threads(cta, b);
    if (is_complete(cta, b)) release(cta, id);
  }
  try_release_cluster(*cta.cluster);
}

bool decode_barrier(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::BarSync:
    case Opcode::BarArrive:
    case Opcode::BarrierSync:
    case Opcode::BarrierArrive:
      return decode_bar(d, false);
    case Opcode::BarRed:
    case Opcode::BarrierRed:
      return decode_bar(d, true);
    case Opcode::BarrierClusterArrive:
      d.emit(cluster_arrive);
      return true;
    case Opcode::BarrierClusterWait:
      d.emit(cluster_wait);
      return true;
    default:
      return false;
  }
}

}  // namespace ptxb::emu
