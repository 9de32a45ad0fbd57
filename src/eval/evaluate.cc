// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluate.h"

#include "base/clock.h"
#include "base/hash.h"
#include "eval/climb.h"

namespace ptxb {

namespace {

Evaluation opened(const EvaluationRequest& request, const Harness& harness) {
  Evaluation e;
  e.task = request.task.definition.name;
  e.workload = request.task.workload.uuid;
  e.axes = request.task.axes;
  e.arch = request.arch;
  e.backend = harness.backend->name();
  e.profile = name(request.profile);
  e.provenance.chip = harness.backend->chip();
  e.provenance.driver = harness.backend->driver();
  if (harness.sandbox) {
    e.provenance.sandbox_layers = harness.sandbox->active_names();
    e.provenance.sandbox_missing = harness.sandbox->missing_names();
  }
  return e;
}

// From a source of plans to the verdict: the part that evaluate and evaluate_plan share.
Result<void> climb_from_plans(Climb& climb) {
  PTXB_CHECK_OK(step_launch(climb));
  PTXB_CHECK_OK(step_values(climb));
  PTXB_CHECK_OK(step_hazards(climb));
  PTXB_CHECK_OK(step_second_call(climb));
  PTXB_CHECK_OK(step_neighbours(climb));
  PTXB_CHECK_OK(step_target(climb));
  PTXB_CHECK_OK(step_speed(climb));
  climb.evaluation.cost.total_s = now_s() - climb.begin_s;
  return {};
}

}  // namespace

std::string_view name(Profile profile) { return profile == Profile::Quick ? "quick" : "strict"; }

Result<Evaluation> evaluate(const EvaluationRequest& request, const Candidate& candidate, Harness& harness) {
  Evaluation evaluation = opened(request, harness);
  std::optional<Artifact> artifact;
  Climb climb{.request = request, .harness = harness, .evaluation = evaluation, .record = {}, .source_name = candidate.file_name,
              .begin_s = now_s()};
  climb.record = [&](const Task& task) { return record_plan(*artifact, task, harness); };
  evaluation.provenance.source_sha256 = sha256_hex(candidate.source);
  PTXB_TRY(artifact, step_build(climb, candidate));
  if (!climb.settled) PTXB_CHECK_OK(climb_from_plans(climb));
  evaluation.cost.total_s = now_s() - climb.begin_s;
  return evaluation;
}

Result<Evaluation> evaluate_plan(const EvaluationRequest& request, const LaunchPlan& plan, Harness& harness) {
  Evaluation evaluation = opened(request, harness);
  evaluation.compile.reason = "replayed from a recorded plan";
  evaluation.provenance.source_sha256 = plan.source_sha256;
  evaluation.provenance.cubin_sha256 = plan.cubin_sha256;
  Climb climb{.request = request, .harness = harness, .evaluation = evaluation, .record = {}, .source_name = {}, .begin_s = now_s()};
  climb.record = [&](const Task& task) -> Result<Recorded> {
    if (task.axes == plan.axes) return Recorded(plan);
    return Recorded(Judgement{Verdict::LaunchUnsupported, "the plan was recorded at another shape", ""});
  };
  PTXB_CHECK_OK(climb_from_plans(climb));
  return evaluation;
}

Result<PlannedCandidate> plan_candidate(const EvaluationRequest& request, const Candidate& candidate, Harness& harness) {
  PlannedCandidate planned{opened(request, harness), std::nullopt};
  std::optional<Artifact> artifact;
  Climb climb{.request = request, .harness = harness, .evaluation = planned.evaluation, .record = {}, .source_name = {}, .begin_s = now_s()};
  PTXB_TRY(artifact, step_build(climb, candidate));
  if (climb.settled) return planned;
  PTXB_TRY(Recorded recorded, record_plan(*artifact, request.task, harness));
  if (auto* plan = std::get_if<LaunchPlan>(&recorded)) planned.plan = std::move(*plan);
  else settle(climb, std::get<Judgement>(std::move(recorded)));
  return planned;
}

}  // namespace ptxb
