// SPDX-License-Identifier: Apache-2.0
#include "eval/climb.h"

#include <unistd.h>

#include <algorithm>

#include "arch/families.h"
#include "base/clock.h"
#include "task/work.h"

namespace ptxb {

namespace {

// Emulation stays a small part of an evaluation: neighbours are skipped, with a reason, once this much was spent.
constexpr double kEmulationBudget_s = 6;
constexpr double kRunBudget_s = 120;
constexpr std::string_view kBuiltName = "candidate.cu";
// The emulator touches every byte of a plan's buffers: a workspace as large as a GPU's memory must not end the harness.
constexpr uint64_t kEmulatedMemory_bytes = uint64_t{8} << 30;

Result<Recorded> plan_at(Climb& climb, const Task& task) {
  std::string shape = shape_text(task);
  auto found = climb.plans.find(shape);
  if (found != climb.plans.end()) return Recorded(found->second);
  double begin = now_s();
  PTXB_TRY(Recorded recorded, climb.record(task));
  climb.evaluation.cost.record_s += now_s() - begin;
  if (auto* plan = std::get_if<LaunchPlan>(&recorded)) climb.plans.emplace(shape, *plan);
  return recorded;
}

uint64_t emulated_memory_bytes() {
  long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return kEmulatedMemory_bytes;
  return std::min(kEmulatedMemory_bytes, static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes) / 2);
}

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Sizes come from the candidate, so that their sum may wrap: it stops growing at the limit.
std::optional<RunOutcome> too_large_to_emulate(const LaunchPlan& plan) {
  uint64_t limit = emulated_memory_bytes(), total = 0;
  for (const PlanBuffer& buffer : plan.buffers) total = std::min(limit, total) + std::min(limit, buffer.size_bytes);
  if (total <= limit) return std::nullopt;
  RunOutcome outcome;
  outcome.status = RunStatus::Unsupported;
  outcome.cause = "run() allocates more device memory than the emulator has here (" + mebibytes(limit) + ")";
  return outcome;
}

Result<RunOutcome> run_on(Climb& climb, Backend& backend, const Task& task, const LaunchPlan& plan, const RunSpec& spec) {
  if (backend.name() == "emu") {
    if (auto refused = too_large_to_emulate(plan)) return *std::move(refused);
  }
  PTXB_TRY(RunOutcome outcome, backend.run(task, plan, spec));
  (backend.name() == "emu" ? climb.evaluation.cost.emulate_s : climb.evaluation.cost.gpu_s) += outcome.seconds;
  // Inside the sandbox every candidate has one name; people know theirs.
  bool rename = !climb.source_name.empty() && climb.source_name.find(kBuiltName) == std::string::npos;
  for (Finding& finding : outcome.findings) {
    for (size_t at = 0; rename && (at = finding.message.find(kBuiltName, at)) != std::string::npos; at += climb.source_name.size()) {
      finding.message.replace(at, kBuiltName.size(), climb.source_name);
    }
    for (CodePlace* place : {&finding.place, &finding.other}) {
      if (!climb.source_name.empty() && place->source_file.ends_with(kBuiltName)) place->source_file = climb.source_name;
    }
  }
  return outcome;
}

void absorb(CorrectGate& gate, const std::vector<Comparison>& comparisons) {
  bool first = gate.comparisons.empty();
  for (const Comparison& c : comparisons) {
    gate.max_abs_error = std::max(gate.max_abs_error, c.max_abs_error);
    gate.max_rel_error = std::max(gate.max_rel_error, c.max_rel_error);
    gate.matched_ratio = first ? c.matched_ratio : std::min(gate.matched_ratio, c.matched_ratio);
    gate.normalised_error = std::max(gate.normalised_error, c.normalised_error);
    if (!c.passed && gate.diagnosis.empty()) gate.diagnosis = c.output + ": " + c.diagnosis;
    gate.comparisons.push_back(c);
    first = false;
  }
}

// The deciding shape, or the definition's small one where that would take the emulator too long.
Result<Task> emulated_task(const Climb& climb) {
  const Task& task = climb.decided_at;
  bool small = work_of(task).matrix_flops <= climb.harness.emulator->flops_limit();
  return small ? Result<Task>(task) : at_axes(*climb.request.dataset, task, task.definition.emulator_axes);
}

bool emulates(const Climb& climb) { return climb.harness.backend->name() == "emu"; }

std::string launch_summary(const LaunchPlan& plan) {
  size_t kernels = 0, others = 0;
  for (const PlanOperation& operation : plan.steady) {
    (std::holds_alternative<KernelLaunch>(operation.action) ? kernels : others)++;
  }
  std::string text = std::to_string(kernels) + (kernels == 1 ? " kernel launch" : " kernel launches");
  if (others) text += ", " + std::to_string(others) + (others == 1 ? " other operation" : " other operations");
  if (!plan.setup.empty()) text += ", first call differs";
  return text;
}

}  // namespace

