// Owns the way from a candidate's source to an Artifact: what is compiled with which flags, and
// what a failure means. Never loads or runs what it made; a candidate that does not build is a
// value, a broken toolchain is an Error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "build/toolchain.h"
#include "model/artifact.h"
#include "model/evaluation.h"
#include "os/sandbox.h"

namespace ptxb::build {

struct BuildLimits {
  double wall_s = 120;                        // all stages together
  uint64_t memory_bytes = uint64_t{6} << 30;  // one tool; two run at once
  uint64_t processes = 64;
  uint64_t output_bytes = 4u << 20;        // messages of one tool
  uint64_t file_bytes = 512u << 20;        // one file
  uint64_t folder_bytes = 1u << 30;        // all outputs
  uint64_t tmp_bytes = uint64_t{1} << 30;  // intermediate files
  uint64_t source_bytes = 1u << 20;
};

enum class CacheUse { ReadWrite, WriteOnly };  // WriteOnly: build again and replace

struct BuildSettings {
  const Toolchain* toolchain = nullptr;
  const os::Sandbox* sandbox = nullptr;
  Path cache_folder;  // made when missing; e.g. ~/.cache/ptxbench
  uint64_t cache_bytes = uint64_t{4}
                         << 30;  // oldest artifacts go first; those used within the last hour stay
  CacheUse cache = CacheUse::ReadWrite;
  BuildLimits limits;
  std::string language = "c++17";  // or "c++20"
};

struct BuildRequest {
  Candidate candidate;
  std::string arch;    // "sm_90a"
  Path header_folder;  // holds the generated ptxbench_task.h; empty for the ptx binding
};

// The candidate's fault. verdict: CompileError, CompileTimeout, ResourceLimit, NoEntry,
// AmbiguousCode, ForbiddenLibrary or ForbiddenConstruct. Decided by exit status, limits and what
// the outputs are, never by what a tool printed.
struct BuildFailure {
  Verdict verdict = Verdict::CompileError;
  std::string cause;  // one line
  std::string hint;   // one line
  std::vector<Diagnostic> diagnostics;
};

enum class Origin { Built, Cached };

struct BuildOutcome {
  std::variant<Artifact, BuildFailure> result;
  Origin origin = Origin::Built;
  double wall_s = 0;
  const Artifact* artifact() const { return std::get_if<Artifact>(&result); }
  const BuildFailure* failure() const { return std::get_if<BuildFailure>(&result); }
};

// Candidate.binding must be what detect_binding (binding.h) found. Several threads and processes
// may build at once; the same request is built by one of them and the others wait for it. Errors:
// BadInput for a source that is no source (empty, binary, not UTF-8, too long), an unknown arch; Io
// for the cache folder (named); Harness when the tools themselves fail.
Result<BuildOutcome> build(const BuildRequest& request, const BuildSettings& settings);

// The identity of a build: SHA-256 over source, flags, arch, headers and tools.
Result<std::string> build_key(const BuildRequest& request, const BuildSettings& settings);

}  // namespace ptxb::build
