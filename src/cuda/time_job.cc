// Owns timing one plan against a baseline: the sequence around each sample, the preheat, the choice
// of the baseline's variant. No timed call finds state that an earlier one left (Bench::renew), and
// each one's outputs are digested: a result that was kept from an earlier call cannot pass for a
// fast one. The arithmetic (order, gaps, stopping, statistics) is timing/'s.
//
// One sample, on one stream: poison the outputs, overwrite L2 and give persisting lines back, stamp
// the clocks (which also holds the stream until the host has queued the rest), start event, the
// plan, end event, stamp again, digest the outputs. Inputs stay at the plan's addresses, so buffers
// are not rotated: the L2 flush before each sample does what rotation is for.
// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "cuda/baseline.h"
#include "cuda/bench.h"
#include "cuda/power.h"

namespace ptxb::cuda {

namespace {

using timing::Side;

enum class Cache { Cold, Hot };
// Self-tests time the library in the candidate's place, too: then the ratio must be 1.
enum class Role { Plan, Library };

void pause_s(double seconds) {
  if (!(seconds > 0)) return;
  const double whole = std::floor(seconds);
  timespec left = {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  ::nanosleep(&left, nullptr);
}

constexpr std::string_view kLibraryTwice = "cublaslt_twice";

class Sampler {
 public:
  Sampler(Bench& bench, Baseline* baseline, Role candidate)
      : bench_(bench),
        baseline_(baseline),
        candidate_(candidate),
        power_(bench.device().facts().bus_id) {}

  Result<void> set_up() {
    const Device& device = bench_.device();
    PTXB_TRY(start_, device.make_event(EventKind::Timing));
    PTXB_TRY(end_, device.make_event(EventKind::Timing));
    PTXB_TRY(board_, Scoreboard::make(device, kWords));
    return {};
  }

  void choose(uint32_t variant) { variant_ = variant; }

  // One sample and the pause after it. Trouble: the candidate failed.
  Result<timing::Sample> sample(Side side, Cache cache, std::optional<Trouble>& trouble) {
    if (side == Side::Candidate && candidate_ == Role::Plan) {
      PTXB_TRY(trouble, bench_.renew());
      if (trouble) return timing::Sample{};
      PTXB_CHECK_OK(bench_.synchronise());
    }
    const double begin_s = now_s();
    Replay& replay = bench_.replay();
    CUstream stream = replay.stream();
    PTXB_CHECK_OK(board_.clear(stream));
    PTXB_CHECK_OK(replay.poison_outputs(kPoisonByte));
    if (cache == Cache::Hot) {
      PTXB_CHECK_OK(queue(side, trouble));  // the run that warms the caches
      if (!trouble) trouble = replay.wait(bench_.job().run_timeout_s);
      if (trouble) return timing::Sample{};
      PTXB_CHECK_OK(replay.poison_outputs(kPoisonByte));
    } else {
      PTXB_CHECK_OK(bench_.device().flush_l2(stream));
    }
    PTXB_CHECK_OK(bench_.device().stamp(stream, board_.word(kBefore), hold_ns(side)));
    PTXB_CHECK_OK(cuda_check(driver().cuEventRecord(start_.get(), stream), "start event"));
    PTXB_CHECK_OK(queue(side, trouble));
    if (trouble) return timing::Sample{};
    PTXB_CHECK_OK(cuda_check(driver().cuEventRecord(end_.get(), stream), "end event"));
    PTXB_CHECK_OK(bench_.device().stamp(stream, board_.word(kAfter), 0));
    PTXB_CHECK_OK(replay.digest_role(BufferRole::Output, board_.word(kDigest)));
    PTXB_CHECK_OK(board_.fetch(stream));
    trouble = replay.wait(bench_.job().run_timeout_s);
    if (trouble) return timing::Sample{};

    float elapsed_ms = 0;
    PTXB_CHECK_OK(cuda_check(driver().cuEventElapsedTime(&elapsed_ms, start_.get(), end_.get()),
                             "elapsed time"));
    timing::Sample sample;
    sample.time_ms = static_cast<double>(elapsed_ms);
    sample.clock_mhz = mean_clock_mhz();
    sample.digest = board_.at(kDigest);
    if (power_countdown_-- == 0) {  // a query takes longer than a sample: one in eight
      power_countdown_ = 7;
      last_power_w_ = power_.watts();
    }
    sample.power_w = last_power_w_;
    pause_s(timing::gap_after_s(bench_.job().policy, now_s() - begin_s));
    return sample;
  }

 private:
  static constexpr size_t kBefore = 0, kAfter = 2 * kStampSlots, kDigest = 4 * kStampSlots,
                          kWords = kDigest + 1;

  Result<void> queue(Side side, std::optional<Trouble>& trouble) {
    if (side == Side::Baseline || candidate_ == Role::Library)
      return baseline_->enqueue(variant_, bench_.replay().stream());
    trouble = bench_.replay().enqueue(bench_.replay().plan().steady, Replay::Marking::None);
    return {};
  }

  // Long enough for the host to queue every operation behind the hold: about 3 us a launch,
  // doubled.
  uint64_t hold_ns(Side side) const {
    const uint64_t operations = side == Side::Baseline ? 2 : bench_.replay().plan().steady.size();
    return std::min<uint64_t>(10'000 + 6'000 * operations, 20'000'000);
  }

  // Cycles over nanoseconds between the two stamps of each multiprocessor, averaged over those that
  // have both.
  double mean_clock_mhz() const {
    double cycles = 0, time_ns = 0;
    for (size_t slot = 0; slot < kStampSlots; ++slot) {
      const uint64_t c0 = board_.at(kBefore + 2 * slot), t0 = board_.at(kBefore + 2 * slot + 1);
      const uint64_t c1 = board_.at(kAfter + 2 * slot), t1 = board_.at(kAfter + 2 * slot + 1);
      if (t0 == 0 || t1 <= t0 || c1 <= c0) continue;
      cycles += static_cast<double>(c1 - c0);
      time_ns += static_cast<double>(t1 - t0);
    }
    return time_ns > 0 ? cycles / time_ns * 1e3 : 0;
  }

  Bench& bench_;
  Baseline* baseline_;
  Role candidate_;
  PowerMeter power_;
  Event start_, end_;
  Scoreboard board_;
  uint32_t variant_ = 0;
  int power_countdown_ = 0;
  double last_power_w_ = 0;
};

class Timer {
 public:
  Timer(Bench& bench, Baseline* baseline, Sampler& sampler, WorkerResult& result)
      : bench_(bench),
        baseline_(baseline),
        sampler_(sampler),
        result_(result),
        policy_(bench.job().policy) {}

  // False: the candidate failed, result says how.
  Result<bool> preheat() {
    const double begin_s = now_s();
    std::vector<double> clocks;
    for (uint32_t i = 0;; ++i) {
      PTXB_TRY(const std::optional<timing::Sample> sample, take(side(i), Cache::Cold));
      if (!sample) return false;
      clocks.push_back(sample->clock_mhz);
      result_.preheat_s = now_s() - begin_s;
      if (timing::preheat_done(
              policy_, {result_.preheat_s, clocks.data(), static_cast<uint32_t>(clocks.size())}))
        return true;
    }
  }

  // Every variant under the regime in which it is used, in turns, so that none profits from the
  // clock's drift.
  Result<bool> choose_variant() {
    if (baseline_ == nullptr) return true;
    constexpr int kRounds = 5;
    const uint32_t count = baseline_->variants();
    std::vector<std::vector<double>> times(count);
    for (int round = 0; round < kRounds; ++round) {
      for (uint32_t variant = 0; variant < count; ++variant) {
        sampler_.choose(variant);
        PTXB_TRY(const std::optional<timing::Sample> sample, take(Side::Baseline, Cache::Cold));
        if (!sample) return false;
        times[variant].push_back(sample->time_ms);
      }
    }
    uint32_t best = 0;
    std::vector<double> medians;
    for (const auto& series : times) medians.push_back(timing::median(series).value_or(1e300));
    for (uint32_t variant = 1; variant < count; ++variant) {
      if (medians[variant] < medians[best]) best = variant;
    }
    sampler_.choose(best);
    result_.baseline = BaselineChoice{baseline_->library(),
                                      baseline_->describe(best),
                                      baseline_->workspace_bytes(best),
                                      medians[0],
                                      medians[best],
                                      count};
    return true;
  }

  Result<bool> sample_pairs() {
    const double begin_s = now_s();
    const double nominal_mhz = bench_.device().facts().clock_khz / 1e3;
    timing::Next next = timing::Next::Continue;
    while (next == timing::Next::Continue) {
      timing::Pair pair;
      PTXB_TRY(const bool good, take_pair(Cache::Cold, pair));
      if (!good) return false;
      result_.cold.push_back(pair);
      result_.sampling_s = now_s() - begin_s;
      const auto pairs = static_cast<uint32_t>(result_.cold.size());
      timing::Progress progress{pairs, result_.sampling_s, 0, false};
      // The bootstrap is worth its time on every fourth pair only.
      if (pairs % 4 == 0 && pairs >= policy_.minimum_pairs) {
        progress = timing::progress_of(timing::summarise(result_.cold, policy_, nominal_mhz),
                                       result_.sampling_s);
      }
      next = timing::next_step(policy_, progress);
    }
    result_.stopped = std::string(timing::name(next));
    constexpr int kHotPairs = 5;
    for (int i = 0; i < kHotPairs; ++i) {
      timing::Pair pair;
      PTXB_TRY(const bool good, take_pair(Cache::Hot, pair));
      if (!good) return false;
      result_.hot.push_back(pair);
    }
    return true;
  }

  void check_digests(std::optional<uint64_t> expected) {
    for (const auto* pairs : {&result_.cold, &result_.hot}) {
      for (const timing::Pair& pair : *pairs) {
        if (!expected) expected = pair.candidate.digest;
        if (pair.candidate.digest != *expected) ++result_.digest_mismatches;
      }
    }
    result_.digest = result_.cold.empty() ? 0 : result_.cold.front().candidate.digest;
  }

 private:
  Side side(uint32_t index) const {
    return baseline_ == nullptr ? Side::Candidate : timing::side_of(index);
  }

  Result<std::optional<timing::Sample>> take(Side which, Cache cache) {
    std::optional<Trouble> trouble;
    PTXB_TRY(const timing::Sample sample, sampler_.sample(which, cache, trouble));
    if (!trouble) return std::optional<timing::Sample>(sample);
    note_trouble(*trouble, result_);
    return std::optional<timing::Sample>();
  }

  Result<bool> take_pair(Cache cache, timing::Pair& pair) {
    const int samples = baseline_ == nullptr ? 1 : 2;
    for (int i = 0; i < samples; ++i) {
      const Side which = side(taken_++);
      PTXB_TRY(const std::optional<timing::Sample> sample, take(which, cache));
      if (!sample) return false;
      if (which == Side::Candidate)
        pair.candidate = *sample;
      else
        pair.baseline = *sample;
    }
    return true;
  }

  Bench& bench_;
  Baseline* baseline_;
  Sampler& sampler_;
  WorkerResult& result_;
  const timing::Policy& policy_;
  uint32_t taken_ = 0;
};

// The plan as its own baseline, for self-tests: the ratio must be 1.
class PlanItself : public Baseline {
 public:
  explicit PlanItself(Replay& replay) : replay_(replay) {}
  std::string library() const override { return "the plan itself"; }
  uint32_t variants() const override { return 1; }
  std::string describe(uint32_t) const override { return "the plan"; }
  double workspace_bytes(uint32_t) const override { return 0; }
  Result<void> enqueue(uint32_t, CUstream) override {
    if (const auto trouble = replay_.enqueue(replay_.plan().steady, Replay::Marking::None))
      return harness_error(trouble->cause);
    return {};
  }

 private:
  Replay& replay_;
};

Result<std::unique_ptr<Baseline>> make_baseline(Bench& bench, WorkerResult& result) {
  const std::string& wanted = bench.job().baseline;
  if (wanted.empty()) return std::unique_ptr<Baseline>();
  if (wanted == "plan")
    return std::unique_ptr<Baseline>(std::make_unique<PlanItself>(bench.replay()));
  if (wanted == "cublaslt" || wanted == kLibraryTwice)
    return make_cublaslt_gemm(bench, result.baseline_missing);
  result.baseline_missing = "this worker has no baseline '" + wanted + "'";
  return std::unique_ptr<Baseline>();
}

}  // namespace

Result<WorkerResult> run_time(const Device& device, const WorkerJob& job, const Say& say) {
  WorkerResult result;
  result.steps = Json::object();
  const double begin_s = now_s();
  double step_s = begin_s;
  const auto lap = [&](const char* step) {
    result.steps.set(step, now_s() - step_s);
    step_s = now_s();
    result.gpu_s = step_s - begin_s;
  };
  PTXB_TRY(std::unique_ptr<Bench> bench, Bench::make(device, job, say, result));
  if (!bench) return result;
  PTXB_TRY(const std::vector<uint64_t> before, bench->surroundings());
  PTXB_TRY(std::unique_ptr<Baseline> baseline, make_baseline(*bench, result));
  lap("prepare");

  const bool twice = baseline != nullptr && job.baseline == kLibraryTwice;
  Sampler sampler(*bench, baseline.get(), twice ? Role::Library : Role::Plan);
  PTXB_CHECK_OK(sampler.set_up());
  Timer timer(*bench, baseline.get(), sampler, result);
  say("time");
  PTXB_TRY(const bool warm, timer.preheat());
  lap("preheat");
  if (!warm) return result;
  PTXB_TRY(const bool chosen, timer.choose_variant());
  lap("choose baseline");
  if (!chosen) return result;
  PTXB_TRY(const bool sampled, timer.sample_pairs());
  lap("samples");
  if (!sampled) return result;
  timer.check_digests(job.expected_digest);
  PTXB_TRY(const std::vector<uint64_t> after, bench->surroundings());
  bench->note_changes(before, after, result);
  lap("verify");
  return result;
}

}  // namespace ptxb::cuda
