// SPDX-License-Identifier: Apache-2.0
#include "task/reference.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include "base/text.h"
#include "task/reference_families.h"

namespace ptxb {

namespace {

struct Family {
  const char* name;
  Reference (*compute)(const Task&, const Buffers&, InputSpec, int);
  std::vector<std::string> axes;
  // Tensors as "bfloat16 B,H,S,D": what the code behind the name was written for.
  std::vector<std::string> inputs, outputs;
};

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {"native:gemm_nt",
       gemm_reference,
       {"M", "N", "K"},
       {"bfloat16 M,K", "bfloat16 N,K"},
       {"bfloat16 M,N"}},
      {"native:mha_with_lse",
       attention_reference,
       {"B", "H", "S", "D"},
       {"bfloat16 B,H,S,D", "bfloat16 B,H,S,D", "bfloat16 B,H,S,D"},
       {"bfloat16 B,H,S,D", "float32 B,H,S"}},
      {"native:mha_with_lse_causal",
       attention_reference,
       {"B", "H", "S", "D"},
       {"bfloat16 B,H,S,D", "bfloat16 B,H,S,D", "bfloat16 B,H,S,D"},
       {"bfloat16 B,H,S,D", "float32 B,H,S"}},
  };
  return kFamilies;
}

const Family* find_family(std::string_view reference) {
  for (const Family& family : families()) {
    if (reference == family.name) return &family;
  }
  return nullptr;
}

std::vector<std::string> signature(const std::vector<TensorSpec>& tensors) {
  std::vector<std::string> out;
  for (const TensorSpec& tensor : tensors)
    out.push_back(std::string(name(tensor.dtype)) + " " + join(tensor.shape, ","));
  return out;
}

Result<void> check_finite(const Task& task, const Reference& reference) {
  for (size_t i = 0; i < reference.outputs.size(); ++i) {
    const ReferenceOutput& output = reference.outputs[i];
    for (const auto* numbers : {&output.value, &output.bound}) {
      if (!std::all_of(numbers->begin(), numbers->end(),
                       [](float x) { return std::isfinite(x); })) {
        return harness_error("the reference of " + task.definition.name +
                             " is not finite in output " + task.definition.outputs[i].name);
      }
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> native_references() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  return names;
}

Result<void> check_reference(const Definition& definition) {
  if (definition.reference.compare(0, 7, "native:") != 0) return {};
  const Family* family = find_family(definition.reference);
  if (!family) {
    const std::string close = nearest(definition.reference, native_references());
    return bad_input("reference: no native reference '" + printable(definition.reference, 60) +
                     "'" + (close.empty() ? "" : "; did you mean " + close + "?"));
  }
  for (const std::string& axis : family->axes) {
    auto has = [&](const Axis& known) { return known.name == axis; };
    if (std::none_of(definition.axes.begin(), definition.axes.end(), has)) {
      return bad_input("reference: " + definition.reference + " needs the axis " + axis);
    }
  }
  if (signature(definition.inputs) != family->inputs ||
      signature(definition.outputs) != family->outputs) {
    return bad_input("reference: " + definition.reference + " needs inputs " +
                     join(family->inputs, ", ") + " and outputs " + join(family->outputs, ", "));
  }
  return {};
}

Result<Reference> compute_reference(const Task& task, const Buffers& inputs, InputSpec spec,
                                    int threads) {
  const Definition& definition = task.definition;
  if (definition.reference.compare(0, 7, "native:") != 0) {
    return unsupported("task " + definition.name +
                       ": its reference is source text, which this build does not run");
  }
  if (auto checked = check_reference(definition); !checked)
    return std::move(checked).error().in("task " + definition.name);
  if (inputs.size() != definition.inputs.size())
    return harness_error("task " + definition.name + ": wrong number of inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() != static_cast<size_t>(task.size_bytes(definition.inputs[i]))) {
      return harness_error("task " + definition.name + ": input " + definition.inputs[i].name +
                           " has the wrong size");
    }
  }
  Reference reference = find_family(definition.reference)->compute(task, inputs, spec, threads);
  PTXB_CHECK_OK(check_finite(task, reference));
  return reference;
}

}  // namespace ptxb
