// Owns the moment at which bulk operations happen, their groups, and what lets blocked warps go on
// when nobody runs. Never knows a copy's shape.
// SPDX-License-Identifier: Apache-2.0
#include "emu/async.h"

#include <algorithm>
#include <map>

#include "emu/report.h"
#include "emu/worker.h"

namespace ptxb::emu {

// Fuzz: bulk operations that have been issued and have not happened.
struct LateWork {
  struct Item {
    Warp* warp = nullptr;
    const Insn* insn = nullptr;
    uint32_t lane = 0;
    uint64_t group = 0;  // of its thread; counts only when work.group
    AsyncWork work;
  };
  std::vector<Item> items;
  std::map<std::pair<const Warp*, uint32_t>, uint64_t> committed;  // groups of a thread
};

namespace {

constexpr uint32_t kExpiredRounds =
    16;  // rounds of blocked try_waits giving up before it is a deadlock

bool happen(Warp& w, const Insn* i, uint32_t lane, AsyncWork& work) {
  work.transfer();
  w.cta->cluster->expired_rounds = 0;
  for (const AsyncWork::Signal& signal : work.signals) {
    MbarrierPlace at;
    if (!find_mbarrier_at(w, i, lane, *signal.cta, signal.offset, at)) return false;
    if (!mbarrier_complete(w, i, lane, at, signal.bytes)) return false;
  }
  return true;
}

bool is_late(const Warp& w) { return w.worker->run.options.mode == Mode::Fuzz; }

uint64_t draw(Worker& worker) {  // xorshift64
  uint64_t& x = worker.random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x;
}

LateWork& late_of(Cluster& cluster) {
  if (!cluster.late) cluster.late = std::make_shared<LateWork>();
  return *cluster.late;
}

bool happen_at(Cluster& cluster, size_t index) {
  LateWork& late = *cluster.late;
  LateWork::Item item = std::move(late.items[index]);
  late.items.erase(late.items.begin() + static_cast<std::ptrdiff_t>(index));
  return happen(*item.warp, item.insn, item.lane, item.work);
}

}  // namespace

bool submit(Warp& w, const Insn* i, uint32_t lane, AsyncWork work) {
  if (!is_late(w)) return happen(w, i, lane, work);
  Cluster& cluster = *w.cta->cluster;
  LateWork& late = late_of(cluster);
  late.items.push_back({&w, i, lane, late.committed[{&w, lane}], std::move(work)});
  // Even seeds: as late as the program allows. Odd ones: at any time.
  if ((w.worker->run.options.seed & 1) == 0) return true;
  while (!late.items.empty() && draw(*w.worker) % 2 == 0)
    if (!happen_at(cluster, draw(*w.worker) % late.items.size())) return false;
  return true;
}

void commit_bulk_group(Warp& w) {
  if (!is_late(w)) return;
  LateWork& late = late_of(*w.cta->cluster);
  for (uint32_t lane = 0; lane < 32; ++lane)
    if (w.mask >> lane & 1) ++late.committed[{&w, lane}];
}

bool wait_bulk_group(Warp& w, uint32_t pending) {
  if (!is_late(w)) return true;
  Cluster& cluster = *w.cta->cluster;
  LateWork& late = late_of(cluster);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(w.mask >> lane & 1)) continue;
    uint64_t committed = late.committed[{&w, lane}];
    for (size_t k = 0; k < late.items.size();) {
      const LateWork::Item& item = late.items[k];
      if (item.warp == &w && item.lane == lane && item.work.group &&
          item.group + pending < committed) {
        if (!happen_at(cluster, k)) return false;
      } else {
        ++k;
      }
    }
  }
  return true;
}

void reset_async(Cta& cta) {
  cta.mbarriers.clear();
  cta.panels_in_use = 0;
  cta.cluster->expired_rounds = 0;
  cta.cluster->late.reset();
  for (auto& warp : cta.warps) warp->wgmma_issued = warp->wgmma_committed = 0;
}

bool finish_asynchronous(Cluster& cluster) {
  while (cluster.late && !cluster.late->items.empty())
    if (!happen_at(cluster, 0)) return false;
  return true;
}

bool wake_late(Cluster& cluster) {
  bool woke = false;
  if (cluster.late && !cluster.late->items.empty()) {
    happen_at(cluster, draw(*cluster.worker) % cluster.late->items.size());
    return true;
  }
  for (auto& cta : cluster.ctas) {
    for (auto& warp : cta->warps) {
      for (Split& s : warp->splits) {
        if (s.wait != Wait::Warpgroup || !warpgroup_may_go_on(*warp, s)) continue;
        s.wait = Wait::Ready;
        woke = true;
      }
    }
  }
  return woke;
}

bool wake_asynchronous(Cluster& cluster) {
  if (cluster.expired_rounds >= kExpiredRounds) return false;
  bool woke = false;
  // A try_wait may return false after a time limit: programs that use it as a peek go on then.
  ++cluster.expired_rounds;
  for (auto& cta : cluster.ctas) {
    for (auto& warp : cta->warps) {
      for (Split& s : warp->splits) {
        if (s.wait != Wait::Mbarrier) continue;
        s.wait = Wait::Ready;
        s.expired = true;
        woke = true;
      }
    }
  }
  if (woke) cluster.worker->run.polled = true;
  return woke;
}

}  // namespace ptxb::emu
