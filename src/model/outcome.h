// Owns what a backend says after replaying a plan: status, findings, executed instructions. Witness statements, not verdicts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxb {

enum class RunStatus {
  Completed,
  Fault,        // out of bounds, misaligned, illegal instruction, trap, assert
  Deadlock,     // no warp can go on
  Budget,       // instruction or wall-time budget spent
  Unsupported,  // the emulator refuses an instruction or a launch form, by name
};
std::string_view name(RunStatus status);

// Where something happened in the candidate's program. 0 and "" mean unknown.
struct CodePlace {
  std::string kernel;
  int ptx_line = 0;
  std::string ptx_text;  // the instruction as written
  std::string source_file;
  int source_line = 0;
};

enum class FindingKind {
  OutOfBounds, Misaligned, UninitialisedRead, Race, MissingFence, Deadlock, Trap, AssertFailed, IllegalInstruction,
  BarrierMisuse, DivergentAligned, AsyncHazard,
  WildPointer,  // an address near no buffer
  Lint,
};
std::string_view name(FindingKind kind);

enum class FindingGrade {
  Wrong,     // decides the verdict
  Repaired,  // undefined by the PTX rules, but ptxas repairs it: a warning with evidence
  Lint,      // advice
};
std::string_view name(FindingGrade grade);

struct Finding {
  FindingKind kind = FindingKind::Lint;
  FindingGrade grade = FindingGrade::Wrong;
  CodePlace place;
  CodePlace other;       // the conflicting access, where there is one
  std::string message;   // one sentence: what happened, with addresses, threads, buffer names
  std::string hint;      // what to do
  uint64_t times = 1;    // how often the same (kind, place, other) was seen
};

// Exact executed counts of one PTX instruction spelling (opcode with its modifiers) in one kernel.
struct OpcodeCount {
  std::string kernel;
  std::string opcode;    // "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
  std::string family;    // arch/families.h, "" for none
  uint64_t warps = 0;    // issued with at least one guard-true lane
  uint64_t threads = 0;  // guard-true lanes
  double flops = 0;      // of matrix instructions, from their shape
  double bytes = 0;      // moved by bulk/TMA copies
};

}  // namespace ptxb
