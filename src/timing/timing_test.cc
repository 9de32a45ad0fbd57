// Owns the tests of the timing room: literals in, literals out.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "timing/policy.h"
#include "timing/roofline.h"
#include "timing/statistics.h"

namespace ptxb::timing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Pair pair_of(double candidate_ms, double baseline_ms, double clock_mhz = 1900) {
  return {{candidate_ms, clock_mhz, 500, 1}, Sample{baseline_ms, clock_mhz, 500, 1}};
}

TEST(Order, IsABBA) {
  const Side a = Side::Candidate, b = Side::Baseline;
  const Side expected[] = {a, b, b, a, a, b, b, a};
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(side_of(i), expected[i]) << i;
}

TEST(Gap, FollowsTheDutyCycleWithinItsBounds) {
  Policy policy;
  policy.duty = 0.25;
  EXPECT_DOUBLE_EQ(gap_after_s(policy, 0.001), 0.003);
  EXPECT_DOUBLE_EQ(gap_after_s(policy, 1.0), policy.maximum_gap_s);
  for (double busy_s : {0.0, -1.0, kNaN, kInfinity}) {
    EXPECT_DOUBLE_EQ(gap_after_s(policy, busy_s), policy.minimum_gap_s) << busy_s;
  }
}

// Bug report B09: an estimate of 0 ms must not divide by zero.
TEST(Repeats, AreBoundedForAnyEstimate) {
  EXPECT_EQ(bounded_repeats(1.0, 0.0, 10, 500), 500u);
  EXPECT_EQ(bounded_repeats(1.0, kNaN, 10, 500), 500u);
  EXPECT_EQ(bounded_repeats(1.0, 1e-300, 10, 500), 500u);
  EXPECT_EQ(bounded_repeats(1.0, 0.01, 10, 500), 100u);
  EXPECT_EQ(bounded_repeats(1.0, 30, 10, 500), 10u);
  EXPECT_EQ(bounded_repeats(0.0, 0.0, 10, 500), 10u);
}

TEST(Stopping, TakesTheMinimumThenStopsWhenPrecise) {
  Policy policy;
  policy.minimum_pairs = 10;
  policy.maximum_pairs = 100;
  policy.budget_s = 1;
  const auto step = [&](uint32_t pairs, double elapsed_s, double width) {
    return next_step(policy, {pairs, elapsed_s, width, true});
  };
  EXPECT_EQ(step(5, 0.1, 0.0), Next::Continue);  // precise by luck: too few
  EXPECT_EQ(step(5, 1.5, 0.0), Next::Continue);  // a slow start must not starve the count
  EXPECT_EQ(step(5, 4.0, 0.5), Next::StopBudget);
  EXPECT_EQ(step(10, 0.1, 0.01), Next::StopPrecise);
  EXPECT_EQ(step(10, 0.1, 0.011), Next::Continue);
  EXPECT_EQ(step(10, 0.1, kNaN), Next::Continue);
  EXPECT_EQ(step(10, 1.0, 0.5), Next::StopBudget);
  EXPECT_EQ(step(10, kNaN, 0.5), Next::StopBudget);
  EXPECT_EQ(step(100, 0.1, 0.5), Next::StopMaximum);
  EXPECT_EQ(next_step(policy, {10, 0.1, 0.0, false}), Next::Continue);
}

TEST(Preheat, EndsWhenTheClockIsSteadyOrTheLimitIsReached) {
  Policy policy;
  policy.preheat_s = 0.1;
  policy.preheat_limit_s = 0.5;
  const double falling[] = {1980, 1970, 1950, 1920, 1890, 1850, 1800, 1770};
  const double steady[] = {1980, 1750, 1752, 1748, 1750, 1750, 1751, 1749, 1750};
  EXPECT_FALSE(preheat_done(policy, {0.2, falling, 8}));
  EXPECT_TRUE(preheat_done(policy, {0.5, falling, 8}));
  EXPECT_TRUE(preheat_done(policy, {0.2, steady, 9}));
  EXPECT_FALSE(preheat_done(policy, {0.05, steady, 9}));
  EXPECT_FALSE(preheat_done(policy, {0.2, steady, 3}));
  EXPECT_TRUE(preheat_done(policy, {kNaN, steady, 9}));
}

TEST(Median, OfEvenOddEmptyAndNonFinite) {
  EXPECT_EQ(median({3, 1, 2}), 2.0);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), std::nullopt);
  EXPECT_EQ(median({1, kNaN, 2}), std::nullopt);
}

