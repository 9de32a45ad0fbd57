// Owns the GPU backend: plans run on a GPU by ptxbench-worker, which this class starts, watches and
// restarts. Never links CUDA and never judges.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/sass_listing.h"
#include "backend/worker_client.h"
#include "backend/worker_jobs.h"
#include "timing/statistics.h"

namespace ptxb {

struct CudaSettings {
  std::string worker;  // path of ptxbench-worker
  int device = 0;
  std::string nvdisasm;  // "" : find_nvdisasm()
  double run_timeout_s =
      10;  // of one replay, however much wall time a run may take elsewhere: a hang holds the GPU
  timing::Policy policy;
  std::string baseline = "auto";  // "auto": by task (cublaslt for GEMM); "": none
};

// Everything behind a speed: what `--json` and reports may want beyond the gate.
struct TimingRecord {
  timing::Summary cold, hot;
  std::optional<BaselineChoice> baseline;
  std::string baseline_missing, stopped;
  double preheat_s = 0, sampling_s = 0, gpu_s = 0;
  uint32_t digest_mismatches = 0;
};
Json to_json(const TimingRecord& record);

class CudaBackend : public Backend {
 public:
  // Starts the worker. Error: Harness with the reason (no driver, no GPU, no program).
  static Result<std::unique_ptr<CudaBackend>> open(const CudaSettings& settings);

  std::string name() const override { return "cuda"; }
  std::string chip() const override;    // "NVIDIA H200"
  std::string driver() const override;  // "580.159.04 (CUDA 13.0)"
  double flops_limit() const override;
  // A fault, hang or trap of the candidate is in the outcome; a write beside a buffer is a finding
  // of kind OutOfBounds. Hazards and neutralised families are the emulator's: Error Unsupported.
  Result<RunOutcome> run(const Task& task, const LaunchPlan& plan, const RunSpec& spec) override;
  Result<std::vector<OpcodeCount>> count(const Task& task, const LaunchPlan& plan) override;
  // Always on normally distributed inputs: coded ones, nearly all zeros, draw less power and ran 15
  // % faster (H200). Their seed is that of the last such run() of this plan, whose output digest
  // every timed sample must repeat.
  Result<SpeedOutcome> time(const Task& task, const LaunchPlan& plan) override;

  // The disassembly of the last count(), with its counts beside each instruction.
  const std::string& annotated_listing() const { return listing_; }
  const TimingRecord& last_timing() const { return timing_; }
  double gpu_seconds() const { return gpu_s_; }  // held by all jobs so far

 private:
  explicit CudaBackend(const CudaSettings& settings);
  Result<WorkerResult> ask(WorkerJob& job, double timeout_s);
  Result<const std::vector<SassFunction>*> functions_of(const std::string& cubin);

  CudaSettings settings_;
  WorkerClient worker_;
  std::map<std::string, std::vector<SassFunction>> disassembled_;  // by the cubin's SHA-256
  struct Checked {
    InputSpec inputs;
    uint64_t digest = 0;
  };
  std::map<std::string, Checked>
      checked_;  // last completed run on normal inputs, by the plan's SHA-256
  std::string listing_;
  TimingRecord timing_;
  double gpu_s_ = 0;
};

}  // namespace ptxb
