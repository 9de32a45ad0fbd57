// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "app/commands.h"
#include "app/sarif.h"
#include "app/session.h"
#include "app/show_evaluation.h"
#include "base/text.h"
#include "emu/emulate.h"
#include "ptx/parse.h"

namespace ptxb::app {

namespace {

// Parses a PTX text and says what the emulator would refuse.
Result<int> parse_only(const Options& options, const Terminal& terminal) {
  std::string ptx_text;
  if (Path(options.source).extension() == ".ptx") {
    PTXB_TRY(ptx_text, read_file(options.source, ptx::ParseLimits().text_bytes));
  } else {
    return bad_input(options.source + ": --parse-only takes a .ptx file; for a .cu file name its --task");
  }
  auto module = ptx::parse(ptx_text, Path(options.source).filename().string());
  if (!module) {
    terminal.print(printable(module.error().message, 2000) + "\n");
    return 1;
  }
  size_t instructions = 0, entries = 0;
  for (const ptx::Function& function : module->functions) {
    instructions += function.body.size();
    entries += function.is_entry;
  }
  LaunchPlan plan;
  plan.arch = module->target;
  plan.modules.push_back({.name = "candidate", .ptx = ptx_text, .cubin = "", .kernels = {}});
  for (const ptx::Function& function : module->functions) {
    if (!function.is_entry) continue;
    plan.modules[0].kernels.push_back({.name = function.name});
    KernelLaunch launch;
    launch.kernel = function.name;
    plan.steady.push_back({.action = launch});
  }
  auto program = emu::Program::load(plan);
  if (!program) {
    terminal.print(printable(program.error().message, 2000) + "\n");
    return program.error().code == ErrorCode::Unsupported ? 3 : 1;
  }
  terminal.print(fmt::format("{}: {} kernels, {} instructions, all known to the emulator\n",
                             printable(options.source, 300), entries, instructions));
  return 0;
}

}  // namespace

Result<int> run_check(const Options& options, const Terminal& terminal) {
  if (options.parse_only) return parse_only(options, terminal);
  PTXB_TRY(Candidate candidate, read_candidate(options.source));
  Options emulated = options;
  emulated.backend = "emu";
  PTXB_TRY(std::unique_ptr<Session> session, open_session(emulated, terminal, Need::Build));
  PTXB_TRY(EvaluationRequest request, make_request(options, *session));
  request.profile = Profile::Quick;
  request.required_families.emplace();
  PTXB_TRY(Evaluation evaluation, evaluate(request, candidate, session->harness));
  terminal.clear_progress();
  Verdict verdict = evaluation.verdict;
  const std::vector<Finding>& findings = evaluation.check.findings;
  if (options.json != "-") {
    terminal.print(show_findings(findings, terminal));
    if (verdict == Verdict::Passed) {
      terminal.print(fmt::format("{}: no hazards found at {}\n", printable(candidate.file_name, 200), evaluation.check.shape));
    } else {
      terminal.print(fmt::format("{}: {}: {}\n", printable(candidate.file_name, 200), name(verdict), printable(evaluation.cause, 2000)));
    }
  }
  if (!options.json.empty()) PTXB_CHECK_OK(write_json(options.json, to_json(evaluation), terminal));
  if (!options.sarif.empty()) PTXB_CHECK_OK(write_json(options.sarif, to_sarif(findings, options.source), terminal));
  if (verdict == Verdict::EmulatorUnsupported) return 3;
  return verdict == Verdict::Passed ? 0 : 1;
}

}  // namespace ptxb::app
