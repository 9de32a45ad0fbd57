// Owns who runs when: warps of a CTA in turn, clusters on worker threads, CTAs that poll give way
// to others, deadlocks are found when nothing can go on. Never knows an opcode.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <thread>

#include "emu/async.h"
#include "emu/check.h"
#include "emu/report.h"
#include "emu/split.h"
#include "emu/worker.h"

namespace ptxb::emu {
namespace {

constexpr int64_t kSlice = 20'000;       // instructions a split runs before its siblings get a turn
constexpr uint32_t kPatientPolls = 4;    // polls before siblings waiting at a join are let go
constexpr uint32_t kPatientSlices = 64;  // the same for slices used up
constexpr uint64_t kIdlePolls = 1'000;   // rounds without progress anywhere, and
constexpr double kIdleSeconds = 1.5;     // this long: a livelock

enum class Step : uint8_t { Done, Advanced, Polling, Stop };

// Runs splits of a warp until none is ready, or the slice ends by fuel or polling.
Pause run_warp(Warp& w) {
  w.fuel = kSlice;
  int64_t before = w.fuel;
  w.pause = Pause::None;
  Pause result = Pause::Blocked;
  while (pick_split(w)) {
    const Insn* pc = w.split().pc;
    while (pc) pc = pc->fn(w, pc);
    if (w.pause == Pause::None) continue;
    result = w.pause;
    break;
  }
  w.worker->instructions += static_cast<uint64_t>(before - w.fuel);
  if (result == Pause::Stop) return result;
  if (w.splits.empty()) return Pause::Done;
  if (w.splits.size() > 1 && (result == Pause::Poll || result == Pause::Fuel)) {
    bool waiting = std::any_of(w.splits.begin(), w.splits.end(),
                               [](const Split& s) { return s.wait == Wait::Join; });
    w.starving_slices =
        waiting ? w.starving_slices + (result == Pause::Poll ? kPatientSlices / kPatientPolls : 1)
                : 0;
    if (w.starving_slices >= kPatientSlices) {
      break_joins(w);
      w.starving_slices = 0;
    }
  }
  return result;
}

// Adds the worker's instructions to the run's and looks at the budgets.
bool within_budget(Worker& worker) {
  RunState& run = worker.run;
  uint64_t total = run.instructions.fetch_add(worker.instructions) + worker.instructions;
  worker.instructions = 0;
  if (run.stop) return false;
  if (total > run.options.instruction_budget) {
    stop_run(run, RunStatus::Budget,
             "instruction budget of " + std::to_string(run.options.instruction_budget) +
                 " warp instructions spent");
    return false;
  }
  if (now_s() > run.deadline_s) {
    stop_run(run, RunStatus::Budget, "wall-time budget spent");
    return false;
  }
  return true;
}

// Fuzz: warps in seeded order (xorshift64), else in theirs.
size_t first_warp(Worker& worker, size_t count) {
  if (!worker.random) return 0;
  worker.random ^= worker.random << 13;
  worker.random ^= worker.random >> 7;
  worker.random ^= worker.random << 17;
  return worker.random % count;
}

// One turn of every warp of the cluster that can run.
Step step(Worker& worker, Cluster& cluster) {
  bool alive = false, ran = false, advanced = false;
  for (auto& cta : cluster.ctas) {
    size_t count = cta->warps.size(), first = first_warp(worker, count);
    for (size_t k = 0; k < count; ++k) {
      auto& warp = cta->warps[(first + k) % count];
      if (warp->splits.empty()) continue;
      alive = true;
      if (!has_ready(*warp)) continue;
      ran = true;
      Pause why = run_warp(*warp);
      if (why == Pause::Stop) return Step::Stop;
      if (why == Pause::Done) {
        advanced = true;
        warp_done(*warp);
      } else if (why != Pause::Poll) {
        advanced = true;
      }
    }
  }
  if (!alive) return finish_asynchronous(cluster) ? Step::Done : Step::Stop;
  if (!ran) {
    bool woke = wake_late(cluster);
    if (!woke) {
      for (auto& cta : cluster.ctas)
        for (auto& warp : cta->warps) woke = break_joins(*warp) || woke;
    }
    woke = woke || wake_asynchronous(cluster);
    if (!woke) {
      report_deadlock(cluster);
      return Step::Stop;
    }
    advanced = true;
  }
  return advanced ? Step::Advanced : Step::Polling;
}

bool take_cluster(Worker& worker) {
  Launch& launch = worker.launch;
  if (launch.next.load() >= launch.wanted()) return false;
  if (launch.resident.fetch_add(1) >= launch.resident_limit && !worker.resident.empty()) {
    launch.resident.fetch_sub(1);
    return false;
  }
  uint64_t order = launch.next.fetch_add(1);
  uint64_t linear = launch.selection.empty()          ? order
                    : order < launch.selection.size() ? launch.selection[order]
                                                      : UINT64_MAX;
  if (linear >= launch.clusters || linear > launch.run.fault_cluster.load()) {
    launch.resident.fetch_sub(1);
    return false;
  }
  std::unique_ptr<Cluster> cluster;
  if (worker.spare.empty()) {
    cluster = make_cluster(worker);
  } else {
    cluster = std::move(worker.spare.back());
    worker.spare.pop_back();
  }
  start_cluster(worker, *cluster, linear);
  worker.resident.push_back(std::move(cluster));
  return true;
}

// Everything that this worker holds polls. Admits one more cluster, or waits for the others; false:
// nobody can go on.
bool relieve(Worker& worker, uint64_t& idle, uint64_t& seen, double& since) {
  Launch& launch = worker.launch;
  if (take_cluster(worker)) return true;
  uint64_t progress = launch.progress.load();
  if (progress != seen || idle == 0) {
    seen = progress;
    idle = 1;
    since = now_s();
    return true;
  }
  if (++idle % 64 == 0) std::this_thread::yield();
  if (idle < kIdlePolls || now_s() - since < kIdleSeconds ||
      launch.polling_workers.load() < launch.working.load())
    return true;
  if (launch.run.fault_cluster.load() == UINT64_MAX) report_livelock(worker);
  return false;
}

void work(Worker& worker) {
  Launch& launch = worker.launch;
  RunState& run = worker.run;
  uint64_t idle = 0, seen = 0;
  double since = 0;
  bool polling = false;
  uint32_t turn = 0;
  for (;;) {
    if (worker.resident.empty() && !take_cluster(worker)) break;
    bool all_poll = true;
    for (size_t k = 0; k < worker.resident.size(); ++k) {
      Cluster& cluster = *worker.resident[k];
      if (cluster.linear >
          run.fault_cluster.load()) {  // a lower one has faulted: this one's result is void
        worker.resident.erase(worker.resident.begin() + static_cast<std::ptrdiff_t>(k--));
        launch.resident.fetch_sub(1);
        all_poll = false;
        continue;
      }
      Step result = Step::Polling;
      // A cluster that goes on keeps the thread for a while: its shared memory is in the cache.
      for (int again = 0; again < 64; ++again) {
        result = step(worker, cluster);
        if (result != Step::Advanced || (worker.instructions > 1'000'000 && !within_budget(worker)))
          break;
      }
      if (result == Step::Done) {
        worker.spare.push_back(std::move(worker.resident[k]));
        worker.resident.erase(worker.resident.begin() + static_cast<std::ptrdiff_t>(k--));
        launch.resident.fetch_sub(1);
      } else if (result == Step::Stop) {
        worker.resident.erase(worker.resident.begin() + static_cast<std::ptrdiff_t>(k--));
        launch.resident.fetch_sub(1);
      }
      if (result != Step::Polling) {
        all_poll = false;
        launch.progress.fetch_add(1, std::memory_order_relaxed);
      }
      if (run.stop) break;
    }
    if ((++turn % 16 == 0 || worker.instructions > 200'000) && !within_budget(worker)) break;
    if (run.stop) break;
    if (all_poll != polling) {
      polling = all_poll;
      launch.polling_workers.fetch_add(polling ? 1 : -1);
    }
    if (!polling) {
      idle = 0;
      continue;
    }
    if (!relieve(worker, idle, seen, since)) break;
  }
  if (polling) launch.polling_workers.fetch_sub(1);
  launch.working.fetch_sub(1);
  within_budget(worker);
}

}  // namespace

bool run_grid(Launch& launch) {
  RunState& run = launch.run;
  uint64_t useful = std::min<uint64_t>(launch.clusters, 256);
  int threads = static_cast<int>(
      std::clamp<uint64_t>(static_cast<uint64_t>(std::max(run.options.threads, 1)), 1, useful));
  // Results must not depend on the number of threads; the checker's shadow of global memory is not
  // shared.
  if (launch.kernel.order_matters || launch.checker) threads = 1;
  std::vector<std::unique_ptr<Worker>> workers;
  for (int t = 0; t < threads; ++t) {
    workers.push_back(std::make_unique<Worker>(launch, run));
    workers.back()->counters.resize(launch.kernel.counters.size());
    workers.back()->checker = launch.checker;
    workers.back()->neutralise_mma = run.options.neutralised_family == "mma_sync";
    workers.back()->random = run.options.mode == Mode::Fuzz ? run.options.seed | 1 : 0;
  }
  launch.working = threads;
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back([&, t] { work(*workers[static_cast<size_t>(t)]); });
  work(*workers[0]);
  for (std::thread& thread : others) thread.join();
  run.counters.assign(launch.kernel.counters.size(), {});
  run.bulk_bytes.clear();
  for (const auto& worker : workers) {
    for (const auto& [place, bytes] : worker->bulk_bytes) run.bulk_bytes[place] += bytes;
    for (size_t c = 0; c < worker->counters.size(); ++c) {
      run.counters[c].warps += worker->counters[c].warps;
      run.counters[c].lanes += worker->counters[c].lanes;
    }
  }
  return !run.stop && run.fault_cluster.load() == UINT64_MAX;
}

}  // namespace ptxb::emu