void settle(Climb& climb, Judgement judgement) {
  if (climb.settled) return;
  climb.settled = true;
  climb.evaluation.verdict = judgement.verdict;
  climb.evaluation.cause = std::move(judgement.cause);
  climb.evaluation.hint = std::move(judgement.hint);
}

std::vector<InputSpec> input_specs(const Task& task, Profile profile, uint64_t seed) {
  std::vector<InputSpec> specs;
  for (Distribution distribution : distributions(task)) {
    if (profile == Profile::Quick && specs.size() == 2) break;
    specs.push_back({seed + specs.size(), distribution});
  }
  // At least three seeds in a strict evaluation, also where a task knows fewer distributions.
  while (profile == Profile::Strict && specs.size() < 3) {
    specs.push_back({seed + specs.size(), specs.empty() ? Distribution::Normal : specs.front().distribution});
  }
  return specs;
}

Result<void> step_launch(Climb& climb) {
  if (climb.settled) return {};
  const Task& asked = climb.request.task;
  climb.decided_at = asked;
  if (work_of(asked).matrix_flops > climb.harness.backend->flops_limit()) {
    PTXB_TRY(climb.decided_at, at_axes(*climb.request.dataset, asked, asked.definition.emulator_axes));
    climb.substituted = true;
  }
  climb.harness.progress("recording " + shape_text(climb.decided_at));
  PTXB_TRY(Recorded recorded, plan_at(climb, climb.decided_at));
  Gate& gate = climb.evaluation.launch;
  if (auto* judgement = std::get_if<Judgement>(&recorded)) {
    gate.status = GateStatus::Failed;
    gate.reason = judgement->cause;
    settle(climb, std::move(*judgement));
    return {};
  }
  climb.plan = std::get<LaunchPlan>(std::move(recorded));
  climb.evaluation.provenance.plan_sha256 = sha256(*climb.plan);
  gate.status = GateStatus::Passed;
  gate.reason = launch_summary(*climb.plan);
  return {};
}

Result<void> step_values(Climb& climb) {
  if (climb.settled) return {};
  CorrectGate& gate = climb.evaluation.correct;
  std::string shape = shape_text(climb.decided_at);
  gate.shapes.push_back(climb.substituted ? shape + " (the emulator's shape; " + shape_text(climb.request.task) + " was not run)"
                                          : shape);
  gate.status = GateStatus::Passed;
  for (InputSpec spec : input_specs(climb.decided_at, climb.request.profile, climb.request.seed)) {
    climb.harness.progress("running " + shape + ", " + std::string(name(spec.distribution)) + " inputs");
    PTXB_TRY(RunOutcome outcome, run_on(climb, *climb.harness.backend, climb.decided_at, *climb.plan,
                                        {.inputs = spec, .wall_budget_s = kRunBudget_s}));
    climb.evaluation.provenance.seeds.push_back(spec.seed);
    absorb(gate, outcome.comparisons);
    auto judgement = judge_run(outcome);
    if (judgement) {
      // Nothing can be said about the values of a kernel that did not end.
      bool refused = judgement->verdict == Verdict::EmulatorUnsupported;
      gate.status = refused ? GateStatus::NotVerified : GateStatus::Failed;
      gate.reason = judgement->cause;
      climb.evaluation.check.findings = outcome.findings;
      climb.evaluation.check.shape = shape;
      if (!outcome.findings.empty()) climb.evaluation.check.status = GateStatus::Failed;
    } else {
      judgement = judge_values(outcome);
      if (judgement) gate.status = GateStatus::Failed;
    }
    if (!climb.values) climb.values = std::move(outcome);
    if (!judgement) continue;
    bool ran = stage_of(judgement->verdict) == Stage::Correct;
    gate.reason = judgement->cause;
    // A race may be the reason for wrong values: the ladder has it first, so ask before settling.
    if (ran) PTXB_CHECK_OK(step_hazards(climb));
    settle(climb, std::move(*judgement));
    return {};
  }
  return {};
}

