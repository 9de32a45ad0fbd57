// Owns the statistics of paired samples: medians, the clock filter, bootstrap intervals, the
// summary that is reported. Never yields inf or NaN: what cannot be known is nullopt, and the
// status says why.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "timing/policy.h"

namespace ptxb::timing {

struct Sample {
  double time_ms = 0;
  double clock_mhz = 0;  // mean SM clock over the timed interval; 0: unknown
  double power_w = 0;    // board power near the sample; 0: unknown
  uint64_t digest = 0;   // of the outputs, taken on the device right after the end event
};
struct Pair {
  Sample candidate;
  std::optional<Sample> baseline;  // nullopt: this task has no baseline
};

enum class Status {
  Valid,
  Insufficient,  // fewer than 3 usable pairs
  ClockInvalid,  // more than half of the pairs lie outside the clock band; numbers are of all timed
                 // pairs
};
std::string_view name(Status status);

struct Interval {
  double low = 0, high = 0;
};

struct Summary {
  Status status = Status::Insufficient;
  std::string explanation;  // one sentence, "" when there is nothing to explain
  uint32_t pairs_total = 0, pairs_used = 0;
  uint32_t dropped_time = 0;   // a time that is not > 0 and finite
  uint32_t dropped_clock = 0;  // outside the band
  std::optional<double> speedup, speedup_low,
      speedup_high;  // median of baseline/candidate, 95 % bootstrap interval
  std::optional<double> candidate_ms, candidate_low_ms, candidate_high_ms;
  std::optional<double> baseline_ms;
  std::optional<double> candidate_clock_mhz, baseline_clock_mhz, power_w;
  bool throttled = false;  // the median clock is under 90 % of the nominal one
};
Json to_json(const Summary& summary);

// nullopt for an empty set or when any value is not finite; the mean of the middle two for an even
// count.
std::optional<double> median(std::vector<double> values);
// 95 % percentile bootstrap of the median; nullopt under 3 values. The same seed gives the same
// interval.
std::optional<Interval> bootstrap_median(const std::vector<double>& values, uint32_t rounds,
                                         uint64_t seed);

// nominal_clock_mhz 0: unknown, nothing is called throttled.
Summary summarise(std::span<const Pair> pairs, const Policy& policy, double nominal_clock_mhz);
// What the stopping rule needs: of the speedup's interval, or of the candidate's time where there
// is no baseline.
Progress progress_of(const Summary& summary, double elapsed_s);

// Error: BadInput naming the entry when the set is empty or an entry is not > 0 and finite: one
// impossible value must not set the score of a whole set.
Result<double> geometric_mean(std::span<const double> values);

}  // namespace ptxb::timing