TEST(Bootstrap, IsRepeatableAndContainsTheMedian) {
  const std::vector<double> values = {1.00, 1.02, 0.98, 1.01, 0.99, 1.03, 0.97, 1.00, 1.01, 0.99};
  const auto first = bootstrap_median(values, 1000, 7), second = bootstrap_median(values, 1000, 7);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->low, second->low);
  EXPECT_EQ(first->high, second->high);
  EXPECT_LT(first->low, 1.0);
  EXPECT_GT(first->high, 1.0);
  EXPECT_GE(first->low, 0.97);
  EXPECT_LE(first->high, 1.03);
  EXPECT_FALSE(bootstrap_median({1, 2}, 1000, 7));
}

TEST(Summary, SpeedupIsTheMedianOfPairwiseRatios) {
  // The machine slows by half in the middle: ratios do not notice, ratios of medians would.
  std::vector<Pair> pairs = {pair_of(1, 2), pair_of(1, 2), pair_of(2, 4), pair_of(2, 4),
                             pair_of(3, 6)};
  const Summary summary = summarise(pairs, {}, 1980);
  EXPECT_EQ(summary.status, Status::Valid);
  EXPECT_EQ(summary.speedup, 2.0);
  EXPECT_EQ(summary.speedup_low, 2.0);
  EXPECT_EQ(summary.speedup_high, 2.0);
  EXPECT_EQ(summary.candidate_ms, 2.0);
  EXPECT_EQ(summary.baseline_ms, 4.0);
  EXPECT_FALSE(summary.throttled);
}

TEST(Summary, WithoutBaselineHasTimesAndNoSpeedup) {
  std::vector<Pair> pairs(5, Pair{{1.5, 1900, 0, 1}, std::nullopt});
  const Summary summary = summarise(pairs, {}, 1980);
  EXPECT_EQ(summary.status, Status::Valid);
  EXPECT_EQ(summary.candidate_ms, 1.5);
  EXPECT_EQ(summary.speedup, std::nullopt);
  EXPECT_TRUE(progress_of(summary, 0.1).interval_known);
}

TEST(ClockFilter, DropsOutliersAndCountsThem) {
  std::vector<Pair> pairs(10, pair_of(1, 2));
  pairs[3] = pair_of(5, 2, 700);
  const Summary summary = summarise(pairs, {}, 1980);
  EXPECT_EQ(summary.status, Status::Valid);
  EXPECT_EQ(summary.dropped_clock, 1u);
  EXPECT_EQ(summary.pairs_used, 9u);
  EXPECT_EQ(summary.speedup, 2.0);
}

// Bug report B01: a clock at half speed throughout must still give a result, with the clock stated.
TEST(ClockFilter, ASlowChipIsReportedNotEmptied) {
  const std::vector<Pair> pairs(20, pair_of(1, 2, 900));
  const Summary summary = summarise(pairs, {}, 1980);
  EXPECT_EQ(summary.status, Status::Valid);
  EXPECT_EQ(summary.pairs_used, 20u);
  EXPECT_EQ(summary.speedup, 2.0);
  EXPECT_EQ(summary.candidate_clock_mhz, 900.0);
  EXPECT_TRUE(summary.throttled);
  EXPECT_NE(summary.explanation.find("900 of 1980 MHz"), std::string::npos);
}

TEST(ClockFilter, AWildClockIsInvalidButHasNumbers) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 20; ++i) pairs.push_back(pair_of(1, 2, 600 + 70 * i));
  const Summary summary = summarise(pairs, {}, 1980);
  EXPECT_EQ(summary.status, Status::ClockInvalid);
  EXPECT_EQ(summary.pairs_used, 20u);
  EXPECT_GT(summary.dropped_clock, 10u);
  EXPECT_EQ(summary.speedup, 2.0);
  EXPECT_FALSE(summary.explanation.empty());
}

TEST(ClockFilter, UnknownClocksAreNotFiltered) {
  const std::vector<Pair> pairs(5, pair_of(1, 2, 0));
  const Summary summary = summarise(pairs, {}, 1980);
  EXPECT_EQ(summary.status, Status::Valid);
  EXPECT_EQ(summary.pairs_used, 5u);
  EXPECT_EQ(summary.candidate_clock_mhz, std::nullopt);
  EXPECT_NE(summary.explanation.find("no clock source"), std::string::npos);
}

