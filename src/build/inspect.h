// Owns looking into what a build made: kernels and symbols from the PTX, the entry and forbidden
// names from the host library's dynamic symbols. Decides from structure, never from compiler text.
// Private to build/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "build/compile.h"
#include "build/diagnostics.h"

namespace ptxb::build {

// Fills artifact.kernels (parameters, limits) and artifact.symbols from artifact.ptx, which ptxas
// accepted. Text that our parser does not know yet is read for its declarations only.
void inspect_ptx(Artifact& artifact);
// Adds what ptxas counted.
void add_kernel_use(const std::vector<KernelUse>& use, Artifact& artifact);

// The entry must be exported; libraries that would do the work must not be needed; the system's and
// the harness's own names must not be exported; nothing may stay undefined but the driver's
// functions. `tvm_exports`: what libtvm_ffi.so has.
std::optional<BuildFailure> inspect_library(std::string_view bytes, Binding binding,
                                            const std::vector<std::string>& tvm_exports);

// A kernel of this PTX that declares more static shared memory than a block of `arch` may have;
// nullopt: none.
struct SharedOveruse {
  std::string kernel;
  uint64_t used_bytes = 0, limit_bytes = 0;
};
std::optional<SharedOveruse> find_shared_overuse(std::string_view ptx, std::string_view arch);

// Where line `line` (1-based) of a PTX text made with -lineinfo comes from: its last .loc before,
// in the same function.
struct SourceLine {
  std::string file;  // without folder
  int line = 0;
};
std::optional<SourceLine> source_line(std::string_view ptx, int line);
// Moves ptxas messages that name a PTX line to the source line, which is what an author can mend;
// the PTX line goes into the message.
void locate_in_source(std::string_view ptx, std::vector<Diagnostic>& diagnostics);

}  // namespace ptxb::build
