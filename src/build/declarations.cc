// SPDX-License-Identifier: Apache-2.0
#include "build/declarations.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"

namespace ptxb::build {

namespace {

constexpr size_t kMaxDeclarations = 100'000;

// Words (with a leading '.' or '%'), numbers and single marks; comments are skipped, strings are
// one token (PTX ISA 4.1).
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }
  std::string_view now() const { return now_; }
  bool done() const { return now_.empty(); }
  bool take(std::string_view token) {
    if (now_ != token) return false;
    advance();
    return true;
  }
  std::string_view take() {
    std::string_view token = now_;
    advance();
    return token;
  }

 private:
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      std::string_view rest = text_.substr(at_);
      if (std::isspace(static_cast<unsigned char>(rest[0]))) {
        ++at_;
      } else if (rest.starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (rest.starts_with("/*")) {
        size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  void advance() {
    skip_blanks();
    size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '"') {
      at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
    } else if (at_ < text_.size()) {
      ++at_;
      bool word = is_word(text_[begin]) || text_[begin] == '.';
      while (word && at_ < text_.size() && is_word(text_[at_])) ++at_;
    }
    now_ = text_.substr(begin, at_ - begin);
  }

  std::string_view text_, now_;
  size_t at_ = 0;
};

uint64_t number(std::string_view token) {
  while (!token.empty() && (token.back() == 'U' || token.back() == 'u')) token.remove_suffix(1);
  return parse_uint(token).value_or(0);
}

// Bytes of ".u64", ".b8", ".f16x2"; 0: not a fundamental type (PTX ISA 5.2).
uint64_t type_bytes(std::string_view token) {
  if (token.size() < 3 || token[0] != '.' ||
      std::string_view("bsuf").find(token[1]) == std::string_view::npos)
    return 0;
  if (token == ".f16x2") return 4;
  uint64_t bits = parse_uint(token.substr(2)).value_or(0);
  return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

struct Variable {
  std::string name;
  uint64_t alignment = 1, size_bytes = 0;
};

// After ".param", ".global" or ".const", up to the ',', ')', ';' or '=' that ends it.
std::optional<Variable> read_variable(Tokens& tokens) {
  Variable variable;
  uint64_t element = 0, count = 1, alignment = 0;
  while (!tokens.done()) {
    std::string_view now = tokens.now();
    if (now == "," || now == ")" || now == ";" || now == "=") break;
    tokens.take();
    if (now == ".align") {
      alignment = number(tokens.take());
    } else if (now == ".v2" || now == ".v4") {
      count *= now == ".v2" ? 2 : 4;
    } else if (type_bytes(now)) {
      element = type_bytes(now);
    } else if (now == "[") {
      count *= number(tokens.now() == "]" ? "0" : tokens.take());
    } else if (now[0] != '.' && now != "]" && !std::isdigit(static_cast<unsigned char>(now[0]))) {
      variable.name = printable(now, 4000);
    }
  }
  if (variable.name.empty() || element == 0) return std::nullopt;
  // A parameter written ".u64 .ptr .align 16" aligns what it points to, not itself: only arrays are
  // aligned by hand.
  variable.alignment = count > 1 || element == 1 ? std::max(alignment, element) : element;
  variable.size_bytes = element * count;
  return variable;
}

Dim3 read_extent(Tokens& tokens) {
  uint32_t sides[3] = {1, 1, 1};
  for (int i = 0; i < 3; ++i) {
    sides[i] = static_cast<uint32_t>(number(tokens.take()));
    if (!tokens.take(",")) break;
  }
  return {sides[0], sides[1], sides[2]};
}

// After ".entry".
KernelInfo read_entry(Tokens& tokens) {
  KernelInfo kernel;
  kernel.name = printable(tokens.take(), 4000);
  uint64_t offset = 0;
  if (tokens.take("(")) {
    while (!tokens.done() && !tokens.take(")")) {
      if (tokens.take(",") || !tokens.take(".param")) {
        if (tokens.now() != ")" && tokens.now() != ".param") tokens.take();
        continue;
      }
      auto param = read_variable(tokens);
      if (!param) continue;
      offset = (offset + param->alignment - 1) / param->alignment * param->alignment;
      kernel.params.push_back(
          {static_cast<uint32_t>(offset), static_cast<uint32_t>(param->size_bytes)});
      offset += param->size_bytes;
    }
  }
  while (!tokens.done() && tokens.now() != "{" && tokens.now() != ";") {
    std::string_view directive = tokens.take();
    if (directive == ".maxntid" || directive == ".reqntid") {
      uint64_t threads = read_extent(tokens).volume();
      if (threads) kernel.max_threads = static_cast<uint32_t>(std::min<uint64_t>(threads, 1024));
    } else if (directive == ".reqnctapercluster") {
      kernel.required_cluster = read_extent(tokens);
    }
  }
  return kernel;
}

}  // namespace

Declarations read_declarations(std::string_view ptx) {
  Declarations found;
  Tokens tokens(ptx);
  int depth = 0;
  while (!tokens.done() && found.kernels.size() + found.symbols.size() < kMaxDeclarations) {
    std::string_view now = tokens.take();
    if (now == "{") ++depth;
    if (now == "}") --depth;
    if (depth != 0) continue;
    if (now == ".entry") {
      found.kernels.push_back(read_entry(tokens));
    } else if (now == ".global" || now == ".const") {
      bool constant = now == ".const";
      if (auto variable = read_variable(tokens))
        found.symbols.push_back({variable->name, variable->size_bytes, constant});
      // An initialiser has braces of its own, with numbers and names only.
      while (!tokens.done() && tokens.now() != ";") tokens.take();
    }
  }
  return found;
}

}  // namespace ptxb::build
