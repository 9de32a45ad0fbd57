// Owns the statistics of paired samples. Never yields inf or NaN.
// SPDX-License-Identifier: Apache-2.0
#include "timing/statistics.h"

#include <algorithm>
#include <cmath>

namespace ptxb::timing {

namespace {

constexpr uint32_t kLeastPairs = 3;

// splitmix64: small, seedable, good enough to draw indices; the same on every machine.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  size_t below(size_t bound) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<size_t>((z >> 32) * bound >> 32);
  }

 private:
  uint64_t state_;
};

double median_of_scratch(std::vector<double>& values) {
  const size_t middle = values.size() / 2;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(middle);
  std::nth_element(values.begin(), at, values.end());
  const double upper = *at;
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), at) + upper) / 2;
}

bool usable_time(double time_ms) { return time_ms > 0 && std::isfinite(time_ms); }
bool known_clock(double clock_mhz) { return clock_mhz > 0 && std::isfinite(clock_mhz); }

// The sides may settle at different clocks (a kernel that draws less power runs faster): each has
// its own band.
bool inside_band(const Sample& sample, const std::optional<double>& center_mhz, double share) {
  if (!center_mhz) return true;  // no clock source: nothing to filter by, the explanation says so
  return known_clock(sample.clock_mhz) &&
         std::abs(sample.clock_mhz - *center_mhz) <= share * *center_mhz;
}

std::optional<double> median_where(std::span<const Pair* const> pairs, Side side,
                                   double Sample::*field) {
  std::vector<double> values;
  for (const Pair* pair : pairs) {
    if (side == Side::Baseline && !pair->baseline) continue;
    const Sample& sample = side == Side::Candidate ? pair->candidate : *pair->baseline;
    if (usable_time(sample.*field)) values.push_back(sample.*field);
  }
  return median(std::move(values));
}

void fill_numbers(Summary& summary, std::span<const Pair* const> used, const Policy& policy) {
  summary.pairs_used = static_cast<uint32_t>(used.size());
  summary.candidate_ms = median_where(used, Side::Candidate, &Sample::time_ms);
  summary.baseline_ms = median_where(used, Side::Baseline, &Sample::time_ms);
  summary.candidate_clock_mhz = median_where(used, Side::Candidate, &Sample::clock_mhz);
  summary.baseline_clock_mhz = median_where(used, Side::Baseline, &Sample::clock_mhz);
  summary.power_w = median_where(used, Side::Candidate, &Sample::power_w);
  if (used.size() < kLeastPairs) return;
  std::vector<double> ratios, times;
  for (const Pair* pair : used) {
    times.push_back(pair->candidate.time_ms);
    if (pair->baseline) ratios.push_back(pair->baseline->time_ms / pair->candidate.time_ms);
  }
  if (auto interval = bootstrap_median(times, policy.bootstrap_rounds, policy.bootstrap_seed)) {
    summary.candidate_low_ms = interval->low;
    summary.candidate_high_ms = interval->high;
  }
  if (ratios.size() != used.size()) return;
  if (auto interval = bootstrap_median(ratios, policy.bootstrap_rounds, policy.bootstrap_seed)) {
    summary.speedup = median(ratios);
    summary.speedup_low = interval->low;
    summary.speedup_high = interval->high;
  }
}

}  // namespace

std::string_view name(Status status) {
  switch (status) {
    case Status::Valid:
      return "valid";
    case Status::Insufficient:
      return "insufficient";
    case Status::ClockInvalid:
      return "clock_invalid";
  }
  return "?";
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) {
    return std::nullopt;
  }
  return median_of_scratch(values);
}

std::optional<Interval> bootstrap_median(const std::vector<double>& values, uint32_t rounds,
                                         uint64_t seed) {
  if (values.size() < kLeastPairs || rounds == 0 || !median(values)) return std::nullopt;
  Draw draw(seed);
  std::vector<double> medians(rounds), scratch(values.size());
  for (double& result : medians) {
    for (double& value : scratch) value = values[draw.below(values.size())];
    result = median_of_scratch(scratch);
  }
  std::sort(medians.begin(), medians.end());
  const auto at = [&](double share) {
    return medians[static_cast<size_t>(std::lround(share * static_cast<double>(rounds - 1)))];
  };
  return Interval{at(0.025), at(0.975)};
}

