// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"
#include "app/session.h"
#include "app/show_evaluation.h"

namespace ptxb::app {

namespace {

// 0 passed; 3 when nothing was found out about the candidate; 1 otherwise.
int verdict_code(Verdict verdict) {
  if (verdict == Verdict::Passed) return 0;
  return verdict == Verdict::EmulatorUnsupported ? 3 : 1;
}

Result<int> tell(const Evaluation& evaluation, const Options& options, const Terminal& terminal) {
  terminal.clear_progress();
  if (options.json != "-") terminal.print(show(evaluation, terminal));
  if (!options.json.empty()) PTXB_CHECK_OK(write_json(options.json, to_json(evaluation), terminal));
  return verdict_code(evaluation.verdict);
}

}  // namespace

Result<int> run_eval(const Options& options, const Terminal& terminal) {
  // The source first: a typing mistake should not wait for tools to be looked for.
  PTXB_TRY(Candidate candidate, read_candidate(options.source));
  PTXB_TRY(std::unique_ptr<Session> session, open_session(options, terminal, Need::Build));
  PTXB_TRY(EvaluationRequest request, make_request(options, *session));
  PTXB_TRY(Evaluation evaluation, evaluate(request, candidate, session->harness));
  return tell(evaluation, options, terminal);
}

Result<int> run_replay(const Options& given, const Terminal& terminal) {
  PTXB_TRY(LaunchPlan plan, read_plan(given.source));
  Options options = given;
  options.arch = plan.arch;
  options.task = plan.task;
  PTXB_TRY(std::unique_ptr<Session> session, open_session(options, terminal, Need::ReplayOnly));
  options.workload = plan.workload;
  if (plan.workload.find('=') != std::string::npos || plan.workload.empty()) {
    options.workload.clear();
    const Definition* definition = session->dataset.find(plan.task);
    if (!definition) return not_found(given.source + ": the plan's task " + plan.task + " is not in the dataset");
    for (const Axis& axis : definition->axes) {
      auto value = plan.axes.find(axis.name);
      if (axis.value || value == plan.axes.end()) continue;
      options.workload += (options.workload.empty() ? "" : ",") + axis.name + "=" + std::to_string(value->second);
    }
  }
  PTXB_TRY(EvaluationRequest request, make_request(options, *session));
  if (request.task.axes != plan.axes) return bad_input(given.source + ": the plan's axes do not fit task " + plan.task);
  PTXB_TRY(Evaluation evaluation, evaluate_plan(request, plan, session->harness));
  return tell(evaluation, options, terminal);
}

}  // namespace ptxb::app
