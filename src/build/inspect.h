// Owns looking into what a build made: kernels and symbols from the PTX, the entry and forbidden names from the host library's
// dynamic symbols. Decides from structure, never from compiler text. Private to build/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "build/compile.h"

namespace ptxb::build {

// Fills artifact.kernels (parameters, limits) and artifact.symbols from artifact.ptx.
std::optional<BuildFailure> inspect_ptx(Artifact& artifact);

// The entry must be exported; libraries that would do the work must not be imported; the harness's own names must not be exported.
std::optional<BuildFailure> inspect_library(std::string_view bytes, Binding binding);

// The first kernel of this PTX text that declares more static shared memory than a block may have; "" for none.
std::string kernel_over_shared_limit(std::string_view ptx, std::string_view arch);

}  // namespace ptxb::build
