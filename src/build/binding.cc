// SPDX-License-Identifier: Apache-2.0
#include "build/binding.h"

#include <vector>

#include "base/text.h"

namespace ptxb::build {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

struct Token {
  enum class Kind { Word, String, Mark, End } kind = Kind::End;
  std::string_view text;  // String: without quotes
  int line = 0;
  bool conditional = false;  // below an #if that is not evaluated
};

// C++ phases 1-3 as far as needed: line splices, comments, literals, directives ([lex.phases],
// [lex.string]).
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Token next() {
    for (;;) {
      skip_blanks();
      if (at_ >= text_.size()) return make(Token::Kind::End, at_, at_);
      char c = text_[at_];
      if (c == '#' && line_start_) {
        directive();
        continue;
      }
      line_start_ = false;
      if (c == '"') return string_literal(at_);
      if (c == '\'') {
        quoted('\'');
        continue;
      }
      if (is_word(c)) {
        size_t begin = at_;
        // A digit separator (1'000) belongs to its number.
        bool number = c >= '0' && c <= '9';
        while (at_ < text_.size() && (is_word(text_[at_]) || (number && text_[at_] == '\''))) ++at_;
        std::string_view word = text_.substr(begin, at_ - begin);
        if (at_ < text_.size() && text_[at_] == '"' &&
            (word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R")) {
          return raw_string();
        }
        return make(Token::Kind::Word, begin, at_);
      }
      ++at_;
      return make(Token::Kind::Mark, at_ - 1, at_);
    }
  }

 private:
  Token make(Token::Kind kind, size_t begin, size_t end) const {
    return {kind, text_.substr(begin, end - begin), line_, open_conditions_ > 0};
  }

  bool starts(std::string_view prefix) const { return text_.substr(at_).starts_with(prefix); }

  bool splice() {
    size_t length = starts("\\\n") ? 2 : starts("\\\r\n") ? 3 : 0;
    at_ += length;
    line_ += length != 0;
    return length != 0;
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (splice()) continue;
      if (text_[at_] == '\n') {
        ++line_;
        line_start_ = true;
        ++at_;
      } else if (is_space(text_[at_])) {
        ++at_;
      } else if (!comment()) {
        return;
      }
    }
  }

  bool comment() {
    if (starts("//")) {
      while (at_ < text_.size() && text_[at_] != '\n') {
        if (!splice()) ++at_;
      }
      return true;
    }
    if (!starts("/*")) return false;
    size_t end = text_.find("*/", at_ + 2);
    size_t stop = end == std::string_view::npos ? text_.size() : end + 2;
    for (; at_ < stop; ++at_) line_ += text_[at_] == '\n';
    return true;
  }