Result<void> step_hazards(Climb& climb) {
  CheckGate& gate = climb.evaluation.check;
  if (climb.settled || gate.status != GateStatus::Skipped) return {};
  Backend* emulator = climb.harness.emulator;
  PTXB_TRY(Task where, emulated_task(climb));
  bool same_shape = shape_text(where) == shape_text(climb.decided_at);
  gate.shape = shape_text(where);
  auto not_applicable = [&](std::string reason) {
    gate.status = GateStatus::NotVerified;
    gate.reason = std::move(reason);
  };
  PTXB_TRY(Recorded recorded, plan_at(climb, where));
  if (auto* judgement = std::get_if<Judgement>(&recorded)) {
    not_applicable("no plan at " + gate.shape + ": " + judgement->cause);
    return {};
  }
  const LaunchPlan& plan = std::get<LaunchPlan>(recorded);
  InputSpec inputs = input_specs(where, Profile::Quick, climb.request.seed).front();
  if (!emulates(climb)) {
    // The values at the small shape say whether the kernel supports it at all.
    climb.harness.progress("emulating " + gate.shape);
    PTXB_TRY(climb.small_values, run_on(climb, *emulator, where, plan, {.inputs = inputs, .wall_budget_s = kRunBudget_s}));
    auto judgement = judge_run(*climb.small_values);
    if (!judgement) judgement = judge_values(*climb.small_values);
    if (judgement && !same_shape) {
      not_applicable("not right at the emulator's shape " + gate.shape + ": " + judgement->cause);
      return {};
    }
  }
  climb.harness.progress("looking for races at " + gate.shape);
  PTXB_TRY(RunOutcome outcome, run_on(climb, *emulator, where, plan,
                                      {.inputs = inputs, .depth = RunDepth::Hazards, .wall_budget_s = kRunBudget_s}));
  gate.findings = std::move(outcome.findings);
  gate.shape += ", " + (outcome.coverage.empty() ? std::string("all blocks") : outcome.coverage);
  if (outcome.status == RunStatus::Unsupported || (outcome.status == RunStatus::Budget && gate.findings.empty())) {
    not_applicable("the emulator gave up: " + outcome.cause);
    return {};
  }
  auto judgement = judge_findings(gate.findings);
  if (!judgement && outcome.status != RunStatus::Completed) judgement = judge_run(outcome);
  gate.status = judgement ? GateStatus::Failed : GateStatus::Passed;
  if (judgement) {
    gate.reason = judgement->cause;
    settle(climb, std::move(*judgement));
  }
  return {};
}

bool keeps_state(const LaunchPlan& plan) {
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.role == BufferRole::Scratch) return true;
  }
  // A declaration has a space behind the state space, an instruction (ld.global.f32) has none. A comment may say it too: no harm.
  return std::any_of(plan.modules.begin(), plan.modules.end(), [](const PlanModule& module) {
    return module.ptx.find(".global .") != std::string::npos || module.ptx.find(".global\t.") != std::string::npos;
  });
}

