// Owns the one ptxbench-worker process of a GPU: starts it, sends jobs, watches the clock, kills
// and restarts it. Never judges: a dead or silent worker is told apart from an answer, and what it
// was doing is passed on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/worker_protocol.h"

namespace ptxb {

struct WorkerSettings {
  std::string program;                 // path of ptxbench-worker
  std::vector<std::string> arguments;  // e.g. {"--device", "0"}
  double start_timeout_s =
      60;  // until Hello; the driver's first start on a machine can take seconds
  uint64_t stderr_bytes = 64u << 10;  // kept of the worker's stderr (its tail)
};

// How a job ended.
struct JobReply {
  enum class Kind {
    Answered,  // outcome holds the worker's Outcome frame
    Died,      // the process ended without an Outcome; died_of says how
    TimedOut,  // no Outcome within the deadline; the worker was killed
  } kind = Kind::Answered;
  Frame outcome;
  std::string died_of;  // "signal 11", "exit code 3"
  Json last_progress;   // what it said it was about to do; null when it said nothing
  std::string stderr_tail;
  double seconds = 0;
};

class WorkerClient {
 public:
  explicit WorkerClient(WorkerSettings settings) : settings_(std::move(settings)) {}
  WorkerClient(const WorkerClient&) = delete;  // owns a process
  WorkerClient& operator=(const WorkerClient&) = delete;
  ~WorkerClient();

  // Starts the worker when none runs. Error: Harness (cannot start, no Hello in time, wrong
  // version).
  Result<void> start();
  // Starts when needed. timeout_s counts from the sending. An Error is the harness's (start failed,
  // protocol broken).
  Result<JobReply> run(const Frame& job, double timeout_s);
  // Kills the worker with its process group and reaps it. The next run starts a new one.
  void stop();

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  const Json& hello() const { return hello_; }
  uint64_t starts() const { return starts_; }

 private:
  enum class Wait { Frame, Ended, Deadline };
  Result<Wait> wait_frame(double deadline_s, Frame& frame);
  bool send_all(std::string_view bytes, double deadline_s);
  void drain_stderr();
  enum class Ending {
    Kill,
    Await
  };  // Await: it is about to end by itself, its own status says more
  std::string reap(Ending how);

  WorkerSettings settings_;
  pid_t pid_ = -1;
  int to_worker_ = -1, from_worker_ = -1, stderr_ = -1;
  FrameReader reader_;
  Json hello_;
  std::string stderr_tail_;
  uint64_t starts_ = 0;
};

}  // namespace ptxb
