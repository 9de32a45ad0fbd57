// Owns the one way work is spread over threads: a blocking parallel loop. No thread outlives the call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace ptxb {

// Cores this process may use (its affinity mask), at least 1.
int available_cores();
// Calls body(index, thread) for each index in [0, count), index order per thread rising, `threads` threads at most.
// body must not throw. threads <= 1 runs inline.
void parallel_for(size_t count, int threads, const std::function<void(size_t index, int thread)>& body);

}  // namespace ptxb
