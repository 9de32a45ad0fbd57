// Owns reading a dataset of definitions and workloads (FlashInfer-Trace layout, docs/formats.md)
// and binding them to Tasks. Never makes inputs, never writes; a malformed file is one Error naming
// file, line and field.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "model/task.h"

namespace ptxb {

struct Dataset {
  Path root;
  std::vector<Definition> definitions;  // sorted by name
  std::vector<Workload> workloads;      // in file order, grouped by definition

  const Definition* find(std::string_view definition_name) const;
  std::vector<const Workload*> workloads_of(std::string_view definition_name) const;
};

// Reads ROOT/definitions/<op_type>/<name>.json and ROOT/workloads/<op_type>/<name>.jsonl. Strict:
// an unknown key, dtype, axis or input kind, a missing axis, a duplicate name or uuid, a blob path
// that is absolute or leaves ROOT, and a Git LFS pointer in place of a file are BadInput. Files in
// other folders (solutions/, traces/, blob/) are not read.
Result<Dataset> load_dataset(const Path& root);

// One file each, for tests and fuzzing; `name` is the file name used in messages.
Result<Definition> parse_definition(std::string_view text, std::string_view name);
Result<std::vector<Workload>> parse_workloads(std::string_view text, const Definition& definition,
                                              std::string_view name);

// Which shape to take when the selector is empty.
enum class ShapeChoice {
  Headline,  // the workload named by the definition's tag "headline:UUID", else the largest
  Emulator,  // the definition's emulator_axes
};

// Named bind_task, since std::bind would win overload resolution for std::string arguments.
// selector: "" | a workload uuid or a unique prefix of one (8 characters at least) |
// "AXIS=VALUE,...": all variable axes. AXIS=VALUE that equals a published workload gives that
// workload, otherwise an ad-hoc one with random inputs and the selector (variable axes in
// definition order) as its uuid. NotFound: unknown definition or workload, with the nearest name;
// BadInput: an unknown or constant axis, a value below 1 or above kMaxAxis, a missing axis.
Result<Task> bind_task(const Dataset& dataset, std::string_view definition_name,
                       std::string_view selector, ShapeChoice choice = ShapeChoice::Headline);

// The same definition at other variable axes (neighbours, emulator shapes): an ad-hoc workload, or
// the published one there.
Result<Task> at_axes(const Dataset& dataset, const Task& task,
                     const std::map<std::string, int64_t>& variable_axes);

// The definition's neighbour shapes as tasks, in file order. REQUIRES: a dataset from load_dataset
// (they were checked there).
std::vector<Task> neighbours(const Dataset& dataset, const Task& task);

// "M=128": the variable axes in definition order.
std::string shape_text(const Task& task);

inline constexpr int64_t kMaxAxis = int64_t{1} << 24;         // one axis
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 36;  // one tensor: 64 GiB

}  // namespace ptxb