LaunchPlan second_call(const LaunchPlan& plan) {
  LaunchPlan out = plan;
  auto first = static_cast<uint32_t>(out.setup.size());
  for (PlanOperation operation : plan.steady) {
    for (uint32_t& earlier : operation.after) earlier += first;
    out.setup.push_back(std::move(operation));
  }
  return out;
}

// The plan is judged as the call after its setup. A counter, cache or flag on the device can tell that call from the next one,
// and needs no host code for it. On other data than the call before, so that a kept answer is a wrong one.
Result<void> step_second_call(Climb& climb) {
  // What the emulator cannot run, or what is not right at its shape, was said by the step before.
  if (climb.settled || climb.evaluation.check.status == GateStatus::NotVerified) return {};
  PTXB_TRY(Task where, emulated_task(climb));
  PTXB_TRY(Recorded recorded, plan_at(climb, where));
  auto* plan = std::get_if<LaunchPlan>(&recorded);
  if (!plan || !keeps_state(*plan)) return {};
  climb.harness.progress("running the second call at " + shape_text(where));
  InputSpec inputs = input_specs(where, Profile::Quick, climb.request.seed).front();
  PTXB_TRY(RunOutcome outcome, run_on(climb, *climb.harness.emulator, where, second_call(*plan),
                                      {.inputs = inputs, .wall_budget_s = kRunBudget_s}));
  if (outcome.status == RunStatus::Unsupported) return {};
  auto judgement = judge_run(outcome);
  if (!judgement) judgement = judge_values(outcome);
  if (!judgement) return {};
  CorrectGate& gate = climb.evaluation.correct;
  absorb(gate, outcome.comparisons);
  gate.status = GateStatus::Failed;
  judgement->cause = "right in the first call, not in the second: " + judgement->cause;
  judgement->hint = "leave device variables and scratch as the next call needs them";
  gate.reason = judgement->cause;
  settle(climb, std::move(*judgement));
  return {};
}

Result<void> step_neighbours(Climb& climb) {
  CorrectGate& gate = climb.evaluation.generalises;
  if (climb.settled) return {};
  if (climb.request.profile == Profile::Quick) {
    gate.reason = "quick profile";
    return {};
  }
  for (const Task& neighbour : neighbours(*climb.request.dataset, climb.decided_at)) {
    std::string shape = shape_text(neighbour);
    if (shape == shape_text(climb.decided_at)) continue;
    if (work_of(neighbour).matrix_flops > climb.harness.backend->flops_limit()) continue;
    if (emulates(climb) && climb.evaluation.cost.emulate_s > kEmulationBudget_s) {
      if (gate.shapes.empty()) gate.reason = "the emulation budget was spent on the asked shape";
      return {};
    }
    climb.harness.progress("running the neighbour shape " + shape);
    PTXB_TRY(Recorded recorded, plan_at(climb, neighbour));
    std::optional<Judgement> judgement;
    if (auto* none = std::get_if<Judgement>(&recorded)) {
      judgement = std::move(*none);
    } else {
      InputSpec spec = input_specs(neighbour, Profile::Quick, climb.request.seed + 16).front();
      PTXB_TRY(RunOutcome outcome, run_on(climb, *climb.harness.backend, neighbour, std::get<LaunchPlan>(recorded),
                                          {.inputs = spec, .wall_budget_s = kRunBudget_s}));
      absorb(gate, outcome.comparisons);
      judgement = judge_run(outcome);
      if (!judgement) judgement = judge_values(outcome);
    }
    gate.shapes.push_back(shape + (judgement ? " (failed)" : ""));
    if (!judgement) {
      if (gate.status == GateStatus::Skipped) gate.status = GateStatus::Passed;
      continue;
    }
    // Reported, not decisive: the asked workloads decide `correct`.
    gate.status = GateStatus::Failed;
    if (gate.reason.empty()) gate.reason = shape + ": " + judgement->cause;
  }
  if (gate.status == GateStatus::Skipped && gate.reason.empty()) gate.reason = "the definition names no neighbour shapes";
  return {};
}

