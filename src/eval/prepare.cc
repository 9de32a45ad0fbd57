// The first steps of the line: from a candidate's text to an artifact and to plans.
// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/file.h"
#include "eval/climb.h"
#include "shim/describe_launch.h"
#include "shim/task_header.h"

namespace ptxb {

Result<std::optional<Artifact>> step_build(Climb& climb, const Candidate& candidate) {
  climb.harness.progress("compiling " + candidate.file_name);
  double begin = now_s();
  PTXB_TRY(TempFolder headers, TempFolder::make("ptxbench-header-"));
  PTXB_CHECK_OK(write_file(headers.path() / "ptxbench_task.h", shim::task_header(climb.request.task.definition)));
  build::BuildRequest request{.candidate = candidate, .arch = climb.request.arch, .header_folder = headers.path()};
  PTXB_TRY(build::BuildOutcome outcome, build::build(request, climb.harness.build));
  Evaluation& e = climb.evaluation;
  e.cost.build_s = now_s() - begin;
  e.cost.build_cached = outcome.origin == build::Origin::Cached;
  e.provenance.tools = climb.harness.build.toolchain->tools;
  if (const build::BuildFailure* failure = outcome.failure()) {
    Stage stage = stage_of(failure->verdict);
    Gate& gate = stage == Stage::Launch ? e.launch : e.compile;
    if (stage == Stage::Launch) e.compile.status = GateStatus::Passed;
    gate.status = GateStatus::Failed;
    gate.reason = failure->cause;
    e.diagnostics = failure->diagnostics;
    settle(climb, {failure->verdict, failure->cause, failure->hint});
    return std::optional<Artifact>();
  }
  Artifact artifact = *outcome.artifact();
  artifact.launch_toml = candidate.launch_toml;
  e.compile.status = GateStatus::Passed;
  e.diagnostics = artifact.diagnostics;
  e.kernels = artifact.kernels;
  e.provenance.cubin_sha256 = artifact.cubin_sha256;
  return std::optional<Artifact>(std::move(artifact));
}

Result<Recorded> record_plan(const Artifact& artifact, const Task& task, const Harness& harness) {
  if (artifact.binding == Binding::Ptx) {
    const arch::Chip* chip = arch::find_chip(harness.record.chip);
    if (!chip) return harness_error("no chip profile named " + harness.record.chip);
    PTXB_TRY(auto described, shim::describe_launch(artifact, task, artifact.launch_toml, *chip));
    if (auto* none = std::get_if<shim::NoPlan>(&described)) return Recorded(Judgement{none->verdict, none->cause, none->hint});
    return Recorded(std::get<LaunchPlan>(std::move(described)));
  }
  PTXB_TRY(shim::RecordOutcome outcome, shim::record(artifact, task, harness.record));
  if (outcome.verdict == Verdict::Passed) return Recorded(std::move(outcome.plan));
  return Recorded(Judgement{outcome.verdict, std::move(outcome.cause), std::move(outcome.hint)});
}

}  // namespace ptxb
