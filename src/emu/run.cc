// Owns run(): the plan's operations in order, launches set up and counted, the report put
// together. Never executes instructions itself.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "emu/check.h"
#include "emu/launch.h"
#include "emu/report.h"

namespace ptxb::emu {
namespace {

Flavour flavour_of(Mode mode) {
  switch (mode) {
    case Mode::Fast:
      return Flavour::Plain;
    case Mode::Exact:
      return Flavour::Exact;
    case Mode::Check:
    case Mode::Fuzz:
      return Flavour::Checked;
  }
  return Flavour::Plain;
}

bool is_checking(const Options& options) {
  return options.mode == Mode::Check || options.mode == Mode::Fuzz;
}

struct Progress {
  CountTable counts;
  uint64_t blocks_run = 0, blocks_all = 0;
  uint32_t launches = 0;
};

void refuse_launch(RunState& run, const KernelLaunch& spec, const std::string& why) {
  Finding finding;
  finding.kind = FindingKind::IllegalInstruction;
  finding.place.kernel = spec.kernel;
  finding.message = "kernel " + spec.kernel + " cannot be launched with " + why;
  finding.hint = "the driver refuses such a launch";
  std::lock_guard hold(run.lock);
  run.has_fault = true;
  run.status = RunStatus::Fault;
  run.cause = finding.message;
  run.fault = std::move(finding);
}

// Buffers that a sampled or unchecked launch may have written: which bytes is not known.
void forget_uninitialised(Memory::State& memory) {
  for (auto& allocation : memory.allocations)
    if (allocation->writable) allocation->initialised = true;
}

bool run_launch(RunState& run, const DecodedProgram& program, const KernelLaunch& spec,
                Progress& progress) {
  auto found = program.find({spec.module, spec.kernel});
  if (found == program.end()) {
    refuse_launch(run, spec, "this program: it was loaded for another plan");
    return false;
  }
  const DecodedKernel& kernel = *found->second;
  Launch launch{run, spec, kernel, *kernel.entry};
  launch.grid_index = progress.launches++;
  if (std::string why = shape_launch(launch); !why.empty()) {
    refuse_launch(run, spec, why);
    return false;
  }
  select_blocks(launch);
  progress.blocks_all += spec.grid.volume();
  progress.blocks_run += launch.wanted() * launch.ctas_per_cluster;
  launch.parameter_bytes = spec.params;
  launch.parameters.begin = kParamWindow;
  launch.parameters.end = kParamWindow + launch.parameter_bytes.size();
  launch.parameters.host = launch.parameter_bytes.data();
  launch.parameters.name = "the kernel's parameters";
  launch.parameters.writable = false;
  launch.parameters.parameters = true;
  launch.parameters.initialised = true;
  std::unique_ptr<Checker, void (*)(Checker*)> checker(nullptr, delete_checker);
  if (is_checking(run.options)) {
    checker.reset(make_checker(launch));
    launch.checker = checker.get();
  }
  bool went_well = run_grid(launch);
  add_counts(progress.counts, launch, run.counters);
  if (!is_checking(run.options) || !launch.selection.empty()) forget_uninitialised(run.memory);
  return went_well;
}

void fill_report(RunState& run, Progress& progress, Report& report) {
  report.status = run.status;
  report.cause = run.cause;
  if (run.has_fault) report.findings.push_back(std::move(run.fault));
  for (Finding& finding : run.findings) report.findings.push_back(std::move(finding));
  for (auto& [key, count] : progress.counts) report.counts.push_back(std::move(count));
  report.counts_exact = !run.polled;
  report.warp_instructions = run.instructions;
  report.printed = std::move(run.printed);
  report.coverage = progress.blocks_run == progress.blocks_all
                        ? "all blocks"
                        : std::to_string(progress.blocks_run) + " of " +
                              std::to_string(progress.blocks_all) + " blocks";
}

}  // namespace

Result<Report> run(const Program& program, Memory& memory, const LaunchPlan& plan,
                   std::span<const PlanOperation> operations, const Options& options) {
  double begin = now_s();
  PTXB_TRY(const DecodedProgram* decoded, program.state().code(flavour_of(options.mode)));
  RunState state{program.state(), memory.state(), plan, options};
  state.chip = arch::default_chip(plan.arch);
  state.deadline_s = begin + options.wall_budget_s;
  Progress progress;
  for (const PlanOperation& operation : operations) {
    const auto* launch = std::get_if<KernelLaunch>(&operation.action);
    bool went_well = true;
    if (launch) {
      if (launch->module >= plan.modules.size())
        return bad_input("a launch names a module that the plan does not have");
      state.fault_cluster = UINT64_MAX;
      went_well = run_launch(state, *decoded, *launch, progress);
    } else {
      went_well = run_copy(state, operation.action);
    }
    if (!went_well) break;
    if (now_s() > state.deadline_s) {
      stop_run(state, RunStatus::Budget, "wall-time budget spent");
      break;
    }
  }
  Report report;
  fill_report(state, progress, report);
  report.seconds = now_s() - begin;
  return report;
}

}  // namespace ptxb::emu
