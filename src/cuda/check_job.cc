// Owns the check of one plan on one set of inputs: run, surroundings, reference on the device,
// comparison, diagnosis. The reference exists in device memory only while no candidate code runs.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "base/minifloat.h"
#include "cuda/bench.h"
#include "task/diagnose.h"

namespace ptxb::cuda {

namespace {

enum class Mask { None, Causal };

struct OutputReference {
  DeviceMemory value, bound;  // f32 each
};

BoundKind bound_kind(Distribution distribution) {
  return distribution == Distribution::Exact || distribution == Distribution::Coded
             ? BoundKind::Exact
             : BoundKind::Rounded;
}

Result<std::vector<OutputReference>> allocate_reference(const Device& device, const Task& task) {
  std::vector<OutputReference> all;
  for (const TensorSpec& tensor : task.definition.outputs) {
    const uint64_t bytes = static_cast<uint64_t>(task.elements(tensor)) * sizeof(float);
    OutputReference& one = all.emplace_back();
    PTXB_TRY(one.value, device.allocate(bytes, "the reference"));
    PTXB_TRY(one.bound, device.allocate(bytes, "the reference"));
  }
  return all;
}

template <class T>
T* pointer(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);  // NOLINT: a device address in a call structure
}

Result<void> gemm_reference(Bench& bench, std::vector<OutputReference>& reference) {
  const Device& device = bench.device();
  const auto& axes = bench.job().task.axes;
  GemmCall call;
  call.m = axes.at("M");
  call.n = axes.at("N");
  call.k = axes.at("K");
  PTXB_TRY(DeviceMemory a_norms, device.allocate(static_cast<uint64_t>(call.m) * 8, "row norms"));
  PTXB_TRY(DeviceMemory b_norms, device.allocate(static_cast<uint64_t>(call.n) * 8, "row norms"));
  CUstream stream = bench.replay().stream();
  PTXB_CHECK_OK(device.row_norms(stream, bench.input(0), call.m, call.k, a_norms.get()));
  PTXB_CHECK_OK(device.row_norms(stream, bench.input(1), call.n, call.k, b_norms.get()));
  call.a = pointer<void>(bench.input(0));
  call.b = pointer<void>(bench.input(1));
  call.a_norms = pointer<double>(a_norms.get());
  call.b_norms = pointer<double>(b_norms.get());
  call.value = pointer<float>(reference[0].value.get());
  call.bound = pointer<float>(reference[0].bound.get());
  call.kind = bound_kind(bench.job().inputs.distribution);
  call.output = static_cast<Element>(bench.job().task.definition.outputs[0].dtype);
  PTXB_CHECK_OK(device.reference_gemm(stream, call));
  return bench.synchronise();  // before the norms are freed
}

Result<void> attention_reference(Bench& bench, std::vector<OutputReference>& reference, Mask mask) {
  const Device& device = bench.device();
  const auto& axes = bench.job().task.axes;
  AttentionCall call;
  call.heads = axes.at("B") * axes.at("H");
  call.length = axes.at("S");
  call.width = axes.at("D");
  const int64_t rows = call.heads * call.length;
  PTXB_TRY(DeviceMemory q_norms, device.allocate(static_cast<uint64_t>(rows) * 8, "row norms"));
  PTXB_TRY(DeviceMemory k_norms, device.allocate(static_cast<uint64_t>(rows) * 8, "row norms"));
  CUstream stream = bench.replay().stream();
  PTXB_CHECK_OK(device.row_norms(stream, bench.input(0), rows, call.width, q_norms.get()));
  PTXB_CHECK_OK(device.row_norms(stream, bench.input(1), rows, call.width, k_norms.get()));
  call.q = pointer<void>(bench.input(0));
  call.k = pointer<void>(bench.input(1));
  call.v = pointer<void>(bench.input(2));
  call.q_norms = pointer<double>(q_norms.get());
  call.k_norms = pointer<double>(k_norms.get());
  call.value = pointer<float>(reference[0].value.get());
  call.bound = pointer<float>(reference[0].bound.get());
  call.lse = pointer<float>(reference[1].value.get());
  call.lse_bound = pointer<float>(reference[1].bound.get());
  call.scale = 1 / std::sqrt(static_cast<double>(call.width));
  call.causal = mask == Mask::Causal ? 1 : 0;
  call.kind = bound_kind(bench.job().inputs.distribution);
  call.output = static_cast<Element>(bench.job().task.definition.outputs[0].dtype);
  PTXB_CHECK_OK(device.reference_attention(stream, call));
  return bench.synchronise();
}

Result<void> make_reference(Bench& bench, std::vector<OutputReference>& reference) {
  const Definition& definition = bench.job().task.definition;
  const auto shaped = [&](size_t inputs, size_t outputs, std::initializer_list<const char*> axes) {
    return definition.inputs.size() == inputs && definition.outputs.size() == outputs &&
           std::all_of(axes.begin(), axes.end(),
                       [&](const char* axis) { return bench.job().task.axes.count(axis) != 0; }) &&
           std::all_of(definition.inputs.begin(), definition.inputs.end(),
                       [](const TensorSpec& tensor) { return tensor.dtype == DType::BF16; });
  };
  if (definition.reference == "native:gemm_nt" && shaped(2, 1, {"M", "N", "K"}))
    return gemm_reference(bench, reference);
  const bool causal = definition.reference == "native:mha_with_lse_causal";
  if ((causal || definition.reference == "native:mha_with_lse") &&
      shaped(3, 2, {"B", "H", "S", "D"})) {
    return attention_reference(bench, reference, causal ? Mask::Causal : Mask::None);
  }
  return unsupported("task " + definition.name + ": no GPU reference '" +
                     definition.reference.substr(0, 60) + "' for its tensors");
}

double double_of(unsigned long long bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
Result<std::vector<T>> download(Bench& bench, CUdeviceptr address, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  PTXB_CHECK_OK(
      cuda_check(driver().cuMemcpyDtoHAsync(values.data(), address, values.size() * sizeof(T),
                                            bench.replay().stream()),
                 "download"));
  PTXB_CHECK_OK(bench.synchronise());
  return values;
}

float load_float(DType type, const uint8_t* element) {
  uint16_t half = 0;
  float single = 0;
  switch (type) {
    case DType::BF16:
      std::memcpy(&half, element, 2);
      return bf16_to_float(half);
    case DType::F16:
      std::memcpy(&half, element, 2);
      return f16_to_float(half);
    case DType::E4M3:
      return e4m3_to_float(*element);
    case DType::E5M2:
      return e5m2_to_float(*element);
    default:
      std::memcpy(&single, element, 4);
      return single;
  }
}

// Everything the diagnosis looks at, on the host; only for outputs that failed.
Result<std::string> explain(Bench& bench, size_t index, const OutputReference& reference,
                            const CompareCall& compared, CUdeviceptr totals,
                            const Comparison& comparison) {
  const Task& task = bench.job().task;
  const TensorSpec& tensor = task.definition.outputs[index];
  const int64_t count = task.elements(tensor);
  CompareCall call = compared;
  PTXB_TRY(DeviceMemory bad_map,
           bench.device().allocate(static_cast<uint64_t>(count), "the error map"));
  call.bad = pointer<uint8_t>(bad_map.get());
  PTXB_CHECK_OK(bench.device().compare(bench.replay().stream(), call, totals));
  PTXB_TRY(const std::vector<uint8_t> bad, download<uint8_t>(bench, bad_map.get(), count));
  PTXB_TRY(const std::vector<uint8_t> bytes,
           download<uint8_t>(bench, bench.output(index), task.size_bytes(tensor)));
  ReferenceOutput exact;
  PTXB_TRY(exact.value, download<float>(bench, reference.value.get(), count));
  PTXB_TRY(exact.bound, download<float>(bench, reference.bound.get(), count));
  Buffers inputs;
  for (size_t i = 0; i < task.definition.inputs.size(); ++i) {
    auto& input = inputs.emplace_back();
    if (bench.input(i) == 0) continue;
    PTXB_TRY(input,
             download<uint8_t>(bench, bench.input(i), task.size_bytes(task.definition.inputs[i])));
  }
  std::vector<float> values(static_cast<size_t>(count));
  const int64_t item = size_bytes(tensor.dtype);
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = load_float(tensor.dtype, bytes.data() + i * item);
  return diagnose({.task = task,
                   .inputs = inputs,
                   .spec = bench.job().inputs,
                   .output = index,
                   .values = values,
                   .reference = exact,
                   .bad = bad,
                   .unwritten = comparison.unwritten,
                   .non_finite = comparison.non_finite});
}

Result<Comparison> compare_output(Bench& bench, size_t index, const OutputReference& reference) {
  const WorkerJob& job = bench.job();
  const TensorSpec& tensor = job.task.definition.outputs[index];
  CompareCall call;
  call.out = pointer<void>(bench.output(index));
  call.value = pointer<float>(reference.value.get());
  call.bound = pointer<float>(reference.bound.get());
  call.count = job.task.elements(tensor);
  call.element = static_cast<Element>(tensor.dtype);
  call.rtol = job.task.definition.tolerance.rtol;
  call.atol = job.task.definition.tolerance.atol;
  call.poison = kPoisonByte;
  PTXB_TRY(DeviceMemory totals_memory,
           bench.device().allocate(2 * sizeof(CompareTotals), "comparison"));
  CUstream stream = bench.replay().stream();
  PTXB_CHECK_OK(cuda_check(
      driver().cuMemsetD8Async(totals_memory.get(), 0, 2 * sizeof(CompareTotals), stream),
      "comparison"));
  PTXB_CHECK_OK(bench.device().compare(stream, call, totals_memory.get()));
  PTXB_TRY(const std::vector<CompareTotals> fetched,
           download<CompareTotals>(bench, totals_memory.get(), 1));
  const CompareTotals& totals = fetched[0];
  Comparison out;
  out.output = tensor.name;
  out.distribution = std::string(name(job.inputs.distribution));
  out.seed = job.inputs.seed;
  out.elements = call.count;
  out.mismatched_a = static_cast<int64_t>(totals.mismatched_a);
  out.mismatched_b = static_cast<int64_t>(totals.mismatched_b);
  out.unwritten = static_cast<int64_t>(totals.unwritten);
  out.non_finite = static_cast<int64_t>(totals.non_finite);
  out.max_abs_error = double_of(totals.max_abs_bits);
  out.max_rel_error = double_of(totals.max_rel_bits);
  out.normalised_error = double_of(totals.max_normalised_bits);
  out.matched_ratio = 1 - static_cast<double>(out.mismatched_a) /
                              static_cast<double>(std::max<int64_t>(out.elements, 1));
  out.passed = out.mismatched_b == 0 && out.unwritten == 0 && out.non_finite == 0 &&
               out.matched_ratio >= job.task.definition.tolerance.required_matched_ratio;
  if (!out.passed) {
    PTXB_TRY(out.diagnosis, explain(bench, index, reference, call,
                                    totals_memory.get() + sizeof(CompareTotals), out));
  }
  return out;
}

}  // namespace

Result<WorkerResult> run_check(const Device& device, const WorkerJob& job, const Say& say) {
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
  lap("prepare");

  say("run");
  std::optional<Trouble> trouble =
      bench->replay().enqueue(bench->replay().plan().steady, Replay::Marking::Progress);
  if (!trouble) trouble = bench->replay().wait(job.run_timeout_s);
  lap("run");
  if (trouble) {
    note_trouble(*trouble, result);
    return result;
  }
  PTXB_TRY(const std::vector<uint64_t> after, bench->surroundings());
  bench->note_changes(before, after, result);
  PTXB_TRY(result.digest, bench->output_digest());
  say("compare");
  {
    if (!result.modified_inputs.empty())
      PTXB_CHECK_OK(bench->fill_inputs(job.inputs));  // the reference needs the true ones
    PTXB_TRY(std::vector<OutputReference> reference, allocate_reference(device, job.task));
    PTXB_CHECK_OK(make_reference(*bench, reference));
    lap("reference");
    for (size_t i = 0; i < reference.size(); ++i) {
      PTXB_TRY(Comparison comparison, compare_output(*bench, i, reference[i]));
      result.comparisons.push_back(std::move(comparison));
    }
    lap("compare");
  }
  if (job.repeat == Repeat::Twice) {
    // Another poison: an element that is not written, or that depends on what was there, shows in
    // the bits.
    say("repeat");
    PTXB_CHECK_OK(bench->replay().poison_outputs(0x5c));
    trouble = bench->replay().enqueue(bench->replay().plan().steady, Replay::Marking::None);
    if (!trouble) trouble = bench->replay().wait(job.run_timeout_s);
    if (trouble) {
      note_trouble(*trouble, result);
      return result;
    }
    PTXB_TRY(result.repeat_digest, bench->output_digest());
    lap("repeat");
  }
  return result;
}

}  // namespace ptxb::cuda
