// ptxbench-worker: owns one GPU, answers jobs one after the other. Jobs arrive on stdin, answers
// leave on descriptor 3. Never judges; a lost context ends the process after its last word.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>

#include "backend/worker_jobs.h"
#include "base/text.h"
#include "cuda/bench.h"
#include "cuda/device.h"

namespace ptxb::cuda {
namespace {

constexpr int kAnswers = 3;

bool send(const Frame& frame) {
  const std::string bytes = encode_frame(frame);
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t count = ::write(kAnswers, left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    left.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// A cubin that calls the device heap leaves its allocations to whoever comes next in this context.
bool uses_device_heap(const LaunchPlan& plan) {
  constexpr std::string_view kNames[] = {std::string_view("\0malloc\0", 8),
                                         std::string_view("\0free\0", 6)};
  for (const PlanModule& module : plan.modules) {
    const std::string& image = module.cubin.empty() ? module.ptx : module.cubin;
    if (module.cubin.empty() && image.find("malloc") != std::string::npos) return true;
    for (std::string_view symbol : kNames) {
      if (image.find(symbol) != std::string::npos) return true;
    }
  }
  return false;
}

Result<WorkerResult> run_job(const Device& device, const WorkerJob& job) {
  const Say say = [](std::string_view stage) {
    Frame progress;
    progress.type = FrameType::Progress;
    progress.json = Json::object();
    progress.json.set("stage", stage);
    send(progress);
  };
  switch (job.kind) {
    case JobKind::Check:
      return run_check(device, job, say);
    case JobKind::Time:
      return run_time(device, job, say);
    case JobKind::Count:
      return run_count(device, job, say);
  }
  return harness_error("unknown job");
}

// The next whole frame from stdin; nullopt at its end.
Result<std::optional<Frame>> read_frame(FrameReader& reader) {
  std::string buffer(1 << 16, '\0');
  for (;;) {
    PTXB_TRY(std::optional<Frame> frame, reader.next());
    if (frame) return frame;
    const ssize_t count = ::read(0, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::optional<Frame>();
    reader.feed({buffer.data(), static_cast<size_t>(count)});
  }
}

Result<void> serve(int ordinal) {
  PTXB_TRY(const Device device, Device::open(ordinal));
  Frame hello;
  hello.type = FrameType::Hello;
  hello.json = to_json(device.facts());
  hello.json.set("frame_version", int64_t{kFrameVersion});
  if (!send(hello)) return io_error("the parent closed the answer pipe");
  FrameReader reader;
  for (;;) {
    PTXB_TRY(const std::optional<Frame> frame, read_frame(reader));
    if (!frame || frame->type == FrameType::Bye) return {};
    if (frame->type != FrameType::Job) return bad_input("a frame that is no job");
    Result<WorkerJob> job = decode_job(*frame);
    Result<WorkerResult> result =
        job ? run_job(device, *job) : Result<WorkerResult>(std::move(job).error());
    if (!result) {
      // After a failed call of our own the context's state is unknown: a fresh process answers the
      // next job.
      const bool ours = job.has_value() && result.error().code == ErrorCode::Harness;
      Frame answer = encode_harness_error(result.error());
      answer.json.set("ending", ours);
      send(answer);
      if (ours) ::_exit(3);
      continue;
    }
    result->ending = result->ending || uses_device_heap(job->plan);
    if (!send(encode_result(*result))) return io_error("the parent closed the answer pipe");
    // Destructors would wait for a kernel that never ends, or fail one by one in a lost context.
    if (result->ending) ::_exit(3);
  }
}

}  // namespace
}  // namespace ptxb::cuda

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(SIGPIPE, SIG_IGN);
  // Every kernel is loaded with its module: a first launch inside a timed region must not wait for
  // the device.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  int ordinal = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto value = ptxb::parse_int(argv[i + 1]);
    if (std::string_view(argv[i]) != "--device" || !value || *value < 0 || *value > 1023) {
      const char usage[] =
          "usage: ptxbench-worker [--device N]   (started by ptxbench; jobs on stdin, answers on "
          "descriptor 3)\n";
      return ::write(2, usage, sizeof usage - 1) < 0 ? 3 : 2;
    }
    ordinal = static_cast<int>(*value);
  }
  const ptxb::Result<void> served = ptxb::cuda::serve(ordinal);
  if (served) return 0;
  const std::string text = served.error().message + "\n";
  return ::write(2, text.data(), text.size()) < 0 ? 3 : 3;
}
