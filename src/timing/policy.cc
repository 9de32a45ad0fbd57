// Owns the arithmetic of the sampling policy. Never reads a clock.
// SPDX-License-Identifier: Apache-2.0
#include "timing/policy.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "timing/statistics.h"

namespace ptxb::timing {

namespace {

struct NumberField {
  const char* key;
  double Policy::*field;
  double least, most;
};
constexpr NumberField kNumbers[] = {
    {"budget_s", &Policy::budget_s, 1e-3, 600},
    {"duty", &Policy::duty, 0.01, 1},
    {"minimum_gap_s", &Policy::minimum_gap_s, 0, 1},
    {"maximum_gap_s", &Policy::maximum_gap_s, 0, 10},
    {"preheat_s", &Policy::preheat_s, 0, 120},
    {"preheat_limit_s", &Policy::preheat_limit_s, 0, 120},
    {"steady_clock_share", &Policy::steady_clock_share, 0, 1},
    {"clock_band_share", &Policy::clock_band_share, 0, 1},
    {"interval_target", &Policy::interval_target, 0, 1},
};
struct CountField {
  const char* key;
  uint32_t Policy::*field;
  uint32_t least, most;
};
constexpr CountField kCounts[] = {
    {"minimum_pairs", &Policy::minimum_pairs, 1, 10000},
    {"maximum_pairs", &Policy::maximum_pairs, 1, 10000},
    {"bootstrap_rounds", &Policy::bootstrap_rounds, 10, 100000},
};

}  // namespace

Json to_json(const Policy& policy) {
  Json json = Json::object();
  for (const auto& row : kNumbers) json.set(row.key, policy.*row.field);
  for (const auto& row : kCounts) json.set(row.key, policy.*row.field);
  json.set("bootstrap_seed", policy.bootstrap_seed);
  return json;
}

Result<Policy> policy_from_json(const Json& json, std::string_view name) {
  const std::string where(name);
  if (!json.is_object()) return bad_input(where + ": a policy must be an object");
  Policy policy;
  for (const auto& row : kNumbers) {
    const Json* value = json.find(row.key);
    if (value == nullptr) continue;
    // Written so that NaN (null in JSON) loses.
    if (!value->is_number() ||
        !(value->as_double() >= row.least && value->as_double() <= row.most)) {
      return bad_input(where + "." + row.key + ": must be a number from " +
                       std::to_string(row.least) + " to " + std::to_string(row.most));
    }
    policy.*row.field = value->as_double();
  }
  for (const auto& row : kCounts) {
    const Json* value = json.find(row.key);
    if (value == nullptr) continue;
    if (!value->is_integer() || value->as_int() < row.least || value->as_int() > row.most) {
      return bad_input(where + "." + row.key + ": must be an integer from " +
                       std::to_string(row.least) + " to " + std::to_string(row.most));
    }
    policy.*row.field = static_cast<uint32_t>(value->as_int());
  }
  if (const Json* seed = json.find("bootstrap_seed")) {
    if (!seed->is_integer()) return bad_input(where + ".bootstrap_seed: must be an integer");
    policy.bootstrap_seed = seed->as_uint();
  }
  if (policy.minimum_pairs > policy.maximum_pairs) {
    return bad_input(where + ".minimum_pairs: exceeds maximum_pairs");
  }
  if (policy.minimum_gap_s > policy.maximum_gap_s) {
    return bad_input(where + ".minimum_gap_s: exceeds maximum_gap_s");
  }
  return policy;
}

Side side_of(uint32_t sample_index) {
  const bool second = (sample_index & 1u) != 0;
  const bool swapped = (sample_index & 2u) != 0;
  return second == swapped ? Side::Candidate : Side::Baseline;
}

double gap_after_s(const Policy& policy, double busy_s) {
  if (!(busy_s > 0) || !std::isfinite(busy_s)) return policy.minimum_gap_s;
  const double gap_s = busy_s * (1 / policy.duty - 1);
  return std::clamp(gap_s, policy.minimum_gap_s, policy.maximum_gap_s);
}

uint32_t bounded_repeats(double budget_s, double estimate_s, uint32_t least, uint32_t most) {
  if (!(estimate_s > 0) || !(budget_s > 0)) return budget_s > 0 ? most : least;
  const double wanted = budget_s / estimate_s;
  if (!(wanted < most)) return most;  // also an infinite quotient
  return std::max(least, static_cast<uint32_t>(wanted));
}

std::string_view name(Next next) {
  switch (next) {
    case Next::Continue:
      return "continue";
    case Next::StopPrecise:
      return "precise";
    case Next::StopBudget:
      return "budget";
    case Next::StopMaximum:
      return "maximum_samples";
  }
  return "?";
}

Next next_step(const Policy& policy, const Progress& progress) {
  if (progress.pairs >= policy.maximum_pairs) return Next::StopMaximum;
  const bool over_budget = !(progress.elapsed_s < policy.budget_s);
  if (progress.pairs < policy.minimum_pairs) {
    // A slow first call must not starve the sample count; a candidate of seconds per call must not
    // hold the GPU for ever.
    return progress.elapsed_s < 4 * policy.budget_s ? Next::Continue : Next::StopBudget;
  }
  if (progress.interval_known && progress.relative_half_width >= 0 &&
      progress.relative_half_width <= policy.interval_target) {
    return Next::StopPrecise;
  }
  return over_budget ? Next::StopBudget : Next::Continue;
}

bool preheat_done(const Policy& policy, const Preheat& preheat) {
  constexpr uint32_t kWindow = 8;
  if (!(preheat.elapsed_s < policy.preheat_limit_s)) return true;
  if (preheat.elapsed_s < policy.preheat_s || preheat.count < kWindow) return false;
  std::vector<double> last(preheat.clocks_mhz + (preheat.count - kWindow),
                           preheat.clocks_mhz + preheat.count);
  const std::optional<double> middle = median(last);
  if (!middle || !(*middle > 0)) return false;
  return std::all_of(last.begin(), last.end(), [&](double clock) {
    return std::abs(clock - *middle) <= policy.steady_clock_share * *middle;
  });
}

}  // namespace ptxb::timing
