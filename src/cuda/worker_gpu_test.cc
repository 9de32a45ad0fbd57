// Owns the GPU tests of the worker as its parent sees it: right and wrong candidates, faults,
// hangs, leftovers, counts, times.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "backend/worker_client.h"
#include "backend/worker_jobs.h"
#include "cuda/gpu_plans.h"

namespace ptxb::cuda {
namespace {

class OnWorker : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto started = worker().start(); !started) GTEST_SKIP() << started.error().message;
  }
  static WorkerClient& worker() {
    static auto* client = new WorkerClient({program_folder() + "/ptxbench-worker", {}, 60, 4096});
    return *client;
  }
  static WorkerResult run(const WorkerJob& job, double timeout_s = 60) {
    const auto reply = worker().run(encode_job(job), timeout_s);
    if (!reply) {
      ADD_FAILURE() << reply.error().message;
      return {};
    }
    if (reply->kind != JobReply::Kind::Answered) {
      ADD_FAILURE() << "the worker ended: " << reply->died_of << " " << reply->stderr_tail;
      return {};
    }
    auto result = decode_result(reply->outcome);
    if (!result) {
      ADD_FAILURE() << result.error().message;
      return {};
    }
    return *std::move(result);
  }
  static WorkerJob job_of(const Task& task, LaunchPlan plan,
                          Distribution distribution = Distribution::Normal) {
    WorkerJob job;
    job.task = task;
    job.plan = std::move(plan);
    job.inputs = {11, distribution};
    job.run_timeout_s = 2;
    return job;
  }
  static bool passed(const WorkerResult& result) {
    return result.status == RunStatus::Completed && !result.comparisons.empty() &&
           std::all_of(result.comparisons.begin(), result.comparisons.end(),
                       [](const Comparison& c) { return c.passed; });
  }
  const Task small_ = gemm_task(96, 128, 136);
};

std::string text_of(const WorkerResult& result) {
  return encode_result(result).json.dump().substr(0, 420);
}

TEST_F(OnWorker, HonestKernelsPassOnEveryDistribution) {
  for (Distribution distribution : distributions(small_)) {
    WorkerJob job = job_of(small_, simple_plan(small_, "honest"), distribution);
    job.repeat = Repeat::Twice;
    const WorkerResult result = run(job);
    EXPECT_TRUE(passed(result)) << text_of(result);
    EXPECT_TRUE(result.modified_inputs.empty());
    EXPECT_FALSE(result.padding_modified);
    EXPECT_EQ(result.repeat_digest, result.digest);
  }
}

TEST_F(OnWorker, RealKernelsPassWithTailsAndTensorMaps) {
  const Task ragged = gemm_task(300, 328, 264);
  for (Distribution distribution : distributions(ragged)) {
    for (const auto& plan : {simt_plan(ragged), mma_sync_plan(ragged), wgmma_plan(ragged, 132)}) {
      const WorkerResult result = run(job_of(ragged, plan, distribution));
      EXPECT_TRUE(passed(result)) << plan.steady.size() << text_of(result);
    }
  }
}

TEST_F(OnWorker, WrongValuesFailWithADiagnosis) {
  const WorkerResult tail = run(job_of(small_, simple_plan(small_, "dropped_tail")));
  ASSERT_EQ(tail.comparisons.size(), 1u) << text_of(tail);
  EXPECT_FALSE(tail.comparisons[0].passed);
  EXPECT_GT(tail.comparisons[0].mismatched_b, 1000);
  EXPECT_NE(tail.comparisons[0].diagnosis.find("K"), std::string::npos)
      << tail.comparisons[0].diagnosis;

  const WorkerResult missing = run(job_of(small_, simple_plan(small_, "unwritten")));
  EXPECT_EQ(missing.comparisons.at(0).unwritten, 128);
  EXPECT_FALSE(missing.comparisons.at(0).passed);

  const WorkerResult infinite = run(job_of(small_, simple_plan(small_, "not_finite")));
  EXPECT_EQ(infinite.comparisons.at(0).non_finite, 128);

  const WorkerResult stale = run(job_of(small_, simple_plan(small_, "accumulates")));
  EXPECT_EQ(stale.comparisons.at(0).non_finite, 96 * 128) << text_of(stale);
}

