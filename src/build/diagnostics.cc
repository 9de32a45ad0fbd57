// SPDX-License-Identifier: Apache-2.0
#include "build/diagnostics.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace ptxb::build {

namespace {

using Severity = Diagnostic::Severity;

// Lines of outside text that are looked at: a flood of a million warnings costs no more than this.
constexpr size_t kMaxLines = 20'000;
constexpr size_t kMaxLineBytes = 8'192;

// A cursor over one line; every take_ either advances and succeeds or leaves it.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}
  std::string_view rest() const { return rest_; }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::optional<int> take_number() {
    size_t length = 0;
    while (length < rest_.size() && length < 9 && rest_[length] >= '0' && rest_[length] <= '9')
      ++length;
    auto value = parse_uint(rest_.substr(0, length));
    if (length == 0 || !value) return std::nullopt;
    rest_.remove_prefix(length);
    return static_cast<int>(*value);
  }
  std::optional<std::string_view> take_until(std::string_view mark) {
    size_t at = rest_.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    std::string_view before = rest_.substr(0, at);
    rest_.remove_prefix(at + mark.size());
    return before;
  }

 private:
  std::string_view rest_;
};

std::string base_name(std::string_view path) {
  size_t slash = path.rfind('/');
  return printable(slash == std::string_view::npos ? path : path.substr(slash + 1), 200);
}

struct SeverityWord {
  const char* word;
  Severity severity;
};
constexpr SeverityWord kSeverities[] = {{"catastrophic error", Severity::Error},
                                        {"internal error", Severity::Error},
                                        {"fatal error", Severity::Error},
                                        {"fatal", Severity::Error},
                                        {"error", Severity::Error},
                                        {"Error", Severity::Error},
                                        {"warning", Severity::Warning},
                                        {"remark", Severity::Note},
                                        {"note", Severity::Note},
                                        {"info", Severity::Note}};

// "error", "warning #177-D", "fatal   " ... up to and with the colon.
bool take_severity(Line& line, Diagnostic& out) {
  for (const SeverityWord& one : kSeverities) {
    Line attempt = line;
    if (!attempt.take(one.word)) continue;
    attempt.skip_spaces();
    if (attempt.take("#")) {
      auto code = attempt.take_until(":");
      if (!code || code->size() > 16) continue;
      out.code = std::string(trim(*code));
    } else if (!attempt.take(":")) {
      continue;
    }
    out.severity = one.severity;
    line = attempt;
    return true;
  }
  return false;
}

void set_message(Line line, Diagnostic& out) {
  out.message = printable(trim(line.rest()), kMaxMessageBytes);
}

// "f.cu(2): error: ..." of cudafe++ and cicc.
bool parse_front_end(std::string_view text, Diagnostic& out) {
  Line line(text);
  auto file = line.take_until("(");
  if (!file || file->empty() || file->find(' ') != std::string_view::npos) return false;
  auto number = line.take_number();
  if (!number || !line.take("): ") || !take_severity(line, out)) return false;
  out.tool = "nvcc";
  out.file = base_name(*file);
  out.line = *number;
  set_message(line, out);
  return true;
}

// "f.cu:1:10: fatal error: ..." of gcc.
bool parse_gcc(std::string_view text, Diagnostic& out) {
  Line line(text);
  auto file = line.take_until(":");
  if (!file || file->empty() || file->find(' ') != std::string_view::npos) return false;
  auto number = line.take_number();
  if (!number || !line.take(":")) return false;
  if (line.take_number() && !line.take(":")) return false;
  line.skip_spaces();
  if (!take_severity(line, out)) return false;
  out.tool = "host";
  out.file = base_name(*file);
  out.line = *number;
  set_message(line, out);
  return true;
}

// "(C7519) warpgroup.arrive is injected in around line 80 by compiler ..." : the line is one of the
// PTX text.
void read_advisory(Line& line, Diagnostic& out) {
  Line attempt = line;
  attempt.skip_spaces();
  if (!attempt.take("(C")) return;
  auto number = attempt.take_until(")");
  if (!number || number->size() > 6 || !parse_uint(*number)) return;
  out.code = "C" + std::string(*number);
  if (out.severity == Severity::Note) out.severity = Severity::Advice;
  line = attempt;
  if (attempt.take_until("around line ")) out.line = attempt.take_number().value_or(0);
}

// "ptxas f.ptx, line 30; error   : ..." and "ptxas info    : (C7519) ...".
bool parse_ptxas(std::string_view text, Diagnostic& out) {
  Line line(text);
  if (!line.take("ptxas ")) return false;
  Line attempt = line;
  auto file = attempt.take_until(", line ");
  if (file && file->find("; ") == std::string_view::npos) {
    auto number = attempt.take_number();
    if (number && attempt.take("; ")) {
      out.file = base_name(*file);
      out.line = *number;
      line = attempt;
    }
  }
  if (!take_severity(line, out)) return false;
  out.tool = "ptxas";
  read_advisory(line, out);
  set_message(line, out);
  // "ptxas -v" statistics are numbers, see parse_kernel_use; the last word of a failure adds
  // nothing to the errors before it.
  if (out.severity == Severity::Note) return false;
  return out.message != "Ptx assembly aborted due to errors";
}

