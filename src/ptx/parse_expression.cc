// Owns constant expressions (PTX ISA 4.6): 64-bit integer arithmetic with C precedence, and float
// literals with a sign. Never divides by zero and never overflows in the C++ sense: signed results
// wrap.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ptx/parser.h"

namespace ptxb::ptx {
namespace {

constexpr int kLoosest = 1;

// Binding strength of a binary operator, 0: not one.
int binding_of(const Token& token) {
  if (token.kind != Token::Kind::Punctuation) return 0;
  const std::string_view text = token.text;
  if (text == "||") return 1;
  if (text == "&&") return 2;
  if (text == "|") return 3;
  if (text == "^") return 4;
  if (text == "&") return 5;
  if (text == "==" || text == "!=") return 6;
  if (text == "<" || text == "<=" || text == ">" || text == ">=") return 7;
  if (text == "<<" || text == ">>") return 8;
  if (text == "+" || text == "-") return 9;
  if (text == "*" || text == "/" || text == "%") return 10;
  return 0;
}

uint64_t shifted(uint64_t bits, uint64_t by, bool left, bool arithmetic) {
  if (by > 63) return arithmetic && !left && int64_t(bits) < 0 ? ~uint64_t{0} : 0;
  if (left) return bits << by;
  return arithmetic ? uint64_t(int64_t(bits) >> by) : bits >> by;
}

}  // namespace

bool Parser::constant(Constant& out) { return constant_from(kLoosest, out); }

bool Parser::constant_from(int least_binding, Constant& out) {
  if (++expression_depth_ > int(limits_.nesting)) {
    return fail(ErrorCode::Limit, token_.line, "a constant expression nested too deeply");
  }
  if (!constant_primary(out)) return false;
  for (;;) {
    const int binding = binding_of(token_);
    if (binding == 0 || binding < least_binding) break;
    const std::string_view operation = token_.text;
    const int line = token_.line;
    advance();
    Constant right;
    if (!constant_from(binding + 1, right)) return false;
    if (!combine(operation, right, line, out)) return false;
  }
  if (least_binding == kLoosest && token_.is('?')) {
    advance();
    Constant yes, no;
    if (!constant(yes) || !expect(':') || !constant(no)) return false;
    if (!out.is_integer()) return bad("a condition that is not an integer");
    out = out.bits != 0 ? yes : no;
  }
  --expression_depth_;
  return true;
}

bool Parser::constant_primary(Constant& out) {
  // Signs are gathered in a loop: a long run of them must not recurse.
  std::vector<char> prefixes;
  while (token_.is('-') || token_.is('+') || token_.is('~') || token_.is('!')) {
    prefixes.push_back(token_.text[0]);
    advance();
  }
  if (token_.is('(')) {
    advance();
    if (token_.is_directive("s64") || token_.is_directive("u64")) {
      const bool is_unsigned = token_.text == "u64";
      advance();
      if (!expect(')') || !constant_from(11, out)) return false;
      if (!out.is_integer()) return bad("a cast of something that is not an integer");
      out.kind = is_unsigned ? Constant::Kind::Unsigned : Constant::Kind::Signed;
    } else {
      if (!constant(out) || !expect(')')) return false;
    }
  } else if (token_.kind == Token::Kind::Integer) {
    out = {token_.is_unsigned ? Constant::Kind::Unsigned : Constant::Kind::Signed, token_.bits};
    advance();
  } else if (token_.kind == Token::Kind::Float32) {
    out = {Constant::Kind::F32, token_.bits};
    advance();
  } else if (token_.kind == Token::Kind::Float64) {
    out = {Constant::Kind::F64, token_.bits};
    advance();
  } else if (token_.is_word("WARP_SZ")) {
    out = {Constant::Kind::Signed, 32};
    advance();
  } else {
    return unexpected("a constant");
  }
  for (; !prefixes.empty(); prefixes.pop_back()) {
    const char prefix = prefixes.back();
    if (prefix == '+') continue;
    if (out.kind == Constant::Kind::F32 && prefix == '-') {
      out.bits ^= uint64_t{1} << 31;
    } else if (out.kind == Constant::Kind::F64 && prefix == '-') {
      out.bits ^= uint64_t{1} << 63;
    } else if (!out.is_integer()) {
      return bad("'" + std::string(1, prefix) + "' before a float");
    } else if (prefix == '-') {
      out.bits = 0 - out.bits;
    } else if (prefix == '~') {
      out.bits = ~out.bits;
    } else {
      out = {Constant::Kind::Signed, out.bits == 0 ? 1u : 0u};
    }
  }
  return true;
}

bool Parser::combine(std::string_view operation, const Constant& right, int line, Constant& left) {
  if (!left.is_integer() || !right.is_integer()) {
    return fail(ErrorCode::Unsupported, line, "arithmetic on float constants");
  }
  const bool is_unsigned =
      left.kind == Constant::Kind::Unsigned || right.kind == Constant::Kind::Unsigned;
  const uint64_t a = left.bits, b = right.bits;
  const bool less = is_unsigned ? a < b : int64_t(a) < int64_t(b);
  const auto truth = [&left](bool value) {
    left = {Constant::Kind::Signed, value ? 1u : 0u};
    return true;
  };
  if (operation == "||") return truth(a != 0 || b != 0);
  if (operation == "&&") return truth(a != 0 && b != 0);
  if (operation == "==") return truth(a == b);
  if (operation == "!=") return truth(a != b);
  if (operation == "<") return truth(less);
  if (operation == ">=") return truth(!less);
  if (operation == "<=") return truth(less || a == b);
  if (operation == ">") return truth(!less && a != b);
  if (operation == "<<" || operation == ">>") {
    left.bits = shifted(a, b, operation == "<<", left.kind == Constant::Kind::Signed);
    return true;
  }
  left.kind = is_unsigned ? Constant::Kind::Unsigned : Constant::Kind::Signed;
  if (operation == "|") left.bits = a | b;
  if (operation == "^") left.bits = a ^ b;
  if (operation == "&") left.bits = a & b;
  if (operation == "+") left.bits = a + b;
  if (operation == "-") left.bits = a - b;
  if (operation == "*") left.bits = a * b;
  if (operation == "/" || operation == "%") {
    if (b == 0) return fail(ErrorCode::BadInput, line, "a division by zero in a constant");
    const bool quotient = operation == "/";
    if (is_unsigned) {
      left.bits = quotient ? a / b : a % b;
    } else if (b == ~uint64_t{0}) {  // the quotient of the smallest integer by -1 would overflow
      left.bits = quotient ? 0 - a : 0;
    } else {
      left.bits = uint64_t(quotient ? int64_t(a) / int64_t(b) : int64_t(a) % int64_t(b));
    }
  }
  return true;
}

bool Parser::constant_integer(uint64_t& out, std::string_view what) {
  Constant value;
  if (!constant(value)) return false;
  if (!value.is_integer()) return bad(std::string(what) + " must be an integer");
  out = value.bits;
  return true;
}

}  // namespace ptxb::ptx
