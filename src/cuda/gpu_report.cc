// ptxbench-gpu-report: owns the self-measurement of a GPU machine: what the harness promises of
// itself, as numbers in one JSON. Never a verdict about a candidate. Started by
// scripts/gpu_test.sh.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/cuda_backend.h"
#include "backend/worker_client.h"
#include "backend/worker_jobs.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cuda/gpu_plans.h"
#include "task/load.h"
#include "task/work.h"

namespace ptxb::cuda {
namespace {

constexpr int64_t kM = 8192, kN = 7168, kK = 5120;
constexpr double kFlops = 2.0 * kM * kN * kK;

struct Settings {
  std::string json = "gpu-report.json";
  double load_s = 60;
  int workers = 10, faults = 100;
  std::string plans, tasks;  // folder of recorded plans (ptxbench plan -o), dataset root
};

class Report {
 public:
  Report(const Settings& settings, WorkerClient& worker)
      : settings_(settings), worker_(worker), task_(gemm_task(kM, kN, kK)) {}

  Json take() { return std::move(json_); }
  bool good() const { return good_; }

  void run() {
    part("first_check", [&] { return check_json(); });
    part("second_check", [&] { return check_json(); });
    part("count", [&] { return count_json(); });
    part("first_time", [&] { return time_json("cublaslt"); });
    part("second_time", [&] { return time_json("cublaslt"); });
    part("library_against_itself", [&] { return time_json("cublaslt_twice"); });
    part("plan_against_itself", [&] { return time_json("plan"); });
    part("separate_workers", [&] { return separate_workers(); });
    part("power_states", [&] { return power_states(); });
    part("faults", [&] { return faults(); });
    if (!settings_.plans.empty()) part("recorded_plans", [&] { return recorded_plans(); });
  }

 private:
  void part(const char* name, const std::function<Json()>& body) {
    const double begin_s = now_s();
    Json result = body();
    result.set("wall_s", now_s() - begin_s);
    std::printf("%-24s %s\n", name, result.dump().c_str());
    std::fflush(stdout);
    if (result.find("error") != nullptr) good_ = false;
    json_.set(name, std::move(result));
  }

  static Json failed(std::string text) { return Json::object({{"error", Json(std::move(text))}}); }

  Result<WorkerResult> ask(const WorkerJob& job, double timeout_s = 300) {
    PTXB_TRY(const JobReply reply, worker_.run(encode_job(job), timeout_s));
    if (reply.kind != JobReply::Kind::Answered)
      return harness_error("the worker ended: " + reply.died_of + " " + reply.stderr_tail);
    PTXB_TRY(WorkerResult result, decode_result(reply.outcome));
    return result;
  }

  WorkerJob job(JobKind kind) const {
    WorkerJob made;
    made.kind = kind;
    made.task = task_;
    made.plan = wgmma_plan(task_, 132);
    made.inputs = {1, Distribution::Normal};
    return made;
  }

  Json check_json() {
    WorkerJob asked = job(JobKind::Check);
    asked.repeat = Repeat::Twice;
    const auto result = ask(asked);
    if (!result) return failed(result.error().message);
    Json json = Json::object();
    json.set("status", std::string(name(result->status)));
    json.set("cause", result->cause);
    for (const Comparison& comparison : result->comparisons) {
      json.set("passed", comparison.passed);
      json.set("normalised_error", comparison.normalised_error);
      json.set("diagnosis", comparison.diagnosis);
      if (!comparison.passed) good_ = false;
    }
    json.set("same_bits_twice", result->repeat_digest == result->digest);
    json.set("gpu_s", result->gpu_s);
    json.set("steps", result->steps);
    return json;
  }

