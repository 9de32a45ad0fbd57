// Owns the roofline floor. Pure arithmetic.
// SPDX-License-Identifier: Apache-2.0
#include "timing/roofline.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ptxb::timing {

Floor roofline_floor(const Work& work, const ChipRates& chip) {
  Floor floor;
  if (chip.matrix_tflops > 0)
    floor.compute_ms = work.matrix_flops / (chip.matrix_tflops * 1e12) * 1e3;
  const double written = std::max(0.0, work.bytes_out - chip.l2_bytes);
  if (chip.memory_gb_s > 0)
    floor.memory_ms = (work.bytes_in + written) / (chip.memory_gb_s * 1e9) * 1e3;
  floor.memory_bound = floor.memory_ms > floor.compute_ms;
  floor.floor_ms = std::max(floor.memory_ms, floor.compute_ms);
  return floor;
}

Plausibility judge_time(double time_ms, const Floor& floor) {
  if (!(time_ms > 0) || !std::isfinite(time_ms)) return {false, "no positive time was measured"};
  char text[160];
  if (time_ms * kFloorMargin < floor.floor_ms) {
    std::snprintf(text, sizeof text, "%.6f ms is under the %s limit of the chip (%.6f ms)", time_ms,
                  floor.memory_bound ? "memory" : "arithmetic", floor.floor_ms);
    return {false, text};
  }
  if (time_ms < kEventResolutionMs) {
    std::snprintf(text, sizeof text, "%.6f ms is under the timer's resolution", time_ms);
    return {false, text};
  }
  return {true, ""};
}

}  // namespace ptxb::timing
