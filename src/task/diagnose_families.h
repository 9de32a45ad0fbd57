// Owns what the diagnoses of the families share: sampled elements, agreement with a hypothesis,
// moved elements. Private to the task room.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "task/diagnose.h"

namespace ptxb {

// Each gives "as if ..." (a clause that follows "... wrong") or "".
std::string explain_gemm(const Evidence& evidence);
std::string explain_attention(const Evidence& evidence);

// Up to `count` indices of bad elements with a finite value, spread over the output.
std::vector<int64_t> sample_bad(const Evidence& evidence, int64_t count);
// The candidate's element agrees with a hypothetical exact value: within the error model around it,
// `size` times as large as around the right value (for hypotheses that enlarge a whole row).
bool agrees(const Evidence& evidence, int64_t index, double hypothesis, double size = 1);
// At least nine in ten of the samples agree. No samples: false.
bool explains(const Evidence& evidence, const std::vector<int64_t>& samples,
              const std::function<double(int64_t index)>& hypothesis);
// The right values at other places: shifted or swapped rows, columns and tiles, or a transposed
// layout.
std::string explain_moved(const Evidence& evidence, const std::vector<int64_t>& samples,
                          const Layout& layout);
// A constant times the right values, or the right values plus those of another place (accumulators
// not cleared).
std::string explain_scale(const Evidence& evidence, const std::vector<int64_t>& samples,
                          const Layout& layout);

}  // namespace ptxb
