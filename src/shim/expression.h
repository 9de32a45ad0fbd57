// Owns the integer expressions of launch.toml: axes, + - * / %, min, max, ceil_div, round_up on 64-bit signed integers.
// Never evaluates tensors. Overflow and division by zero are errors, not wrap-around.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ptxb::shim {

inline constexpr size_t kExpressionBytes = 256;

// Error BadInput quoting the expression.
Result<int64_t> evaluate_expression(std::string_view text, const std::map<std::string, int64_t>& axes);

}  // namespace ptxb::shim
