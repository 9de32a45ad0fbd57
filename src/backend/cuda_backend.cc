// Owns turning questions about a plan into worker jobs and their answers into outcomes. Never
// judges.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda_backend.h"

#include <algorithm>
#include <limits>

#include "arch/chip.h"
#include "backend/disassembler.h"
#include "base/hash.h"
#include "task/work.h"
#include "timing/roofline.h"

namespace ptxb {

namespace {

// Generation of inputs, the reference and the comparison of the largest tasks, and a worker's cold
// start.
constexpr double kJobOverheadS = 60;

std::string hello_text(const Json& hello, std::string_view key) {
  const Json* found = hello.find(key);
  return found != nullptr && found->is_string() ? found->as_string() : "";
}

const arch::Chip* chip_of(const Json& hello) {
  const std::string product = hello_text(hello, "name");
  for (const arch::Chip& chip : arch::chips()) {
    if (product == chip.product) return &chip;
  }
  return arch::default_chip(hello_text(hello, "arch"));
}

double nominal_clock_mhz(const Json& hello) {
  const Json* khz = hello.find("clock_khz");
  return khz != nullptr && khz->is_integer() ? khz->as_double() / 1e3 : 0;
}

std::string stage_words(const Json& progress) {
  const std::string stage = progress.is_object() ? hello_text(progress, "stage") : "";
  return stage.empty() ? "before it began" : "in its step '" + stage + "'";
}

// A worker that ended without a word, or that had to be killed.
WorkerResult silent_end(const JobReply& reply) {
  WorkerResult result;
  result.ending = true;
  result.stage = "run";
  const bool late = reply.kind == JobReply::Kind::TimedOut;
  result.status = late ? RunStatus::Budget : RunStatus::Fault;
  result.cause =
      late ? "the GPU worker did not answer in time and was killed " +
                 stage_words(reply.last_progress)
           : "the GPU worker ended (" + reply.died_of + ") " + stage_words(reply.last_progress);
  return result;
}

std::string plan_key(const LaunchPlan& plan) { return sha256(plan); }

timing::Work timing_work(const Task& task) {
  timing::Work work;
  work.matrix_flops = work_of(task).matrix_flops;
  for (const TensorSpec& tensor : task.definition.inputs)
    work.bytes_in += static_cast<double>(task.size_bytes(tensor));
  for (const TensorSpec& tensor : task.definition.outputs)
    work.bytes_out += static_cast<double>(task.size_bytes(tensor));
  return work;
}

}  // namespace

Json to_json(const TimingRecord& record) {
  Json json = Json::object();
  json.set("cold", timing::to_json(record.cold));
  json.set("hot", timing::to_json(record.hot));
  json.set("stopped", record.stopped);
  json.set("preheat_s", record.preheat_s);
  json.set("sampling_s", record.sampling_s);
  json.set("gpu_s", record.gpu_s);
  json.set("digest_mismatches", record.digest_mismatches);
  json.set("baseline_missing", record.baseline_missing);
  if (record.baseline) {
    Json baseline = Json::object();
    baseline.set("library", record.baseline->library);
    baseline.set("algorithm", record.baseline->algorithm);
    baseline.set("first_choice_ms", record.baseline->first_choice_ms);
    baseline.set("chosen_ms", record.baseline->chosen_ms);
    baseline.set("measured", record.baseline->candidates);
    json.set("baseline", std::move(baseline));
  }
  return json;
}

CudaBackend::CudaBackend(const CudaSettings& settings)
    : settings_(settings),
      worker_({settings.worker, {"--device", std::to_string(settings.device)}, 60, 64u << 10}) {
  if (settings_.nvdisasm.empty()) settings_.nvdisasm = find_nvdisasm();
}

Result<std::unique_ptr<CudaBackend>> CudaBackend::open(const CudaSettings& settings) {
  std::unique_ptr<CudaBackend> backend(new CudaBackend(settings));
  PTXB_CHECK_OK(backend->worker_.start());
  return backend;
}

std::string CudaBackend::chip() const { return hello_text(worker_.hello(), "name"); }
std::string CudaBackend::driver() const { return hello_text(worker_.hello(), "driver"); }
double CudaBackend::flops_limit() const { return std::numeric_limits<double>::infinity(); }

Result<WorkerResult> CudaBackend::ask(WorkerJob& job, double timeout_s) {
  const Frame frame = encode_job(job);
  std::optional<Error> error;
  std::optional<JobReply> silent;
  // One retry in a fresh worker: what a candidate causes happens again, what the harness suffered
  // usually does not.
  for (int attempt = 0; attempt < 2; ++attempt) {
    Result<JobReply> reply = worker_.run(frame, timeout_s);
    if (!reply) {
      error = std::move(reply).error();
      continue;
    }
    if (reply->kind == JobReply::Kind::TimedOut)
      return silent_end(*reply);  // twice as long would tell nothing new
    if (reply->kind == JobReply::Kind::Died) {
      silent = *std::move(reply);
      continue;
    }
    Result<WorkerResult> result = decode_result(reply->outcome);
    if (result) {
      gpu_s_ += result->gpu_s;
      return result;
    }
    error = std::move(result).error();
    worker_.stop();
  }
  if (silent) return silent_end(*silent);
  return *std::move(error);
}

Result<RunOutcome> CudaBackend::run(const Task& task, const LaunchPlan& plan, const RunSpec& spec) {
  if (spec.depth == RunDepth::Hazards)
    return unsupported("races and fences are found by the emulator, not on the GPU");
  if (!spec.neutralised_family.empty())
    return unsupported("instructions are withheld by the emulator, not on the GPU");
  WorkerJob job;
  job.kind = JobKind::Check;
  job.plan = plan;
  job.task = task;
  job.inputs = spec.inputs;
  job.run_timeout_s = std::clamp(spec.wall_budget_s, 0.001, settings_.run_timeout_s);
  job.repeat = spec.inputs.distribution == Distribution::Normal ? Repeat::Twice : Repeat::Once;
  PTXB_TRY(WorkerResult result, ask(job, 3 * job.run_timeout_s + kJobOverheadS));
  RunOutcome outcome;
  outcome.status = result.status;
  outcome.cause = std::move(result.cause);
  outcome.comparisons = std::move(result.comparisons);
  outcome.modified_inputs = std::move(result.modified_inputs);
  outcome.output_digest = result.digest;
  outcome.repeat_digest = result.repeat_digest;
  outcome.seconds = result.gpu_s;
  if (result.padding_modified) {
    Finding finding;
    finding.kind = FindingKind::OutOfBounds;
    finding.message =
        "memory beside a buffer was written: within the 2 MiB in front of it, or between its end "
        "and the next 256 bytes";
    finding.hint = "check the first and last index that each block writes";
    outcome.findings.push_back(std::move(finding));
    if (outcome.status == RunStatus::Completed) {
      outcome.status = RunStatus::Fault;
      outcome.cause = outcome.findings.back().message;
    }
  }
  const bool normal = spec.inputs.distribution == Distribution::Normal;
  if (outcome.status == RunStatus::Completed && normal)
    checked_[plan_key(plan)] = {spec.inputs, result.digest};
  return outcome;
}

Result<const std::vector<SassFunction>*> CudaBackend::functions_of(const std::string& cubin) {
  const std::string key = sha256_hex(cubin);
  auto found = disassembled_.find(key);
  if (found == disassembled_.end()) {
    PTXB_TRY(const std::string listing, disassemble(cubin, settings_.nvdisasm));
    if (disassembled_.size() >= 64) disassembled_.clear();
    found = disassembled_.emplace(key, parse_sass(listing)).first;
  }
  return &found->second;
}

Result<std::vector<OpcodeCount>> CudaBackend::count(const Task& task, const LaunchPlan& plan) {
  listing_.clear();
  WorkerJob job;
  job.kind = JobKind::Count;
  job.run_timeout_s = settings_.run_timeout_s;
  job.plan = plan;
  job.task = task;
  PTXB_TRY(const WorkerResult result, ask(job, 2 * job.run_timeout_s + kJobOverheadS));
  if (result.status != RunStatus::Completed)
    return unsupported("the counted run did not complete: " + result.cause);
  std::vector<SassFunction> functions;
  for (const PlanModule& module : plan.modules) {
    if (module.cubin.empty())
      return unsupported("module " + module.name + " has no cubin: its machine code is not known");
    PTXB_TRY(const std::vector<SassFunction>* own, functions_of(module.cubin));
    functions.insert(functions.end(), own->begin(), own->end());
  }
  uint64_t unmatched = 0;
  std::vector<OpcodeCount> counts = count_opcodes(functions, result.sass, unmatched);
  if (unmatched > 0) {
    return harness_error(std::to_string(unmatched) + " of " + std::to_string(result.sass.size()) +
                         " counted addresses are not in the disassembly");
  }
  estimate_tma_bytes(plan, counts);
  listing_ = annotate_sass(functions, result.sass);
  return counts;
}

Result<SpeedOutcome> CudaBackend::time(const Task& task, const LaunchPlan& plan) {
  WorkerJob job;
  job.kind = JobKind::Time;
  job.run_timeout_s = settings_.run_timeout_s;
  job.plan = plan;
  job.task = task;
  job.policy = settings_.policy;
  if (const auto known = checked_.find(plan_key(plan)); known != checked_.end()) {
    job.inputs = known->second.inputs;
    job.expected_digest = known->second.digest;
  }
  const bool gemm = task.definition.reference == "native:gemm_nt";
  job.baseline = settings_.baseline != "auto" ? settings_.baseline : gemm ? "cublaslt" : "";
  const double sampling_s = 5 * job.policy.budget_s + job.policy.preheat_limit_s;
  PTXB_TRY(const WorkerResult result, ask(job, sampling_s + 2 * job.run_timeout_s + kJobOverheadS));

  const double nominal_mhz = nominal_clock_mhz(worker_.hello());
  timing_ = {timing::summarise(result.cold, job.policy, nominal_mhz),
             timing::summarise(result.hot, job.policy, nominal_mhz),
             result.baseline,
             result.baseline_missing,
             result.stopped,
             result.preheat_s,
             result.sampling_s,
             result.gpu_s,
             result.digest_mismatches};
  SpeedOutcome outcome;
  SpeedGate& gate = outcome.gate;
  if (result.status != RunStatus::Completed) {
    gate.status = GateStatus::Failed;
    gate.reason = "while it was timed: " + result.cause;
    return outcome;
  }
  const timing::Summary& cold = timing_.cold;
  gate.status = cold.status == timing::Status::Valid ? GateStatus::Passed : GateStatus::NotVerified;
  gate.reason = cold.explanation;
  gate.speedup = cold.speedup;
  gate.speedup_low = cold.speedup_low;
  gate.speedup_high = cold.speedup_high;
  gate.candidate_ms = cold.candidate_ms;
  gate.baseline_ms = cold.baseline_ms;
  if (result.baseline)
    gate.baseline = result.baseline->library + ", " + result.baseline->algorithm;
  else
    gate.baseline = result.baseline_missing;
  if (!result.modified_inputs.empty() || result.padding_modified || result.digest_mismatches > 0) {
    gate.status = GateStatus::Failed;
    gate.reason = result.digest_mismatches > 0
                      ? std::to_string(result.digest_mismatches) +
                            " timed runs gave other outputs than the checked run"
                      : "memory that is not the candidate's changed while it was timed";
  }
  const arch::Chip* chip = chip_of(worker_.hello());
  if (cold.candidate_ms && chip != nullptr) {
    const timing::Work work = timing_work(task);
    const timing::ChipRates rates = {chip->bf16_tflops, chip->memory_gb_s,
                                     static_cast<double>(chip->l2_bytes)};
    if (work.matrix_flops > 0) {
      gate.tflops = work.matrix_flops / *cold.candidate_ms * 1e-9;
      gate.peak_share = *gate.tflops / chip->bf16_tflops;
    }
    const timing::Plausibility plausible =
        timing::judge_time(*cold.candidate_ms, timing::roofline_floor(work, rates));
    if (!plausible.plausible) outcome.implausible = plausible.reason;
  }
  return outcome;
}

}  // namespace ptxb
