// Owns how trouble in a candidate's program is written down: place, thread and address in words.
// Never decides verdicts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "emu/warp.h"
#include "model/outcome.h"

namespace ptxb::emu {

struct RunState;
struct Launch;

// Ends the run: the faulting warp stops here, nullptr is returned for the run loop.
const Insn* fault(Warp& w, const Insn* i, FindingKind kind, std::string message,
                  std::string hint = {});
// Keeps a finding and goes on; the same (kind, place, other) again only counts.
void note(RunState& run, Finding finding);
void report_deadlock(Cluster& cluster);
void report_livelock(Worker& worker);
void stop_run(RunState& run, RunStatus status, std::string cause);

CodePlace place_of(const Warp& w, const Insn* i);
CodePlace place_of(const Launch& launch, const Code& code, uint32_t origin);
std::string thread_text(const Warp& w, uint32_t lane);  // "thread 33 of block (0,0,0)"
std::string block_text(const Cta& cta);
std::string hex_text(uint64_t value);

}  // namespace ptxb::emu
