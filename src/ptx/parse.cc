// Owns the module level: version, target, files, debug sections, and the order of things; see
// parser.h for the other parts.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse.h"

#include "base/text.h"
#include "ptx/parser.h"

namespace ptxb::ptx {

Parser::Parser(std::string_view text, std::string_view name, const ParseLimits& limits)
    : name_(name), limits_(limits), text_bytes_(text.size()), lexer_(text) {}

bool Parser::fail(ErrorCode code, int line, std::string what) {
  if (!error_) {
    error_ = Error{code, std::string(name_) + ":" + std::to_string(line) + ": " + std::move(what)};
  }
  return false;
}

// Outside text in a message: bounded and without control bytes.
std::string Parser::shown(std::string_view text) const {
  constexpr size_t kShownBytes = 80;
  return "'" + printable(text, kShownBytes) + "'";
}

bool Parser::unexpected(std::string_view wanted) {
  if (token_.kind == Token::Kind::Broken) {
    return bad(std::string(token_.problem) + ": " + shown(token_.text));
  }
  const std::string found = token_.kind == Token::Kind::End ? "the end of the text"
                            : token_.kind == Token::Kind::Directive
                                ? shown("." + std::string(token_.text))
                                : shown(token_.text);
  return bad("expected " + std::string(wanted) + ", found " + found);
}

bool Parser::expect(char c) {
  if (!token_.is(c)) return unexpected("'" + std::string(1, c) + "'");
  advance();
  return true;
}

bool Parser::take(char c) {
  if (!token_.is(c)) return false;
  advance();
  return true;
}

bool Parser::take_directive(std::string_view word) {
  if (!token_.is_directive(word)) return false;
  advance();
  return true;
}

bool Parser::identifier(std::string_view& out, std::string_view what) {
  if (token_.kind != Token::Kind::Identifier) return unexpected(what);
  out = token_.text;
  advance();
  return true;
}

bool Parser::integer(uint64_t& out, std::string_view what) {
  if (token_.kind != Token::Kind::Integer) return unexpected(what);
  out = token_.bits;
  advance();
  return true;
}

bool Parser::integer_32(uint32_t& out, std::string_view what) {
  uint64_t value = 0;
  const int line = token_.line;
  if (!integer(value, what)) return false;
  if (value > UINT32_MAX) return fail(ErrorCode::BadInput, line, std::string(what) + " too large");
  out = uint32_t(value);
  return true;
}

Result<Module> Parser::module() {
  if (text_bytes_ > limits_.text_bytes) {
    return limit_error(std::string(name_) + ": PTX text of " + std::to_string(text_bytes_) +
                       " bytes, the limit is " + std::to_string(limits_.text_bytes));
  }
  advance();
  bool good = preamble();
  while (good && token_.kind != Token::Kind::End) good = module_statement();
  if (!good) return *error_;
  return std::move(module_);
}

// PTX ISA 11.1: .version first, then .target; .address_size is optional and only 64 is left on
// these targets.
bool Parser::preamble() { return version() && target(); }

bool Parser::version() {
  if (!take_directive("version")) return unexpected(".version");
  // "9.0" reads as a float: its spelling is what counts.
  const std::string_view text = token_.text;
  const size_t dot = text.find('.');
  const bool is_number = token_.kind == Token::Kind::Float64 && dot != std::string_view::npos;
  const auto major = is_number ? parse_uint(text.substr(0, dot)) : std::nullopt;
  const auto minor = is_number ? parse_uint(text.substr(dot + 1)) : std::nullopt;
  if (!major || !minor || *major > 99 || *minor > 99) return unexpected("a version like 9.0");
  module_.version_major = int(*major);
  module_.version_minor = int(*minor);
  advance();
  return true;
}

bool Parser::target() {
  if (!take_directive("target")) return unexpected(".target");
  std::string_view target;
  if (!identifier(target, "a target like sm_90a")) return false;
  if (!target.starts_with("sm_")) {
    return fail(ErrorCode::Unsupported, token_.line, "target " + shown(target));
  }
  module_.target = target;
  while (take(',')) {  // debug and other options change nothing for us, texture modes would
    std::string_view option;
    if (!identifier(option, "a target option")) return false;
    if (option != "debug" && option != "map_f64_to_f32" && !option.starts_with("texmode_")) {
      return fail(ErrorCode::Unsupported, token_.line, "target option " + shown(option));
    }
  }
  return true;
}

bool Parser::module_statement() {
  if (token_.kind != Token::Kind::Directive) return unexpected("a directive");
  if (take_directive("address_size")) {
    const int line = token_.line;
    uint64_t size = 0;
    if (!integer(size, "an address size")) return false;
    if (size != 64) return fail(ErrorCode::Unsupported, line, "address size other than 64");
    return true;
  }
  if (token_.is_directive("file")) return file_directive();
  if (token_.is_directive("section")) return section_directive();
  if (token_.is_directive("pragma")) return pragma_directive();
  if (token_.is_directive("alias")) return alias_directive();
  if (token_.is_directive("loc")) return location_directive();

  Linkage linkage;
  for (;;) {
    if (token_.is_directive("extern")) {
      linkage.is_extern = true;
    } else if (!token_.is_directive("visible") && !token_.is_directive("weak") &&
               !token_.is_directive("common")) {
      break;
    }
    advance();
  }
  if (token_.is_directive("func") || token_.is_directive("entry")) {
    const std::string_view kind = token_.text;
    advance();
    return function_directive(kind);
  }
  return variable_directive(Where::Module, linkage);
}

// .file INDEX "path" [, timestamp, size] (PTX ISA 11.5.3)
bool Parser::file_directive() {
  advance();
  uint32_t index = 0;
  if (!integer_32(index, "a file index")) return false;
  if (token_.kind != Token::Kind::String) return unexpected("a file name");
  module_.files.emplace_back(index, std::string(token_.text));
  advance();
  while (take(',')) {
    uint64_t ignored = 0;
    if (!integer(ignored, "a number")) return false;
  }
  return true;
}

// Debug information; nothing a kernel computes depends on it (PTX ISA 11.5.2).
bool Parser::section_directive() {
  const int line = token_.line;
  advance();
  if (token_.kind != Token::Kind::Directive && token_.kind != Token::Kind::Identifier) {
    return unexpected("a section name");
  }
  if (!lexer_.at('{')) {
    advance();
    return unexpected("'{'");
  }
  advance();
  if (!lexer_.skip_braces()) return fail(ErrorCode::BadInput, line, "a section that does not end");
  advance();
  return true;
}

// .pragma "string", ...; unknown strings are ignored by definition (PTX ISA 11.4.7).
bool Parser::pragma_directive() {
  advance();
  do {
    if (token_.kind != Token::Kind::String) return unexpected("a pragma string");
    advance();
  } while (take(','));
  return expect(';');
}

bool Parser::alias_directive() {
  advance();
  std::string_view alias, aliasee;
  const int line = token_.line;
  if (!identifier(alias, "a function name") || !expect(',')) return false;
  if (!identifier(aliasee, "a function name") || !expect(';')) return false;
  const auto meaning = names_.find(aliasee);
  if (!meaning || meaning->kind != Meaning::Kind::Function) {
    return fail(ErrorCode::BadInput, line, "alias of undeclared function " + shown(aliasee));
  }
  const auto own = names_.find(alias);
  if (!own || own->kind != Meaning::Kind::Function) {
    return fail(ErrorCode::BadInput, line, "undeclared alias " + shown(alias));
  }
  module_.aliases.emplace_back(std::string(alias), std::string(aliasee));
  return true;
}

Result<Module> parse(std::string_view text, std::string_view name, const ParseLimits& limits) {
  return Parser(text, name, limits).module();
}

}  // namespace ptxb::ptx
