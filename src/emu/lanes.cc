// Owns the choice between the AVX2 and the portable handlers. Never executes one.
// SPDX-License-Identifier: Apache-2.0
#include "emu/lanes.h"

#include <atomic>

namespace ptxb::emu {
namespace {

bool cpu_is_wide() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
#else
  return false;
#endif
}

std::atomic<bool>& wide_state() {
  static std::atomic<bool> wide{cpu_is_wide()};
  return wide;
}

}  // namespace

bool wide_lanes() { return wide_state(); }

void select_lanes(arith::LanePath path) {
  wide_state() = path == arith::LanePath::Native && cpu_is_wide();
  arith::select_lane_path(path);
}

}  // namespace ptxb::emu
