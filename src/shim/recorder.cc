// SPDX-License-Identifier: Apache-2.0
#include "shim/recorder.h"

#include <cstdlib>

namespace ptxb::shim {

Recorder& Recorder::get() {
  // Never destroyed: candidates' destructors may still call in.
  static Recorder* recorder = new Recorder;
  return *recorder;
}

void Recorder::start(Request request, std::function<void(const Recording&)> on_stop) {
  Guard guard = lock();
  request_ = std::move(request);
  on_stop_ = std::move(on_stop);
  recording_.calls.resize(kCalls);
  next_address_ = request_.scratch_begin;
  for (const Argument& argument : request_.arguments) {
    used_bytes_ += argument.size_bytes;
    for (uint64_t address : argument.addresses) {
      regions_[address] = {Region::Kind::Argument, 0, address, argument.size_bytes, true};
    }
  }
  add_stream(StreamKind::Caller, 0, 0);
  add_stream(StreamKind::Legacy, 0, 0);
}

void Recorder::enter_call(int call) {
  Guard guard = lock();
  phase_ = call;
  recording_.call = call;
  work_count_ = call == 1 ? work_count_ : 0;
}

void Recorder::leave_call() {
  Guard guard = lock();
  for (const auto& stream : streams_) {
    if (stream->capture)
      unsupported("cudaStreamBeginCapture", "a stream capture was still open when run returned");
  }
  phase_ = -1;
}

void Recorder::stop(Ending ending, std::string detail) {
  recording_.ending = ending;
  recording_.detail = std::move(detail);
  if (on_stop_) on_stop_(recording_);
  std::_Exit(97);  // on_stop does not come back in ptxbench-record
}

void Recorder::unsupported(std::string_view api, std::string_view why) {
  std::string detail(api);
  if (!why.empty()) detail += ": " + std::string(why);
  stop(Ending::Unsupported, std::move(detail));
}

Code Recorder::refuse(std::string_view api, Code code, std::string why) {
  constexpr size_t kKept = 256;
  if (recording_.refusals.size() < kKept) {
    recording_.refusals.push_back({phase_ < 0 ? 0 : phase_, std::string(api), std::move(why)});
  }
  return code;
}

void Recorder::note(std::string text) {
  constexpr size_t kKept = 256;
  if (noted_.size() < kKept && noted_.insert(text).second)
    recording_.notes.push_back(std::move(text));
}

std::vector<Step>& Recorder::steps(std::string_view api) {
  if (phase_ < 0) unsupported(api, "called outside of run (by a thread that outlived the call)");
  return recording_.calls[phase_ == 0 ? 0 : static_cast<size_t>(phase_ - 1)];
}

void Recorder::add_step(std::string_view api, Step step) {
  std::vector<Step>& list = steps(api);
  if (list.size() >= 4 * PlanLimits::kOperations) unsupported(api, "too many steps in one call");
  work_count_ += step.kind == Step::Kind::Work ? 1 : step.nodes.size();
  if (work_count_ > PlanLimits::kOperations) {
    unsupported(api,
                "more than " + std::to_string(PlanLimits::kOperations) + " operations in one call");
  }
  list.push_back(std::move(step));
}

}  // namespace ptxb::shim