namespace {

Result<TargetQuestion> target_question(const Climb& climb) {
  TargetQuestion question;
  question.work = work_of(climb.decided_at);
  for (const TargetPolicy& policy : climb.decided_at.definition.targets) {
    if (policy.arch != climb.request.arch) continue;
    question.required = policy.required;
    question.minimum_share = policy.minimum_share;
  }
  if (climb.request.required_families) question.required = *climb.request.required_families;
  const std::vector<TensorSpec>& inputs = climb.decided_at.definition.inputs;
  if (!inputs.empty() && inputs.front().dtype == DType::BF16) question.operand_type = ".bf16";
  if (!inputs.empty() && inputs.front().dtype == DType::F16) question.operand_type = ".f16";
  for (const std::string& family : question.required) {
    if (!arch::find_family(family)) return bad_input("no instruction family named " + family);
  }
  return question;
}

}  // namespace

Result<void> step_target(Climb& climb) {
  TargetGate& gate = climb.evaluation.target;
  if (climb.settled) return {};
  PTXB_TRY(TargetQuestion question, target_question(climb));
  std::vector<OpcodeCount> counts;
  if (emulates(climb)) {
    counts = climb.values->counts;
    gate.means = "emulator: executed PTX instructions";
  } else {
    climb.harness.progress("counting executed instructions");
    auto counted_on_gpu = climb.harness.backend->count(climb.decided_at, *climb.plan);
    if (!counted_on_gpu) {
      gate.status = GateStatus::NotVerified;
      gate.reason = counted_on_gpu.error().message;
      if (!question.required.empty()) {
        settle(climb, {Verdict::TargetNotVerified, "executed instructions could not be counted: " + gate.reason,
                       "nothing is said about the candidate's instructions"});
      }
      return {};
    }
    counts = *std::move(counted_on_gpu);
    gate.means = "GPU: executed SASS instructions";
  }
  gate.opcodes = counts;
  auto judgement = judge_target(question, counts, gate);
  if (question.required.empty()) {
    gate.status = GateStatus::Skipped;
    gate.reason = "no instruction family was asked for";
    return {};
  }
  for (const std::string& family : question.required) {
    if (judgement || !emulates(climb) || !arch::find_family(family)->matrix) continue;
    climb.harness.progress("withholding the results of " + family);
    InputSpec first = input_specs(climb.decided_at, climb.request.profile, climb.request.seed).front();
    PTXB_TRY(RunOutcome withheld, run_on(climb, *climb.harness.backend, climb.decided_at, *climb.plan,
                                         {.inputs = first, .neutralised_family = family, .wall_budget_s = kRunBudget_s}));
    if (withheld.status == RunStatus::Completed && withheld.output_digest == climb.values->output_digest) {
      judgement = target_results_unused(family, gate);
    }
  }
  gate.status = judgement ? GateStatus::Failed : GateStatus::Passed;
  if (judgement) {
    gate.reason = judgement->cause;
    settle(climb, std::move(*judgement));
  }
  return {};
}

Result<void> step_speed(Climb& climb) {
  SpeedGate& gate = climb.evaluation.speed;
  // A correct kernel without the target instructions has a speed worth knowing; a wrong one has none.
  bool worth = !climb.settled || stage_of(climb.evaluation.verdict) == Stage::Target;
  if (!worth) {
    gate.reason = "only kernels that are right are timed";
    return {};
  }
  climb.harness.progress("timing");
  PTXB_TRY(SpeedOutcome outcome, climb.harness.backend->time(climb.decided_at, *climb.plan));
  gate = std::move(outcome.gate);
  if (!outcome.implausible.empty()) {
    gate.status = GateStatus::Failed;
    settle(climb, {Verdict::ImplausibleSpeed, outcome.implausible, "the work cannot have been done in this time"});
  }
  return {};
}

}  // namespace ptxb
