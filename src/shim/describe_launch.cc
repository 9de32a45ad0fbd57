// SPDX-License-Identifier: Apache-2.0
#include "shim/describe_launch.h"

#include <algorithm>
#include <cstring>
#include <set>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/text.h"
#include "ptx/parse.h"
#include "shim/expression.h"

namespace ptxb::shim {

namespace {

constexpr size_t kMostLaunches = 64;

struct Description {
  const Artifact& artifact;
  const Task& task;
  const arch::Chip& chip;
  const ptx::Module& module;
  LaunchPlan& plan;
};

NoPlan no_plan(std::string cause) {
  return {Verdict::LaunchError, "launch.toml: " + std::move(cause), "see docs/formats.md, launch.toml"};
}

std::string where(const toml::node& node, std::string_view key) {
  return "line " + std::to_string(node.source().begin.line) + ": " + std::string(key);
}

// An integer or an expression.
Result<int64_t> number(const toml::node& node, const std::string& key, const Task& task) {
  if (auto integer = node.value_exact<int64_t>()) return *integer;
  if (auto text = node.value_exact<std::string>()) {
    auto value = evaluate_expression(*text, task.axes);
    if (!value) return std::move(value).error().in(where(node, key));
    return value;
  }
  return bad_input(where(node, key) + ": expected an integer or an expression in quotes");
}

// x, y, z; missing ones are 1. `lowest` 0 lets a grid be empty.
Result<Dim3> extents(const toml::table& table, const char* key, const std::array<int64_t, 3>& limits, int64_t lowest, const Task& task) {
  const toml::node* node = table.get(key);
  const toml::array* list = node ? node->as_array() : nullptr;
  if (!list || list->empty() || list->size() > 3) {
    return bad_input(where(node ? *node : static_cast<const toml::node&>(table), key) + ": expected a list of one to three values");
  }
  std::array<uint32_t, 3> out = {1, 1, 1};
  for (size_t i = 0; i < list->size(); ++i) {
    PTXB_TRY(int64_t value, number(*list->get(i), key, task));
    if (value < lowest || value > limits[i]) {
      return bad_input(where(*node, key) + ": " + std::to_string(value) + " is not between " + std::to_string(lowest) + " and " +
                       std::to_string(limits[i]));
    }
    out[i] = static_cast<uint32_t>(value);
  }
  return Dim3{out[0], out[1], out[2]};
}

const PlanBuffer* buffer_named(const LaunchPlan& plan, const std::string& name) {
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.name == name) return &buffer;
  }
  return nullptr;
}

bool takes_real(ptx::Type type) { return type == ptx::Type::F32 || type == ptx::Type::F64; }
bool is_bits(ptx::Type type) {
  return type == ptx::Type::B8 || type == ptx::Type::B16 || type == ptx::Type::B32 || type == ptx::Type::B64;
}

void put(std::vector<uint8_t>& params, const KernelParam& place, const void* bytes) {
  std::memcpy(params.data() + place.offset_bytes, bytes, place.size_bytes);
}

Result<void> put_float(std::vector<uint8_t>& params, const KernelParam& place, ptx::Type type, double value) {
  float narrow = static_cast<float>(value);
  if (type == ptx::Type::F32) put(params, place, &narrow);
  else put(params, place, &value);
  return {};
}

Result<void> put_integer(std::vector<uint8_t>& params, const KernelParam& place, ptx::Type type, int64_t value, const std::string& key) {
  int bits = static_cast<int>(place.size_bytes) * 8;
  if (bits < 64) {
    int64_t top_signed = (int64_t{1} << (bits - 1)) - 1, top_unsigned = (int64_t{1} << bits) - 1;
    int64_t lowest = ptx::is_signed(type) || is_bits(type) ? -top_signed - 1 : 0;
    int64_t highest = ptx::is_signed(type) ? top_signed : top_unsigned;
    if (value < lowest || value > highest) return bad_input(key + ": " + std::to_string(value) + " does not fit ." + std::string(ptx::name(type)));
  } else if (value < 0 && !ptx::is_signed(type) && !is_bits(type)) {
    return bad_input(key + ": " + std::to_string(value) + " does not fit ." + std::string(ptx::name(type)));
  }
  put(params, place, &value);
  return {};
}

