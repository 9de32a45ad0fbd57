// Owns the judgement over one recording: builds the request, runs ptxbench-record in the sandbox,
// turns what came back into a LaunchPlan or a verdict of stage launch. Judges by the wait status
// and the validated file, never by printed text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/artifact.h"
#include "model/evaluation.h"
#include "model/launch_plan.h"
#include "model/task.h"
#include "os/sandbox.h"
#include "shim/recording.h"

namespace ptxb::shim {

struct RecordSettings {
  const os::Sandbox* sandbox = nullptr;  // required
  std::string program;      // path of ptxbench-record; the shims lie in the folder shim/ beside it
  std::string tvm_library;  // path of libtvm_ffi.so; needed for the tvm-ffi binding only
  std::string chip;         // name of a chip profile; empty: the architecture's default
  double wall_s = 10;
  uint64_t memory_bytes = uint64_t{2} << 30;
  uint64_t processes = 64;
};

struct RecordOutcome {
  Verdict verdict = Verdict::Passed;  // Passed: `plan` is there. Else NoEntry, LaunchError,
                                      // LaunchUnsupported, HostCrash, HostTimeout, ForbiddenLibrary
  LaunchPlan plan;
  std::string cause, hint;  // one line each; empty when passed
  // Calls of the steady call that CUDA itself would have refused. Harmless when the host code
  // coped; when the plan's results are wrong or unwritten, the first of them is the likely reason.
  std::vector<std::string> refused;
  std::vector<std::string> notes;  // calls that were ignored or approximated
  double seconds = 0;
};

// Errors are ours (program missing, sandbox broken, unknown chip); everything a candidate can cause
// is an outcome.
Result<RecordOutcome> record(const Artifact& artifact, const Task& task,
                             const RecordSettings& settings);

// The pure halves, for tests: what is asked of the program, and what its recording means.
Result<Request> make_request(const Artifact& artifact, const Task& task,
                             const RecordSettings& settings);
Result<RecordOutcome> judge(const Request& request, const Recording& recording,
                            const Artifact& artifact, const Task& task);

}  // namespace ptxb::shim
