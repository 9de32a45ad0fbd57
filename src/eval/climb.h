// Owns the steps of the straight line and what they share. Each step fills one gate of the Evaluation and settles the verdict
// when the candidate fails there; a settled climb's later steps do nothing. Private to eval/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <variant>

#include "eval/evaluate.h"
#include "eval/judge.h"

namespace ptxb {

// A plan for one shape, or why there is none.
using Recorded = std::variant<LaunchPlan, Judgement>;
using PlanSource = std::function<Result<Recorded>(const Task&)>;

struct Climb {
  const EvaluationRequest& request;
  Harness& harness;
  Evaluation& evaluation;
  PlanSource record;
  std::string source_name;  // shown for places in the candidate's file; "" keeps what the compiler wrote
  double begin_s = 0;
  bool settled = false;
  // Filled by the steps.
  Task decided_at;                   // the shape where `correct` is decided
  bool substituted = false;          // decided_at is not the asked shape
  std::optional<LaunchPlan> plan;    // at decided_at
  std::optional<RunOutcome> values;  // of the first inputs at decided_at
  std::optional<RunOutcome> small_values;  // of the emulator at hazards_at, when that is another shape
  std::map<std::string, LaunchPlan> plans;
};

void settle(Climb& climb, Judgement judgement);

// The artifact, or a settled climb.
Result<std::optional<Artifact>> step_build(Climb& climb, const Candidate& candidate);
Result<Recorded> record_plan(const Artifact& artifact, const Task& task, const Harness& harness);
Result<void> step_launch(Climb& climb);       // plan at the deciding shape
Result<void> step_values(Climb& climb);       // run and compare: several seeds and distributions
Result<void> step_hazards(Climb& climb);      // emulator with shadow state
Result<void> step_second_call(Climb& climb);  // the values again where one call can leave something for the next
Result<void> step_neighbours(Climb& climb);   // other legal shapes
Result<void> step_target(Climb& climb);       // executed instructions and their share of the work
Result<void> step_speed(Climb& climb);        // a measurement, only on a GPU

// Whether device variables or scratch of one steady call are there in the next; and the plan whose steady call is the second.
bool keeps_state(const LaunchPlan& plan);
LaunchPlan second_call(const LaunchPlan& plan);

// Shape and inputs of each comparison that the profile asks for.
std::vector<InputSpec> input_specs(const Task& task, Profile profile, uint64_t seed);

}  // namespace ptxb
