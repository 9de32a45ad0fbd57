// Owns the rules that turn evidence into verdicts: pure functions over plain data, no clock, no process, no GPU.
// A verdict never depends on text that a candidate can influence: messages are shown, kinds and numbers decide.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "model/evaluation.h"
#include "task/work.h"

namespace ptxb {

struct Judgement {
  Verdict verdict = Verdict::Passed;
  std::string cause, hint;
};

// How a replay ended: nullopt when it completed. Findings of grade Wrong name the place.
std::optional<Judgement> judge_run(const RunOutcome& outcome);
// What the shadow state found: nullopt without a finding of grade Wrong.
std::optional<Judgement> judge_findings(const std::vector<Finding>& findings);
// Comparisons and input hashes of one replay.
std::optional<Judgement> judge_values(const RunOutcome& outcome);

// What the target gate needs to know of the task.
struct TargetQuestion {
  std::vector<std::string> required;  // families; empty: nothing is asked
  double minimum_share = 0.9;         // of the matrix FLOPs
  Work work;
  std::string operand_type;           // ".bf16": matrix instructions of another type are a wrong variant; "" any
};

// Copies through a required copy family must carry this share of the task's compulsory bytes. Honest kernels load the
// larger operands that way but may store by other means, or load a small one by threads, so the floor is low;
// a decoy that copies one tile stays far below it.
inline constexpr double kMinimumCopyShare = 0.25;

// Fills the gate's families, shares and level; nullopt when what was asked was done (or nothing was asked).
std::optional<Judgement> judge_target(const TargetQuestion& question, const std::vector<OpcodeCount>& counts,
                                      TargetGate& gate);
// After judge_target passed: the outputs stayed the same although the family's results were withheld.
Judgement target_results_unused(const std::string& family, TargetGate& gate);

}  // namespace ptxb
