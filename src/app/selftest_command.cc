// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "app/commands.h"
#include "app/locate.h"
#include "app/manifest.h"
#include "app/session.h"
#include "app/show_evaluation.h"
#include "base/clock.h"
#include "base/text.h"

namespace ptxb::app {

namespace {

// A miss is a fault that was not named as such; a false alarm is something right that was called wrong.
struct Tally {
  int right = 0, misses = 0, false_alarms = 0, other = 0, unjudged = 0;
};

bool good(Verdict verdict) {
  // Kernels that are right but lack the target instructions are right kernels: accusing them of more is a false alarm.
  return verdict == Verdict::Passed || stage_of(verdict) == Stage::Target;
}

void count(Tally& tally, Verdict expected, Verdict got) {
  if (expected == got) tally.right++;
  else if (got == Verdict::EmulatorUnsupported) tally.unjudged++;
  else if (!good(expected) && good(got)) tally.misses++;
  else if (good(expected) && !good(got)) tally.false_alarms++;
  else tally.other++;
}

Result<Evaluation> judge_entry(const ManifestEntry& entry, const Path& folder, const Options& options, Session& session) {
  PTXB_TRY(Candidate candidate, read_candidate((folder / entry.file).string()));
  Options own = options;
  own.task = entry.task;
  own.workload = entry.selector;
  own.arch = entry.arch;
  PTXB_TRY(EvaluationRequest request, make_request(own, session));
  return evaluate(request, candidate, session.harness);
}

std::string evidence_text(const Evaluation& e, const Terminal& terminal) {
  std::string text = fmt::format("    cause: {}\n", e.cause.empty() ? "-" : printable(e.cause, 600));
  if (!e.hint.empty()) text += fmt::format("    hint:  {}\n", printable(e.hint, 300));
  for (const Finding& f : e.check.findings) {
    if (f.grade != FindingGrade::Wrong) continue;
    text += fmt::format("    at PTX line {}: {}\n", f.place.ptx_line, printable(f.place.ptx_text, 140));
    break;
  }
  if (e.correct.status == GateStatus::Passed && !e.correct.comparisons.empty()) {
    text += terminal.paint(Colour::Dim, fmt::format("    values: right in {} comparisons, worst error {:.2g} of its bound\n",
                                                    e.correct.comparisons.size(), e.correct.normalised_error));
  }
  return text;
}

}  // namespace

Result<int> run_selftest(const Options& options, const Terminal& terminal) {
  Path manifest = options.source;
  if (options.source.empty()) {
    PTXB_TRY(Path data, data_folder());
    manifest = data / "kernels" / "manifest.toml";
  }
  PTXB_TRY(std::vector<ManifestEntry> entries, read_manifest(manifest));
  PTXB_TRY(std::unique_ptr<Session> session, open_session(options, terminal, Need::Build));
  Tally tally;
  Json results = Json::array();
  double begin = now_s();
  for (const ManifestEntry& entry : entries) {
    if (options.quickstart && !entry.quickstart) continue;
    if (!options.only.empty() && entry.file.find(options.only) == std::string::npos) continue;
    PTXB_TRY(Evaluation e, judge_entry(entry, manifest.parent_path(), options, *session));
    terminal.clear_progress();
    count(tally, entry.verdict, e.verdict);
    bool expected = e.verdict == entry.verdict;
    terminal.print(fmt::format("{} {:<38} {:<20} {:<8} {:5.1f} s  {}\n", expected ? terminal.paint(Colour::Green, "ok   ") : terminal.paint(Colour::Red, "WRONG"),
                               entry.file, name(e.verdict), name(stage_of(e.verdict)), e.cost.total_s, entry.note));
    if (!expected) terminal.print(fmt::format("    expected {}\n", name(entry.verdict)));
    if (!expected || options.quickstart) terminal.print(evidence_text(e, terminal));
    Json row = Json::object();
    row.set("file", entry.file).set("expected", name(entry.verdict)).set("evaluation", to_json(e));
    results.push_back(std::move(row));
  }
  int judged = tally.right + tally.misses + tally.false_alarms + tally.other;
  terminal.print(fmt::format("\n{} kernels judged in {:.0f} s: {} as expected, misses {}, false alarms {}, other verdicts {}, not judged {}\n",
                             judged, now_s() - begin, tally.right, tally.misses, tally.false_alarms, tally.other, tally.unjudged));
  if (!options.json.empty()) PTXB_CHECK_OK(write_json(options.json, results, terminal));
  if (tally.misses + tally.false_alarms + tally.other > 0) return 1;
  return tally.unjudged > 0 ? 3 : 0;
}

}  // namespace ptxb::app