Result<void> put_param(const Description& d, std::vector<uint8_t>& params, const KernelParam& place, const ptx::Variable& declared,
                       const toml::node& node, const std::string& key) {
  std::string at = where(node, key);
  if (static_cast<uint32_t>(ptx::size_bytes(declared.type)) != place.size_bytes) {
    return bad_input(at + ": array parameters cannot be described; use the plain binding");
  }
  if (ptx::is_float(declared.type) && !takes_real(declared.type)) {
    return bad_input(at + ": parameters of type ." + std::string(ptx::name(declared.type)) + " cannot be described");
  }
  auto text = node.value_exact<std::string>();
  if (text) {
    std::string name(trim(*text));
    const PlanBuffer* buffer = buffer_named(d.plan, name);
    bool axis = d.task.axes.contains(name);
    if (buffer && (place.size_bytes == 8 || !axis)) {
      if (place.size_bytes != 8 || takes_real(declared.type)) return bad_input(at + ": tensor " + name + " needs a 64-bit parameter");
      put(params, place, &buffer->address);
      return {};
    }
    auto scalar = d.task.workload.inputs.find(name);
    if (takes_real(declared.type) && scalar != d.task.workload.inputs.end() && scalar->second.kind == WorkloadInput::Kind::Scalar) {
      return put_float(params, place, declared.type, scalar->second.value);
    }
  }
  if (takes_real(declared.type)) {
    if (auto value = node.value_exact<double>()) return put_float(params, place, declared.type, *value);
    PTXB_TRY(int64_t whole, number(node, key, d.task));
    return put_float(params, place, declared.type, static_cast<double>(whole));
  }
  PTXB_TRY(int64_t value, number(node, key, d.task));
  return put_integer(params, place, declared.type, value, at);
}

Result<void> read_launch(const Description& d, const toml::table& table) {
  static const std::set<std::string_view> kKeys = {"kernel", "grid", "block", "cluster", "dynamic_shared_bytes", "params"};
  for (const auto& [key, node] : table) {
    if (!kKeys.contains(key.str())) return bad_input(where(node, key.str()) + ": unknown key");
  }
  KernelLaunch launch;
  const toml::node* kernel_node = table.get("kernel");
  auto kernel_name = kernel_node ? kernel_node->value_exact<std::string>() : std::nullopt;
  if (!kernel_name) return bad_input(where(table, "kernel") + ": missing or no text");
  const ptx::Function* function = d.module.find(*kernel_name);
  const KernelInfo* kernel = nullptr;
  for (const KernelInfo& each : d.artifact.kernels) {
    if (each.name == *kernel_name) kernel = &each;
  }
  if (!function || !kernel) return bad_input(where(*kernel_node, "kernel") + ": the PTX has no kernel named " + printable(*kernel_name, 100));
  launch.kernel = *kernel_name;
  PTXB_TRY(launch.grid, extents(table, "grid", {2147483647, 65535, 65535}, 0, d.task));
  PTXB_TRY(launch.block, extents(table, "block", {1024, 1024, 64}, 1, d.task));
  if (launch.block.volume() > std::min<uint64_t>(1024, kernel->max_threads)) {
    return bad_input(where(table, "block") + ": more threads than the kernel allows (" + std::to_string(kernel->max_threads) + ")");
  }
  if (table.contains("cluster")) {
    PTXB_TRY(launch.cluster, extents(table, "cluster", {16, 16, 16}, 1, d.task));
    if (launch.cluster.volume() > d.chip.max_cluster_size) return bad_input(where(table, "cluster") + ": more than 8 blocks");
  }
  if (const toml::node* shared = table.get("dynamic_shared_bytes")) {
    PTXB_TRY(int64_t bytes, number(*shared, "dynamic_shared_bytes", d.task));
    if (bytes < 0 || bytes > d.chip.shared_per_block_optin_bytes) {
      return bad_input(where(*shared, "dynamic_shared_bytes") + ": " + std::to_string(bytes) + " is not between 0 and " +
                       std::to_string(d.chip.shared_per_block_optin_bytes));
    }
    launch.dynamic_shared_bytes = static_cast<uint32_t>(bytes);
  }
  const toml::array* params = table["params"].as_array();
  if (!params || params->size() != kernel->params.size()) {
    return bad_input(where(table, "params") + ": the kernel takes " + std::to_string(kernel->params.size()) + " parameters");
  }
  launch.params.assign(param_bytes(*kernel), 0);
  for (size_t i = 0; i < params->size(); ++i) {
    PTXB_CHECK_OK(put_param(d, launch.params, kernel->params[i], function->params[i], *params->get(i), "params[" + std::to_string(i) + "]"));
  }
  // An empty grid is an empty tensor: nothing to launch.
  if (launch.grid.volume() > 0) d.plan.steady.push_back({.stream = 0, .after = {}, .action = std::move(launch)});
  return {};
}

