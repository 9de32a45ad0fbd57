// SPDX-License-Identifier: Apache-2.0
#include "task/work.h"

#include <algorithm>

namespace ptxb {

Work work_of(const Task& task) {
  auto axis = [&](const char* name) {
    auto found = task.axes.find(name);
    return found == task.axes.end() ? 0.0 : static_cast<double>(found->second);
  };
  Work work;
  const std::string& reference = task.definition.reference;
  if (reference == "native:gemm_nt") {
    work.matrix_flops = 2 * axis("M") * axis("N") * axis("K");
  } else if (reference == "native:mha_with_lse") {
    work.matrix_flops = 4 * axis("B") * axis("H") * axis("S") * axis("S") * axis("D");
  } else if (reference == "native:mha_with_lse_causal") {
    work.matrix_flops = 2 * axis("B") * axis("H") * axis("S") * axis("S") * axis("D");
  }
  for (const auto* list : {&task.definition.inputs, &task.definition.outputs}) {
    for (const TensorSpec& tensor : *list) {
      if (!tensor.scalar) work.bytes += static_cast<double>(task.size_bytes(tensor));
    }
  }
  return work;
}

}  // namespace ptxb
