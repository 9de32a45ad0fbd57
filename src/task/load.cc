// SPDX-License-Identifier: Apache-2.0
#include "task/load.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "base/text.h"
#include "task/reference.h"

namespace ptxb {

namespace {

constexpr uint64_t kMaxDefinitionBytes = uint64_t{8} << 20;
constexpr uint64_t kMaxWorkloadBytes = uint64_t{256} << 20;
constexpr size_t kMaxFiles = 100000;

// Files ROOT/<kind>/<op_type>/*<extension>, sorted, so that a dataset reads the same on every file
// system.
Result<std::vector<Path>> files_under(const Path& folder, std::string_view extension) {
  std::vector<Path> found;
  std::error_code error;
  std::filesystem::directory_iterator groups(folder, error), end;
  if (error) return not_found(folder.string() + ": cannot list: " + error.message());
  for (; groups != end; groups.increment(error)) {
    if (error) return io_error(folder.string() + ": " + error.message());
    if (!groups->is_directory(error)) continue;
    std::filesystem::directory_iterator files(groups->path(), error);
    if (error) return io_error(groups->path().string() + ": cannot list: " + error.message());
    for (; files != end; files.increment(error)) {
      if (error) return io_error(groups->path().string() + ": " + error.message());
      if (files->path().extension() == extension) found.push_back(files->path());
      if (found.size() > kMaxFiles)
        return limit_error(folder.string() + ": more than 100000 files");
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string relative_name(const Path& root, const Path& path) {
  return path.lexically_relative(root).string();
}

Result<std::string> read_dataset_file(const Path& root, const Path& path, uint64_t limit_bytes) {
  std::error_code error;
  Path real_root = std::filesystem::canonical(root, error),
       real = std::filesystem::canonical(path, error);
  if (error) return io_error(path.string() + ": " + error.message());
  Path inside = real.lexically_relative(real_root);
  if (inside.empty() || *inside.begin() == "..")
    return bad_input(path.string() + ": is a link that leaves the dataset");
  return read_file(path, limit_bytes);
}

std::map<std::string, int64_t> all_axes(const Definition& definition, const Workload& workload) {
  std::map<std::string, int64_t> axes = workload.axes;
  for (const Axis& axis : definition.axes) {
    if (axis.value) axes[axis.name] = *axis.value;
  }
  return axes;
}

std::string variable_text(const Definition& definition,
                          const std::map<std::string, int64_t>& values) {
  std::vector<std::string> parts;
  for (const Axis& axis : definition.axes) {
    auto value = values.find(axis.name);
    if (!axis.value && value != values.end())
      parts.push_back(axis.name + "=" + std::to_string(value->second));
  }
  return join(parts, ",");
}

Result<Task> make_task(const Definition& definition, Workload workload) {
  Task task{definition, std::move(workload), {}};
  task.axes = all_axes(definition, task.workload);
  for (const auto* list : {&definition.inputs, &definition.outputs}) {
    for (const TensorSpec& tensor : *list) {
      int64_t bytes = size_bytes(tensor.dtype);
      for (const std::string& axis : tensor.shape) {
        if (__builtin_mul_overflow(bytes, task.axes.at(axis), &bytes) || bytes > kMaxTensorBytes) {
          return bad_input("task " + definition.name + " at " +
                           variable_text(definition, task.workload.axes) + ": tensor " +
                           tensor.name + " is larger than 64 GiB");
        }
      }
    }
  }
  return task;
}

Workload ad_hoc(const Definition& definition, std::map<std::string, int64_t> axes) {
  Workload workload;
  workload.definition = definition.name;
  workload.uuid = variable_text(definition, axes);
  workload.axes = std::move(axes);
  for (const TensorSpec& tensor : definition.inputs) workload.inputs[tensor.name] = WorkloadInput{};
  return workload;
}

// The shapes that a definition itself names must be makeable, and its reference must fit it.
Result<void> check_shapes(const Definition& definition) {
  PTXB_CHECK_OK(check_reference(definition));
  if (!definition.emulator_axes.empty())
    PTXB_CHECK_OK(make_task(definition, ad_hoc(definition, definition.emulator_axes)));
  for (const auto& axes : definition.neighbours)
    PTXB_CHECK_OK(make_task(definition, ad_hoc(definition, axes)));
  return {};
}

Result<Task> task_at(const Dataset& dataset, const Definition& definition,
                     std::map<std::string, int64_t> axes) {
  for (const Workload* workload : dataset.workloads_of(definition.name)) {
    if (workload->axes == axes) return make_task(definition, *workload);
  }
  for (const TensorSpec& tensor : definition.inputs) {
    if (tensor.scalar) {
      return bad_input("task " + definition.name + ": input " + tensor.name +
                       " is a scalar, so only published workloads can be bound");
    }
  }
  return make_task(definition, ad_hoc(definition, std::move(axes)));
}

std::string published_values(const Dataset& dataset, const Definition& definition) {
  std::vector<std::string> shapes;
  for (const Workload* workload : dataset.workloads_of(definition.name)) {
    shapes.push_back(variable_text(definition, workload->axes));
  }
  return shapes.empty() ? "" : "; published: " + join(shapes, " ");
}

// Checks one axis value against the definition; the message says what would be right.
Result<void> check_axis(const Dataset& dataset, const Definition& definition,
                        const std::string& name, int64_t value) {
  std::vector<std::string> variable;
  for (const Axis& axis : definition.axes) {
    if (!axis.value) variable.push_back(axis.name);
    if (axis.name != name) continue;
    if (axis.value)
      return bad_input("axis " + name + " of " + definition.name + " is constant (" +
                       std::to_string(*axis.value) + ")");
    if (value < 1 || value > kMaxAxis) {
      return bad_input("axis " + name + " of " + definition.name + " must be within 1 and " +
                       std::to_string(kMaxAxis) + ", got " + std::to_string(value) +
                       published_values(dataset, definition));
    }
    return {};
  }
  std::string close = nearest(name, variable);
  return bad_input("unknown axis '" + printable(name, 40) + "' of " + definition.name +
                   (close.empty() ? "; variable axes: " + join(variable, ", ")
                                  : "; did you mean " + close + "?"));
}

Result<std::map<std::string, int64_t>> parse_axes(const Dataset& dataset,
                                                  const Definition& definition,
                                                  std::string_view selector) {
  std::map<std::string, int64_t> axes;
  for (std::string_view part : split(selector, ',')) {
    size_t equals = part.find('=');
    std::string name(trim(part.substr(0, equals)));
    auto value =
        equals == std::string_view::npos ? std::nullopt : parse_int(trim(part.substr(equals + 1)));
    if (!value)
      return bad_input("workload '" + printable(selector, 80) +
                       "': expected AXIS=WHOLE NUMBER,...");
    PTXB_CHECK_OK(check_axis(dataset, definition, name, *value));
    if (!axes.emplace(name, *value).second)
      return bad_input("workload: axis " + name + " is given twice");
  }
  return axes;
}

Result<void> check_complete(const Definition& definition,
                            const std::map<std::string, int64_t>& axes) {
  for (const Axis& axis : definition.axes) {
    if (!axis.value && !axes.count(axis.name)) {
      return bad_input("task " + definition.name + ": the variable axis " + axis.name +
                       " has no value");
    }
  }
  return {};
}

Result<Task> by_uuid(const Dataset& dataset, const Definition& definition,
                     std::string_view selector) {
  std::vector<const Workload*> matches;
  std::vector<std::string> uuids;
  for (const Workload* workload : dataset.workloads_of(definition.name)) {
    if (workload->uuid == selector) return make_task(definition, *workload);
    if (selector.size() >= 8 && workload->uuid.compare(0, selector.size(), selector) == 0)
      matches.push_back(workload);
    uuids.push_back(workload->uuid);
  }
  if (matches.size() == 1) return make_task(definition, *matches[0]);
  if (matches.size() > 1) {
    return bad_input("workload '" + printable(selector, 80) + "' of " + definition.name +
                     " is not unique");
  }
  std::string close = nearest(selector, uuids);
  return not_found(
      "task " + definition.name + " has no workload '" + printable(selector, 80) + "'" +
      (close.empty() ? published_values(dataset, definition) : "; did you mean " + close + "?"));
}

Result<Task> headline(const Dataset& dataset, const Definition& definition) {
  const Workload* best = nullptr;
  auto volume = [&](const Workload& workload) {
    double product = 1;
    for (const auto& [name, value] : workload.axes) product *= static_cast<double>(value);
    return product;
  };
  for (const Workload* workload : dataset.workloads_of(definition.name)) {
    for (const std::string& tag : definition.tags) {
      if (tag == "headline:" + workload->uuid) return make_task(definition, *workload);
    }
    if (!best || volume(*workload) > volume(*best)) best = workload;
  }
  if (!best) return not_found("task " + definition.name + " has no workload; give AXIS=VALUE,...");
  return make_task(definition, *best);
}

}  // namespace

const Definition* Dataset::find(std::string_view definition_name) const {
  for (const Definition& definition : definitions) {
    if (definition.name == definition_name) return &definition;
  }
  return nullptr;
}

std::vector<const Workload*> Dataset::workloads_of(std::string_view definition_name) const {
  std::vector<const Workload*> found;
  for (const Workload& workload : workloads) {
    if (workload.definition == definition_name) found.push_back(&workload);
  }
  return found;
}

Result<Dataset> load_dataset(const Path& root) {
  Dataset out;
  out.root = root;
  std::map<std::string, std::string> file_of;  // definition name -> file, and uuid -> file
  PTXB_TRY(std::vector<Path> definitions, files_under(root / "definitions", ".json"));
  for (const Path& path : definitions) {
    std::string name = relative_name(root, path);
    PTXB_TRY(std::string text, read_dataset_file(root, path, kMaxDefinitionBytes));
    PTXB_TRY(Definition definition, parse_definition(text, name));
    if (auto checked = check_shapes(definition); !checked)
      return std::move(checked).error().in(name);
    auto [at, fresh] = file_of.emplace(definition.name, name);
    if (!fresh)
      return bad_input(name + ":1: name: " + definition.name + " is defined in " + at->second +
                       " too");
    out.definitions.push_back(std::move(definition));
  }
  if (out.definitions.empty())
    return bad_input((root / "definitions").string() + ": no definition (<op_type>/<name>.json)");
  std::sort(out.definitions.begin(), out.definitions.end(),
            [](const Definition& a, const Definition& b) { return a.name < b.name; });

  std::error_code error;
  if (!std::filesystem::exists(root / "workloads", error)) return out;
  std::map<std::string, std::string> file_of_uuid;
  PTXB_TRY(std::vector<Path> workloads, files_under(root / "workloads", ".jsonl"));
  for (const Path& path : workloads) {
    std::string name = relative_name(root, path);
    const Definition* definition = out.find(path.stem().string());
    if (!definition) return bad_input(name + ":1: workloads of a definition that does not exist");
    PTXB_TRY(std::string text, read_dataset_file(root, path, kMaxWorkloadBytes));
    PTXB_TRY(std::vector<Workload> rows, parse_workloads(text, *definition, name));
    for (Workload& row : rows) {
      auto [at, fresh] = file_of_uuid.emplace(row.uuid, name);
      if (!fresh)
        return bad_input(name + ": workload.uuid: " + row.uuid + " is used in " + at->second +
                         " too");
      PTXB_TRY(Task checked, make_task(*definition, row));
      out.workloads.push_back(std::move(checked.workload));
    }
  }
  return out;
}

Result<Task> bind_task(const Dataset& dataset, std::string_view definition_name,
                       std::string_view selector, ShapeChoice choice) {
  const Definition* definition = dataset.find(definition_name);
  if (!definition) {
    std::vector<std::string> names;
    for (const Definition& known : dataset.definitions) names.push_back(known.name);
    std::string close = nearest(definition_name, names);
    return not_found("unknown task '" + printable(definition_name, 80) + "'" +
                     (close.empty() ? "" : "; did you mean " + close + "?"));
  }
  selector = trim(selector);
  if (selector.empty() && choice == ShapeChoice::Emulator) {
    PTXB_CHECK_OK(check_complete(*definition, definition->emulator_axes));
    return task_at(dataset, *definition, definition->emulator_axes);
  }
  if (selector.empty()) return headline(dataset, *definition);
  if (selector.find('=') == std::string_view::npos) return by_uuid(dataset, *definition, selector);
  PTXB_TRY(auto axes, parse_axes(dataset, *definition, selector));
  PTXB_CHECK_OK(check_complete(*definition, axes));
  return task_at(dataset, *definition, std::move(axes));
}

Result<Task> at_axes(const Dataset& dataset, const Task& task,
                     const std::map<std::string, int64_t>& variable_axes) {
  for (const auto& [name, value] : variable_axes) {
    PTXB_CHECK_OK(check_axis(dataset, task.definition, name, value));
  }
  PTXB_CHECK_OK(check_complete(task.definition, variable_axes));
  return task_at(dataset, task.definition, variable_axes);
}

std::vector<Task> neighbours(const Dataset& dataset, const Task& task) {
  std::vector<Task> out;
  for (const auto& axes : task.definition.neighbours) {
    if (auto neighbour = at_axes(dataset, task, axes)) out.push_back(std::move(*neighbour));
  }
  return out;
}

std::string shape_text(const Task& task) {
  return variable_text(task.definition, task.workload.axes);
}

}  // namespace ptxb
