// The emulator's public face: a LaunchPlan's PTX executed on the CPU. Yields bytes, counts and findings; never times.
// Knows no tasks, reads no files, prints nothing. Everything else in emu/ is private to the room.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/launch_plan.h"
#include "model/outcome.h"

namespace ptxb::emu {

enum class Mode {
  Fast,   // tensor cores as f32 FMA in k order; everything else exact
  Exact,  // tensor cores by the published bit model
  Check,  // Fast + shadow state and happens-before: races, uninitialised reads, missing fences
  Fuzz,   // Check + seeded warp order and late completion of asynchronous work
};

struct Options {
  Mode mode = Mode::Fast;
  int threads = 1;                             // CTAs (clusters) side by side
  uint64_t seed = 0;                           // Fuzz
  uint64_t instruction_budget = 4'000'000'000; // warp instructions of the whole run
  double wall_budget_s = 60;
  uint32_t finding_limit = 64;                 // distinct findings kept
  // Matrix instructions of this family (arch/families.h) leave their accumulator unchanged: shows whether their results reach
  // the outputs. "" for none.
  std::string neutralised_family;
  // Check and Fuzz: at most this many blocks (clusters) of each launch run: the first, the last and seeded others; 0 runs all.
  // Cooperative launches always run whole. The caller ran the whole plan on this Memory before, so that results of
  // blocks left out are there; a sampled run that spins on them ends with Budget.
  uint32_t block_limit = 0;
};

struct Report {
  RunStatus status = RunStatus::Completed;
  std::string cause;               // one line when not Completed
  std::vector<Finding> findings;   // the fault or deadlock first
  std::vector<OpcodeCount> counts; // exact, summed over the run, sorted by kernel then opcode
  bool counts_exact = true;        // false: a polling loop made counts schedule-dependent
  uint64_t warp_instructions = 0;
  double seconds = 0;
  std::string coverage;              // "all blocks" or "24 of 56 blocks"
  std::vector<std::string> printed;  // device printf lines (bounded); evidence only
};

// The plan's modules, parsed and decoded once; immutable, shared by any number of runs.
class Program {
 public:
  // Errors: BadInput (malformed PTX), Unsupported (a named refusal with the PTX line), Limit.
  static Result<Program> load(const LaunchPlan& plan);
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();
  struct State;
  const State& state() const { return *state_; }

 private:
  explicit Program(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Device memory of one run: the plan's buffers at their window addresses, module variables, nothing else. Accesses outside
// a buffer's bytes are findings, also by one byte. Fresh buffers hold a poison pattern and count as uninitialised.
class Memory {
 public:
  static Result<Memory> make(const LaunchPlan& plan, const Program& program);
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  ~Memory();
  // Bytes of plan.buffers[index]; writing through this span does not mark them initialised: call mark().
  std::span<uint8_t> bytes(size_t buffer);
  void mark_initialised(size_t buffer);
  // Fills with the poison pattern and marks the buffer uninitialised (in Check) again.
  void poison(size_t buffer, uint8_t pattern = 0xFF);
  struct State;
  State& state() { return *state_; }

 private:
  explicit Memory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Runs the operations in order (a legal order of the plan's streams). An Error is ours; everything a candidate can cause is
// in the Report. Memory holds the outputs afterwards, also after a fault.
Result<Report> run(const Program& program, Memory& memory, const LaunchPlan& plan,
                   std::span<const PlanOperation> operations, const Options& options);

}  // namespace ptxb::emu
