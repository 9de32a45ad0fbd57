// Owns reading one definition file and one workload file into the nouns. Never opens a file.
// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "base/text.h"
#include "task/document.h"
#include "task/load.h"

namespace ptxb {

namespace {

using dataset::Document;
using dataset::field_of;
using dataset::item_of;

constexpr size_t kMaxNames = 64;  // axes, inputs or outputs of one definition

void read_axes(Document& file, const Json& root, Definition& out) {
  const Json::Object& axes = file.object(root, "", "axes");
  if (axes.size() > kMaxNames) file.fail("axes", "more than 64 axes");
  for (const auto& [name, json] : axes) {
    std::string field = field_of("axes", name);
    file.only_keys(json, field, {"type", "value", "description"});
    if (!dataset::is_identifier(name))
      file.fail(field, "an axis is named by letters, digits and '_'");
    Axis axis{
        .name = name, .value = {}, .description = file.optional_text(json, field, "description")};
    std::string type = file.text(json, field, "type");
    if (type == "const") {
      if (const Json* value = file.member(json, field, "value")) {
        axis.value = file.integer(*value, field_of(field, "value"), 1, kMaxAxis);
      }
    } else if (type != "var") {
      file.fail(field_of(field, "type"),
                "expected const or var, got '" + printable(type, 40) + "'");
    } else if (json.find("value")) {
      file.fail(field_of(field, "value"), "a variable axis has no value");
    }
    if (file.failed()) return;
    out.axes.push_back(std::move(axis));
  }
}

const Axis* find_axis(const Definition& definition, std::string_view name) {
  for (const Axis& axis : definition.axes) {
    if (axis.name == name) return &axis;
  }
  return nullptr;
}

std::vector<std::string> axis_names(const Definition& definition) {
  std::vector<std::string> names;
  for (const Axis& axis : definition.axes) names.push_back(axis.name);
  return names;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  std::string close = nearest(word, names);
  return close.empty() ? "" : "; did you mean " + close + "?";
}

void read_tensors(Document& file, const Json& root, std::string_view key,
                  const Definition& definition, std::vector<TensorSpec>& out) {
  const Json::Object& tensors = file.object(root, "", key);
  if (!file.failed() && tensors.empty()) file.fail(key, "is empty");
  if (tensors.size() > kMaxNames) file.fail(key, "more than 64 tensors");
  for (const auto& [name, json] : tensors) {
    if (file.failed()) return;
    std::string field = field_of(key, name);
    file.only_keys(json, field, {"shape", "dtype", "description"});
    if (!dataset::is_identifier(name))
      file.fail(field, "a tensor is named by letters, digits and '_'");
    TensorSpec tensor{
        .name = name, .shape = {}, .description = file.optional_text(json, field, "description")};
    std::string dtype = file.text(json, field, "dtype");
    if (auto parsed = parse_dtype(dtype)) {
      tensor.dtype = *parsed;
    } else {
      file.fail(field_of(field, "dtype"), "unknown dtype '" + printable(dtype, 40) + "'");
    }
    const Json* shape = file.member(json, field, "shape");
    if (!shape) return;
    tensor.scalar = shape->is_null();
    std::string shape_field = field_of(field, "shape");
    if (!tensor.scalar)
      file.each_text(*shape, shape_field, [&](const std::string& axis) {
        if (!find_axis(definition, axis)) {
          file.fail(item_of(shape_field, tensor.shape.size()),
                    "unknown axis '" + printable(axis, 40) + "'" +
                        did_you_mean(axis, axis_names(definition)));
        }
        tensor.shape.push_back(axis);
      });
    if (tensor.shape.size() > 8) file.fail(shape_field, "more than 8 dimensions");
    if (file.failed()) return;
    out.push_back(std::move(tensor));
  }
}

// Values for exactly the variable axes.
std::map<std::string, int64_t> read_variable_axes(Document& file, const Json& json,
                                                  const std::string& field,
                                                  const Definition& definition) {
  std::map<std::string, int64_t> values;
  if (file.failed()) return values;
  if (!json.is_object()) return file.fail(field, "expected an object of axis values"), values;
  for (const auto& [name, value] : json.members()) {
    const Axis* axis = find_axis(definition, name);
    std::string value_field = field_of(field, name);
    if (!axis) {
      file.fail(value_field, "unknown axis" + did_you_mean(name, axis_names(definition)));
    } else if (axis->value) {
      file.fail(value_field, "is constant in the definition");
    }
    values[name] = file.integer(value, value_field, 1, kMaxAxis);
  }
  for (const Axis& axis : definition.axes) {
    if (!axis.value && !values.count(axis.name))
      file.fail(field, "misses the variable axis " + axis.name);
  }
  return values;
}

void read_tolerance(Document& file, const Json& extras, Tolerance& out) {
  const Json* json = extras.find("tolerance");
  if (!json || file.failed()) return;
  const std::string field = "ptxbench.tolerance";
  file.only_keys(*json, field, {"rtol", "atol", "required_matched_ratio"});
  if (file.failed()) return;
  if (json->find("rtol")) out.rtol = file.number(*json, field, "rtol", 0, 1);
  if (json->find("atol")) out.atol = file.number(*json, field, "atol", 0, 1e6);
  if (json->find("required_matched_ratio")) {
    out.required_matched_ratio = file.number(*json, field, "required_matched_ratio", 0, 1);
  }
}

void read_targets(Document& file, const Json& extras, Definition& out) {
  if (!extras.find("targets") || file.failed()) return;
  for (const auto& [arch, json] : file.object(extras, "ptxbench", "targets")) {
    std::string field = field_of("ptxbench.targets", arch);
    file.only_keys(json, field, {"required", "minimum_share"});
    if (!dataset::is_identifier(arch)) file.fail(field, "expected an architecture such as sm_90a");
    TargetPolicy policy;
    policy.arch = arch;
    if (const Json* required = file.member(json, field, "required")) {
      file.each_text(*required, field_of(field, "required"),
                     [&](const std::string& family) { policy.required.push_back(family); });
    }
    if (!file.failed() && json.find("minimum_share")) {
      policy.minimum_share = file.number(json, field, "minimum_share", 0, 1);
    }
    if (file.failed()) return;
    out.targets.push_back(std::move(policy));
  }
}

// Our own fields stand under one key, so that another reader of the layout can drop them.
void read_extras(Document& file, const Json& root, Definition& out) {
  const Json* extras = root.find("ptxbench");
  if (!extras || file.failed()) return;
  file.only_keys(*extras, "ptxbench",
                 {"tolerance", "targets", "baselines", "emulator_axes", "neighbours"});
  if (file.failed()) return;
  read_tolerance(file, *extras, out.tolerance);
  read_targets(file, *extras, out);
  if (extras->find("baselines")) {
    for (const auto& [arch, json] : file.object(*extras, "ptxbench", "baselines")) {
      if (!json.is_string())
        return file.fail(field_of("ptxbench.baselines", arch), "expected text");
      out.baselines[arch] = json.as_string();
    }
  }
  if (const Json* axes = extras->find("emulator_axes")) {
    out.emulator_axes = read_variable_axes(file, *axes, "ptxbench.emulator_axes", out);
  }
  if (const Json* list = extras->find("neighbours")) {
    if (!list->is_array())
      return file.fail("ptxbench.neighbours", "expected a list of axis values");
    for (size_t i = 0; i < list->items().size() && !file.failed(); ++i) {
      out.neighbours.push_back(
          read_variable_axes(file, list->items()[i], item_of("ptxbench.neighbours", i), out));
    }
  }
}

WorkloadInput read_input(Document& file, const Json& json, const std::string& field,
                         const TensorSpec& tensor) {
  WorkloadInput input;
  if (!json.is_object()) return file.fail(field, "expected an object"), input;
  std::string type = file.text(json, field, "type");
  if (file.failed()) return input;
  if (type == "random") {
    file.only_keys(json, field, {"type"});
    if (tensor.scalar) file.fail(field, "a scalar needs {\"type\": \"scalar\", \"value\": ...}");
  } else if (type == "scalar") {
    file.only_keys(json, field, {"type", "value"});
    input.kind = WorkloadInput::Kind::Scalar;
    if (!tensor.scalar) file.fail(field, "a tensor with a shape cannot be a scalar");
    const Json* value = file.member(json, field, "value");
    if (value && value->is_bool()) {
      input.value = value->as_bool() ? 1 : 0;
    } else if (value) {
      input.value = file.number(json, field, "value", -1e300, 1e300);
    }
  } else if (type == "safetensors") {
    file.only_keys(json, field, {"type", "path", "tensor_key"});
    input.kind = WorkloadInput::Kind::Safetensors;
    input.path = file.text(json, field, "path");
    input.tensor_key = file.text(json, field, "tensor_key");
    std::string fault = dataset::blob_path_fault(input.path);
    if (!fault.empty()) file.fail(field_of(field, "path"), fault);
  } else {
    file.fail(field_of(field, "type"),
              "expected random, scalar or safetensors, got '" + printable(type, 40) + "'");
  }
  return input;
}

Workload read_workload(Document& file, const Json& row, const Definition& definition) {
  Workload out;
  file.only_keys(row, "", {"definition", "workload", "solution", "evaluation"});
  if (file.failed()) return out;
  out.definition = file.text(row, "", "definition");
  if (!file.failed() && out.definition != definition.name) {
    file.fail("definition",
              "expected " + definition.name + ", got '" + printable(out.definition, 80) + "'");
  }
  const Json* json = file.member(row, "", "workload");
  if (!json) return out;
  file.only_keys(*json, "workload", {"uuid", "axes", "inputs", "outputs"});
  if (file.failed()) return out;
  out.uuid = file.text(*json, "workload", "uuid");
  if (!file.failed() && !dataset::is_file_name(out.uuid)) file.fail("workload.uuid", "is no UUID");
  if (const Json* axes = file.member(*json, "workload", "axes")) {
    out.axes = read_variable_axes(file, *axes, "workload.axes", definition);
  }
  const Json::Object& inputs = file.object(*json, "workload", "inputs");
  for (const auto& [name, input] : inputs) {
    std::string field = field_of("workload.inputs", name);
    const TensorSpec* tensor = nullptr;
    for (const TensorSpec& candidate : definition.inputs) {
      if (candidate.name == name) tensor = &candidate;
    }
    if (!tensor) return file.fail(field, "the definition has no such input"), out;
    out.inputs[name] = read_input(file, input, field, *tensor);
    if (file.failed()) return out;
  }
  for (const TensorSpec& tensor : definition.inputs) {
    if (!out.inputs.count(tensor.name))
      file.fail("workload.inputs", "misses the input " + tensor.name);
  }
  return out;
}

}  // namespace

Result<Definition> parse_definition(std::string_view text, std::string_view name) {
  if (dataset::is_lfs_pointer(text)) {
    return bad_input(std::string(name) +
                     ":1: is a Git LFS pointer, not the file; fetch it with git lfs pull");
  }
  PTXB_TRY(Json root, parse_json(text, name));
  Document file(text, name, 1);
  Definition out;
  file.only_keys(root, "",
                 {"name", "description", "op_type", "tags", "axes", "inputs", "outputs",
                  "constraints", "reference", "ptxbench"});
  if (file.failed()) return file.error();
  out.name = file.text(root, "", "name");
  if (!file.failed() && !dataset::is_file_name(out.name)) {
    file.fail("name", "is no name: letters, digits, '_', '-' and '.', 128 at most");
  }
  out.description = file.optional_text(root, "", "description");
  out.op_type = file.text(root, "", "op_type");
  if (const Json* tags = root.find("tags")) {
    if (!tags->is_null())
      file.each_text(*tags, "tags", [&](const std::string& tag) { out.tags.push_back(tag); });
  }
  if (!file.failed()) read_axes(file, root, out);
  if (!file.failed()) read_tensors(file, root, "inputs", out, out.inputs);
  if (!file.failed()) read_tensors(file, root, "outputs", out, out.outputs);
  std::set<std::string> names;
  for (const auto* list : {&out.inputs, &out.outputs}) {
    for (const TensorSpec& tensor : *list) {
      if (!names.insert(tensor.name).second) file.fail("outputs." + tensor.name, "is an input too");
    }
  }
  out.reference = file.text(root, "", "reference");
  read_extras(file, root, out);
  if (file.failed()) return file.error();
  return out;
}

Result<std::vector<Workload>> parse_workloads(std::string_view text, const Definition& definition,
                                              std::string_view name) {
  if (dataset::is_lfs_pointer(text)) {
    return bad_input(std::string(name) +
                     ":1: is a Git LFS pointer, not the file; fetch it with git lfs pull");
  }
  std::vector<Workload> out;
  std::set<std::string> uuids;
  int line_number = 0;
  for (std::string_view line : split_lines(text)) {
    ++line_number;
    if (trim(line).empty()) continue;
    PTXB_TRY(Json row, parse_json(line, std::string(name) + ":" + std::to_string(line_number)));
    Document file(line, name, line_number);
    Workload workload = read_workload(file, row, definition);
    if (!file.failed() && !uuids.insert(workload.uuid).second) {
      file.fail("workload.uuid", "a second workload with the uuid " + workload.uuid);
    }
    if (file.failed()) return file.error();
    out.push_back(std::move(workload));
  }
  return out;
}

}  // namespace ptxb
