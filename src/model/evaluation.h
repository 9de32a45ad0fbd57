// Owns the Evaluation: the one record of what was found out about one candidate. Keys of its JSON are a contract (docs/formats.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/artifact.h"
#include "model/outcome.h"

namespace ptxb {

// The rungs, low to high.
enum class Stage { Extract, Policy, Compile, Launch, Run, Check, Correct, Target, Speed, Passed };
std::string_view name(Stage stage);

// Machine names in docs/verdicts.md; name(Verdict::X) gives the JSON spelling ("compile_error").
enum class Verdict {
  Passed,
  NoCode, AmbiguousCode,                                             // extract
  ForbiddenLibrary, ForbiddenConstruct,                              // policy
  CompileError, CompileTimeout, ResourceLimit,                       // compile
  NoEntry, LaunchError, LaunchUnsupported, HostCrash, HostTimeout,   // launch
  Fault, Deadlock, Timeout, EmulatorUnsupported,                     // run
  Race, MissingFence, UninitialisedRead, OutOfBounds,                // check
  Unwritten, NonFinite, WrongShapeOrType, WrongValues, InputModified, NotDeterministic,  // correct
  TargetAbsent, TargetDecoy, TargetWrongVariant, TargetNotVerified,  // target
  ImplausibleSpeed,                                                  // speed
};
std::string_view name(Verdict verdict);
std::optional<Verdict> parse_verdict(std::string_view text);
Stage stage_of(Verdict verdict);

enum class GateStatus { Passed, Failed, Skipped, NotVerified };
std::string_view name(GateStatus status);

struct Gate {
  GateStatus status = GateStatus::Skipped;
  std::string reason;  // for Skipped and NotVerified: why
};

// One comparison of one output under one seed and distribution.
struct Comparison {
  std::string output;         // tensor name
  std::string distribution;   // "normal", "exact", "coded", "spiky"
  uint64_t seed = 0;
  int64_t elements = 0, mismatched_a = 0, mismatched_b = 0, unwritten = 0, non_finite = 0;
  double max_abs_error = 0, max_rel_error = 0;
  double matched_ratio = 1;     // rule A
  double normalised_error = 0;  // rule B: worst error over its bound; passes at <= 1
  std::string diagnosis;        // one sentence a kernel author can act on; "" when it matches
  bool passed = false;
};

struct CorrectGate : Gate {
  double max_abs_error = 0, max_rel_error = 0, matched_ratio = 0, normalised_error = 0;
  std::string diagnosis;
  std::vector<Comparison> comparisons;
  std::vector<std::string> shapes;  // "M=128": where it was decided
};

struct CheckGate : Gate {
  std::vector<Finding> findings;
  std::string shape;  // "M=128"
};

struct FamilyEvidence {
  std::string family;  // "wgmma"
  std::string level;   // in_source, in_ptx, in_sass, executed, did_the_work
  double share = 0;    // of the task's matrix FLOPs, or bytes for copy families
  uint64_t warps = 0, threads = 0;
};

struct TargetGate : Gate {
  std::string level;  // the lowest of the required families
  double share = 0;
  std::vector<FamilyEvidence> families;
  std::vector<OpcodeCount> opcodes;
  std::string means;  // "emulator counts", "cupti sass metrics"
};

struct SpeedGate : Gate {
  std::optional<double> speedup, speedup_low, speedup_high, candidate_ms, baseline_ms, tflops, peak_share;
  std::string baseline;
};

struct Provenance {
  std::string source_sha256, cubin_sha256, plan_sha256;
  std::vector<std::string> tools;
  std::string chip, driver;
  std::vector<uint64_t> seeds;
  std::vector<std::string> sandbox_layers, sandbox_missing;
};

struct Cost {
  double build_s = 0, record_s = 0, emulate_s = 0, gpu_s = 0, total_s = 0;
  bool build_cached = false;
};

struct Evaluation {
  static constexpr const char* kSchema = "ptxbench.evaluation/1";
  std::string task, workload, arch, backend, profile;
  std::map<std::string, int64_t> axes;
  Verdict verdict = Verdict::Passed;
  std::string cause;  // one line: what happened
  std::string hint;   // one line: what to do
  Gate compile, launch;
  std::vector<Diagnostic> diagnostics;
  std::vector<KernelInfo> kernels;
  CheckGate check;
  CorrectGate correct, generalises;
  TargetGate target;
  SpeedGate speed;
  Provenance provenance;
  Cost cost;
};

Json to_json(const Evaluation& evaluation);
Result<Evaluation> evaluation_from_json(const Json& json, std::string_view name);

}  // namespace ptxb