Summary summarise(std::span<const Pair> pairs, const Policy& policy, double nominal_clock_mhz) {
  Summary summary;
  summary.pairs_total = static_cast<uint32_t>(pairs.size());
  std::vector<const Pair*> timed;
  for (const Pair& pair : pairs) {
    const bool usable = usable_time(pair.candidate.time_ms) &&
                        (!pair.baseline || usable_time(pair.baseline->time_ms));
    if (usable) timed.push_back(&pair);
  }
  summary.dropped_time = static_cast<uint32_t>(pairs.size() - timed.size());

  const auto candidate_center = median_where(timed, Side::Candidate, &Sample::clock_mhz);
  const auto baseline_center = median_where(timed, Side::Baseline, &Sample::clock_mhz);
  std::vector<const Pair*> in_band;
  for (const Pair* pair : timed) {
    if (inside_band(pair->candidate, candidate_center, policy.clock_band_share) &&
        (!pair->baseline ||
         inside_band(*pair->baseline, baseline_center, policy.clock_band_share))) {
      in_band.push_back(pair);
    }
  }
  summary.dropped_clock = static_cast<uint32_t>(timed.size() - in_band.size());

  const bool mostly_outside = in_band.size() * 2 < timed.size() || in_band.size() < kLeastPairs;
  if (timed.size() < kLeastPairs) {
    summary.status = Status::Insufficient;
    summary.explanation = "only " + std::to_string(timed.size()) + " usable pairs of " +
                          std::to_string(pairs.size()) + ": 3 are needed for an interval";
    fill_numbers(summary, timed, policy);
  } else if (mostly_outside) {
    summary.status = Status::ClockInvalid;
    summary.explanation = std::to_string(summary.dropped_clock) + " of " +
                          std::to_string(timed.size()) +
                          " pairs ran outside the clock band; the numbers are of all of them";
    fill_numbers(summary, timed, policy);
  } else {
    summary.status = Status::Valid;
    if (!candidate_center)
      summary.explanation = "no clock source: samples were not filtered by clock";
    fill_numbers(summary, in_band, policy);
  }
  if (nominal_clock_mhz > 0 && summary.candidate_clock_mhz &&
      *summary.candidate_clock_mhz < 0.9 * nominal_clock_mhz) {
    summary.throttled = true;
    if (!summary.explanation.empty()) summary.explanation += "; ";
    summary.explanation += "the SM clock was " +
                           std::to_string(std::lround(*summary.candidate_clock_mhz)) + " of " +
                           std::to_string(std::lround(nominal_clock_mhz)) + " MHz";
  }
  return summary;
}

Progress progress_of(const Summary& summary, double elapsed_s) {
  Progress progress{.pairs = summary.pairs_total, .elapsed_s = elapsed_s};
  const auto& middle = summary.speedup ? summary.speedup : summary.candidate_ms;
  const auto& low = summary.speedup ? summary.speedup_low : summary.candidate_low_ms;
  const auto& high = summary.speedup ? summary.speedup_high : summary.candidate_high_ms;
  if (middle && low && high && *middle > 0) {
    progress.interval_known = true;
    progress.relative_half_width = std::max(*high - *middle, *middle - *low) / *middle;
  }
  return progress;
}

Json to_json(const Summary& summary) {
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  Json json = Json::object();
  json.set("status", std::string(name(summary.status)));
  json.set("explanation", summary.explanation);
  json.set("pairs_total", summary.pairs_total);
  json.set("pairs_used", summary.pairs_used);
  json.set("dropped_time", summary.dropped_time);
  json.set("dropped_clock", summary.dropped_clock);
  json.set("speedup", number(summary.speedup));
  json.set("speedup_low", number(summary.speedup_low));
  json.set("speedup_high", number(summary.speedup_high));
  json.set("candidate_ms", number(summary.candidate_ms));
  json.set("candidate_low_ms", number(summary.candidate_low_ms));
  json.set("candidate_high_ms", number(summary.candidate_high_ms));
  json.set("baseline_ms", number(summary.baseline_ms));
  json.set("candidate_clock_mhz", number(summary.candidate_clock_mhz));
  json.set("baseline_clock_mhz", number(summary.baseline_clock_mhz));
  json.set("power_w", number(summary.power_w));
  json.set("throttled", summary.throttled);
  return json;
}

Result<double> geometric_mean(std::span<const double> values) {
  if (values.empty()) return bad_input("geometric mean: no values");
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0) || !std::isfinite(values[i])) {
      return bad_input("geometric mean: entry " + std::to_string(i) +
                       " is not a positive finite number");
    }
    sum += std::log(values[i]);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace ptxb::timing
