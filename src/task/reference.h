// Owns the CPU references: the task's formula in fp64 on the given low-precision inputs, with the
// error model of rule B. Never looks at a candidate's output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "task/inputs.h"

namespace ptxb {

// One output tensor. value: the exact result rounded to float (2^-24 relative, 2^-16 of a bf16
// step). bound: the largest error that a correct kernel may show against value (rule B,
// docs/checking.md), its output rounding included.
struct ReferenceOutput {
  std::vector<float> value;
  std::vector<float> bound;
};

struct Reference {
  std::vector<ReferenceOutput> outputs;  // in definition order
};

// Names that `reference` of a definition may have: "native:gemm_nt", "native:mha_with_lse",
// "native:mha_with_lse_causal".
std::vector<std::string> native_references();

// BadInput: `reference` names a native one that does not exist or that was written for other axes
// and tensors. Source text (Python) is accepted here and refused by compute_reference.
Result<void> check_reference(const Definition& definition);

// inputs must come from make_inputs or have the same sizes. Unsupported: a reference that is no
// native one. Harness: the reference is not finite (never a pass).
Result<Reference> compute_reference(const Task& task, const Buffers& inputs, InputSpec spec,
                                    int threads);

}  // namespace ptxb
