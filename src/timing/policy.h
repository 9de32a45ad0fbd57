// Owns the sampling policy of a timed comparison: order, gaps, preheat, when to stop. Pure
// arithmetic over given numbers. Never reads a clock and never touches a GPU: the worker asks,
// obeys, and hands in what it measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace ptxb::timing {

// Candidate and baseline alternate under one declared duty cycle, because the power state is part
// of the measurement: the same GEMM ran 13 % slower in a back-to-back loop than with pauses (H200,
// docs/gpu.md).
struct Policy {
  uint32_t minimum_pairs = 15;
  uint32_t maximum_pairs = 200;
  double budget_s = 0.5;          // wall time of all counted samples, gaps included
  double duty = 0.5;              // busy share of the GPU while sampling, in (0, 1]
  double minimum_gap_s = 0.0002;  // floor of the pause between samples
  double maximum_gap_s = 0.02;
  double preheat_s =
      0.1;  // at least this long under the same duty before the first counted sample ...
  double preheat_limit_s = 0.5;  // ... then until the clock is steady, at most this long
  double steady_clock_share =
      0.01;  // steady: the last clocks lie within +- this share of their median
  double clock_band_share = 0.03;  // a sample whose clock is further from the median is dropped
  double interval_target =
      0.01;  // stop when the 95 % interval is within +- this share of the estimate
  uint32_t bootstrap_rounds = 1000;
  uint64_t bootstrap_seed = 20240607;
};

Json to_json(const Policy& policy);
// Absent keys keep their defaults. Error: BadInput naming the field that is out of range.
Result<Policy> policy_from_json(const Json& json, std::string_view name);

enum class Side { Candidate, Baseline };
// A B B A A B B A ...: both orders equally often, so that a drift or an after-effect of one side
// cancels.
Side side_of(uint32_t sample_index);

// Pause after a sample that kept the GPU busy for busy_s. Zero, negative and NaN give the minimum
// gap.
double gap_after_s(const Policy& policy, double busy_s);

// How many times to repeat work that took estimate_s once, to fill budget_s: within [least, most],
// also for 0 and NaN.
uint32_t bounded_repeats(double budget_s, double estimate_s, uint32_t least, uint32_t most);

enum class Next { Continue, StopPrecise, StopBudget, StopMaximum };
std::string_view name(Next next);
struct Progress {
  uint32_t pairs = 0;
  double elapsed_s = 0;
  double relative_half_width =
      0;  // of the interval; anything not >= 0 and finite counts as unknown
  bool interval_known = false;
};
// The minimum number of pairs is taken even when the budget is spent, up to four budgets.
Next next_step(const Policy& policy, const Progress& progress);

// Preheat: true when it may end, given the clocks seen so far (MHz, oldest first).
struct Preheat {
  double elapsed_s = 0;
  const double* clocks_mhz = nullptr;
  uint32_t count = 0;
};
bool preheat_done(const Policy& policy, const Preheat& preheat);

}  // namespace ptxb::timing
