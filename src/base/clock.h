// Owns the monotonic clock; tests inject their own times where a policy depends on time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace ptxb {

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace ptxb
