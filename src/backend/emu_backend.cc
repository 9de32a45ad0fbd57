// SPDX-License-Identifier: Apache-2.0
#include "backend/emu_backend.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/hash.h"
#include "emu/emulate.h"
#include "task/compare.h"
#include "task/reference.h"

namespace ptxb {

namespace {

// Shadow state costs about this much; a launch that would take longer than the budget is checked on a sample of its blocks.
constexpr double kCheckSlowdown = 10;
constexpr double kHazardBudget_s = 1.2;
constexpr uint64_t kFewestBlocks = 4;

// Inputs and their reference are worth keeping: hazards and neutralised runs use the ones of the plain run.
struct Prepared {
  Buffers inputs;
  std::optional<Reference> reference;
};

class EmuBackend : public Backend {
 public:
  explicit EmuBackend(const EmuSettings& settings) : settings_(settings) {}
  std::string name() const override { return "emu"; }
  std::string chip() const override { return ""; }
  std::string driver() const override { return ""; }
  double flops_limit() const override { return settings_.flops_limit; }

  Result<RunOutcome> run(const Task& task, const LaunchPlan& plan, const RunSpec& spec) override {
    RunOutcome outcome;
    auto program = program_of(plan);
    if (!program) {
      if (program.error().code != ErrorCode::Unsupported) return std::move(program).error();
      outcome.status = RunStatus::Unsupported;
      outcome.cause = program.error().message;
      return outcome;
    }
    PTXB_TRY(Prepared * prepared, prepare(task, spec.inputs));
    if (spec.depth == RunDepth::Hazards && last_ && last_->plan_sha256 == sha256(plan) &&
        last_->seconds * kCheckSlowdown > kHazardBudget_s) {
      double begin = now_s();
      PTXB_CHECK_OK(check_sample(task, plan, **program, spec, *prepared, outcome));
      outcome.seconds = now_s() - begin;
      return outcome;
    }
    PTXB_TRY(emu::Memory memory, emu::Memory::make(plan, **program));
    double start = now_s();
    PTXB_TRY(bool ran, replay(task, plan, **program, spec, *prepared, memory, outcome));
    outcome.seconds = now_s() - start;  // of the emulator; inputs and reference cost extra
    if (ran && spec.depth == RunDepth::Values) {
      PTXB_CHECK_OK(compare_outputs(task, plan, spec, *prepared, memory, outcome));
      if (spec.neutralised_family.empty()) last_.emplace(Last{sha256(plan), outcome.seconds, std::move(memory)});
    }
    return outcome;
  }

  Result<std::vector<OpcodeCount>> count(const Task& task, const LaunchPlan& plan) override {
    PTXB_TRY(RunOutcome outcome, run(task, plan, {}));
    return std::move(outcome.counts);
  }

  Result<SpeedOutcome> time(const Task&, const LaunchPlan&) override {
    SpeedOutcome outcome;
    outcome.gate.status = GateStatus::NotVerified;
    outcome.gate.reason = "no GPU: the emulator gives no times";
    return outcome;
  }

 private:
  // Parsing and decoding cost as much as a small run: one program per cubin and kernel set.
  Result<const emu::Program*> program_of(const LaunchPlan& plan) {
    std::string key = plan.arch;
    for (const PlanModule& module : plan.modules) key += sha256_hex(module.ptx);
    for (const auto* list : {&plan.setup, &plan.steady}) {
      for (const PlanOperation& operation : *list) {
        if (auto* launch = std::get_if<KernelLaunch>(&operation.action)) {
          key += "/" + std::to_string(launch->module) + launch->kernel;
        }
      }
    }
    auto found = programs_.find(key);
    if (found == programs_.end()) {
      PTXB_TRY(emu::Program program, emu::Program::load(plan));
      found = programs_.emplace(key, std::move(program)).first;
    }
    return &found->second;
  }

  Result<Prepared*> prepare(const Task& task, InputSpec spec) {
    std::string key = task.definition.name + "/" + std::to_string(spec.seed) + "/" +
                      std::string(::ptxb::name(spec.distribution)) + "/" + task.workload.uuid;
    for (const auto& [axis, value] : task.axes) key += "," + axis + "=" + std::to_string(value);
    auto found = prepared_.find(key);
    if (found == prepared_.end()) {
      if (prepared_.size() >= 8) prepared_.clear();  // bounded: a few hundred MB at most
      Prepared fresh;
      PTXB_TRY(fresh.inputs, make_inputs(task, spec, settings_.threads));
      found = prepared_.emplace(key, std::move(fresh)).first;
    }
    return &found->second;
  }

