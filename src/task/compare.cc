// SPDX-License-Identifier: Apache-2.0
#include "task/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/minifloat.h"
#include "task/diagnose.h"

namespace ptxb {

namespace {

bool is_poison(const uint8_t* element, int64_t bytes) {
  return std::all_of(element, element + bytes, [](uint8_t byte) { return byte == kPoisonByte; });
}

// NaN for the types that no reference of ours has.
float load(DType type, const uint8_t* element) {
  uint16_t half = 0;
  float single = 0;
  double wide = 0;
  switch (type) {
    case DType::BF16:
      std::memcpy(&half, element, 2);
      return bf16_to_float(half);
    case DType::F16:
      std::memcpy(&half, element, 2);
      return f16_to_float(half);
    case DType::F32:
      std::memcpy(&single, element, 4);
      return single;
    case DType::F64:
      std::memcpy(&wide, element, 8);
      return static_cast<float>(wide);
    case DType::E4M3:
      return e4m3_to_float(*element);
    case DType::E5M2:
      return e5m2_to_float(*element);
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

struct Measured {
  std::vector<float> values;
  std::vector<uint8_t> bad;  // 1: wrong by rule A or B, unwritten or not finite
};

Measured measure(const Task& task, const TensorSpec& tensor, const std::vector<uint8_t>& output,
                 const ReferenceOutput& reference, Comparison& out) {
  const Tolerance& rule = task.definition.tolerance;
  const int64_t item = size_bytes(tensor.dtype);
  Measured measured{std::vector<float>(reference.value.size()),
                    std::vector<uint8_t>(reference.value.size())};
  for (size_t i = 0; i < reference.value.size(); ++i) {
    const uint8_t* element = output.data() + static_cast<int64_t>(i) * item;
    const float value = measured.values[i] = load(tensor.dtype, element);
    const bool unwritten = is_poison(element, item);
    if (unwritten || !std::isfinite(value)) {
      ++(unwritten ? out.unwritten : out.non_finite);
      ++out.mismatched_a;
      ++out.mismatched_b;
      measured.bad[i] = 1;
      continue;
    }
    const double exact = static_cast<double>(reference.value[i]),
                 bound = static_cast<double>(reference.bound[i]);
    const double error = std::abs(static_cast<double>(value) - exact);
    const double relative = error / (std::abs(exact) + 1e-8);
    const double normalised = error > 0 ? error / bound : 0;
    const bool within_a = error <= rule.atol || relative <= rule.rtol, within_b = normalised <= 1;
    if (!within_a) ++out.mismatched_a;
    if (!within_b) ++out.mismatched_b;
    measured.bad[i] = within_b && within_a ? 0 : 1;
    out.max_abs_error = std::max(out.max_abs_error, error);
    out.max_rel_error = std::max(out.max_rel_error, relative);
    out.normalised_error = std::max(out.normalised_error, normalised);
  }
  return measured;
}

}  // namespace

std::vector<Comparison> compare(const Task& task, const Buffers& inputs, const Reference& reference,
                                const Buffers& outputs, InputSpec spec) {
  std::vector<Comparison> all;
  const std::vector<TensorSpec>& tensors = task.definition.outputs;
  PTXB_CHECK(reference.outputs.size() == tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    Comparison& out = all.emplace_back();
    out.output = tensors[i].name;
    out.distribution = std::string(name(spec.distribution));
    out.seed = spec.seed;
    out.elements = task.elements(tensors[i]);
    const size_t expected = static_cast<size_t>(task.size_bytes(tensors[i]));
    if (i >= outputs.size() || outputs[i].size() != expected) {
      out.mismatched_a = out.mismatched_b = out.elements;
      out.matched_ratio = 0;
      out.diagnosis = i >= outputs.size() ? "the output is missing"
                                          : "the output has " + std::to_string(outputs[i].size()) +
                                                " bytes instead of " + std::to_string(expected);
      continue;
    }
    const ReferenceOutput& exact = reference.outputs[i];
    const Measured measured = measure(task, tensors[i], outputs[i], exact, out);
    const double total = static_cast<double>(std::max<int64_t>(out.elements, 1));
    out.matched_ratio = 1 - static_cast<double>(out.mismatched_a) / total;
    out.passed = out.mismatched_b == 0 && out.unwritten == 0 && out.non_finite == 0 &&
                 out.matched_ratio >= task.definition.tolerance.required_matched_ratio;
    if (!out.passed) {
      out.diagnosis = diagnose({.task = task,
                                .inputs = inputs,
                                .spec = spec,
                                .output = i,
                                .values = measured.values,
                                .reference = exact,
                                .bad = measured.bad,
                                .unwritten = out.unwritten,
                                .non_finite = out.non_finite});
    }
  }
  return all;
}

Verdict verdict_of(const std::vector<Comparison>& comparisons) {
  for (const Comparison& comparison : comparisons) {
    if (comparison.passed) continue;
    // compare() measures nothing when the output is missing or has another size.
    const bool unmeasured = comparison.mismatched_b == comparison.elements &&
                            comparison.unwritten == 0 && comparison.non_finite == 0 &&
                            !(comparison.normalised_error > 0);
    if (unmeasured) return Verdict::WrongShapeOrType;
    if (comparison.unwritten > 0) return Verdict::Unwritten;
    if (comparison.non_finite > 0) return Verdict::NonFinite;
    return Verdict::WrongValues;
  }
  return Verdict::Passed;
}

}  // namespace ptxb