void place_buffers(const Task& task, LaunchPlan& plan) {
  uint64_t next = kWindowBegin + kMappingBytes;
  auto place = [&](const TensorSpec& tensor, BufferRole role) {
    if (tensor.scalar) return;
    auto size = static_cast<uint64_t>(task.size_bytes(tensor));
    plan.buffers.push_back({tensor.name, role, placed_address(next, size), size});
    next += mapping_bytes(size) + kMappingBytes;
  };
  for (const TensorSpec& tensor : task.definition.inputs) place(tensor, BufferRole::Input);
  for (const TensorSpec& tensor : task.definition.outputs) place(tensor, BufferRole::Output);
}

}  // namespace

Result<std::variant<LaunchPlan, NoPlan>> describe_launch(const Artifact& artifact, const Task& task,
                                                         const std::string& launch_toml, const arch::Chip& chip) {
  using Answer = std::variant<LaunchPlan, NoPlan>;
  LaunchPlan plan;
  plan.arch = artifact.arch;
  plan.source_sha256 = artifact.source_sha256;
  plan.cubin_sha256 = artifact.cubin_sha256;
  plan.task = task.definition.name;
  plan.workload = task.workload.uuid;
  plan.axes = task.axes;
  plan.modules.push_back({"candidate", artifact.ptx, artifact.cubin, artifact.kernels});
  place_buffers(task, plan);
  toml::parse_result parsed = toml::parse(launch_toml);
  if (!parsed) {
    return Answer(no_plan("line " + std::to_string(parsed.error().source().begin.line) + ": " + std::string(parsed.error().description())));
  }
  const toml::table& root = parsed.table();
  for (const auto& [key, node] : root) {
    if (key.str() != "version" && key.str() != "launch") return Answer(no_plan(where(node, key.str()) + ": unknown key"));
  }
  if (root["version"].value_or(int64_t{0}) != 1) return Answer(no_plan("version: expected 1"));
  const toml::array* launches = root["launch"].as_array();
  if (!launches || launches->empty() || launches->size() > kMostLaunches) {
    return Answer(no_plan("launch: expected 1 to 64 [[launch]] tables"));
  }
  auto module = ptx::parse(artifact.ptx, "candidate.ptx");
  if (!module) return std::move(module).error();
  Description description{artifact, task, chip, *module, plan};
  for (const toml::node& node : *launches) {
    const toml::table* table = node.as_table();
    if (!table) return Answer(no_plan("launch: expected tables"));
    auto read = read_launch(description, *table);
    if (!read) return Answer(no_plan(read.error().message));
  }
  if (plan.steady.empty()) return Answer(no_plan("it launches nothing at this shape"));
  auto valid = validate(plan);
  if (!valid) return Answer(no_plan(valid.error().message));
  return Answer(std::move(plan));
}

}  // namespace ptxb::shim
