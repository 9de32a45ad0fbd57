// SPDX-License-Identifier: Apache-2.0
#include "app/show_evaluation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace ptxb::app {

namespace {

// Text that a candidate may have shaped (kernel names, compiler messages): shortened, no control bytes.
std::string safe(std::string_view text, size_t limit = 300) { return printable(text, limit); }

std::string mark(const Gate& gate, const Terminal& terminal) {
  switch (gate.status) {
    case GateStatus::Passed: return terminal.paint(Colour::Green, fmt::format("{:<12}", "ok"));
    case GateStatus::Failed: return terminal.paint(Colour::Red, fmt::format("{:<12}", "FAILED"));
    case GateStatus::NotVerified: return terminal.paint(Colour::Yellow, fmt::format("{:<12}", "not verified"));
    case GateStatus::Skipped: break;
  }
  return terminal.paint(Colour::Dim, fmt::format("{:<12}", "-"));
}

std::string kernels_text(const Evaluation& e) {
  if (e.kernels.empty()) return "";
  const KernelInfo& k = e.kernels.front();
  std::string text = fmt::format("{} registers, {} spill bytes, {} bytes of static shared memory", k.registers,
                                 k.spill_store_bytes + k.spill_load_bytes, k.static_shared_bytes);
  if (e.kernels.size() > 1) text += fmt::format(" (first of {} kernels)", e.kernels.size());
  return text;
}

std::string correct_text(const CorrectGate& gate) {
  if (gate.status == GateStatus::Skipped || gate.status == GateStatus::NotVerified) return safe(gate.reason);
  std::string shapes;
  for (const std::string& shape : gate.shapes) shapes += (shapes.empty() ? "" : "; ") + shape;
  if (gate.comparisons.empty()) return shapes.empty() ? safe(gate.reason) : "at " + shapes;
  std::string text = fmt::format("{} comparisons at {}, worst error {:.2g} of its bound", gate.comparisons.size(), shapes,
                                 gate.normalised_error);
  return text;
}

std::string check_text(const CheckGate& gate) {
  if (!gate.reason.empty() && gate.status != GateStatus::Failed) return safe(gate.reason);
  size_t wrong = static_cast<size_t>(std::count_if(gate.findings.begin(), gate.findings.end(), [](const Finding& f) {
    return f.grade == FindingGrade::Wrong;
  }));
  return fmt::format("{} findings, {} advisories at {}", wrong, gate.findings.size() - wrong, gate.shape);
}

std::string target_text(const TargetGate& gate) {
  std::string text;
  for (const FamilyEvidence& f : gate.families) {
    if (!text.empty()) text += ", ";
    text += f.family + " " + f.level;
    if (f.share > 0) text += fmt::format(" ({:.3g}%)", f.share * 100);
  }
  if (text.empty()) text = safe(gate.reason);
  return text;
}

std::string speed_text(const SpeedGate& gate) {
  if (!gate.speedup) return safe(gate.reason);
  std::string text = fmt::format("{:.3f}x of {}", *gate.speedup, gate.baseline);
  if (gate.speedup_low && gate.speedup_high) text += fmt::format(" [{:.3f}, {:.3f}]", *gate.speedup_low, *gate.speedup_high);
  if (gate.candidate_ms) text += fmt::format(", {:.4g} ms", *gate.candidate_ms);
  if (gate.tflops) text += fmt::format(", {:.4g} TFLOP/s", *gate.tflops);
  return text;
}

std::string line(const Terminal& terminal, const char* gate_name, const Gate& gate, const std::string& text) {
  return fmt::format("  {:<12}{} {}\n", gate_name, mark(gate, terminal), text);
}

std::string diagnostics_text(const Evaluation& e) {
  std::string text;
  int shown = 0;
  for (const Diagnostic& d : e.diagnostics) {
    bool wanted = d.severity == Diagnostic::Severity::Error || stage_of(e.verdict) != Stage::Compile;
    if (!wanted || shown == 5) continue;
    ++shown;
    text += "    ";
    if (d.line) text += fmt::format("{}:{}: ", safe(d.file, 100), d.line);
    text += fmt::format("{}: {}\n", name(d.severity), safe(d.message));
  }
  return text;
}

}  // namespace

