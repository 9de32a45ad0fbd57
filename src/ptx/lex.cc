// Owns the character rules of PTX; see lex.h.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/lex.h"

#include <array>
#include <bit>
#include <charconv>
#include <optional>

namespace ptxb::ptx {
namespace {

// Character classes, one byte a character: a table keeps the inner loops free of locale calls.
constexpr uint8_t kStart = 1, kPart = 2, kDigit = 4, kHex = 8, kBlank = 16;
constexpr std::array<uint8_t, 256> kClass = [] {
  std::array<uint8_t, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[size_t(c)] = kStart | kPart;
  for (int c = 'A'; c <= 'Z'; ++c) table[size_t(c)] = kStart | kPart;
  for (int c = '0'; c <= '9'; ++c) table[size_t(c)] = kPart | kDigit | kHex;
  for (const char c : {'a', 'b', 'c', 'd', 'e', 'f', 'A', 'B', 'C', 'D', 'E', 'F'}) {
    table[size_t(c)] = uint8_t(table[size_t(c)] | kHex);
  }
  table[size_t('_')] = kStart | kPart;
  table[size_t('$')] = kStart | kPart;
  table[size_t('%')] = kStart;
  for (const char c : {' ', '\t', '\r', '\n', '\f', '\v'}) table[size_t(c)] = kBlank;
  return table;
}();

bool has_class(char c, uint8_t wanted) { return (kClass[uint8_t(c)] & wanted) != 0; }

uint64_t digit_value(char c) {
  if (c >= '0' && c <= '9') return uint64_t(c - '0');
  return uint64_t((c | 0x20) - 'a') + 10;
}

// Two-character operators of constant expressions.
constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};

}  // namespace

bool is_name_start(char c) { return has_class(c, kStart); }
bool is_name_part(char c) { return has_class(c, kPart); }

Token Lexer::token(Token::Kind kind, size_t begin) const {
  Token out;
  out.kind = kind;
  out.text = text_.substr(begin, at_ - begin);
  out.line = token_line_;
  return out;
}

Token Lexer::broken(size_t begin, const char* problem) const {
  Token out = token(Token::Kind::Broken, begin);
  out.problem = problem;
  return out;
}

void Lexer::skip_blank() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (has_class(c, kBlank)) {
      ++at_;
    } else if (c == '/' && peek(1) == '/') {
      const size_t end = text_.find('\n', at_);
      at_ = end == std::string_view::npos ? text_.size() : end;
    } else if (c == '/' && peek(1) == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) {
        blank_problem_ = "unterminated comment";
        at_ = text_.size();
        return;
      }
      for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
    } else {
      return;
    }
  }
}

bool Lexer::at(char c) {
  const size_t at = at_;
  const int line = line_;
  skip_blank();
  const bool found = peek() == c && (c != ':' || peek(1) != ':');
  at_ = at;
  line_ = line;
  return found;
}

Token Lexer::next() {
  skip_blank();
  token_line_ = line_;
  const size_t begin = at_;
  if (at_ >= text_.size()) {
    if (blank_problem_) return broken(begin, blank_problem_);
    return token(Token::Kind::End, begin);
  }
  const char c = text_[at_];
  // '%' is also the remainder operator of constant expressions: a name needs a following name
  // character.
  if (has_class(c, kStart) && (c != '%' || has_class(peek(1), kPart))) {
    ++at_;
    while (has_class(peek(), kPart)) ++at_;
    return token(Token::Kind::Identifier, begin);
  }
  if (has_class(c, kDigit)) return number();
  if (c == '.') {
    if (has_class(peek(1), kDigit)) return decimal_float(begin);
    if (!has_class(peek(1), kStart) || peek(1) == '%') {
      ++at_;
      return broken(begin, "a dot that starts no directive");
    }
    ++at_;
    for (;;) {
      while (has_class(peek(), kPart)) ++at_;
      if (peek() != ':' || peek(1) != ':' || !has_class(peek(2), kPart)) break;
      at_ += 2;
    }
    Token out = token(Token::Kind::Directive, begin);
    out.text.remove_prefix(1);
    return out;
  }
  if (c == '"') return string();
  return punctuation();
}

Token Lexer::punctuation() {
  const size_t begin = at_;
  const std::string_view two = text_.substr(at_, 2);
  for (const std::string_view pair : kPairs) {
    if (two != pair) continue;
    at_ += 2;
    return token(Token::Kind::Punctuation, begin);
  }
  ++at_;
  constexpr std::string_view kSingles = "{}[]()<>,;:=+-*/%&|^~!?@";
  if (kSingles.find(text_[begin]) != std::string_view::npos) {
    return token(Token::Kind::Punctuation, begin);
  }
  return broken(begin, "a character PTX does not use");
}

