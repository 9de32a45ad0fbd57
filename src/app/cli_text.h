// Owns nothing itself: declares docs/cli.md as text; the definition is generated at build time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ptxb::app {

extern const std::string_view kCliText;

}  // namespace ptxb::app
