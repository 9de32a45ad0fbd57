// Owns the ptx binding: launch.toml and a task become a LaunchPlan without any host code (docs/formats.md, "launch.toml").
// Pure. What is wrong with the description is the candidate's fault and comes back as a NoPlan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "arch/chip.h"
#include "model/artifact.h"
#include "model/launch_plan.h"
#include "model/task.h"
#include "shim/reduce.h"

namespace ptxb::shim {

// The plan's module 0, digests and names are filled in too. Error: ours only (an unknown architecture).
Result<std::variant<LaunchPlan, NoPlan>> describe_launch(const Artifact& artifact, const Task& task,
                                                         const std::string& launch_toml, const arch::Chip& chip);

}  // namespace ptxb::shim
