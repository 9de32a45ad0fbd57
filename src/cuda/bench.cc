// Owns the surroundings of a replay: inputs, poison, digests, setup. Never compares and never
// times.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/bench.h"

#include <algorithm>
#include <cstring>

namespace ptxb::cuda {

Result<Scoreboard> Scoreboard::make(const Device& device, size_t words) {
  Scoreboard board;
  board.words_ = words;
  PTXB_TRY(board.memory_, device.allocate(words * sizeof(uint64_t), "digests"));
  PTXB_TRY(board.host_, device.allocate_host(words * sizeof(uint64_t)));
  return board;
}

Result<void> Scoreboard::clear(CUstream stream) {
  return cuda_check(driver().cuMemsetD8Async(memory_.get(), 0, words_ * sizeof(uint64_t), stream),
                    "digests");
}

Result<void> Scoreboard::fetch(CUstream stream) {
  return cuda_check(
      driver().cuMemcpyDtoHAsync(host_.get(), memory_.get(), words_ * sizeof(uint64_t), stream),
      "digests");
}

void note_trouble(const Trouble& trouble, WorkerResult& result) {
  result.status = trouble.status;
  result.stage = trouble.stage;
  result.error = trouble.error;
  result.cause = trouble.cause;
  result.kernel = trouble.kernel;
  result.operation = trouble.operation;
  result.ending = trouble.sticky;
}

Result<std::unique_ptr<Bench>> Bench::make(const Device& device, const WorkerJob& job,
                                           const Say& say, WorkerResult& result) {
  std::unique_ptr<Bench> bench(new Bench(device, job));
  const auto failed = [&](const Trouble& trouble) {
    note_trouble(trouble, result);
    return std::unique_ptr<Bench>();
  };
  if (job.plan.arch != device.facts().cubin_arch) {
    Trouble trouble;
    trouble.status = RunStatus::Unsupported;
    trouble.stage = "load";
    trouble.cause =
        "the plan is for " + job.plan.arch + ", this GPU is " + device.facts().cubin_arch;
    return failed(trouble);
  }
  say("load");
  std::optional<Trouble> trouble;
  PTXB_TRY(bench->replay_, Replay::make(device, job.plan, trouble));
  if (trouble) return failed(*trouble);
  PTXB_CHECK_OK(bench->match_tensors());
  PTXB_TRY(bench->board_, Scoreboard::make(device, job.plan.buffers.size() + 2));
  PTXB_CHECK_OK(bench->replay_->poison_all(kPoisonByte));
  say("setup");
  PTXB_TRY(trouble, bench->run_setup());
  if (trouble) return failed(*trouble);
  PTXB_CHECK_OK(bench->fill_inputs(job.inputs));
  return bench;
}

Result<std::optional<Trouble>> Bench::run_setup() {
  const std::vector<PlanOperation>& setup = replay_->plan().setup;
  if (setup.empty()) return std::optional<Trouble>();
  // Other data than the checked call's: what a first call leaves behind must not answer the second.
  InputSpec other = job_.inputs;
  other.seed ^= 0x9e3779b97f4a7c15u;
  PTXB_CHECK_OK(fill_inputs(other));
  std::optional<Trouble> trouble = replay_->enqueue(setup, Replay::Marking::Progress);
  if (!trouble) trouble = replay_->wait(job_.run_timeout_s);
  if (!trouble) PTXB_CHECK_OK(replay_->poison_outputs(kPoisonByte));
  return trouble;
}

Result<std::optional<Trouble>> Bench::renew() {
  if (!replay_->keeps_state()) return std::optional<Trouble>();
  PTXB_TRY(std::optional<Trouble> trouble, replay_->forget_state(kPoisonByte));
  if (trouble || replay_->plan().setup.empty()) return trouble;
  PTXB_TRY(trouble, run_setup());
  if (!trouble) PTXB_CHECK_OK(fill_inputs(job_.inputs));
  return trouble;
}

Result<void> Bench::match_tensors() {
  const Definition& definition = job_.task.definition;
  input_addresses_.assign(definition.inputs.size(), 0);
  output_addresses_.assign(definition.outputs.size(), 0);
  for (const PlanBuffer& buffer : job_.plan.buffers) {
    if (buffer.role == BufferRole::Scratch) continue;
    const bool is_input = buffer.role == BufferRole::Input;
    const auto& tensors = is_input ? definition.inputs : definition.outputs;
    auto& addresses = is_input ? input_addresses_ : output_addresses_;
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const TensorSpec& t) { return t.name == buffer.name; });
    if (found == tensors.end())
      return bad_input("plan buffer " + buffer.name + ": the task has no such tensor");
    if (static_cast<int64_t>(buffer.size_bytes) != job_.task.size_bytes(*found)) {
      return bad_input("plan buffer " + buffer.name + ": " + std::to_string(buffer.size_bytes) +
                       " bytes, the task says " + std::to_string(job_.task.size_bytes(*found)));
    }
    addresses[static_cast<size_t>(found - tensors.begin())] = buffer.address;
  }
  for (size_t i = 0; i < output_addresses_.size(); ++i) {
    if (output_addresses_[i] == 0)
      return bad_input("the plan has no buffer for output " + definition.outputs[i].name);
  }
  return {};
}

