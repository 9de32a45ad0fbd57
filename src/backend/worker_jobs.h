// Owns the jobs that ptxbench gives its GPU worker and the results that come back, and their frames
// (both directions strict). Never runs anything. Keys: docs/gpu.md, "Worker frames".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/worker_protocol.h"
#include "model/evaluation.h"
#include "model/launch_plan.h"
#include "model/outcome.h"
#include "model/task.h"
#include "task/inputs.h"
#include "timing/statistics.h"

namespace ptxb {

enum class JobKind { Check, Time, Count };
std::string_view name(JobKind kind);

// What the first steady call of a check does beside running.
enum class Repeat {
  Once,
  Twice,  // again with another poison: the outputs' bits must be the same
};

struct WorkerJob {
  JobKind kind = JobKind::Check;
  LaunchPlan plan;
  Task task;  // of the definition: name, reference, tensors, tolerance; of the workload: scalars
  InputSpec inputs;
  double run_timeout_s = 10;     // of one replay; then the status is Budget
  Repeat repeat = Repeat::Once;  // Check
  timing::Policy policy;         // Time
  std::string
      baseline;  // Time: "cublaslt", "" for none; self-tests: "plan", "cublaslt_twice" (both sides)
  std::optional<uint64_t> expected_digest;  // Time: of the checked outputs under the same inputs
};

Frame encode_job(const WorkerJob& job);
// The plan is validate()d too. Error: BadInput naming the field.
Result<WorkerJob> decode_job(const Frame& frame);

// Executed counts of one machine instruction, as CUPTI's SASS metrics give them.
struct SassCount {
  std::string function;
  uint32_t offset_bytes = 0;        // within the function
  uint64_t warps = 0, threads = 0;  // issued by warps; lanes whose predicate was true
};

struct BaselineChoice {
  std::string library;    // "cuBLASLt 13.1.0"
  std::string algorithm;  // id and settings, "algo 66 tile 20 stages 35 cluster 2x1"
  double workspace_bytes = 0;
  double first_choice_ms = 0;  // of the heuristic's first answer under the same regime
  double chosen_ms = 0;
  uint32_t candidates = 0;  // how many were measured
};

struct WorkerResult {
  RunStatus status = RunStatus::Completed;
  std::string stage, error, cause, kernel;  // of the trouble, see cuda/replay.h; "" when Completed
  int operation = -1;
  bool ending = false;  // the worker ends after this (its context is lost)

  // Check
  std::vector<Comparison> comparisons;
  std::vector<std::string> modified_inputs;
  bool padding_modified = false;  // something was written beside the buffers, inside their mappings
  uint64_t digest = 0;            // of all outputs
  std::optional<uint64_t> repeat_digest;

  // Time
  std::vector<timing::Pair> cold, hot;  // hot: few, without the L2 flush
  std::string stopped;                  // timing::name(Next)
  double preheat_s = 0, sampling_s = 0;
  uint32_t digest_mismatches = 0;  // timed samples whose outputs were not the checked ones
  std::optional<BaselineChoice> baseline;
  std::string baseline_missing;  // why there is none, when one was asked for

  // Count
  std::vector<SassCount> sass;

  double gpu_s = 0;  // from the first use of the device to the last
  Json steps;        // {"name": seconds}: where gpu_s went
};

Frame encode_result(const WorkerResult& result);
// A worker that could not do its own part answers {"harness_error": text}: that comes back as an
// Error here.
Result<WorkerResult> decode_result(const Frame& frame);
Frame encode_harness_error(const Error& error);

}  // namespace ptxb
