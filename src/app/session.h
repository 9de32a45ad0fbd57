// Owns what the commands work with: dataset, toolchain, sandbox, backends, opened once from the options and the environment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "app/options.h"
#include "app/terminal.h"
#include "arch/chip.h"
#include "build/toolchain.h"
#include "eval/evaluate.h"
#include "os/sandbox.h"
#include "task/load.h"

namespace ptxb::app {

// What a command cannot do without; the rest is not looked for.
enum class Need { Build, ReplayOnly };

// Addresses inside are stable: harness points into it.
struct Session {
  Dataset dataset;
  std::optional<build::Toolchain> toolchain;
  std::optional<os::Sandbox> sandbox;
  const arch::Chip* chip = nullptr;
  std::unique_ptr<Backend> emulator, gpu;
  Harness harness;
};

Result<std::unique_ptr<Session>> open_session(const Options& options, const Terminal& terminal, Need need);

// nullptr with a reason when there is no GPU or no worker program; Error only when one was asked for.
struct GpuBackend {
  std::unique_ptr<Backend> backend;
  std::string absent;  // why there is none
};
GpuBackend open_gpu(const Options& options);

// What `doctor` and open_session look for.
build::ToolchainQuery toolchain_query();
int thread_count(const Options& options);

// SOURCE of eval, plan and check: a .cu file, a .ptx file with launch.toml beside it, or a folder with both.
// Errors BadInput, NotFound as a user reads them.
Result<Candidate> read_candidate(const std::string& source);

// Task and settings from the options. Error BadInput: unknown task, workload, family.
Result<EvaluationRequest> make_request(const Options& options, const Session& session);

}  // namespace ptxb::app
