// Owns the interface between run() and its parts: launches, plan copies, counts. Never executes
// instructions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "emu/worker.h"

namespace ptxb::emu {

// Fills the launch's shape from its plan operation; a message when the chip or the kernel does not
// allow it.
std::string shape_launch(Launch& launch);
// Blocks (clusters) that a sampled run executes: the first, the last and seeded others.
void select_blocks(Launch& launch);

// Memset, CopyDevice, WriteBytes; false: a fault, the run state says which.
bool run_copy(RunState& run, const PlanAction& action);

// Exact counts of one launch, by kernel and mnemonic.
using CountTable = std::map<std::pair<std::string, std::string>, OpcodeCount>;
void add_counts(CountTable& table, const Launch& launch, const std::vector<Counter>& counters);

}  // namespace ptxb::emu
