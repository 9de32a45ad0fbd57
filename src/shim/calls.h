// Owns the comparison of two recorded calls: the same work, where every difference is explained by
// the arguments. Pure. A pointer is explained when both calls point to the same place of their own
// tensors or their own scratch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "shim/order.h"
#include "shim/places.h"

namespace ptxb::shim {

// One of the recorded calls with what it allocated, in order.
struct CallView {
  int call = 0;  // 1..3
  const OrderedCall* work = nullptr;
  std::vector<uint32_t> allocations;
};

std::vector<uint32_t> allocations_of(const std::vector<Step>& steps);

// nullopt: the calls are the same. Else the first difference in words.
std::optional<std::string> difference(const Request& request, const Recording& recording,
                                      const Places& places, const CallView& first,
                                      const CallView& second);

// "operation 3 (launch gemm)".
std::string work_name(const OrderedCall& call, size_t index);
const char* stream_text(StreamKind kind);

}  // namespace ptxb::shim