TEST_F(OnWorker, ChangedInputsAndWritesBesideABufferAreSeen) {
  const WorkerResult input = run(job_of(small_, simple_plan(small_, "modifies_input")));
  EXPECT_EQ(input.modified_inputs, std::vector<std::string>{"A"}) << text_of(input);
  const WorkerResult beside = run(job_of(small_, simple_plan(small_, "writes_before")));
  EXPECT_TRUE(beside.padding_modified) << text_of(beside);
  EXPECT_TRUE(passed(beside));
}

struct FaultCase {
  const char* kernel;
  RunStatus status;
  const char* error;
};

TEST_F(OnWorker, FaultsAreNamedAndTheNextCandidateIsUnaffected) {
  for (const FaultCase& test :
       {FaultCase{"writes_past", RunStatus::Fault, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        FaultCase{"bad_pointer", RunStatus::Fault, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        FaultCase{"misaligned", RunStatus::Fault, "CUDA_ERROR_MISALIGNED_ADDRESS"},
        FaultCase{"traps", RunStatus::Fault, "CUDA_ERROR_LAUNCH_FAILED"},
        FaultCase{"asserts", RunStatus::Fault, "CUDA_ERROR_ASSERT"},
        FaultCase{"loops", RunStatus::Budget, ""}}) {
    WorkerJob job = job_of(small_, simple_plan(small_, test.kernel));
    job.run_timeout_s = 0.5;
    const WorkerResult result = run(job);
    EXPECT_EQ(result.status, test.status) << text_of(result);
    EXPECT_EQ(result.error, test.error) << text_of(result);
    EXPECT_EQ(result.kernel, test.kernel) << text_of(result);
    EXPECT_EQ(result.stage, "run");
    EXPECT_TRUE(result.ending);
    EXPECT_FALSE(worker().running());
    const WorkerResult next = run(job_of(small_, simple_plan(small_, "honest")));
    EXPECT_TRUE(passed(next)) << "after " << test.kernel << ": " << text_of(next);
  }
}

TEST_F(OnWorker, AFaultIsPlacedAmongSeveralOperations) {
  PlanMaker maker(small_, "kernels");
  maker.plan().steady.push_back({0, {}, maker.tiled("honest")});
  maker.plan().steady.push_back({0, {0}, maker.tiled("bad_pointer")});
  maker.plan().steady.push_back({0, {1}, maker.tiled("honest")});
  const WorkerResult result = run(job_of(small_, maker.take()));
  EXPECT_EQ(result.operation, 1) << text_of(result);
  EXPECT_EQ(result.kernel, "bad_pointer");
}

TEST_F(OnWorker, RefusedLaunchesAreNotSticky) {
  PlanMaker shared(small_, "kernels");
  KernelLaunch launch = shared.tiled("needs_shared");
  launch.dynamic_shared_bytes = 250 * 1024;
  shared.plan().steady.push_back({0, {}, launch});
  const uint64_t starts = worker().starts();
  const WorkerResult result = run(job_of(small_, shared.take()));
  EXPECT_EQ(result.status, RunStatus::Fault);
  EXPECT_EQ(result.stage, "launch") << text_of(result);
  EXPECT_NE(result.cause.find("shared memory"), std::string::npos) << result.cause;
  EXPECT_FALSE(result.ending);

  PlanMaker large(small_, "kernels");
  launch = large.tiled("cooperative");
  launch.cooperative = true;
  launch.grid = {60000, 1, 1};
  large.plan().steady.push_back({0, {}, launch});
  const WorkerResult refused = run(job_of(small_, large.take()));
  EXPECT_EQ(refused.stage, "launch") << text_of(refused);
  EXPECT_EQ(refused.error, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
  EXPECT_EQ(worker().starts(), starts);
}

TEST_F(OnWorker, AttributesOfALaunchAreKept) {
  for (const char* kernel : {"needs_shared", "cooperative", "clustered"}) {
    PlanMaker maker(small_, "kernels");
    KernelLaunch launch = maker.tiled(kernel);
    if (std::string(kernel) == "needs_shared") launch.dynamic_shared_bytes = 100 * 1024;
    if (std::string(kernel) == "cooperative") launch.cooperative = true;
    if (std::string(kernel) == "clustered") launch.cluster = {2, 1, 1};
    maker.plan().steady.push_back({0, {}, launch});
    const WorkerResult result = run(job_of(small_, maker.take()));
    EXPECT_TRUE(passed(result)) << kernel << text_of(result);
  }
}

LaunchPlan two_halves(const Task& task, uint32_t second_stream, std::vector<uint32_t> after) {
  PlanMaker maker(task, "kernels");
  const int64_t m = task.axes.at("M"), n = task.axes.at("N"), k = task.axes.at("K");
  const uint64_t scratch = maker.scratch(static_cast<uint64_t>(m * n * 4));
  const Dim3 grid{static_cast<uint32_t>((n + 15) / 16), static_cast<uint32_t>((m + 15) / 16), 1};
  Params first, second;
  first.add(maker.input(0)).add(maker.input(1)).add(scratch).add(m).add(n).add(k);
  second.add(maker.input(0))
      .add(maker.input(1))
      .add(scratch)
      .add(maker.output(0))
      .add(m)
      .add(n)
      .add(k);
  maker.plan().steady.push_back(
      {0, {}, Memset{scratch, 0, 0x7fc00000, 4, static_cast<uint64_t>(m * n), 1}});
  maker.plan().steady.push_back({0, {0}, maker.launch("first_half", grid, {16, 16, 1}, first)});
  maker.plan().steady.push_back(
      {second_stream, std::move(after), maker.launch("second_half", grid, {16, 16, 1}, second)});
  return maker.take();
}

TEST_F(OnWorker, ScratchMemsetsAndSideStreamsKeepTheirOrder) {
  for (uint32_t stream : {0u, 1u, 5u}) {
    const WorkerResult result = run(job_of(small_, two_halves(small_, stream, {1})));
    EXPECT_TRUE(passed(result)) << stream << text_of(result);
  }
}

TEST_F(OnWorker, CopiesAndWritesReachTheirPlaces) {
  // The product goes to scratch, a copy by rows brings it to C.
  PlanMaker maker(small_, "kernels");
  const uint64_t scratch = maker.scratch(96 * 128 * 2);
  Params params;
  params.add(maker.input(0))
      .add(maker.input(1))
      .add(scratch)
      .add(int64_t{96})
      .add(int64_t{128})
      .add(int64_t{136});
  maker.plan().steady.push_back({0, {}, maker.launch("honest", {8, 6, 1}, {16, 16, 1}, params)});
  maker.plan().steady.push_back({0, {0}, CopyDevice{maker.output(0), scratch, 256, 256, 256, 95}});
  maker.plan().steady.push_back(
      {0, {1}, CopyDevice{maker.output(0) + 95 * 256, scratch + 95 * 256, 256, 0, 0, 1}});
  const WorkerResult result = run(job_of(small_, maker.take()));
  EXPECT_TRUE(passed(result)) << text_of(result);
}

TEST_F(OnWorker, SymbolsAreRelocated) {
  PlanMaker maker(small_, "kernels");
  const uint64_t factor = maker.symbol("factor", 4), bias = maker.symbol("bias", 16);
  Params params;
  params.add(maker.input(0))
      .add(maker.input(1))
      .add(maker.output(0))
      .add(bias)
      .add(int64_t{96})
      .add(int64_t{128})
      .add(int64_t{136});
  const auto bytes = [](float value) {
    std::vector<uint8_t> raw(4);
    std::memcpy(raw.data(), &value, 4);
    return raw;
  };
  maker.plan().steady.push_back({0, {}, WriteBytes{factor, bytes(1.0f)}});
  maker.plan().steady.push_back({0, {0}, WriteBytes{bias + 8, bytes(0.0f)}});
  maker.plan().steady.push_back({0, {1}, maker.launch("scaled", {8, 6, 1}, {16, 16, 1}, params)});
  LaunchPlan plan = maker.plan();
  EXPECT_TRUE(passed(run(job_of(small_, plan))));
  std::get<WriteBytes>(plan.steady[1].action).bytes = bytes(3.0f);  // the kernel does read it
  const WorkerResult off = run(job_of(small_, plan));
  EXPECT_EQ(off.comparisons.at(0).mismatched_b > 1000, true) << text_of(off);
}

TEST_F(OnWorker, AnAnswerCachedInTheFirstCallIsWrong) {
  PlanMaker maker(small_, "kernels");
  Params params;
  params.add(maker.output(0)).add(int64_t{96}).add(int64_t{128});
  maker.plan().setup.push_back({0, {}, maker.tiled("fill_cache")});
  maker.plan().steady.push_back(
      {0, {}, maker.launch("answer_from_cache", {8, 6, 1}, {16, 16, 1}, params)});
  const WorkerResult result = run(job_of(small_, maker.take()));
  ASSERT_EQ(result.comparisons.size(), 1u) << text_of(result);
  EXPECT_FALSE(result.comparisons[0].passed);
  EXPECT_GT(result.comparisons[0].mismatched_b, 10000);
}

TEST_F(OnWorker, NothingOfACandidateIsLeftForTheNext) {
  // The next plan reads a variable that the first one filled: a fresh module holds zeros.
  ASSERT_TRUE(passed(run(job_of(small_, simple_plan(small_, "fill_cache")))));
  PlanMaker maker(small_, "kernels");
  Params params;
  params.add(maker.output(0)).add(int64_t{96}).add(int64_t{128});
  maker.plan().steady.push_back(
      {0, {}, maker.launch("answer_from_cache", {8, 6, 1}, {16, 16, 1}, params)});
  const WorkerResult result = run(job_of(small_, maker.take()));
  EXPECT_GT(result.comparisons.at(0).mismatched_b, 10000) << text_of(result);
}

TEST_F(OnWorker, AnotherArchitectureIsRefused) {
  LaunchPlan plan = simple_plan(small_, "honest");
  plan.arch = "sm_100a";
  const WorkerResult result = run(job_of(small_, plan));
  EXPECT_EQ(result.status, RunStatus::Unsupported);
  EXPECT_NE(result.cause.find("sm_100a"), std::string::npos);
}

TEST_F(OnWorker, ABrokenCubinIsTheCandidatesFault) {
  LaunchPlan plan = simple_plan(small_, "honest");
  plan.modules[0].cubin = "no ELF at all, only text of some length";
  const WorkerResult result = run(job_of(small_, plan));
  EXPECT_EQ(result.status, RunStatus::Fault);
  EXPECT_EQ(result.stage, "load") << text_of(result);
}

TEST_F(OnWorker, ExecutedInstructionsAreCountedExactly) {
  PlanMaker maker(small_, "kernels");
  Params params;
  params.add(maker.output(0)).add(int64_t{96}).add(int64_t{128}).add(int32_t{1000});
  maker.plan().steady.push_back({0, {}, maker.launch("counted", {8, 6, 1}, {16, 16, 1}, params)});
  WorkerJob job = job_of(small_, maker.take());
  job.kind = JobKind::Count;
  const WorkerResult result = run(job);
  ASSERT_FALSE(result.sass.empty()) << text_of(result);
  // 48 blocks of 8 warps: an instruction of the loop's body runs 384,000 times, once in each of 32
  // lanes.
  int in_loop = 0;
  for (const SassCount& count : result.sass) {
    EXPECT_EQ(count.function, "counted");
    if (count.warps == 384'000 && count.threads == 384'000 * 32) ++in_loop;
  }
  EXPECT_GE(in_loop, 1) << text_of(result);
  // Metrics leave nothing behind: an ordinary check still passes in the same worker.
  EXPECT_TRUE(passed(run(job_of(small_, simple_plan(small_, "honest")))));
}

WorkerJob time_job(const Task& task, LaunchPlan plan, const std::string& baseline) {
  WorkerJob job;
  job.kind = JobKind::Time;
  job.task = task;
  job.plan = std::move(plan);
  job.inputs = {3, Distribution::Normal};
  job.baseline = baseline;
  job.policy.budget_s = 0.2;
  job.policy.preheat_s = 0.02;
  job.policy.preheat_limit_s = 0.1;
  return job;
}

TEST_F(OnWorker, ATimedKernelIsComparedWithItself) {
  const Task task = gemm_task(1024, 1024, 1024);
  const WorkerResult result = run(time_job(task, mma_sync_plan(task), "plan"));
  ASSERT_EQ(result.status, RunStatus::Completed) << text_of(result);
  const auto summary = timing::summarise(result.cold, {}, 0);
  ASSERT_TRUE(summary.speedup);
  EXPECT_NEAR(*summary.speedup, 1.0, 0.03);
  EXPECT_EQ(result.digest_mismatches, 0u);
  EXPECT_GT(*summary.candidate_clock_mhz, 300);
}

TEST_F(OnWorker, TheLibraryIsRightAndItsChoiceIsRecorded) {
  const Task task = gemm_task(1000, 1024, 520);
  WorkerJob job = time_job(task, mma_sync_plan(task), "cublaslt");
  const WorkerResult result = run(job);
  ASSERT_TRUE(result.baseline) << result.baseline_missing << text_of(result);
  EXPECT_NE(result.baseline->library.find("cuBLASLt"), std::string::npos);
  EXPECT_NE(result.baseline->algorithm.find("algo "), std::string::npos);
  EXPECT_LE(result.baseline->chosen_ms, result.baseline->first_choice_ms);
  // On exact inputs both have one right answer in bits.
  job.inputs.distribution = Distribution::Exact;
  const WorkerResult exact = run(job);
  ASSERT_FALSE(exact.cold.empty());
  EXPECT_EQ(exact.cold[0].candidate.digest, exact.cold[0].baseline->digest);
}

TEST_F(OnWorker, UnjoinedSideStreamWorkIsInsideTheClock) {
  // 2 million cycles on a stream that nothing joins: about 1 ms that must be in the measured time.
  PlanMaker maker(small_, "kernels");
  Params params;
  params.add(maker.output(0)).add(int64_t{96}).add(int64_t{128}).add(int64_t{2'000'000});
  maker.plan().steady.push_back({1, {}, maker.launch("spins", {8, 6, 1}, {16, 16, 1}, params)});
  const WorkerResult result = run(time_job(small_, maker.take(), ""));
  const auto summary = timing::summarise(result.cold, {}, 0);
  ASSERT_TRUE(summary.candidate_ms) << text_of(result);
  EXPECT_GT(*summary.candidate_ms, 0.9);
  EXPECT_LT(*summary.candidate_ms, 3.0);
}

TEST_F(OnWorker, AColdReadIsSlowerThanAHotOne) {
  const Task task = gemm_task(4096, 64, 2048);  // A is 16 MiB: it fits in L2
  PlanMaker maker(task, "kernels");
  Params params;
  params.add(maker.input(0)).add(maker.output(0)).add(int64_t{4096 * 2048 * 2});
  maker.plan().steady.push_back({0, {}, maker.launch("reads", {1056, 1, 1}, {256, 1, 1}, params)});
  const WorkerResult result = run(time_job(task, maker.take(), ""));
  const auto cold = timing::summarise(result.cold, {}, 0),
             hot = timing::summarise(result.hot, {}, 0);
  ASSERT_TRUE(cold.candidate_ms && hot.candidate_ms) << text_of(result);
  EXPECT_GT(*cold.candidate_ms, 1.15 * *hot.candidate_ms);
}

// The first call computes and keeps its result in a module variable, later calls only copy it:
// device-side memory of the answer. In the timed calls it must compute each time.
TEST_F(OnWorker, AnAnswerKeptFromAnEarlierCallSavesNoTime) {
  const auto timed = [&](const char* kernel) {
    const WorkerResult result = run(time_job(small_, simple_plan(small_, kernel), ""));
    EXPECT_EQ(result.status, RunStatus::Completed) << text_of(result);
    EXPECT_EQ(result.digest_mismatches, 0u);
    return timing::summarise(result.cold, {}, 0).candidate_ms.value_or(0);
  };
  const double honest_ms = timed("slow_honest"), remembering_ms = timed("slow_first_call");
  EXPECT_GT(honest_ms, 0.1);
  EXPECT_GT(remembering_ms, 0.9 * honest_ms);
}

TEST_F(OnWorker, ATimedCandidateThatFaultsIsReported) {
  const WorkerResult result = run(time_job(small_, simple_plan(small_, "traps"), "cublaslt"));
  EXPECT_EQ(result.status, RunStatus::Fault);
  EXPECT_TRUE(result.ending);
  EXPECT_TRUE(passed(run(job_of(small_, simple_plan(small_, "honest")))));
}

}  // namespace
}  // namespace ptxb::cuda