  // From the opening quote to after the closing one, or to the end of the line (an unclosed literal
  // ends there).
  void quoted(char quote) {
    ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (splice()) continue;
      at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
    }
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
    if (at_ > text_.size()) at_ = text_.size();
  }

  Token string_literal(size_t begin) {
    Token token = make(Token::Kind::String, begin, begin);
    quoted('"');
    size_t end = at_ > begin + 1 ? at_ - 1 : begin + 1;
    token.text = text_.substr(begin + 1, end - begin - 1);
    return token;
  }

  Token raw_string() {
    Token token = make(Token::Kind::String, at_, at_);
    size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) {
      at_ = text_.size();
      return token;
    }
    std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    size_t end = text_.find(close, open);
    size_t stop = end == std::string_view::npos ? text_.size() : end + close.size();
    for (; at_ < stop; ++at_) line_ += text_[at_] == '\n';
    return token;
  }

  // A whole directive with its continuation lines; #if 0 swallows its block.
  void directive() {
    std::string body = directive_text();
    std::string_view rest = trim(std::string_view(body).substr(1));
    size_t length = 0;
    while (length < rest.size() && is_word(rest[length])) ++length;
    std::string_view word = rest.substr(0, length), argument = trim(rest.substr(length));
    if (word == "if" && argument == "0") {
      skip_disabled();
    } else if (word == "if" || word == "ifdef" || word == "ifndef") {
      ++open_conditions_;
    } else if (word == "endif") {
      open_conditions_ -= open_conditions_ > 0;
    }
  }

  std::string directive_text() {
    std::string body;
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (splice()) continue;
      if (starts("//") || starts("/*")) {
        comment();
        body += ' ';
        continue;
      }
      body += text_[at_++];
    }
    return body;
  }

  // Behind "#if 0": to its #endif, or to an #else or #elif, whose block then counts as conditional.
  void skip_disabled() {
    int depth = 0;
    while (at_ < text_.size()) {
      skip_blanks();
      if (at_ >= text_.size()) return;
      if (text_[at_] != '#' || !line_start_) {
        line_start_ = false;
        if (text_[at_] == '"' || text_[at_] == '\'') {
          quoted(text_[at_]);
        } else {
          ++at_;
        }
        continue;
      }
      std::string body = directive_text();
      std::string_view word = trim(std::string_view(body).substr(1));
      if (word.starts_with("if")) ++depth;
      if (word.starts_with("endif") && depth-- == 0) return;
      if (word.starts_with("el") && depth == 0) {
        ++open_conditions_;
        return;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;
  int open_conditions_ = 0;
};

void count(EntrySearch::Entry& entry, const Token& token) {
  if (entry.count++ == 0) entry.line = token.line;
  entry.certain = entry.certain || !token.conditional;
}

// Follows declarations at file scope: which of them define a function called run.
class EntryFinder {
 public:
  explicit EntryFinder(std::string_view source) : scanner_(source) {}

  EntrySearch search() {
    for (Token token = scanner_.next(); token.kind != Token::Kind::End; token = scanner_.next()) {
      step(token);
      before_ = token;
    }
    return found_;
  }

 private:
  enum class Scope { Linkage, Namespace, Other };

  bool at_file_scope() const {
    for (Scope scope : scopes_) {
      if (scope == Scope::Other) return false;
    }
    return true;
  }
  bool below_namespace() const {
    for (Scope scope : scopes_) {
      if (scope == Scope::Namespace) return true;
    }
    return false;
  }

  void step(const Token& token) {
    if (token.kind == Token::Kind::Word) return word(token);
    if (token.kind == Token::Kind::String) {
      linkage_string_ =
          before_.kind == Token::Kind::Word && before_.text == "extern" && token.text == "C";
      extern_c_ = extern_c_ || linkage_string_;
      return;
    }
    switch (token.text[0]) {
      case '(':
        if (parentheses_++ == 0 && before_.kind == Token::Kind::Word && before_.text == "run" &&
            at_file_scope() && (!below_namespace() || extern_c_)) {
          pending_ = before_;
          has_pending_ = true;
        }
        return;
      case ')':
        parentheses_ -= parentheses_ > 0;
        return;
      case '{':
        return open();
      case '}':
        if (!scopes_.empty()) scopes_.pop_back();
        return begin_declaration();
      case ';':
        if (parentheses_ == 0) begin_declaration();
        return;
      default:
        return;
    }
  }

  void word(const Token& token) {
    if (token.text == "namespace") namespace_ = true;
    if (token.text == "TVM_FFI_DLL_EXPORT_TYPED_FUNC" && at_file_scope())
      count(found_.tvm_ffi, token);
  }

  void open() {
    bool linkage = linkage_string_ && before_.kind == Token::Kind::String;
    if (has_pending_ && parentheses_ == 0) count(found_.plain, pending_);
    scopes_.push_back(linkage ? Scope::Linkage : namespace_ ? Scope::Namespace : Scope::Other);
    begin_declaration();
  }

  void begin_declaration() {
    parentheses_ = 0;
    namespace_ = extern_c_ = linkage_string_ = has_pending_ = false;
  }

  Scanner scanner_;
  EntrySearch found_;
  Token before_, pending_;
  std::vector<Scope> scopes_;
  int parentheses_ = 0;
  bool namespace_ = false, extern_c_ = false, linkage_string_ = false, has_pending_ = false;
};

// Length of the well-formed UTF-8 sequence at `at` (Unicode table 3-7), 0 when there is none.
size_t utf8_length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(at + 1) < low || byte(at + 1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

Result<void> check_source(std::string_view source, std::string_view name, uint64_t limit_bytes) {
  std::string start = std::string(name) + ": ";
  if (source.size() > limit_bytes) {
    return bad_input(start + "the source has " + std::to_string(source.size()) +
                     " bytes, more than the " + std::to_string(limit_bytes) + " allowed");
  }
  if (trim(source).empty()) return bad_input(start + "the source is empty");
  if (size_t nul = source.find('\0'); nul != std::string_view::npos) {
    return bad_input(start + "byte " + std::to_string(nul) + " is NUL: this is no source text");
  }
  for (size_t at = 0; at < source.size();) {
    size_t length = utf8_length(source, at);
    if (length == 0)
      return bad_input(start + "byte " + std::to_string(at) +
                       " is not UTF-8: this is no source text");
    at += length;
  }
  return {};
}

EntrySearch find_entries(std::string_view source) { return EntryFinder(source).search(); }

std::optional<Binding> detect_binding(std::string_view file_name, std::string_view source) {
  if (file_name.ends_with(".ptx")) return Binding::Ptx;
  EntrySearch found = find_entries(source);
  if (found.plain.certain && found.tvm_ffi.certain) return std::nullopt;
  if (found.plain.certain) return Binding::Plain;
  if (found.tvm_ffi.certain) return Binding::TvmFfi;
  return found.tvm_ffi.count > 0 && found.plain.count == 0 ? Binding::TvmFfi : Binding::Plain;
}

}  // namespace ptxb::build
