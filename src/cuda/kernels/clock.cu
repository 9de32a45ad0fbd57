// Owns the clock stamps: launched as one block a multiprocessor, before and after a timed interval;
// the two stamps of one multiprocessor give its mean clock in between. Also waits, so that the host
// can queue the timed work behind it.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/calls.h"

namespace ptxb::cuda {

__device__ inline unsigned long long global_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

extern "C" __global__ void ptxb_stamp(ClockStamp* slots, unsigned long long hold_ns) {
  if (threadIdx.x != 0) return;
  unsigned smid;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
  const unsigned long long begin = global_ns();
  // %globaltimer ticks coarsely (32 ns to 1 us): read the cycle counter right after a tick.
  // Bounded: a stopped timer must not hang us.
  const long long first_cycle = clock64();
  while (global_ns() - begin < hold_ns && clock64() - first_cycle < 40'000'000) {
  }
  const unsigned long long before = global_ns();
  unsigned long long now = before;
  for (int i = 0; i < 4096 && now == before; ++i) now = global_ns();
  if (smid < kStampSlots) slots[smid] = {static_cast<unsigned long long>(clock64()), now};
}

}  // namespace ptxb::cuda
