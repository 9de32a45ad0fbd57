// Owns what every job needs around a replay: its inputs and poison on the device, its digests, its
// first-call setup. Never compares and never times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backend/worker_jobs.h"
#include "cuda/replay.h"

namespace ptxb::cuda {

// Tells the parent what is about to happen, so that a death can be placed.
using Say = std::function<void(std::string_view stage)>;

// Small device results that the host reads: digests, totals, clock stamps. Read only after the
// candidate's work has ended.
class Scoreboard {
 public:
  static Result<Scoreboard> make(const Device& device, size_t words);
  CUdeviceptr word(size_t index) const { return memory_.get() + index * sizeof(uint64_t); }
  Result<void> clear(CUstream stream);
  // Copies all words to the host; valid once the stream has caught up.
  Result<void> fetch(CUstream stream);
  uint64_t at(size_t index) const { return static_cast<const uint64_t*>(host_.get())[index]; }

 private:
  DeviceMemory memory_;
  HostMemory host_;
  size_t words_ = 0;
};

class Bench {
 public:
  // Loads the plan, runs its setup on other data than the job's. Null with result.status set when
  // the candidate's plan failed.
  static Result<std::unique_ptr<Bench>> make(const Device& device, const WorkerJob& job,
                                             const Say& say, WorkerResult& result);

  Replay& replay() { return *replay_; }
  const Device& device() const { return device_; }
  const WorkerJob& job() const { return job_; }
  // Device address of a task tensor; 0 when the plan has no buffer for it (a host scalar).
  CUdeviceptr input(size_t index) const { return input_addresses_[index]; }
  CUdeviceptr output(size_t index) const { return output_addresses_[index]; }

  Result<void> fill_inputs(InputSpec spec);
  // A plan that keeps state is put back to where its checked call began: fresh state, setup on
  // other data, the job's inputs, poisoned outputs. So no timed call finds what an earlier one
  // left. Cheap (nothing to do) for plans without state.
  Result<std::optional<Trouble>> renew();
  // Digests of every input buffer, in plan order, and of the padding (last).
  Result<std::vector<uint64_t>> surroundings();
  Result<uint64_t> output_digest();
  // Compares two surroundings; names the inputs that changed.
  void note_changes(const std::vector<uint64_t>& before, const std::vector<uint64_t>& after,
                    WorkerResult& result) const;
  Result<void> synchronise();

 private:
  Bench(const Device& device, const WorkerJob& job) : device_(device), job_(job) {}
  Result<void> match_tensors();
  Result<std::optional<Trouble>> run_setup();

  const Device& device_;
  const WorkerJob& job_;
  std::unique_ptr<Replay> replay_;
  Scoreboard board_;
  std::vector<CUdeviceptr> input_addresses_, output_addresses_;
};

void note_trouble(const Trouble& trouble, WorkerResult& result);

// The jobs. An Error is the harness's; everything that the candidate caused is in the result.
Result<WorkerResult> run_check(const Device& device, const WorkerJob& job, const Say& say);
Result<WorkerResult> run_time(const Device& device, const WorkerJob& job, const Say& say);
Result<WorkerResult> run_count(const Device& device, const WorkerJob& job, const Say& say);

}  // namespace ptxb::cuda
