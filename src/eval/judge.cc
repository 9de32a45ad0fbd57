// SPDX-License-Identifier: Apache-2.0
#include "eval/judge.h"

#include <algorithm>
#include <cstdio>

#include "arch/families.h"
#include "task/compare.h"

namespace ptxb {

namespace {

std::string place_text(const CodePlace& place) {
  std::string text;
  if (place.source_line) text = place.source_file + ":" + std::to_string(place.source_line);
  if (place.ptx_line) text += (text.empty() ? "PTX line " : " (PTX line ") + std::to_string(place.ptx_line) + (text.empty() ? "" : ")");
  return text;
}

std::string sentence(const Finding& finding) {
  std::string where = place_text(finding.place);
  return where.empty() ? finding.message : finding.message + ", at " + where;
}

// The address lies beside one of the plan's buffers when the emulator could name it; a wild pointer is a plain fault.
Verdict verdict_of_kind(FindingKind kind) {
  switch (kind) {
    case FindingKind::OutOfBounds: return Verdict::OutOfBounds;
    case FindingKind::UninitialisedRead: return Verdict::UninitialisedRead;
    case FindingKind::Race: return Verdict::Race;
    case FindingKind::MissingFence:
    case FindingKind::AsyncHazard: return Verdict::MissingFence;
    case FindingKind::Deadlock: return Verdict::Deadlock;
    default: return Verdict::Fault;
  }
}

const char* hint_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::OutOfBounds: return "guard the access with the tensor's real extents; ragged tiles need a bound in every dimension";
    case Verdict::UninitialisedRead: return "write the bytes before they are read, or initialise the buffer in run()";
    case Verdict::Race: return "put a barrier (or the matching mbarrier wait) between the two accesses";
    case Verdict::MissingFence: return "add the fence or wait that orders the asynchronous access with the other one";
    case Verdict::Deadlock: return "make every warp that a barrier counts arrive at it, and every awaited phase complete";
    case Verdict::Timeout: return "look for a loop that never ends or far too much work per thread";
    default: return "look at the instruction named; check pointers, alignment and shared-memory sizes";
  }
}

const Finding* first_wrong(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.grade == FindingGrade::Wrong) return &finding;
  }
  return nullptr;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g%%", share * 100);
  return text;
}

struct Tally {
  uint64_t warps = 0, threads = 0;
  double flops = 0, typed_flops = 0, bytes = 0;
};

Tally tally(const arch::Family& family, const TargetQuestion& question, const std::vector<OpcodeCount>& counts) {
  Tally sum;
  for (const OpcodeCount& count : counts) {
    if (count.family != family.name) continue;
    // Predicated off for every lane: issued, but nothing was done.
    if (count.threads == 0) continue;
    sum.warps += count.warps;
    sum.threads += count.threads;
    sum.flops += count.flops;
    sum.bytes += count.bytes;
    if (question.operand_type.empty() || count.opcode.find(question.operand_type) != std::string::npos) {
      sum.typed_flops += count.flops;
    }
  }
  return sum;
}

// One required family's evidence; nullopt when it did the work.
std::optional<Judgement> judge_family(const arch::Family& family, const TargetQuestion& question, const Tally& sum,
                                      FamilyEvidence& evidence) {
  evidence = {family.name, "executed", 0, sum.warps, sum.threads};
  if (sum.warps == 0) {
    evidence.level = "in_source";
    return Judgement{Verdict::TargetAbsent,
                     std::string("no ") + family.name + " instruction was executed (" + family.what + ")",
                     std::string("do the work with ") + family.ptx_prefixes.front()};
  }
  if (family.matrix && question.work.matrix_flops > 0) {
    evidence.share = sum.typed_flops / question.work.matrix_flops;
    double any_type = sum.flops / question.work.matrix_flops;
    if (evidence.share < question.minimum_share && any_type >= question.minimum_share) {
      return Judgement{Verdict::TargetWrongVariant,
                       std::string(family.name) + " did the work, but with operands of another type than " +
                           question.operand_type.substr(1),
                       "multiply in the type of the inputs"};
    }
    if (evidence.share < question.minimum_share) {
      return Judgement{Verdict::TargetDecoy,
                       std::string(family.name) + " carried only " + percent(evidence.share) + " of the task's matrix FLOPs (" +
                           percent(question.minimum_share) + " needed)",
                       "move the whole multiplication onto these instructions"};
    }
  } else if (family.copy && question.work.bytes > 0) {
    evidence.share = sum.bytes / question.work.bytes;
    if (evidence.share < kMinimumCopyShare) {
      return Judgement{Verdict::TargetDecoy,
                       std::string(family.name) + " moved only " + percent(evidence.share) + " of the task's bytes (" +
                           percent(kMinimumCopyShare) + " needed)",
                       "load the operand tiles this way"};
    }
  }
  evidence.level = "did_the_work";
  return std::nullopt;
}