// Bug report B06: fewer than three samples are insufficient, and JSON holds null, never inf or NaN.
TEST(Summary, UnderThreePairsIsInsufficientWithNulls) {
  for (size_t count : {0u, 1u, 2u}) {
    const std::vector<Pair> pairs(count, pair_of(1, 2));
    const Summary summary = summarise(pairs, {}, 1980);
    EXPECT_EQ(summary.status, Status::Insufficient) << count;
    EXPECT_EQ(summary.speedup, std::nullopt) << count;
    const std::string text = to_json(summary).dump();
    EXPECT_NE(text.find("\"speedup\":null"), std::string::npos) << text;
    EXPECT_EQ(text.find(":inf"), std::string::npos) << text;
    EXPECT_EQ(text.find(":nan"), std::string::npos) << text;
    EXPECT_FALSE(progress_of(summary, 0).interval_known);
  }
}

TEST(Summary, ImpossibleTimesAreDropped) {
  std::vector<Pair> pairs(4, pair_of(1, 2));
  for (double bad : {0.0, -1.0, kNaN, kInfinity}) {
    pairs.push_back(pair_of(bad, 2));
    pairs.push_back(pair_of(1, bad));
  }
  const Summary summary = summarise(pairs, {}, 1980);
  EXPECT_EQ(summary.dropped_time, 8u);
  EXPECT_EQ(summary.pairs_used, 4u);
  EXPECT_EQ(summary.speedup, 2.0);
}

TEST(Roofline, IsTheLargerOfArithmeticAndMemory) {
  const ChipRates chip = {1000, 4000, 50'000'000};
  const Floor gemm =
      roofline_floor({.matrix_flops = 6e11, .bytes_in = 1.6e8, .bytes_out = 1.2e8}, chip);
  EXPECT_NEAR(gemm.compute_ms, 0.6, 1e-12);
  EXPECT_NEAR(gemm.memory_ms, 2.3e8 / 4e12 * 1e3, 1e-12);
  EXPECT_FALSE(gemm.memory_bound);
  const Floor copy = roofline_floor({.bytes_in = 4e9}, chip);
  EXPECT_NEAR(copy.floor_ms, 1.0, 1e-12);
  EXPECT_TRUE(copy.memory_bound);
}

TEST(Roofline, OutputsThatFitInL2AreFree) {
  const ChipRates chip = {1000, 4000, 50'000'000};
  EXPECT_EQ(roofline_floor({.bytes_out = 4e7}, chip).memory_ms, 0);
}

// Bug report B22: one shape at 1 ns is implausible, and the mean over shapes refuses rather than
// being driven to zero.
TEST(Roofline, ANanosecondIsImplausible) {
  const Floor floor = roofline_floor({.matrix_flops = 1e9}, ChipRates{1000, 4000, 0});
  EXPECT_TRUE(judge_time(1.0, floor).plausible);
  EXPECT_TRUE(judge_time(0.00095, floor).plausible);  // within the margin of the data-sheet clock
  for (double time_ms : {1e-6, 0.0008, 0.0, -1.0, kNaN, kInfinity}) {
    const Plausibility verdict = judge_time(time_ms, floor);
    EXPECT_FALSE(verdict.plausible) << time_ms;
    EXPECT_FALSE(verdict.reason.empty());
  }
  EXPECT_FALSE(judge_time(1e-6, Floor{}).plausible);  // under the timer's resolution
}

TEST(GeometricMean, RefusesImpossibleEntries) {
  const double good[] = {1, 4}, zero[] = {1, 1, 0}, nan[] = {1, kNaN};
  EXPECT_NEAR(*geometric_mean(good), 2.0, 1e-12);
  ASSERT_FALSE(geometric_mean(zero));
  EXPECT_NE(geometric_mean(zero).error().message.find("entry 2"), std::string::npos);
  EXPECT_FALSE(geometric_mean(nan));
  EXPECT_FALSE(geometric_mean({}));
}

TEST(PolicyJson, RoundTripsAndRefusesNonsense) {
  Policy policy;
  policy.duty = 0.125;
  policy.minimum_pairs = 7;
  const auto back = policy_from_json(to_json(policy), "policy");
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(policy));
  for (const char* text :
       {"[]", R"({"duty":0})", R"({"duty":null})", R"({"minimum_pairs":-1})",
        R"({"minimum_pairs":20,"maximum_pairs":10})", R"({"budget_s":1e9})",
        R"({"bootstrap_seed":"x"})", R"({"minimum_gap_s":1,"maximum_gap_s":0.1})"}) {
    EXPECT_FALSE(policy_from_json(*parse_json(text, "t"), "policy")) << text;
  }
}

}  // namespace
}  // namespace ptxb::timing
