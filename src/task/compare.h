// Owns the comparison of outputs with a reference: rule A (the published rule) and rule B (the
// error model), both must hold. Written so that NaN loses. Never runs anything.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/evaluation.h"
#include "model/task.h"
#include "task/inputs.h"
#include "task/reference.h"

namespace ptxb {

// One Comparison per output, in definition order, each with passed and, where it failed, a
// diagnosis. An output of the wrong size in bytes fails as a whole. `inputs` and `spec` serve the
// diagnosis: sampled elements are recomputed under the hypotheses of task/diagnose.h.
std::vector<Comparison> compare(const Task& task, const Buffers& inputs, const Reference& reference,
                                const Buffers& outputs, InputSpec spec);

// Unwritten, NonFinite, WrongShapeOrType or WrongValues for the first failed comparison, Passed
// when all passed.
Verdict verdict_of(const std::vector<Comparison>& comparisons);

}  // namespace ptxb
