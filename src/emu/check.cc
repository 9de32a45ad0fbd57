// Owns the life of check mode's shadow state and what barriers order. Never looks at single
// accesses.
// SPDX-License-Identifier: Apache-2.0
#include "emu/check.h"

#include "emu/check_state.h"
#include "emu/report.h"

namespace ptxb::emu {

void DeleteShadow::operator()(WarpShadow* shadow) const { delete shadow; }
void DeleteShadow::operator()(CtaShadow* shadow) const { delete shadow; }

Checker* make_checker(Launch& launch) {
  for (auto& allocation : launch.run.memory.allocations)
    if (!allocation->initialised && allocation->written.empty())
      allocation->written.assign((allocation->size() + 7) / 8, 0);
  return new Checker(launch);
}
void delete_checker(Checker* checker) { delete checker; }

GlobalShadow* Checker::shadow_of(const Allocation& allocation, bool for_write) {
  auto found = global.find(&allocation);
  if (found != global.end()) return found->second.words ? &found->second : nullptr;
  // Inputs are watched from the first write on: their reads alone race with nothing.
  if (!allocation.writable || (!for_write && allocation.initialised && allocation.input))
    return nullptr;
  GlobalShadow shadow;
  shadow.words = (allocation.size() + 3) / 4;
  shadow.pages = Pages(shadow.words * sizeof(GlobalWord));
  if (!shadow.pages.data()) shadow.words = 0;
  GlobalShadow& kept = global[&allocation] = std::move(shadow);
  return kept.words ? &kept : nullptr;
}

CodePlace Checker::place(uint32_t site) const {
  const CheckSite& known = launch.kernel.check_sites[site];
  return place_of(launch, *known.code, known.origin);
}

void check_start(Cluster& cluster) {
  Launch& launch = cluster.worker->launch;
  if (!launch.checker) return;
  for (auto& cta : cluster.ctas) {
    if (!cta->shadow) cta->shadow = decltype(cta->shadow)(new CtaShadow);
    CtaShadow& shadow = *cta->shadow;
    shadow.words.assign((launch.shared_end - kSharedBase + 3) / 4, {});
    shadow.readers.clear();
    shadow.barrier.fill({});
    shadow.cluster_barrier.fill(0);
    shadow.clock = 1;
    shadow.acquired.clear();
    shadow.published.clear();
    start_async_shadow(*cta);
    for (auto& warp : cta->warps) {
      if (!warp->shadow) warp->shadow = decltype(warp->shadow)(new WarpShadow);
      *warp->shadow = {};
      warp->shadow->seen[warp->index] = 1;
      for (auto& frame : warp->frames) frame->taint.clear();
    }
  }
}

bool check_attached(const Cta& cta) {
  return cta.shadow != nullptr && cta.cluster->worker->checker != nullptr;
}

namespace {

// What the warp did so far becomes visible through `into`.
void release(Warp& w, Clocks& into) {
  join(into, w.shadow->seen);
  w.shadow->seen[w.index] = ++w.shadow->clock;
  w.shadow->fenced = false;
  ++w.sync_phase;
}

}  // namespace

void check_barrier_arrive(Warp& w, uint32_t id) { release(w, w.cta->shadow->barrier[id]); }

void check_barrier_complete(Cta& cta, uint32_t id) {
  Clocks& clocks = cta.shadow->barrier[id];
  for (auto& warp : cta.warps)
    for (const Split& s : warp->splits)
      if (s.wait == Wait::Barrier && s.barrier == id) join(warp->shadow->seen, clocks);
  clocks.fill(0);
}

void check_cluster_arrive(Warp& w) { release(w, w.cta->shadow->cluster_barrier); }

void check_cluster_complete(Cluster& cluster) {
  for (auto& cta : cluster.ctas)
    for (auto& warp : cta->warps)
      for (auto& other : cluster.ctas)
        if (other != cta) join_asynchronous(warp->shadow->seen, other->shadow->cluster_barrier);
  for (auto& cta : cluster.ctas) {
    for (auto& warp : cta->warps) join(warp->shadow->seen, cta->shadow->cluster_barrier);
    for (auto& other : cluster.ctas)
      if (other != cta)
        cta->shadow->acquired[static_cast<uint32_t>(other->linear)] = other->shadow->clock;
    cta->shadow->cluster_barrier.fill(0);
  }
  for (auto& cta : cluster.ctas) ++cta->shadow->clock;
}

void acquire_at(Warp& w, bool shared, uint64_t address) {
  CtaShadow& block = *w.cta->shadow;
  if (shared) {
    auto found = block.published.find(static_cast<uint32_t>(address));
    if (found != block.published.end()) join(w.shadow->seen, found->second);
    return;
  }
  auto& published = w.worker->checker->published;
  auto found = published.find(address);
  if (found == published.end()) return;
  uint32_t self = static_cast<uint32_t>(w.cta->linear);
  for (const auto& [other, what] : found->second) {
    if (other == self) {
      join(w.shadow->seen, what.clocks);
    } else {
      uint32_t& known = block.acquired[other];
      known = std::max(known, what.block_clock);
    }
  }
}

void release_at(Warp& w, bool shared, uint64_t address) {
  CtaShadow& block = *w.cta->shadow;
  if (shared) {
    join(block.published[static_cast<uint32_t>(address)], w.shadow->seen);
  } else {
    auto& place = w.worker->checker->published[address];
    Published& own = place[static_cast<uint32_t>(w.cta->linear)];
    own.block_clock = block.clock++;
    join(own.clocks, w.shadow->seen);
    for (const auto& [other, clock] : block.acquired) {
      Published& passed = place[other];
      passed.block_clock = std::max(passed.block_clock, clock);
    }
  }
  w.shadow->seen[w.index] = ++w.shadow->clock;
}

}  // namespace ptxb::emu
