// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "app/commands.h"
#include "app/session.h"
#include "app/show_evaluation.h"
#include "base/text.h"

namespace ptxb::app {

Result<int> run_plan(const Options& options, const Terminal& terminal) {
  PTXB_TRY(Candidate candidate, read_candidate(options.source));
  Options emulated = options;
  emulated.backend = "emu";  // no GPU is needed to record
  PTXB_TRY(std::unique_ptr<Session> session, open_session(emulated, terminal, Need::Build));
  PTXB_TRY(EvaluationRequest request, make_request(options, *session));
  PTXB_TRY(PlannedCandidate planned, plan_candidate(request, candidate, session->harness));
  terminal.clear_progress();
  if (!planned.plan) {
    terminal.print(show(planned.evaluation, terminal));
    return 1;
  }
  PTXB_CHECK_OK(write_plan(*planned.plan, options.output));
  terminal.print(show(*planned.plan));
  terminal.print(fmt::format("written to {}\n", printable(options.output, 1000)));
  return 0;
}

Result<int> run_plan_show(const Options& options, const Terminal& terminal) {
  PTXB_TRY(LaunchPlan plan, read_plan(options.source));
  if (options.json != "-") terminal.print(show(plan));
  if (!options.json.empty()) PTXB_CHECK_OK(write_json(options.json, to_json(plan), terminal));
  return 0;
}

}  // namespace ptxb::app