Result<void> Bench::fill_inputs(InputSpec spec) {
  const Task& task = job_.task;
  std::optional<Buffers> on_host;  // made only for element types that the device does not generate
  for (size_t i = 0; i < input_addresses_.size(); ++i) {
    if (input_addresses_[i] == 0) continue;
    const TensorSpec& tensor = task.definition.inputs[i];
    if (tensor.dtype == DType::BF16 || tensor.dtype == DType::F32) {
      PTXB_TRY(const GeneratorSpec generator, generator_spec(task, i, spec));
      PTXB_CHECK_OK(device_.fill(replay_->stream(), generator, task.elements(tensor),
                                 static_cast<Element>(tensor.dtype), input_addresses_[i]));
      continue;
    }
    if (!on_host) {
      PTXB_TRY(on_host, make_inputs(task, spec, 1));
    }
    const auto& bytes = (*on_host)[i];
    PTXB_CHECK_OK(cuda_check(driver().cuMemcpyHtoDAsync(input_addresses_[i], bytes.data(),
                                                        bytes.size(), replay_->stream()),
                             "inputs"));
    PTXB_CHECK_OK(synchronise());
  }
  return {};
}

Result<std::vector<uint64_t>> Bench::surroundings() {
  const auto& buffers = replay_->plan().buffers;
  PTXB_CHECK_OK(board_.clear(replay_->stream()));
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].role == BufferRole::Input)
      PTXB_CHECK_OK(replay_->digest_buffer(i, board_.word(i)));
  }
  PTXB_CHECK_OK(replay_->digest_padding(board_.word(buffers.size())));
  PTXB_CHECK_OK(board_.fetch(replay_->stream()));
  PTXB_CHECK_OK(synchronise());
  std::vector<uint64_t> digests;
  for (size_t i = 0; i <= buffers.size(); ++i) digests.push_back(board_.at(i));
  return digests;
}

Result<uint64_t> Bench::output_digest() {
  const size_t slot = replay_->plan().buffers.size() + 1;
  PTXB_CHECK_OK(board_.clear(replay_->stream()));
  PTXB_CHECK_OK(replay_->digest_role(BufferRole::Output, board_.word(slot)));
  PTXB_CHECK_OK(board_.fetch(replay_->stream()));
  PTXB_CHECK_OK(synchronise());
  return board_.at(slot);
}

void Bench::note_changes(const std::vector<uint64_t>& before, const std::vector<uint64_t>& after,
                         WorkerResult& result) const {
  const auto& buffers = replay_->plan().buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (before[i] != after[i]) result.modified_inputs.push_back(buffers[i].name);
  }
  if (before.back() != after.back()) result.padding_modified = true;
}

Result<void> Bench::synchronise() {
  return cuda_check(driver().cuStreamSynchronize(replay_->stream()), "cuStreamSynchronize");
}

}  // namespace ptxb::cuda
