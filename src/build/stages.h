// Owns the compiler runs of one build: which tool with which flags, inside the sandbox, and how
// each ended. Never caches, never looks inside what the tools made. Private to build/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "build/compile.h"

namespace ptxb::build {

// Names in the work folder and, as seen by the tools, in /build: the same for every candidate, so
// that the same source gives the same bytes.
constexpr const char* kSourceFile = "candidate.cu";
constexpr const char* kPtxFile = "candidate.ptx";
constexpr const char* kCubinFile = "candidate.cubin";
constexpr const char* kHostFile = "candidate.so";
constexpr const char* kTaskHeader = "ptxbench_task.h";

// All command lines of a build: part of its identity.
std::vector<std::vector<std::string>> command_lines(const BuildRequest& request,
                                                    const BuildSettings& settings);

// A tool that did not succeed. Repeatable: the same request would fail the same way on another day
// (an exit code, not a limit).
struct ToolFailure {
  enum class Repeatable { Yes, No } repeatable = Repeatable::Yes;
  Verdict verdict = Verdict::CompileError;
  std::string cause, hint;
};

struct ToolLogs {
  std::string device, ptxas, host;  // what each wrote, within its budget
  std::string all() const { return device + "\n" + ptxas + "\n" + host; }
};

struct Compiled {
  std::optional<ToolFailure> failure;
  ToolLogs logs;
};

// PTX, the cubin from that same PTX, and beside it the host library. `folder` holds the source and
// the header before, and the outputs afterwards; with several failures the device side's is told.
Result<Compiled> run_compilers(const BuildRequest& request, const Path& folder,
                               const BuildSettings& settings);

}  // namespace ptxb::build