  Json count_json() {
    const auto result = ask(job(JobKind::Count));
    if (!result) return failed(result.error().message);
    Json json = Json::object();
    uint64_t warps = 0;
    for (const SassCount& count : result->sass) warps += count.warps;
    json.set("status", std::string(name(result->status)));
    json.set("addresses", uint64_t{result->sass.size()});
    json.set("warp_instructions", warps);
    json.set("gpu_s", result->gpu_s);
    json.set("steps", result->steps);
    return json;
  }

  Json time_json(const std::string& baseline) {
    WorkerJob asked = job(JobKind::Time);
    asked.baseline = baseline;
    const auto result = ask(asked);
    if (!result) return failed(result.error().message);
    return summary_json(*result, asked.policy);
  }

  Json summary_json(const WorkerResult& result, const timing::Policy& policy) {
    const auto cold = timing::summarise(result.cold, policy, 1980),
               hot = timing::summarise(result.hot, policy, 1980);
    Json json = Json::object();
    if (result.status != RunStatus::Completed) return failed(result.cause);
    json.set("cold", timing::to_json(cold));
    json.set("hot_candidate_ms", hot.candidate_ms ? Json(*hot.candidate_ms) : Json());
    json.set("hot_speedup", hot.speedup ? Json(*hot.speedup) : Json());
    json.set("candidate_tflops",
             cold.candidate_ms ? Json(kFlops / *cold.candidate_ms * 1e-9) : Json());
    json.set("baseline_tflops",
             cold.baseline_ms ? Json(kFlops / *cold.baseline_ms * 1e-9) : Json());
    if (result.baseline) {
      json.set("library", result.baseline->library);
      json.set("algorithm", result.baseline->algorithm);
      json.set("first_choice_tflops", kFlops / result.baseline->first_choice_ms * 1e-9);
      json.set("chosen_tflops", kFlops / result.baseline->chosen_ms * 1e-9);
    }
    json.set("stopped", result.stopped);
    json.set("digest_mismatches", result.digest_mismatches);
    json.set("gpu_s", result.gpu_s);
    json.set("steps", result.steps);
    return json;
  }

  // The same kernel in separate workers: their speedups must agree within 1 %.
  Json separate_workers() {
    Json speedups = Json::array(), seconds = Json::array();
    double low = 1e300, high = 0;
    for (int i = 0; i < settings_.workers; ++i) {
      worker_.stop();
      const double begin_s = now_s();
      WorkerJob asked = job(JobKind::Time);
      asked.baseline = "cublaslt";
      const auto result = ask(asked);
      if (!result) return failed(result.error().message);
      const auto summary = timing::summarise(result->cold, asked.policy, 1980);
      if (!summary.speedup) return failed(summary.explanation);
      speedups.push_back(*summary.speedup);
      seconds.push_back(now_s() - begin_s);
      low = std::min(low, *summary.speedup);
      high = std::max(high, *summary.speedup);
    }
    Json json = Json::object();
    json.set("speedups", std::move(speedups));
    json.set("spread", settings_.workers > 0 ? Json(high / low - 1) : Json());
    json.set("seconds_each", std::move(seconds));
    return json;
  }

  // Cold-started, then after a long load without pauses: under the declared duty cycle the ratio
  // must not move.
  Json power_states() {
    Json json = Json::object();
    json.set("before", time_json("cublaslt"));
    WorkerJob load = job(JobKind::Time);
    load.baseline = "cublaslt";
    load.policy.duty = 1;
    load.policy.minimum_gap_s = 0;
    load.policy.preheat_s = load.policy.preheat_limit_s = settings_.load_s;
    const auto loaded = ask(load, settings_.load_s + 60);
    if (!loaded) return failed(loaded.error().message);
    json.set("under_load", summary_json(*loaded, load.policy));
    json.set("after", time_json("cublaslt"));
    const auto speedup = [&](const char* part) {
      const Json* cold = json.find(part)->find("cold");
      return cold != nullptr && cold->find("speedup")->is_number()
                 ? cold->find("speedup")->as_double()
                 : 0;
    };
    if (speedup("before") > 0) json.set("shift", speedup("after") / speedup("before") - 1);
    return json;
  }