std::string show_findings(const std::vector<Finding>& findings, const Terminal& terminal) {
  std::string text;
  for (const Finding& f : findings) {
    std::string where = f.place.source_line ? fmt::format("{}:{}", safe(f.place.source_file, 200), f.place.source_line)
                        : f.place.ptx_line  ? fmt::format("ptx:{}", f.place.ptx_line)
                                            : safe(f.place.kernel, 100);
    Colour colour = f.grade == FindingGrade::Wrong ? Colour::Red : Colour::Yellow;
    text += fmt::format("{}: {}: {}\n", where, terminal.paint(colour, name(f.kind)), safe(f.message, 2000));
    if (f.other.source_line || f.other.ptx_line) {
      text += fmt::format("    other access: {}:{} (PTX line {}: {})\n", safe(f.other.source_file, 200), f.other.source_line,
                          f.other.ptx_line, safe(f.other.ptx_text, 120));
    }
    if (f.place.ptx_line) text += fmt::format("    PTX line {}: {}\n", f.place.ptx_line, safe(f.place.ptx_text, 160));
    if (!f.hint.empty()) text += fmt::format("    hint: {}\n", safe(f.hint));
    if (f.times > 1) text += fmt::format("    seen {} times\n", f.times);
  }
  return text;
}

std::string show(const Evaluation& e, const Terminal& terminal) {
  std::string axes;
  for (const auto& [axis, value] : e.axes) axes += fmt::format("{}{}={}", axes.empty() ? "" : ",", axis, value);
  std::string out = fmt::format("{}  {}  {}  {}  {}\n\n", terminal.paint(Colour::Bold, e.task), axes, e.arch, e.backend,
                                e.profile);
  out += line(terminal, "compile", e.compile,
              e.compile.status == GateStatus::Passed ? kernels_text(e) + (e.cost.build_cached ? " (from the cache)" : "")
                                                     : safe(e.compile.reason));
  out += line(terminal, "launch", e.launch, safe(e.launch.reason));
  out += line(terminal, "check", e.check, check_text(e.check));
  out += line(terminal, "correct", e.correct, correct_text(e.correct));
  out += line(terminal, "generalises", e.generalises, correct_text(e.generalises));
  out += line(terminal, "target", e.target, target_text(e.target));
  out += line(terminal, "speed", e.speed, speed_text(e.speed));
  bool passed = e.verdict == Verdict::Passed;
  out += fmt::format("\n  {}  (stage {})\n", terminal.paint(passed ? Colour::Green : Colour::Red, name(e.verdict)),
                     name(stage_of(e.verdict)));
  if (!e.cause.empty()) out += fmt::format("  cause: {}\n", safe(e.cause, 2000));
  if (!e.hint.empty()) out += fmt::format("  hint:  {}\n", safe(e.hint, 600));
  out += diagnostics_text(e);
  std::vector<Finding> wrong;
  for (const Finding& f : e.check.findings) {
    if (f.grade == FindingGrade::Wrong && wrong.size() < 3) wrong.push_back(f);
  }
  if (!wrong.empty()) out += "\n" + show_findings(wrong, terminal);
  if (!e.provenance.sandbox_missing.empty()) {
    out += terminal.paint(Colour::Yellow, "\n  made without these sandbox layers:") + "\n";
    for (const std::string& missing : e.provenance.sandbox_missing) out += "    " + safe(missing) + "\n";
  }
  out += terminal.paint(Colour::Dim, fmt::format("\n  build {:.1f} s, record {:.1f} s, emulate {:.1f} s, gpu {:.2f} s, total {:.1f} s\n",
                                                 e.cost.build_s, e.cost.record_s, e.cost.emulate_s, e.cost.gpu_s,
                                                 e.cost.total_s));
  return out;
}

}  // namespace ptxb::app
