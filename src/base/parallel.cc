// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace ptxb {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

void parallel_for(size_t count, int threads, const std::function<void(size_t, int)>& body) {
  size_t workers = std::min<size_t>(count, threads > 1 ? static_cast<size_t>(threads) : 1);
  if (workers <= 1) {
    for (size_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  std::atomic<size_t> next{0};
  auto work = [&](int thread) {
    for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i, thread);
  };
  std::vector<std::thread> pool;
  for (size_t t = 1; t < workers; ++t) pool.emplace_back(work, static_cast<int>(t));
  work(0);
  for (std::thread& thread : pool) thread.join();
}

}  // namespace ptxb
