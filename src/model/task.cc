// SPDX-License-Identifier: Apache-2.0
#include "model/task.h"

#include "base/result.h"

namespace ptxb {

std::vector<int64_t> Task::shape(const TensorSpec& tensor) const {
  std::vector<int64_t> extents;
  for (const std::string& axis : tensor.shape) {
    auto found = axes.find(axis);
    PTXB_CHECK(found != axes.end());
    extents.push_back(found->second);
  }
  return extents;
}

int64_t Task::elements(const TensorSpec& tensor) const {
  int64_t count = 1;
  for (int64_t extent : shape(tensor)) count *= extent;
  return count;
}

int64_t Task::size_bytes(const TensorSpec& tensor) const {
  return elements(tensor) * ptxb::size_bytes(tensor.dtype);
}

}  // namespace ptxb
