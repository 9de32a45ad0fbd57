// Owns the roofline floor: the time under which no run of a task is plausible on a chip. Pure
// arithmetic. Never decides a verdict; it says whether a time is implausible and by which limit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ptxb::timing {

struct Work {
  double matrix_flops = 0;  // of the task's formula
  double bytes_in = 0;      // each input read once
  double bytes_out = 0;     // each output written once
};
struct ChipRates {
  double matrix_tflops =
      0;                   // dense peak of the operand type, at the data sheet's clock; 0: unknown
  double memory_gb_s = 0;  // 0: unknown
  double l2_bytes = 0;
};

struct Floor {
  double compute_ms = 0, memory_ms = 0;
  double floor_ms = 0;
  bool memory_bound = false;
};
// Cold inputs must come from memory; outputs may still lie in L2 when the last event fires, so only
// what exceeds L2 counts.
Floor roofline_floor(const Work& work, const ChipRates& chip);

// The data-sheet peak holds at the nominal boost clock; parts run up to 8 % above it (1980 against
// 1830 MHz on an H200).
inline constexpr double kFloorMargin = 1.10;
struct Plausibility {
  bool plausible = true;
  std::string reason;  // when implausible: which limit was beaten
};
// A time that is not > 0 and finite is implausible; so is one under floor / kFloorMargin or under
// the timer's resolution.
Plausibility judge_time(double time_ms, const Floor& floor);
// Resolution of event timestamps (cuEventElapsedTime: about 0.5 us).
inline constexpr double kEventResolutionMs = 0.0005;

}  // namespace ptxb::timing
