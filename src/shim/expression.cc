// SPDX-License-Identifier: Apache-2.0
#include "shim/expression.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"

namespace ptxb::shim {

namespace {

// Recursive descent over at most kExpressionBytes characters, so depth is bounded too.
class Expression {
 public:
  Expression(std::string_view text, const std::map<std::string, int64_t>& axes) : text_(text), axes_(axes) {}

  Result<int64_t> whole() {
    int64_t value = sum();
    blanks();
    if (fault_.empty() && at_ != text_.size()) fault_ = "text after its end";
    if (!fault_.empty()) return bad_input("\"" + printable(text_, 100) + "\": " + fault_);
    return value;
  }

 private:
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool eat(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  int64_t fail(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
    return 0;
  }
  // By reference: the value is only there once the overflow builtin, the other argument, has run.
  int64_t checked(bool overflowed, const int64_t& value) { return overflowed ? fail("overflow") : value; }

  int64_t sum() {
    int64_t left = product();
    while (fault_.empty()) {
      int64_t out = 0;
      if (eat('+')) {
        int64_t right = product();
        left = checked(__builtin_add_overflow(left, right, &out), out);
      } else if (eat('-')) {
        int64_t right = product();
        left = checked(__builtin_sub_overflow(left, right, &out), out);
      } else {
        return left;
      }
    }
    return 0;
  }

  int64_t product() {
    int64_t left = factor();
    while (fault_.empty()) {
      int64_t out = 0;
      if (eat('*')) {
        int64_t right = factor();
        left = checked(__builtin_mul_overflow(left, right, &out), out);
      } else if (eat('/')) {
        left = quotient(left, factor());
      } else if (eat('%')) {
        int64_t right = factor();
        if (right == 0) return fail("division by zero");
        left = right == -1 ? 0 : left % right;
      } else {
        return left;
      }
    }
    return 0;
  }

  int64_t quotient(int64_t left, int64_t right) {
    if (right == 0) return fail("division by zero");
    if (left == std::numeric_limits<int64_t>::min() && right == -1) return fail("overflow");
    return left / right;
  }

  int64_t factor() {
    if (eat('-')) {
      int64_t value = factor(), out = 0;
      return checked(__builtin_sub_overflow(int64_t{0}, value, &out), out);
    }
    if (eat('(')) {
      int64_t value = sum();
      return eat(')') ? value : fail("a closing parenthesis is missing");
    }
    blanks();
    size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    if (word.empty()) return fail("a number or a name is missing");
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      auto number = parse_uint(word);
      if (!number || *number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return fail("no number: " + word);
      return static_cast<int64_t>(*number);
    }
    if (eat('(')) return call(word);
    auto axis = axes_.find(word);
    return axis == axes_.end() ? fail("no axis named " + word) : axis->second;
  }

  int64_t call(const std::string& name) {
    int64_t a = sum();
    if (!eat(',')) return fail(name + " takes two values");
    int64_t b = sum();
    if (!eat(')')) return fail("a closing parenthesis is missing");
    if (name == "min") return std::min(a, b);
    if (name == "max") return std::max(a, b);
    if (name != "ceil_div" && name != "round_up") return fail("no function named " + name);
    if (a < 0 || b <= 0) return fail(name + " needs a first value of at least 0 and a second of at least 1");
    int64_t up = a / b + (a % b != 0), out = 0;
    return name == "ceil_div" ? up : checked(__builtin_mul_overflow(up, b, &out), out);
  }

  std::string_view text_;
  const std::map<std::string, int64_t>& axes_;
  size_t at_ = 0;
  std::string fault_;
};

}  // namespace

Result<int64_t> evaluate_expression(std::string_view text, const std::map<std::string, int64_t>& axes) {
  if (text.size() > kExpressionBytes) return bad_input("an expression of more than 256 characters");
  return Expression(text, axes).whole();
}

}  // namespace ptxb::shim
