// SPDX-License-Identifier: Apache-2.0
#include "model/evaluation.h"

#include "model/json_fields.h"

namespace ptxb {

namespace {

struct VerdictRow {
  Verdict verdict;
  const char* name;
  Stage stage;
};

constexpr VerdictRow kVerdicts[] = {
    {Verdict::Passed, "passed", Stage::Passed},
    {Verdict::NoCode, "no_code", Stage::Extract},
    {Verdict::AmbiguousCode, "ambiguous_code", Stage::Extract},
    {Verdict::ForbiddenLibrary, "forbidden_library", Stage::Policy},
    {Verdict::ForbiddenConstruct, "forbidden_construct", Stage::Policy},
    {Verdict::CompileError, "compile_error", Stage::Compile},
    {Verdict::CompileTimeout, "compile_timeout", Stage::Compile},
    {Verdict::ResourceLimit, "resource_limit", Stage::Compile},
    {Verdict::NoEntry, "no_entry", Stage::Launch},
    {Verdict::LaunchError, "launch_error", Stage::Launch},
    {Verdict::LaunchUnsupported, "launch_unsupported", Stage::Launch},
    {Verdict::HostCrash, "host_crash", Stage::Launch},
    {Verdict::HostTimeout, "host_timeout", Stage::Launch},
    {Verdict::Fault, "fault", Stage::Run},
    {Verdict::Deadlock, "deadlock", Stage::Run},
    {Verdict::Timeout, "timeout", Stage::Run},
    {Verdict::EmulatorUnsupported, "emulator_unsupported", Stage::Run},
    {Verdict::Race, "race", Stage::Check},
    {Verdict::MissingFence, "missing_fence", Stage::Check},
    {Verdict::UninitialisedRead, "uninitialised_read", Stage::Check},
    {Verdict::OutOfBounds, "out_of_bounds", Stage::Check},
    {Verdict::Unwritten, "unwritten", Stage::Correct},
    {Verdict::NonFinite, "non_finite", Stage::Correct},
    {Verdict::WrongShapeOrType, "wrong_shape_or_type", Stage::Correct},
    {Verdict::WrongValues, "wrong_values", Stage::Correct},
    {Verdict::InputModified, "input_modified", Stage::Correct},
    {Verdict::NotDeterministic, "not_deterministic", Stage::Correct},
    {Verdict::TargetAbsent, "target_absent", Stage::Target},
    {Verdict::TargetDecoy, "target_decoy", Stage::Target},
    {Verdict::TargetWrongVariant, "target_wrong_variant", Stage::Target},
    {Verdict::TargetNotVerified, "target_not_verified", Stage::Target},
    {Verdict::ImplausibleSpeed, "implausible_speed", Stage::Speed},
};

constexpr const char* kStages[] = {"extract", "policy", "compile", "launch", "run",
                                   "check",   "correct", "target", "speed",  "passed"};

const VerdictRow& row(Verdict verdict) {
  for (const VerdictRow& entry : kVerdicts) {
    if (entry.verdict == verdict) return entry;
  }
  PTXB_CHECK(false && "verdict missing from the table");
  std::abort();
}

}  // namespace

std::string_view name(Stage stage) { return kStages[static_cast<size_t>(stage)]; }
std::string_view name(Verdict verdict) { return row(verdict).name; }
Stage stage_of(Verdict verdict) { return row(verdict).stage; }

std::optional<Verdict> parse_verdict(std::string_view text) {
  for (const VerdictRow& entry : kVerdicts) {
    if (text == entry.name) return entry.verdict;
  }
  return std::nullopt;
}

std::string_view name(GateStatus status) {
  constexpr const char* kNames[] = {"passed", "failed", "skipped", "not_verified"};
  return kNames[static_cast<size_t>(status)];
}

std::string_view name(Diagnostic::Severity severity) {
  constexpr const char* kNames[] = {"note", "advice", "warning", "error"};
  return kNames[static_cast<size_t>(severity)];
}

// One description of each struct serves writing and reading (json_fields.h).
template <class V>
void describe(V& v, Gate& g) {
  v.choice("status", g.status, GateStatus::NotVerified);
  v("reason", g.reason);
}

template <class V>
void describe(V& v, Diagnostic& d) {
  v.choice("severity", d.severity, Diagnostic::Severity::Error);
  v("tool", d.tool);
  v("file", d.file);
  v("line", d.line);
  v("code", d.code);
  v("message", d.message);
}

template <class V>
void describe(V& v, KernelInfo& k) {
  v("name", k.name);
  v("registers", k.registers);
  v("spill_store_bytes", k.spill_store_bytes);
  v("spill_load_bytes", k.spill_load_bytes);
  v("static_shared_bytes", k.static_shared_bytes);
  v("const_bytes", k.const_bytes);
  v("stack_bytes", k.stack_bytes);
  v("max_threads", k.max_threads);
}

template <class V>
void describe(V& v, CodePlace& p) {
  v("kernel", p.kernel);
  v("ptx_line", p.ptx_line);
  v("ptx_text", p.ptx_text);
  v("source_file", p.source_file);
  v("source_line", p.source_line);
}

template <class V>
void describe(V& v, Finding& f) {
  v.choice("kind", f.kind, FindingKind::Lint);
  v.choice("grade", f.grade, FindingGrade::Lint);
  v("place", f.place);
  v("other", f.other);
  v("message", f.message);
  v("hint", f.hint);
  v("times", f.times);
}

template <class V>
void describe(V& v, Comparison& c) {
  v("output", c.output);
  v("distribution", c.distribution);
  v("seed", c.seed);
  v("elements", c.elements);
  v("mismatched_a", c.mismatched_a);
  v("mismatched_b", c.mismatched_b);
  v("unwritten", c.unwritten);
  v("non_finite", c.non_finite);
  v("max_abs_error", c.max_abs_error);
  v("max_rel_error", c.max_rel_error);
  v("matched_ratio", c.matched_ratio);
  v("normalised_error", c.normalised_error);
  v("diagnosis", c.diagnosis);
  v("passed", c.passed);
}

template <class V>
void describe(V& v, CorrectGate& g) {
  describe(v, static_cast<Gate&>(g));
  v("max_abs_error", g.max_abs_error);
  v("max_rel_error", g.max_rel_error);
  v("matched_ratio", g.matched_ratio);
  v("normalised_error", g.normalised_error);
  v("diagnosis", g.diagnosis);
  v("shapes", g.shapes);
  v("comparisons", g.comparisons);
}

template <class V>
void describe(V& v, CheckGate& g) {
  describe(v, static_cast<Gate&>(g));
  v("shape", g.shape);
  v("findings", g.findings);
}

template <class V>
void describe(V& v, FamilyEvidence& f) {
  v("family", f.family);
  v("level", f.level);
  v("share", f.share);
  v("warps", f.warps);
  v("threads", f.threads);
}

template <class V>
void describe(V& v, OpcodeCount& o) {
  v("kernel", o.kernel);
  v("opcode", o.opcode);
  v("family", o.family);
  v("warps", o.warps);
  v("threads", o.threads);
  v("flops", o.flops);
  v("bytes", o.bytes);
}

template <class V>
void describe(V& v, TargetGate& g) {
  describe(v, static_cast<Gate&>(g));
  v("level", g.level);
  v("share", g.share);
  v("means", g.means);
  v("families", g.families);
  v("opcodes", g.opcodes);
}

template <class V>
void describe(V& v, SpeedGate& g) {
  describe(v, static_cast<Gate&>(g));
  v("speedup", g.speedup);
  v("speedup_low", g.speedup_low);
  v("speedup_high", g.speedup_high);
  v("candidate_ms", g.candidate_ms);
  v("baseline_ms", g.baseline_ms);
  v("baseline", g.baseline);
  v("tflops", g.tflops);
  v("peak_share", g.peak_share);
}

template <class V>
void describe(V& v, Provenance& p) {
  v("source_sha256", p.source_sha256);
  v("cubin_sha256", p.cubin_sha256);
  v("plan_sha256", p.plan_sha256);
  v("tools", p.tools);
  v("chip", p.chip);
  v("driver", p.driver);
  v("seeds", p.seeds);
  v("sandbox_layers", p.sandbox_layers);
  v("sandbox_missing", p.sandbox_missing);
}

template <class V>
void describe(V& v, Cost& c) {
  v("build_s", c.build_s);
  v("record_s", c.record_s);
  v("emulate_s", c.emulate_s);
  v("gpu_s", c.gpu_s);
  v("total_s", c.total_s);
  v("build_cached", c.build_cached);
}

namespace {

// The `gates` member of the record.
struct Gates {
  Evaluation& e;
};

template <class V>
void describe(V& v, Gates& g) {
  v("compile", g.e.compile);
  v("launch", g.e.launch);
  v("check", g.e.check);
  v("correct", g.e.correct);
  v("generalises", g.e.generalises);
  v("target", g.e.target);
  v("speed", g.e.speed);
}

}  // namespace

template <class V>
void describe(V& v, Evaluation& e) {
  v("task", e.task);
  v("workload", e.workload);
  v("axes", e.axes);
  v("arch", e.arch);
  v("backend", e.backend);
  v("profile", e.profile);
  v.choice("verdict", e.verdict, Verdict::ImplausibleSpeed);
  v("cause", e.cause);
  v("hint", e.hint);
  Gates gates{e};
  v("gates", gates);
  v("diagnostics", e.diagnostics);
  v("kernels", e.kernels);
  v("provenance", e.provenance);
  v("cost", e.cost);
}

Json to_json(const Evaluation& evaluation) {
  Json out = Json::object();
  out.set("schema", Evaluation::kSchema);
  Json body = write_fields(evaluation);
  for (auto& [key, value] : body.members()) {
    out.set(key, std::move(value));
    if (key == "verdict") out.set("stage", name(stage_of(evaluation.verdict)));
  }
  return out;
}

Result<Evaluation> evaluation_from_json(const Json& json, std::string_view name) {
  const Json* schema = json.find("schema");
  if (!schema || !schema->is_string() || schema->as_string() != Evaluation::kSchema) {
    return bad_input(std::string(name) + ": schema: expected \"" + Evaluation::kSchema + "\"");
  }
  return read_fields<Evaluation>(json, std::string(name));
}

}  // namespace ptxb