// "nvcc fatal   : ...", "nvlink error   : ...", "/usr/bin/ld: ... undefined reference to `f'".
bool parse_driver(std::string_view text, Diagnostic& out) {
  Line line(text);
  for (const char* tool : {"nvcc ", "nvlink ", "cudafe++ ", "fatbinary "}) {
    Line attempt = line;
    if (!attempt.take(tool) || !take_severity(attempt, out)) continue;
    out.tool = std::string(trim(tool));
    set_message(attempt, out);
    return true;
  }
  bool linker = text.find("undefined reference to ") != std::string_view::npos ||
                text.starts_with("/usr/bin/ld: ") ||
                text.find("multiple definition of ") != std::string_view::npos;
  bool internal = text.find("internal compiler error") != std::string_view::npos ||
                  text.starts_with("cc1plus: ");
  if (!linker && !internal) return false;
  out.tool = "host";
  out.severity =
      text.find("warning:") != std::string_view::npos ? Severity::Warning : Severity::Error;
  set_message(line, out);
  return true;
}

bool same(const Diagnostic& a, const Diagnostic& b) {
  return a.severity == b.severity && a.file == b.file && a.line == b.line && a.message == b.message;
}

int rank(const Diagnostic& one) { return -static_cast<int>(one.severity); }

// Calls use(line) for each bounded line.
template <class Use>
void each_line(std::string_view text, Use use) {
  for (size_t count = 0; !text.empty() && count < kMaxLines; ++count) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, std::min(end, kMaxLineBytes));
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    use(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::optional<std::string_view> quoted(Line& line) {
  if (!line.take("'")) return std::nullopt;
  return line.take_until("'");
}

// "1240 bytes stack frame" -> 1240 when `unit` follows.
void read_amount(std::string_view part, std::string_view unit, uint32_t& into) {
  Line line(trim(part));
  auto number = line.take_number();
  if (number && trim(line.rest()).starts_with(unit)) into = static_cast<uint32_t>(*number);
}

}  // namespace

std::vector<Diagnostic> parse_diagnostics(std::string_view text) {
  std::vector<Diagnostic> found;
  each_line(text, [&](std::string_view line) {
    if (found.size() >= 4 * kMaxDiagnostics) return;
    for (auto* parse : {parse_ptxas, parse_front_end, parse_gcc, parse_driver}) {
      Diagnostic one;
      if (!parse(line, one)) continue;
      if (one.message.empty() || one.message.starts_with("The warnings can be suppressed")) return;
      for (const Diagnostic& other : found) {
        if (same(other, one)) return;
      }
      found.push_back(std::move(one));
      return;
    }
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (found.size() > kMaxDiagnostics) found.resize(kMaxDiagnostics);
  return found;
}

std::vector<KernelUse> parse_kernel_use(std::string_view text) {
  constexpr size_t kMaxKernels = 4096;
  std::vector<KernelUse> found;
  bool in_entry = false, in_frame = false;
  each_line(text, [&](std::string_view whole) {
    Line line(whole);
    if (!line.take("ptxas info")) {
      // The frame line belongs to the function named just before it: an entry, or a device function
      // that is no kernel.
      if (!in_entry || !in_frame || found.empty() || !whole.starts_with("    ")) return;
      for (std::string_view part : split(whole, ',')) {
        read_amount(part, "bytes stack frame", found.back().stack_bytes);
        read_amount(part, "bytes spill stores", found.back().spill_store_bytes);
        read_amount(part, "bytes spill loads", found.back().spill_load_bytes);
      }
      in_frame = false;
      return;
    }
    line.skip_spaces();
    if (!line.take(": ")) return;
    if (line.take("Compiling entry function ")) {
      auto name = quoted(line);
      in_entry = name && found.size() < kMaxKernels;
      if (in_entry) {
        found.push_back({});
        found.back().name = printable(*name, 4000);
      }
    } else if (line.take("Function properties for ")) {
      in_frame = in_entry && line.rest() == found.back().name;
    } else if (in_entry && line.rest().starts_with("Used ")) {
      line.take("Used ");
      for (std::string_view part : split(line.rest(), ',')) {
        part = trim(part);
        if (part.starts_with("used ")) part.remove_prefix(5);
        uint32_t constant = 0;
        read_amount(part, "registers", found.back().registers);
        read_amount(part, "barriers", found.back().barriers);
        read_amount(part, "bytes smem", found.back().static_shared_bytes);
        read_amount(part, "bytes cmem", constant);
        found.back().const_bytes += constant;
      }
      in_entry = false;
    }
  });
  return found;
}

std::vector<Overuse> parse_overuse(std::string_view text) {
  std::vector<Overuse> found;
  each_line(text, [&](std::string_view whole) {
    Line line(whole);
    if (found.size() >= kMaxDiagnostics || !line.take("ptxas error")) return;
    line.skip_spaces();
    if (!line.take(": Entry function ")) return;
    auto name = quoted(line);
    if (!name || !line.take(" uses too much ")) return;
    auto resource = line.take_until(" (0x");
    auto used = line.take_until(" bytes, 0x");
    auto limit = line.take_until(" max)");
    if (!resource || !used || !limit) return;
    auto used_bytes = parse_uint("0x" + std::string(*used)),
         limit_bytes = parse_uint("0x" + std::string(*limit));
    if (!used_bytes || !limit_bytes || *used_bytes <= *limit_bytes) return;
    found.push_back({printable(*name, 200), printable(*resource, 60), *used_bytes, *limit_bytes});
  });
  return found;
}

}  // namespace ptxb::build