  // Setup (with its own inputs), then fresh inputs and poisoned outputs, then the steady call. False: it did not end well.
  Result<bool> replay(const Task& task, const LaunchPlan& plan, const emu::Program& program, const RunSpec& spec,
                      const Prepared& prepared, emu::Memory& memory, RunOutcome& outcome) {
    emu::Options options;
    options.mode = spec.depth == RunDepth::Hazards ? emu::Mode::Check : emu::Mode::Fast;
    options.threads = settings_.threads;
    options.seed = spec.inputs.seed;
    options.wall_budget_s = spec.wall_budget_s;
    options.neutralised_family = spec.neutralised_family;
    for (size_t i = 0; i < plan.buffers.size(); ++i) memory.poison(i);
    if (!plan.setup.empty()) {
      // Other data than the checked call's: what a first call leaves behind must not answer the second.
      InputSpec other = spec.inputs;
      other.seed ^= 0x9e3779b97f4a7c15u;
      PTXB_TRY(Buffers earlier, make_inputs(task, other, settings_.threads));
      place_inputs(task, plan, earlier, memory);
      PTXB_TRY(emu::Report report, emu::run(program, memory, plan, plan.setup, options));
      if (!take(report, outcome)) return false;
      outcome.counts.clear();
    }
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      if (plan.buffers[i].role == BufferRole::Output) memory.poison(i);
    }
    place_inputs(task, plan, prepared.inputs, memory);
    PTXB_TRY(emu::Report report, emu::run(program, memory, plan, plan.steady, options));
    outcome.coverage = report.coverage;
    return take(report, outcome);
  }

  // Blocks of the steady call again, with shadow state, on the memory that the whole call left: results of the blocks
  // that are left out are there. Only hazards are looked for, so that running into finished outputs does no harm.
  Result<void> check_sample(const Task& task, const LaunchPlan& plan, const emu::Program& program, const RunSpec& spec,
                            const Prepared& prepared, RunOutcome& outcome) {
    uint64_t blocks = 0;
    for (const PlanOperation& operation : plan.steady) {
      if (auto* launch = std::get_if<KernelLaunch>(&operation.action)) blocks = std::max(blocks, launch->grid.volume());
    }
    double share = kHazardBudget_s / (last_->seconds * kCheckSlowdown);
    emu::Options options;
    options.mode = emu::Mode::Check;
    options.threads = settings_.threads;
    options.seed = spec.inputs.seed;
    options.wall_budget_s = spec.wall_budget_s;
    options.block_limit = static_cast<uint32_t>(std::max<double>(kFewestBlocks, static_cast<double>(blocks) * share));
    place_inputs(task, plan, prepared.inputs, last_->memory);
    PTXB_TRY(emu::Report report, emu::run(program, last_->memory, plan, plan.steady, options));
    outcome.coverage = report.coverage;
    take(report, outcome);
    last_.reset();
    return {};
  }

  // Inputs that are device tensors, in definition order; scalars went into the recorded arguments.
  void place_inputs(const Task& task, const LaunchPlan& plan, const Buffers& inputs, emu::Memory& memory) {
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      if (plan.buffers[i].role != BufferRole::Input) continue;
      for (size_t t = 0; t < task.definition.inputs.size(); ++t) {
        if (task.definition.inputs[t].name != plan.buffers[i].name) continue;
        std::span<uint8_t> bytes = memory.bytes(i);
        std::copy_n(inputs[t].begin(), std::min(bytes.size(), inputs[t].size()), bytes.begin());
        memory.mark_initialised(i);
      }
    }
  }

  static bool take(emu::Report& report, RunOutcome& outcome) {
    outcome.status = report.status;
    outcome.cause = std::move(report.cause);
    for (Finding& finding : report.findings) outcome.findings.push_back(std::move(finding));
    outcome.counts = std::move(report.counts);
    outcome.counts_exact = report.counts_exact;
    return report.status == RunStatus::Completed;
  }

  Result<void> compare_outputs(const Task& task, const LaunchPlan& plan, const RunSpec& spec, Prepared& prepared,
                               emu::Memory& memory, RunOutcome& outcome) {
    Buffers outputs(task.definition.outputs.size());
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      std::span<uint8_t> bytes = memory.bytes(i);
      outcome.output_digest ^= plan.buffers[i].role == BufferRole::Output ? xxh3(bytes, i + 1) : 0;
      for (size_t t = 0; t < outputs.size(); ++t) {
        if (plan.buffers[i].role == BufferRole::Output && task.definition.outputs[t].name == plan.buffers[i].name) {
          outputs[t].assign(bytes.begin(), bytes.end());
        }
      }
      for (size_t t = 0; t < task.definition.inputs.size(); ++t) {
        if (plan.buffers[i].role == BufferRole::Input && task.definition.inputs[t].name == plan.buffers[i].name &&
            !std::equal(bytes.begin(), bytes.end(), prepared.inputs[t].begin(), prepared.inputs[t].end())) {
          outcome.modified_inputs.push_back(plan.buffers[i].name);
        }
      }
    }
    if (!spec.neutralised_family.empty()) return {};  // only the digest is asked for
    if (!prepared.reference) {
      PTXB_TRY(prepared.reference, compute_reference(task, prepared.inputs, spec.inputs, settings_.threads));
    }
    outcome.comparisons = compare(task, prepared.inputs, *prepared.reference, outputs, spec.inputs);
    return {};
  }

  // The memory after the last whole run, and how long that took.
  struct Last {
    std::string plan_sha256;
    double seconds = 0;
    emu::Memory memory;
  };

  EmuSettings settings_;
  std::optional<Last> last_;
  std::map<std::string, emu::Program> programs_;
  std::map<std::string, Prepared> prepared_;
};

}  // namespace

std::unique_ptr<Backend> make_emu_backend(const EmuSettings& settings) {
  return std::make_unique<EmuBackend>(settings);
}

}  // namespace ptxb
