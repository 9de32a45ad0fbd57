// SPDX-License-Identifier: Apache-2.0
#include "model/outcome.h"

namespace ptxb {

std::string_view name(RunStatus status) {
  constexpr const char* kNames[] = {"completed", "fault", "deadlock", "budget", "unsupported"};
  return kNames[static_cast<size_t>(status)];
}

std::string_view name(FindingKind kind) {
  constexpr const char* kNames[] = {"out_of_bounds", "misaligned",          "uninitialised_read", "race",
                                    "missing_fence", "deadlock",            "trap",               "assert_failed",
                                    "illegal_instruction", "barrier_misuse", "divergent_aligned", "async_hazard",
                                    "wild_pointer", "lint"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view name(FindingGrade grade) {
  constexpr const char* kNames[] = {"wrong", "repaired", "lint"};
  return kNames[static_cast<size_t>(grade)];
}

}  // namespace ptxb