int rank_of(const std::string& level) {
  const char* kLevels[] = {"in_source", "in_ptx", "in_sass", "executed", "did_the_work"};
  return static_cast<int>(std::find(std::begin(kLevels), std::end(kLevels), level) - std::begin(kLevels));
}

}  // namespace

std::optional<Judgement> judge_run(const RunOutcome& outcome) {
  if (outcome.status == RunStatus::Completed) return std::nullopt;
  const Finding* finding = first_wrong(outcome.findings);
  Verdict verdict = Verdict::Fault;
  switch (outcome.status) {
    case RunStatus::Deadlock: verdict = Verdict::Deadlock; break;
    case RunStatus::Budget: verdict = Verdict::Timeout; break;
    case RunStatus::Unsupported: verdict = Verdict::EmulatorUnsupported; break;
    default: verdict = finding ? verdict_of_kind(finding->kind) : Verdict::Fault; break;
  }
  if (verdict == Verdict::EmulatorUnsupported) {
    return Judgement{verdict, "the emulator cannot run this kernel: " + outcome.cause,
                     "nothing is said about the candidate; evaluate it on a GPU"};
  }
  return Judgement{verdict, finding ? sentence(*finding) : outcome.cause,
                   finding && !finding->hint.empty() ? finding->hint : hint_of(verdict)};
}

std::optional<Judgement> judge_findings(const std::vector<Finding>& findings) {
  const Finding* finding = first_wrong(findings);
  if (!finding) return std::nullopt;
  Verdict verdict = verdict_of_kind(finding->kind);
  return Judgement{verdict, sentence(*finding), finding->hint.empty() ? hint_of(verdict) : finding->hint};
}

std::optional<Judgement> judge_values(const RunOutcome& outcome) {
  Verdict verdict = verdict_of(outcome.comparisons);
  if (verdict != Verdict::Passed) {
    for (const Comparison& comparison : outcome.comparisons) {
      if (comparison.passed) continue;
      return Judgement{verdict, comparison.output + ": " + comparison.diagnosis,
                       verdict == Verdict::Unwritten   ? "write every element of every output"
                       : verdict == Verdict::NonFinite ? "look for a division by zero, an overflow or uninitialised data"
                                                       : "compare with the formula of the task on a small case"};
    }
  }
  if (!outcome.modified_inputs.empty()) {
    return Judgement{Verdict::InputModified, "run() changed its input " + outcome.modified_inputs.front(),
                     "inputs are const: copy what must be changed"};
  }
  if (outcome.repeat_digest && *outcome.repeat_digest != outcome.output_digest) {
    return Judgement{Verdict::NotDeterministic, "two runs of the same launches on the same inputs gave different bits",
                     "look for unordered accumulation, uninitialised data or a race"};
  }
  return std::nullopt;
}

std::optional<Judgement> judge_target(const TargetQuestion& question, const std::vector<OpcodeCount>& counts,
                                      TargetGate& gate) {
  std::optional<Judgement> first;
  gate.level = "did_the_work";
  gate.share = 1;
  bool shared = false;
  for (const std::string& name : question.required) {
    const arch::Family* family = arch::find_family(name);
    if (!family) continue;  // names were checked when the question was made
    FamilyEvidence evidence;
    auto judgement = judge_family(*family, question, tally(*family, question, counts), evidence);
    if (judgement && !first) first = judgement;
    if (rank_of(evidence.level) < rank_of(gate.level)) gate.level = evidence.level;
    if (family->matrix) {
      gate.share = shared ? std::min(gate.share, evidence.share) : evidence.share;
      shared = true;
    }
    gate.families.push_back(std::move(evidence));
  }
  // What was executed although nobody asked for it is evidence too.
  for (const arch::Family& family : arch::families()) {
    if (std::find(question.required.begin(), question.required.end(), family.name) != question.required.end()) continue;
    Tally sum = tally(family, {.work = question.work}, counts);
    if (sum.warps == 0) continue;
    double share = family.matrix && question.work.matrix_flops > 0 ? sum.flops / question.work.matrix_flops
                   : family.copy && question.work.bytes > 0        ? sum.bytes / question.work.bytes
                                                                   : 0;
    gate.families.push_back({family.name, "executed", share, sum.warps, sum.threads});
  }
  if (question.required.empty()) {
    gate.level = "";
    gate.share = 0;
  } else if (!shared) {
    gate.share = gate.families.front().share;
  }
  return first;
}

Judgement target_results_unused(const std::string& family, TargetGate& gate) {
  gate.level = "executed";
  for (FamilyEvidence& evidence : gate.families) {
    if (evidence.family == family) evidence.level = "executed";
  }
  return {Verdict::TargetDecoy,
          family + " was executed, but the outputs are the same without its results: other instructions did the work",
          "use the accumulators that these instructions write"};
}

}  // namespace ptxb
