// Owns the table of native references: one function for each family. Private to the task room.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "task/reference.h"

namespace ptxb {

// REQUIRES: axes and input sizes already checked.
Reference gemm_reference(const Task& task, const Buffers& inputs, InputSpec spec, int threads);
Reference attention_reference(const Task& task, const Buffers& inputs, InputSpec spec, int threads);

inline bool exact_inputs(InputSpec spec) {
  return spec.distribution == Distribution::Exact || spec.distribution == Distribution::Coded;
}

}  // namespace ptxb