  Json faults() {
    const Task small = gemm_task(96, 128, 136);
    const char* kernels[] = {"bad_pointer", "loops", "traps", "misaligned_tma", "needs_shared"};
    int named = 0, survived = 0;
    double worst_s = 0;
    std::vector<std::string> seen;
    for (int i = 0; i < settings_.faults; ++i) {
      const std::string kernel = kernels[i % 5];
      PlanMaker maker(small, "kernels");
      KernelLaunch launch = maker.tiled("honest");
      if (kernel == "misaligned_tma") {
        Params params;
        params.add_map(maker.tensor_map(maker.input(0), 96, 136, 16, 64, 0)).add(maker.output(0));
        launch = maker.launch(kernel, {1, 1, 1}, {1, 1, 1}, params);
      } else {
        launch = maker.tiled(kernel);
        if (kernel == "needs_shared") launch.dynamic_shared_bytes = 250 * 1024;
      }
      maker.plan().steady.push_back({0, {}, launch});
      WorkerJob asked;
      asked.task = small;
      asked.plan = maker.take();
      asked.run_timeout_s = 0.3;
      const double begin_s = now_s();
      const auto result = ask(asked, 30);
      if (!result) return failed(kernel + ": " + result.error().message);
      const bool right =
          result->kernel == kernel && (kernel == "loops" ? result->status == RunStatus::Budget
                                                         : result->status == RunStatus::Fault);
      named += right ? 1 : 0;
      const std::string line = kernel + ": " + result->stage + " " + result->cause;
      if (std::find(seen.begin(), seen.end(), line) == seen.end()) seen.push_back(line);
      if (i % 10 == 9) {
        asked.plan = simple_plan(small, "honest");
        const auto next = ask(asked, 30);
        survived += next && !next->comparisons.empty() && next->comparisons[0].passed ? 1 : 0;
      }
      worst_s = std::max(worst_s, now_s() - begin_s);
    }
    Json json = Json::object(), lines = Json::array();
    for (const std::string& line : seen) lines.push_back(line);
    json.set("candidates", settings_.faults);
    json.set("named_rightly", named);
    json.set("honest_between", settings_.faults / 10);
    json.set("honest_passed", survived);
    json.set("worker_starts", worker_.starts());
    json.set("worst_s", worst_s);
    json.set("causes", std::move(lines));
    if (named != settings_.faults || survived != settings_.faults / 10) good_ = false;
    return json;
  }

  // Each recorded plan through the backend: every distribution, executed families, speed.
  Json recorded_plans() {
    const auto dataset = load_dataset(settings_.tasks);
    if (!dataset) return failed(dataset.error().message);
    CudaSettings backend_settings;
    backend_settings.worker = program_folder() + "/ptxbench-worker";
    auto backend = CudaBackend::open(backend_settings);
    if (!backend) return failed(backend.error().message);
    Json all = Json::object();
    std::vector<Path> folders;
    std::error_code fault;
    for (const auto& entry : std::filesystem::directory_iterator(settings_.plans, fault))
      folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    for (const Path& folder : folders) {
      Json one = one_plan(*dataset, **backend, folder);
      std::printf("  %-60s %s\n", folder.filename().c_str(), one.dump().c_str());
      all.set(folder.filename().string(), std::move(one));
    }
    return all;
  }

