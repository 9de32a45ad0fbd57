// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "app/commands.h"
#include "app/locate.h"
#include "base/text.h"
#include "shim/task_header.h"
#include "task/load.h"
#include "task/work.h"

namespace ptxb::app {

namespace {

std::string axes_text(const Definition& definition) {
  std::string text;
  for (const Axis& axis : definition.axes) {
    if (!text.empty()) text += ", ";
    text += axis.name;
    if (axis.value) text += "=" + std::to_string(*axis.value);
  }
  return text;
}

std::string tensor_text(const TensorSpec& tensor) {
  if (tensor.scalar) return fmt::format("{} scalar {}", tensor.name, name(tensor.dtype));
  return fmt::format("{}[{}] {}", tensor.name, join(tensor.shape, ","), name(tensor.dtype));
}

Json definition_json(const Dataset& dataset, const Definition& d) {
  Json out = Json::object();
  out.set("name", d.name).set("op_type", d.op_type).set("description", d.description);
  Json axes = Json::object();
  for (const Axis& axis : d.axes) axes.set(axis.name, axis.value ? Json(*axis.value) : Json());
  out.set("axes", axes);
  for (const auto& [key, list] : {std::pair{"inputs", &d.inputs}, std::pair{"outputs", &d.outputs}}) {
    Json tensors = Json::array();
    for (const TensorSpec& t : *list) {
      Json shape = Json::array();
      for (const std::string& axis : t.shape) shape.push_back(axis);
      tensors.push_back(Json::object().set("name", t.name).set("dtype", name(t.dtype)).set("shape", shape));
    }
    out.set(key, tensors);
  }
  Json workloads = Json::array();
  for (const Workload* w : dataset.workloads_of(d.name)) {
    Json values = Json::object();
    for (const auto& [axis, value] : w->axes) values.set(axis, value);
    workloads.push_back(Json::object().set("uuid", w->uuid).set("axes", values));
  }
  return out.set("workloads", workloads);
}

std::string definition_text(const Dataset& dataset, const Definition& d, const Terminal& terminal) {
  std::string out = terminal.paint(Colour::Bold, d.name) + "\n  " + printable(d.description, 400) + "\n\n";
  out += "  axes       " + axes_text(d) + "\n";
  for (const TensorSpec& t : d.inputs) out += "  input      " + tensor_text(t) + "\n";
  for (const TensorSpec& t : d.outputs) out += "  output     " + tensor_text(t) + "\n";
  out += "  entry      extern \"C\" " + shim::entry_signature(d) + "\n";
  out += fmt::format("  tolerance  rtol {} atol {} matched ratio {}, and the error model of docs/checking.md\n", d.tolerance.rtol,
                     d.tolerance.atol, d.tolerance.required_matched_ratio);
  for (const TargetPolicy& t : d.targets) {
    out += fmt::format("  target     {}: {} ({:.0f}% of the matrix FLOPs)\n", t.arch, join(t.required, ", "), t.minimum_share * 100);
  }
  for (const auto& [arch, library] : d.baselines) out += fmt::format("  baseline   {}: {}\n", arch, library);
  out += "\n  workloads\n";
  for (const Workload* w : dataset.workloads_of(d.name)) {
    std::string values;
    for (const auto& [axis, value] : w->axes) values += fmt::format("{}{}={}", values.empty() ? "" : ",", axis, value);
    out += fmt::format("    {}  {}\n", w->uuid, values);
  }
  std::string small;
  for (const auto& [axis, value] : d.emulator_axes) small += fmt::format("{}{}={}", small.empty() ? "" : ",", axis, value);
  out += "    " + small + "  (emulator)\n";
  return out;
}

}  // namespace

Result<Dataset> open_dataset(const Options& options) {
  if (!options.dataset.empty()) return load_dataset(options.dataset);
  PTXB_TRY(Path data, data_folder());
  return load_dataset(data / "tasks");
}

Result<int> run_tasks(const Options& options, const Terminal& terminal) {
  PTXB_TRY(Dataset dataset, open_dataset(options));
  std::string text;
  Json json;
  if (!options.source.empty()) {
    const Definition* d = dataset.find(options.source);
    if (!d) {
      std::vector<std::string> names;
      for (const Definition& each : dataset.definitions) names.push_back(each.name);
      std::string close = nearest(options.source, names);
      return not_found("no task named " + printable(options.source, 100) +
                       (close.empty() ? "; see ptxbench tasks" : "; did you mean " + close + "?"));
    }
    text = definition_text(dataset, *d, terminal);
    json = definition_json(dataset, *d);
  } else {
    json = Json::array();
    for (const Definition& d : dataset.definitions) {
      text += fmt::format("{:<28} {:<6} {:>2} workloads  {}\n", d.name, d.op_type, dataset.workloads_of(d.name).size(),
                          axes_text(d));
      json.push_back(definition_json(dataset, d));
    }
  }
  if (options.json != "-") terminal.print(text);
  if (!options.json.empty()) PTXB_CHECK_OK(write_json(options.json, json, terminal));
  return 0;
}

}  // namespace ptxb::app
