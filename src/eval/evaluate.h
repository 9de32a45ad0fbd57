// The straight line: from a candidate to an Evaluation. A bad candidate is a verdict in the Evaluation; an Error is the harness's.
// Never prints, stores or speaks HTTP.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arch/chip.h"
#include "backend/backend.h"
#include "build/compile.h"
#include "model/artifact.h"
#include "model/evaluation.h"
#include "shim/record.h"
#include "task/load.h"

namespace ptxb {

enum class Profile { Quick, Strict };
std::string_view name(Profile profile);

struct EvaluationRequest {
  const Dataset* dataset = nullptr;
  Task task;                      // the asked shape
  std::string arch = "sm_90a";
  Profile profile = Profile::Strict;
  uint64_t seed = 0;              // of the first inputs; further ones follow
  // nullopt: what the task asks of this architecture; empty: nothing is asked.
  std::optional<std::vector<std::string>> required_families;
};

// What the line works with; owned by the caller.
struct Harness {
  build::BuildSettings build;
  shim::RecordSettings record;
  const os::Sandbox* sandbox = nullptr;  // its layers go into the result
  Backend* backend = nullptr;   // decides correct, target, speed
  Backend* emulator = nullptr;  // finds hazards; may be the same object
  std::function<void(std::string_view)> progress = [](std::string_view) {};
};

Result<Evaluation> evaluate(const EvaluationRequest& request, const Candidate& candidate, Harness& harness);

// The same from a recorded plan: the compile gate is skipped, and only the plan's own shape can be run.
// REQUIRES: request.task has the plan's axes.
Result<Evaluation> evaluate_plan(const EvaluationRequest& request, const LaunchPlan& plan, Harness& harness);

// Build and record only, at the request's own shape; without a plan the Evaluation says why.
struct PlannedCandidate {
  Evaluation evaluation;
  std::optional<LaunchPlan> plan;
};
Result<PlannedCandidate> plan_candidate(const EvaluationRequest& request, const Candidate& candidate, Harness& harness);

}  // namespace ptxb