  static Json one_plan(const Dataset& dataset, CudaBackend& backend, const Path& folder) {
    const auto plan = read_plan(folder.string());
    if (!plan) return failed(plan.error().message);
    const Definition* definition = dataset.find(plan->task);
    if (definition == nullptr) return failed("no task " + plan->task);
    std::vector<std::string> axes;
    for (const Axis& axis : definition->axes) {
      const auto value = plan->axes.find(axis.name);
      if (!axis.value && value != plan->axes.end())
        axes.push_back(axis.name + "=" + std::to_string(value->second));
    }
    const auto task = bind_task(dataset, plan->task, join(axes, ","));
    if (!task) return failed(task.error().message);
    Json json = Json::object(), runs = Json::object();
    bool right = true;
    for (Distribution distribution : distributions(*task)) {
      const auto run = backend.run(*task, *plan, {.inputs = {1, distribution}});
      if (!run) return failed(run.error().message);
      std::string words = std::string(name(run->status)) + " " + run->cause;
      for (const Comparison& comparison : run->comparisons) {
        char number[64];
        std::snprintf(number, sizeof number, "%.3g", comparison.normalised_error);
        words += comparison.output + (comparison.passed ? " right " : " WRONG ") + number + " " +
                 comparison.diagnosis + "; ";
        right = right && comparison.passed;
      }
      if (run->repeat_digest && *run->repeat_digest != run->output_digest)
        words += "other bits the second time";
      right = right && run->status == RunStatus::Completed;
      runs.set(std::string(name(distribution)), words + std::to_string(run->seconds) + " s");
      if (run->status != RunStatus::Completed) break;
    }
    json.set("runs", std::move(runs));
    if (!right) return json;
    const auto counts = backend.count(*task, *plan);
    if (!counts) {
      json.set("not_counted", counts.error().message);
    } else {
      const double flops = work_of(*task).matrix_flops;
      std::map<std::string, double> shares;
      for (const OpcodeCount& count : *counts) {
        if (!count.family.empty()) shares[count.family] += count.flops / flops;
      }
      Json families = Json::object();
      for (const auto& [family, share] : shares) families.set(family, share);
      json.set("flops_share_by_family", std::move(families));
    }
    const auto speed = backend.time(*task, *plan);
    if (!speed) return failed(speed.error().message);
    json.set("speedup", speed->gate.speedup ? Json(*speed->gate.speedup) : Json());
    json.set("tflops", speed->gate.tflops ? Json(*speed->gate.tflops) : Json());
    json.set("candidate_ms", speed->gate.candidate_ms ? Json(*speed->gate.candidate_ms) : Json());
    json.set("baseline", speed->gate.baseline);
    json.set("speed_status",
             std::string(name(speed->gate.status)) + " " + speed->gate.reason + speed->implausible);
    json.set("gpu_s_so_far", backend.gpu_seconds());
    return json;
  }

  const Settings& settings_;
  WorkerClient& worker_;
  Task task_;
  Json json_ = Json::object();
  bool good_ = true;
};

int main_of(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i], value = argv[i + 1];
    if (option == "--json")
      settings.json = value;
    else if (option == "--load-seconds")
      settings.load_s = parse_double(value).value_or(60);
    else if (option == "--workers")
      settings.workers = static_cast<int>(parse_int(value).value_or(10));
    else if (option == "--plans")
      settings.plans = value;
    else if (option == "--tasks")
      settings.tasks = value;
    else if (option == "--faults")
      settings.faults = static_cast<int>(parse_int(value).value_or(100));
  }
  WorkerClient worker({program_folder() + "/ptxbench-worker", {}, 60, 4096});
  const double begin_s = now_s();
  if (auto started = worker.start(); !started) {
    std::printf("not measured: %s\n", started.error().message.c_str());
    return 3;
  }
  Report report(settings, worker);
  const double start_s = now_s() - begin_s;
  report.run();
  Json json = report.take();
  json.set("worker_start_s", start_s);
  json.set("device", worker.hello());
  if (auto written = write_file(settings.json, json.dump(1) + "\n"); !written) {
    std::printf("%s\n", written.error().message.c_str());
    return 3;
  }
  return report.good() ? 0 : 1;
}

}  // namespace
}  // namespace ptxb::cuda

int main(int argc, char** argv) { return ptxb::cuda::main_of(argc, argv); }