Token Lexer::string() {
  const size_t begin = at_++;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] == '\n') return broken(begin, "a string that does not end on its line");
    at_ += text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n' ? 2u : 1u;
  }
  if (at_ >= text_.size()) return broken(begin, "a string that does not end");
  ++at_;
  Token out = token(Token::Kind::String, begin);
  out.text = out.text.substr(1, out.text.size() - 2);
  return out;
}

// PTX ISA 4.5.2: 0f and 0d take the exact bits, always 8 or 16 hexadecimal digits.
Token Lexer::float_bits(size_t begin, Token::Kind kind, size_t digits) {
  at_ = begin + 2;
  uint64_t bits = 0;
  size_t count = 0;
  for (; has_class(peek(), kHex); ++at_, ++count) bits = bits << 4 | digit_value(peek());
  while (has_class(peek(), kPart)) ++at_;
  if (count != digits || at_ != begin + 2 + digits) {
    return broken(begin, digits == 8 ? "0f needs exactly 8 hexadecimal digits"
                                     : "0d needs exactly 16 hexadecimal digits");
  }
  Token out = token(kind, begin);
  out.bits = bits;
  return out;
}

Token Lexer::decimal_float(size_t begin) {
  at_ = begin;
  while (has_class(peek(), kDigit)) ++at_;
  if (peek() == '.') ++at_;
  while (has_class(peek(), kDigit)) ++at_;
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    while (has_class(peek(), kDigit)) ++at_;
  }
  while (has_class(peek(), kPart)) ++at_;
  double value = 0;
  const char* last = text_.data() + at_;
  const auto parsed = std::from_chars(text_.data() + begin, last, value);
  if (parsed.ec == std::errc::result_out_of_range) return broken(begin, "a float out of range");
  if (parsed.ec != std::errc() || parsed.ptr != last) return broken(begin, "a malformed float");
  Token out = token(Token::Kind::Float64, begin);
  out.bits = std::bit_cast<uint64_t>(value);
  return out;
}

Token Lexer::number() {
  const size_t begin = at_;
  uint64_t base = 10;
  if (peek() == '0') {
    const char mark = char(peek(1) | 0x20);
    if (mark == 'x') base = 16;
    // 0b is binary, 0f and 0d are floats; a plain "0" or an octal number otherwise.
    else if (mark == 'b')
      base = 2;
    else if (mark == 'f')
      return float_bits(begin, Token::Kind::Float32, 8);
    else if (mark == 'd')
      return float_bits(begin, Token::Kind::Float64, 16);
    else
      base = 8;
  }
  if (base == 16 || base == 2) at_ += 2;
  const size_t first_digit = at_;
  uint64_t value = 0;
  bool overflow = false, wrong_digit = false;
  for (; has_class(peek(), base == 16 ? kHex : kDigit); ++at_) {
    const uint64_t digit = digit_value(peek());
    wrong_digit |= digit >= base;
    overflow |= value > (UINT64_MAX - digit) / base;
    value = value * base + digit;
  }
  if (base == 10 || base == 8) {
    const char c = peek();
    const bool fraction = c == '.';
    if (fraction || c == 'e' || c == 'E') return decimal_float(begin);
  }
  const bool no_digits = at_ == first_digit;
  const bool suffix = peek() == 'U';
  if (suffix) ++at_;
  const bool trailing = has_class(peek(), kPart);
  while (has_class(peek(), kPart)) ++at_;
  if (no_digits || wrong_digit || trailing) return broken(begin, "a malformed number");
  if (overflow) return broken(begin, "an integer that needs more than 64 bits");
  Token out = token(Token::Kind::Integer, begin);
  out.bits = value;
  out.is_unsigned = suffix || value > uint64_t(INT64_MAX);
  return out;
}

std::string_view Lexer::mnemonic(const Token& first, std::string& storage) {
  const size_t begin = size_t(first.text.data() - text_.data());
  const auto extend = [this] {
    for (;;) {
      while (has_class(peek(), kPart) || peek() == '.') ++at_;
      if (peek() != ':' || peek(1) != ':' || !has_class(peek(2), kPart)) return;
      at_ += 2;
    }
  };
  extend();
  std::string_view spelling = text_.substr(begin, at_ - begin);
  storage.clear();
  for (;;) {
    skip_blank();
    if (peek() != '.' || !has_class(peek(1), kPart)) break;
    if (storage.empty()) storage = spelling;
    const size_t more = at_;
    extend();
    storage += text_.substr(more, at_ - more);
  }
  return storage.empty() ? spelling : std::string_view(storage);
}

bool Lexer::skip_braces() {
  int depth = 1;
  while (at_ < text_.size()) {
    skip_blank();
    if (at_ >= text_.size()) break;
    const char c = text_[at_];
    if (c == '"') {
      if (string().kind == Token::Kind::Broken) return false;
      continue;
    }
    ++at_;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return true;
  }
  return false;
}

}  // namespace ptxb::ptx
