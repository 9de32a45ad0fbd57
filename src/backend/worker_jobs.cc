// Owns the frames of jobs and results. Reading is strict: both ends run beside hostile inputs.
// SPDX-License-Identifier: Apache-2.0
#include "backend/worker_jobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/strict_json.h"

namespace ptxb {

namespace {

constexpr size_t kText = 1u << 16, kTensors = 64, kPairs = 20000, kSass = 1u << 22;
constexpr double kHuge = 1e300;  // JSON has no infinity

double finite(double value) { return std::isnan(value) ? kHuge : std::clamp(value, -kHuge, kHuge); }

Json tensor_json(const TensorSpec& tensor) {
  Json json = Json::object(), shape = Json::array();
  for (const std::string& axis : tensor.shape) shape.push_back(axis);
  json.set("name", tensor.name);
  json.set("shape", std::move(shape));
  json.set("scalar", tensor.scalar);
  json.set("dtype", std::string(name(tensor.dtype)));
  return json;
}

TensorSpec read_tensor(ObjectReader in) {
  TensorSpec tensor;
  tensor.name = in.text("name", 256);
  for (const Json& axis : in.list("shape", 16)) {
    if (axis.is_string())
      tensor.shape.push_back(axis.as_string());
    else
      in.fail("shape", "expected axis names");
  }
  tensor.scalar = in.boolean("scalar");
  const auto dtype = parse_dtype(in.text("dtype", 32));
  if (!dtype) in.fail("dtype", "unknown element type");
  tensor.dtype = dtype.value_or(DType::F32);
  in.done();
  return tensor;
}

Json task_json(const Task& task) {
  Json json = Json::object(), axes = Json::object(), inputs = Json::array(),
       outputs = Json::array(), scalars = Json::object();
  for (const auto& [axis, value] : task.axes) axes.set(axis, value);
  for (const TensorSpec& tensor : task.definition.inputs) inputs.push_back(tensor_json(tensor));
  for (const TensorSpec& tensor : task.definition.outputs) outputs.push_back(tensor_json(tensor));
  for (const auto& [input, source] : task.workload.inputs) {
    if (source.kind == WorkloadInput::Kind::Scalar) scalars.set(input, source.value);
  }
  json.set("name", task.definition.name);
  json.set("reference", task.definition.reference);
  json.set("axes", std::move(axes));
  json.set("inputs", std::move(inputs));
  json.set("outputs", std::move(outputs));
  json.set("scalars", std::move(scalars));
  json.set("rtol", task.definition.tolerance.rtol);
  json.set("atol", task.definition.tolerance.atol);
  json.set("required_matched_ratio", task.definition.tolerance.required_matched_ratio);
  return json;
}

Task read_task(ObjectReader in) {
  Task task;
  task.definition.name = in.text("name", 256);
  task.definition.reference = in.text("reference", kText);
  if (const Json* axes = in.object("axes")) {
    for (const auto& [axis, value] : axes->members()) {
      if (!value.is_integer() || value.as_int() < 1 || value.as_int() > (int64_t{1} << 32))
        in.fail("axes", "out of range");
      else
        task.axes[axis] = value.as_int();
      task.definition.axes.push_back({axis, std::nullopt, ""});
    }
  }
  for (const char* key : {"inputs", "outputs"}) {
    auto& tensors = key[0] == 'i' ? task.definition.inputs : task.definition.outputs;
    for (const Json& tensor : in.list(key, kTensors)) {
      tensors.push_back(read_tensor(ObjectReader(tensor, in.path(key), in.faults())));
      for (const std::string& axis : tensors.back().shape) {
        if (task.axes.count(axis) == 0) in.fail(key, "a shape names an axis without a value");
      }
    }
  }
  if (const Json* scalars = in.object("scalars")) {
    for (const auto& [input, value] : scalars->members()) {
      if (!value.is_number())
        in.fail("scalars", "expected numbers");
      else
        task.workload.inputs[input] = {WorkloadInput::Kind::Scalar, value.as_double(), "", ""};
    }
  }
  task.definition.tolerance.rtol = in.real("rtol");
  task.definition.tolerance.atol = in.real("atol");
  task.definition.tolerance.required_matched_ratio = in.real("required_matched_ratio");
  in.done();
  return task;
}

Json comparison_json(const Comparison& c) {
  Json json = Json::object();
  json.set("output", c.output);
  json.set("distribution", c.distribution);
  json.set("seed", hex_address(c.seed));
  json.set("elements", c.elements);
  json.set("mismatched_a", c.mismatched_a);
  json.set("mismatched_b", c.mismatched_b);
  json.set("unwritten", c.unwritten);
  json.set("non_finite", c.non_finite);
  json.set("max_abs_error", finite(c.max_abs_error));
  json.set("max_rel_error", finite(c.max_rel_error));
  json.set("matched_ratio", finite(c.matched_ratio));
  json.set("normalised_error", finite(c.normalised_error));
  json.set("diagnosis", c.diagnosis);
  json.set("passed", c.passed);
  return json;
}

Comparison read_comparison(ObjectReader in) {
  Comparison c;
  c.output = in.text("output", 256);
  c.distribution = in.text("distribution", 64);
  c.seed = in.address("seed");
  c.elements = in.integer("elements");
  c.mismatched_a = in.integer("mismatched_a");
  c.mismatched_b = in.integer("mismatched_b");
  c.unwritten = in.integer("unwritten");
  c.non_finite = in.integer("non_finite");
  c.max_abs_error = in.real("max_abs_error");
  c.max_rel_error = in.real("max_rel_error");
  c.matched_ratio = in.real("matched_ratio");
  c.normalised_error = in.real("normalised_error");
  c.diagnosis = in.text("diagnosis", kText);
  c.passed = in.boolean("passed");
  in.done();
  return c;
}

// [time_ms, clock_mhz, power_w, digest as hexadecimal text]
Json sample_json(const timing::Sample& sample) {
  return Json::array({finite(sample.time_ms), finite(sample.clock_mhz), finite(sample.power_w),
                      hex_address(sample.digest)});
}

timing::Sample read_sample(const Json& json, ObjectReader& in, std::string_view key) {
  timing::Sample sample;
  const bool shaped = json.is_array() && json.items().size() == 4 && json.items()[0].is_number() &&
                      json.items()[1].is_number() && json.items()[2].is_number() &&
                      json.items()[3].is_string();
  const auto digest = shaped ? parse_uint(json.items()[3].as_string()) : std::nullopt;
  if (!digest) {
    in.fail(key, "expected [time_ms, clock_mhz, power_w, digest]");
    return sample;
  }
  return {json.items()[0].as_double(), json.items()[1].as_double(), json.items()[2].as_double(),
          *digest};
}

Json pairs_json(const std::vector<timing::Pair>& pairs) {
  Json json = Json::array();
  for (const timing::Pair& pair : pairs) {
    json.push_back(Json::array(
        {sample_json(pair.candidate), pair.baseline ? sample_json(*pair.baseline) : Json()}));
  }
  return json;
}

std::vector<timing::Pair> read_pairs(ObjectReader& in, std::string_view key) {
  std::vector<timing::Pair> pairs;
  for (const Json& item : in.list(key, kPairs)) {
    if (!item.is_array() || item.items().size() != 2) {
      in.fail(key, "expected pairs of samples");
      break;
    }
    timing::Pair& pair = pairs.emplace_back();
    pair.candidate = read_sample(item.items()[0], in, key);
    if (!item.items()[1].is_null()) pair.baseline = read_sample(item.items()[1], in, key);
  }
  return pairs;
}

template <class Enum>
Enum read_name(ObjectReader& in, std::string_view key, std::initializer_list<Enum> values) {
  const std::string spelled = in.text(key, 64);
  for (Enum value : values) {
    if (spelled == name(value)) return value;
  }
  in.fail(key, "unknown name");
  return *values.begin();
}

}  // namespace

std::string_view name(JobKind kind) {
  switch (kind) {
    case JobKind::Check:
      return "check";
    case JobKind::Time:
      return "time";
    case JobKind::Count:
      return "count";
  }
  return "?";
}

Frame encode_job(const WorkerJob& job) {
  Frame frame;
  frame.type = FrameType::Job;
  Json& json = frame.json = Json::object();
  json.set("job", std::string(name(job.kind)));
  json.set("plan", to_json(job.plan));
  json.set("task", task_json(job.task));
  json.set("seed", hex_address(job.inputs.seed));
  json.set("distribution", std::string(name(job.inputs.distribution)));
  json.set("run_timeout_s", job.run_timeout_s);
  json.set("repeat", job.repeat == Repeat::Twice);
  json.set("policy", timing::to_json(job.policy));
  json.set("baseline", job.baseline);
  json.set("expected_digest",
           job.expected_digest ? hex_address(*job.expected_digest) : std::string());
  for (const PlanModule& module : job.plan.modules) {
    frame.blobs.push_back(module.ptx);
    frame.blobs.push_back(module.cubin);
  }
  return frame;
}

Result<WorkerJob> decode_job(const Frame& frame) {
  Faults faults;
  ObjectReader in(frame.json, "job", faults);
  WorkerJob job;
  job.kind = read_name(in, "job", {JobKind::Check, JobKind::Time, JobKind::Count});
  const Json* plan = in.object("plan");
  if (const Json* task = in.object("task"))
    job.task = read_task(ObjectReader(*task, "job.task", faults));
  job.inputs.seed = in.address("seed");
  job.inputs.distribution = read_name(
      in, "distribution",
      {Distribution::Normal, Distribution::Spiky, Distribution::Exact, Distribution::Coded});
  job.run_timeout_s = in.real("run_timeout_s");
  if (!(job.run_timeout_s > 0 && job.run_timeout_s <= 3600))
    in.fail("run_timeout_s", "out of range");
  job.repeat = in.boolean("repeat") ? Repeat::Twice : Repeat::Once;
  const Json* policy = in.object("policy");
  job.baseline = in.text("baseline", 64);
  const std::string digest = in.text("expected_digest", 18);
  if (!digest.empty()) {
    job.expected_digest = parse_uint(digest);
    if (!job.expected_digest) in.fail("expected_digest", "expected 0x and hexadecimal digits");
  }
  in.done();
  if (faults.any()) return faults.error();
  PTXB_TRY(job.policy, timing::policy_from_json(*policy, "job.policy"));
  PTXB_TRY(job.plan, plan_from_json(*plan, "job.plan"));
  if (frame.blobs.size() != 2 * job.plan.modules.size())
    return bad_input("job: wrong number of module images");
  for (size_t i = 0; i < job.plan.modules.size(); ++i) {
    job.plan.modules[i].ptx = frame.blobs[2 * i];
    job.plan.modules[i].cubin = frame.blobs[2 * i + 1];
  }
  PTXB_CHECK_OK(validate(job.plan));
  return job;
}

Frame encode_result(const WorkerResult& result) {
  Frame frame;
  frame.type = FrameType::Outcome;
  Json& json = frame.json = Json::object();
  json.set("status", std::string(name(result.status)));
  json.set("stage", result.stage);
  json.set("error", result.error);
  json.set("cause", result.cause.substr(0, kText));
  json.set("kernel", result.kernel);
  json.set("operation", result.operation);
  json.set("ending", result.ending);
  Json comparisons = Json::array(), modified = Json::array(), sass = Json::array();
  for (const Comparison& comparison : result.comparisons)
    comparisons.push_back(comparison_json(comparison));
  for (const std::string& input : result.modified_inputs) modified.push_back(input);
  json.set("comparisons", std::move(comparisons));
  json.set("modified_inputs", std::move(modified));
  json.set("padding_modified", result.padding_modified);
  json.set("digest", hex_address(result.digest));
  json.set("repeat_digest",
           result.repeat_digest ? hex_address(*result.repeat_digest) : std::string());
  json.set("cold", pairs_json(result.cold));
  json.set("hot", pairs_json(result.hot));
  json.set("stopped", result.stopped);
  json.set("preheat_s", result.preheat_s);
  json.set("sampling_s", result.sampling_s);
  json.set("digest_mismatches", result.digest_mismatches);
  Json baseline = Json::object();
  if (result.baseline) {
    baseline.set("library", result.baseline->library);
    baseline.set("algorithm", result.baseline->algorithm);
    baseline.set("workspace_bytes", result.baseline->workspace_bytes);
    baseline.set("first_choice_ms", finite(result.baseline->first_choice_ms));
    baseline.set("chosen_ms", finite(result.baseline->chosen_ms));
    baseline.set("candidates", result.baseline->candidates);
  }
  json.set("baseline", std::move(baseline));
  json.set("baseline_missing", result.baseline_missing);
  for (const SassCount& count : result.sass) {
    sass.push_back(Json::array({count.function, count.offset_bytes, count.warps, count.threads}));
  }
  json.set("sass", std::move(sass));
  json.set("gpu_s", result.gpu_s);
  json.set("steps", result.steps.is_object() ? result.steps : Json::object());
  return frame;
}

Result<WorkerResult> decode_result(const Frame& frame) {
  if (const Json* error = frame.json.find("harness_error");
      error != nullptr && error->is_string()) {
    return harness_error("GPU worker: " + error->as_string());
  }
  Faults faults;
  ObjectReader in(frame.json, "worker result", faults);
  WorkerResult result;
  result.status = read_name(in, "status",
                            {RunStatus::Completed, RunStatus::Fault, RunStatus::Deadlock,
                             RunStatus::Budget, RunStatus::Unsupported});
  result.stage = in.text("stage", 64);
  result.error = in.text("error", 256);
  result.cause = in.text("cause", kText);
  result.kernel = in.text("kernel", kText);
  result.operation = static_cast<int>(in.integer("operation"));
  result.ending = in.boolean("ending");
  for (const Json& item : in.list("comparisons", kTensors)) {
    result.comparisons.push_back(
        read_comparison(ObjectReader(item, in.path("comparisons"), faults)));
  }
  for (const Json& item : in.list("modified_inputs", kTensors)) {
    if (item.is_string()) result.modified_inputs.push_back(item.as_string());
  }
  result.padding_modified = in.boolean("padding_modified");
  result.digest = in.address("digest");
  if (const std::string again = in.text("repeat_digest", 18); !again.empty())
    result.repeat_digest = parse_uint(again);
  result.cold = read_pairs(in, "cold");
  result.hot = read_pairs(in, "hot");
  result.stopped = in.text("stopped", 64);
  result.preheat_s = in.real("preheat_s");
  result.sampling_s = in.real("sampling_s");
  result.digest_mismatches = in.number32("digest_mismatches");
  if (const Json* baseline = in.object("baseline");
      baseline != nullptr && !baseline->members().empty()) {
    ObjectReader fields(*baseline, "worker result.baseline", faults);
    result.baseline = BaselineChoice{fields.text("library", 256),    fields.text("algorithm", 1024),
                                     fields.real("workspace_bytes"), fields.real("first_choice_ms"),
                                     fields.real("chosen_ms"),       fields.number32("candidates")};
    fields.done();
  }
  result.baseline_missing = in.text("baseline_missing", kText);
  for (const Json& item : in.list("sass", kSass)) {
    if (!item.is_array() || item.items().size() != 4 || !item.items()[0].is_string() ||
        !item.items()[1].is_integer() || !item.items()[2].is_integer() ||
        !item.items()[3].is_integer()) {
      in.fail("sass", "expected [function, offset, warps, threads]");
      break;
    }
    result.sass.push_back({item.items()[0].as_string(),
                           static_cast<uint32_t>(item.items()[1].as_uint()),
                           item.items()[2].as_uint(), item.items()[3].as_uint()});
  }
  result.gpu_s = in.real("gpu_s");
  if (const Json* steps = in.object("steps")) result.steps = *steps;
  in.done();
  if (faults.any()) return faults.error();
  return result;
}

Frame encode_harness_error(const Error& error) {
  Frame frame;
  frame.type = FrameType::Outcome;
  frame.json = Json::object();
  frame.json.set("harness_error", error.message);
  return frame;
}

}  // namespace ptxb
