// Owns what lies above warps: the run, the launch and the worker thread's private state. Never executes instructions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "arch/chip.h"
#include "base/clock.h"
#include "emu/program.h"
#include "emu/warp.h"

namespace ptxb::emu {

class Checker;

// Bytes that each bulk copy of a function has moved, by its place.
using BulkBytes = std::map<std::pair<const Code*, uint32_t>, double>;

// One call of run(): shared by its worker threads.
struct RunState {
  const Program::State& program;
  Memory::State& memory;
  const LaunchPlan& plan;
  const Options& options;
  const arch::Chip* chip = nullptr;
  double deadline_s = 0;
  std::atomic<uint64_t> instructions{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> polled{false};
  // The fault of the lowest cluster wins, so that the report does not depend on the number of threads.
  std::atomic<uint64_t> fault_cluster{UINT64_MAX};
  std::mutex lock;  // of everything below
  RunStatus status = RunStatus::Completed;
  std::string cause;
  uint64_t cause_cluster = UINT64_MAX;
  std::vector<Finding> findings;
  Finding fault;
  bool has_fault = false;
  std::vector<std::string> printed;
  std::vector<Counter> counters;  // of the launch, summed over workers
  BulkBytes bulk_bytes;           // likewise
};

// One kernel launch of the plan.
struct Launch {
  RunState& run;
  const KernelLaunch& spec;
  const DecodedKernel& kernel;
  const Code& entry;
  Dim3 cluster{1, 1, 1};
  uint64_t clusters = 1;            // in the grid
  uint32_t ctas_per_cluster = 1;
  uint32_t warps_per_cta = 1, threads_per_cta = 32;
  uint32_t shared_end = kSharedBase;  // offset past the last shared byte
  uint32_t local_stride = 0;
  uint32_t grid_index = 0;
  bool explicit_cluster = false;
  Allocation parameters;
  std::vector<uint8_t> parameter_bytes;
  uint64_t resident_limit = 1;       // clusters that the chip could hold at once
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> resident{0};
  std::atomic<uint64_t> progress{0};
  std::atomic<int> polling_workers{0}, working{0};
  std::vector<uint64_t> selection;   // clusters that run; empty: all
  Checker* checker = nullptr;
  uint64_t wanted() const { return selection.empty() ? clusters : selection.size(); }
};

struct Worker {
  Launch& launch;
  RunState& run;
  std::array<const Allocation*, 64> hot{};  // last allocation of each memory instruction, by Insn::y
  std::vector<Counter> counters;
  uint64_t instructions = 0;  // not yet added to the run's
  Checker* checker = nullptr;
  std::vector<std::unique_ptr<Cluster>> resident, spare;
  bool neutralise_mma = false;  // Options::neutralised_family names warp matrix instructions
  uint64_t random = 0;        // Fuzz: state of the warp order
  BulkBytes bulk_bytes;
  std::vector<std::shared_ptr<const struct TensorShape>> tensor_shapes;  // by tensor map
  std::set<std::tuple<const Insn*, uint64_t, int>> checked_descriptors;  // of wgmma: in bounds
  Worker(Launch& launch_in, RunState& run_in) : launch(launch_in), run(run_in) {}
};

// Runs the whole grid; false when the run must stop (the state says why).
bool run_grid(Launch& launch);

// Makes lanes runnable again and so on: see schedule.cc, split.cc.
void start_cluster(Worker& worker, Cluster& cluster, uint64_t linear);
std::unique_ptr<Cluster> make_cluster(Worker& worker);
Frame* push_frame(Warp& w, const Code& code, Frame* caller, const Insn* resume, uint32_t lanes_in, uint32_t local_base);
void free_frame(Warp& w, Frame* frame);
void fill_constants(Warp& w, Frame& frame, uint32_t which);  // bit 0: per launch, bit 1: per CTA

}  // namespace ptxb::emu
