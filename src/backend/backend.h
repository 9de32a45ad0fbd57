// The seam between judging and running: a Backend replays a plan on some machine and says what happened. It never judges.
// Two live here: emu (emu_backend.h) and cuda (over the worker's pipe).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evaluation.h"
#include "model/launch_plan.h"
#include "model/task.h"
#include "task/inputs.h"

namespace ptxb {

// What one replay is for; decides which machinery runs beside the kernel.
enum class RunDepth {
  Values,  // outputs and executed instructions
  Hazards, // shadow state: races, missing fences, uninitialised reads; outputs are not compared
};

struct RunSpec {
  InputSpec inputs;
  RunDepth depth = RunDepth::Values;
  std::string neutralised_family;  // Values: this family's matrix instructions leave their accumulator as it was; "" none
  double wall_budget_s = 60;
};

struct RunOutcome {
  RunStatus status = RunStatus::Completed;
  std::string cause;                     // one line when not Completed
  std::vector<Finding> findings;
  std::vector<Comparison> comparisons;   // of every output, when it ran to its end (Values)
  std::vector<std::string> modified_inputs;
  std::vector<OpcodeCount> counts;       // executed instructions where the backend knows them
  bool counts_exact = true;
  uint64_t output_digest = 0;            // of all outputs' bytes, to compare two runs
  std::optional<uint64_t> repeat_digest;  // of a second run over other poison, where one was made: must equal output_digest
  std::string coverage;                  // Hazards: "all blocks" or "24 of 56 blocks"
  double seconds = 0;
};

// Measured, never estimated; absent without a GPU.
struct SpeedOutcome {
  SpeedGate gate;
  std::string implausible;  // not "": faster than the chip can be, with the reason in words
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;    // "emu", "cuda"
  virtual std::string chip() const = 0;    // "" when nothing physical ran
  virtual std::string driver() const = 0;
  // The largest matrix work, in FLOPs, that one run of this backend should be asked for; infinite on a GPU.
  virtual double flops_limit() const = 0;
  // Errors are the harness's; everything a candidate can cause is in the outcome.
  virtual Result<RunOutcome> run(const Task& task, const LaunchPlan& plan, const RunSpec& spec) = 0;
  // Executed target instructions of one steady call. NotVerified with a reason where the backend cannot say.
  virtual Result<std::vector<OpcodeCount>> count(const Task& task, const LaunchPlan& plan) = 0;
  virtual Result<SpeedOutcome> time(const Task& task, const LaunchPlan& plan) = 0;
};

}  // namespace ptxb
