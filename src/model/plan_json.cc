// Each field of a plan is spelled here once for writing and once for reading (docs/formats.md,
// "LaunchPlan").
// SPDX-License-Identifier: Apache-2.0
#include "model/plan_json.h"

#include "base/hash.h"

namespace ptxb {

namespace {

constexpr uint32_t kAny32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kAny64 = std::numeric_limits<int64_t>::max();

template <class Items>
Json number_list(const Items& items, size_t count) {
  Json out = Json::array();
  for (size_t i = 0; i < count; ++i) out.push_back(uint64_t{items[i]});
  return out;
}

Json dim_json(const Dim3& d) { return Json::array({d.x, d.y, d.z}); }

Dim3 read_dim(ObjectReader& in, std::string_view key) {
  std::vector<uint64_t> v = in.numbers(key, 3, 3, kAny32);
  return {static_cast<uint32_t>(v[0]), static_cast<uint32_t>(v[1]), static_cast<uint32_t>(v[2])};
}

void write_one(const KernelLaunch& launch, Json& out) {
  out.set("op", "launch");
  out.set("module", launch.module).set("kernel", launch.kernel);
  out.set("grid", dim_json(launch.grid))
      .set("block", dim_json(launch.block))
      .set("cluster", dim_json(launch.cluster));
  out.set("dynamic_shared_bytes", launch.dynamic_shared_bytes);
  out.set("cooperative", launch.cooperative);
  out.set("programmatic_serialization", launch.programmatic_serialization);
  out.set("params", to_hex(launch.params));
}

void write_one(const Memset& memset, Json& out) {
  out.set("op", "memset");
  out.set("address", hex_address(memset.address)).set("pitch_bytes", memset.pitch_bytes);
  out.set("value", memset.value).set("element_bytes", memset.element_bytes);
  out.set("width_elements", memset.width_elements).set("height", memset.height);
}

void write_one(const CopyDevice& copy, Json& out) {
  out.set("op", "copy");
  out.set("destination", hex_address(copy.destination)).set("source", hex_address(copy.source));
  out.set("width_bytes", copy.width_bytes).set("height", copy.height);
  out.set("destination_pitch_bytes", copy.destination_pitch_bytes)
      .set("source_pitch_bytes", copy.source_pitch_bytes);
}

void write_one(const WriteBytes& write, Json& out) {
  out.set("op", "write");
  out.set("address", hex_address(write.address)).set("bytes", to_hex(write.bytes));
}

KernelLaunch read_launch(ObjectReader& in) {
  KernelLaunch launch;
  launch.module = in.number32("module", PlanLimits::kModules - 1);
  launch.kernel = in.text("kernel", PlanLimits::kNameBytes);
  launch.grid = read_dim(in, "grid");
  launch.block = read_dim(in, "block");
  launch.cluster = read_dim(in, "cluster");
  launch.dynamic_shared_bytes = in.number32("dynamic_shared_bytes");
  launch.cooperative = in.boolean("cooperative");
  launch.programmatic_serialization = in.boolean("programmatic_serialization");
  launch.params = in.hex("params", PlanLimits::kParamBytes);
  return launch;
}

Memset read_memset(ObjectReader& in) {
  Memset memset;
  memset.address = in.address("address");
  memset.pitch_bytes = in.number("pitch_bytes", 0, kAny64);
  memset.value = in.number32("value");
  memset.element_bytes = in.number32("element_bytes", 4);
  memset.width_elements = in.number("width_elements", 0, kAny64);
  memset.height = in.number("height", 0, kAny64);
  return memset;
}

CopyDevice read_copy(ObjectReader& in) {
  CopyDevice copy;
  copy.destination = in.address("destination");
  copy.source = in.address("source");
  copy.width_bytes = in.number("width_bytes", 0, kAny64);
  copy.height = in.number("height", 0, kAny64);
  copy.destination_pitch_bytes = in.number("destination_pitch_bytes", 0, kAny64);
  copy.source_pitch_bytes = in.number("source_pitch_bytes", 0, kAny64);
  return copy;
}

WriteBytes read_write(ObjectReader& in) {
  WriteBytes write;
  write.address = in.address("address");
  write.bytes = in.hex("bytes", PlanLimits::kWriteBytes);
  return write;
}

}  // namespace

Json kernel_json(const KernelInfo& kernel) {
  Json params = Json::array();
  for (const KernelParam& p : kernel.params)
    params.push_back(Json::array({p.offset_bytes, p.size_bytes}));
  Json out = Json::object();
  out.set("name", kernel.name).set("params", std::move(params));
  out.set("registers", kernel.registers);
  out.set("spill_store_bytes", kernel.spill_store_bytes)
      .set("spill_load_bytes", kernel.spill_load_bytes);
  out.set("static_shared_bytes", kernel.static_shared_bytes).set("const_bytes", kernel.const_bytes);
  out.set("stack_bytes", kernel.stack_bytes).set("max_threads", kernel.max_threads);
  out.set("required_cluster", dim_json(kernel.required_cluster));
  return out;
}

KernelInfo read_kernel(ObjectReader& in) {
  KernelInfo kernel;
  kernel.name = in.text("name", PlanLimits::kNameBytes);
  size_t index = 0;
  for (const Json& item : in.list("params", PlanLimits::kParamBytes)) {
    std::string where = in.path("params") + "[" + std::to_string(index++) + "]";
    if (!item.is_array() || item.items().size() != 2 || !item.items()[0].is_integer() ||
        !item.items()[1].is_integer() || item.items()[0].as_int() < 0 ||
        item.items()[1].as_int() < 0 || item.items()[0].as_uint() > PlanLimits::kParamBytes ||
        item.items()[1].as_uint() > PlanLimits::kParamBytes) {
      in.faults().add(where, "expected [offset, size] in bytes within the parameter limit");
      break;
    }
    kernel.params.push_back({static_cast<uint32_t>(item.items()[0].as_uint()),
                             static_cast<uint32_t>(item.items()[1].as_uint())});
  }
  kernel.registers = in.number32("registers");
  kernel.spill_store_bytes = in.number32("spill_store_bytes");
  kernel.spill_load_bytes = in.number32("spill_load_bytes");
  kernel.static_shared_bytes = in.number32("static_shared_bytes");
  kernel.const_bytes = in.number32("const_bytes");
  kernel.stack_bytes = in.number32("stack_bytes");
  kernel.max_threads = in.number32("max_threads");
  kernel.required_cluster = read_dim(in, "required_cluster");
  in.done();
  return kernel;
}

Json tensor_map_json(const PlanTensorMap& map) {
  Json out = Json::object();
  out.set("dtype", map.dtype).set("rank", map.rank).set("address", hex_address(map.address));
  out.set("dims", number_list(map.dims, map.rank));
  out.set("strides_bytes", number_list(map.strides_bytes, map.rank ? map.rank - 1 : 0));
  out.set("box", number_list(map.box, map.rank))
      .set("element_strides", number_list(map.element_strides, map.rank));
  out.set("interleave", map.interleave).set("swizzle", map.swizzle);
  out.set("l2_promotion", map.l2_promotion).set("oob_fill", map.oob_fill);
  return out;
}

PlanTensorMap read_tensor_map(ObjectReader& in) {
  PlanTensorMap map;
  map.dtype = in.number32("dtype", 255);
  map.rank = static_cast<uint32_t>(in.number("rank", 1, 5));
  map.address = in.address("address");
  auto fill = [&in](std::string_view key, auto& target, size_t count, uint64_t most) {
    std::vector<uint64_t> values;
    if (count)
      values = in.numbers(key, count, count, most);
    else if (!in.list(key, 1).empty())
      in.fail(key, "expected an empty list");
    for (size_t i = 0; i < count; ++i) {
      target[i] = static_cast<std::decay_t<decltype(target[0])>>(values[i]);
    }
  };
  fill("dims", map.dims, map.rank, kAny64);
  fill("strides_bytes", map.strides_bytes, map.rank - 1, kAny64);
  fill("box", map.box, map.rank, kAny32);
  fill("element_strides", map.element_strides, map.rank, kAny32);
  map.interleave = in.number32("interleave", 255);
  map.swizzle = in.number32("swizzle", 255);
  map.l2_promotion = in.number32("l2_promotion", 255);
  map.oob_fill = in.number32("oob_fill", 255);
  in.done();
  return map;
}

void write_action(const PlanAction& action, Json& out) {
  std::visit([&out](const auto& one) { write_one(one, out); }, action);
}

PlanAction read_action(ObjectReader& in) {
  std::string op = in.text("op", 16);
  if (op == "launch") return read_launch(in);
  if (op == "memset") return read_memset(in);
  if (op == "copy") return read_copy(in);
  if (op == "write") return read_write(in);
  in.fail("op", "expected launch, memset, copy or write");
  return WriteBytes{};
}

namespace {

constexpr const char* kSchema = "ptxbench.launch_plan/1";
constexpr const char* kRoles[] = {"input", "output", "scratch"};

Json operations_json(const std::vector<PlanOperation>& operations) {
  Json out = Json::array();
  for (const PlanOperation& operation : operations) {
    Json item = Json::object();
    item.set("stream", operation.stream);
    item.set("after", number_list(operation.after, operation.after.size()));
    write_action(operation.action, item);
    out.push_back(std::move(item));
  }
  return out;
}

// Calls body(reader) for each object of a list.
template <class Body>
void each(ObjectReader& in, std::string_view key, size_t limit_items, Body body) {
  size_t index = 0;
  for (const Json& item : in.list(key, limit_items)) {
    if (in.faults().any()) return;
    ObjectReader reader(item, in.path(key) + "[" + std::to_string(index++) + "]", in.faults());
    body(reader);
    reader.done();
  }
}

std::vector<PlanOperation> read_operations(ObjectReader& in, std::string_view key,
                                           uint64_t& write_total) {
  std::vector<PlanOperation> out;
  each(in, key, PlanLimits::kOperations, [&](ObjectReader& item) {
    PlanOperation operation;
    operation.stream = item.number32("stream", PlanLimits::kStreams - 1);
    for (uint64_t index : item.numbers("after", 0, PlanLimits::kAfter, PlanLimits::kOperations)) {
      operation.after.push_back(static_cast<uint32_t>(index));
    }
    operation.action = read_action(item);
    if (auto* write = std::get_if<WriteBytes>(&operation.action))
      write_total += write->bytes.size();
    if (write_total > PlanLimits::kWriteBytesTotal)
      item.fail("bytes", "the plan's literal bytes exceed 64 MiB in all");
    out.push_back(std::move(operation));
  });
  return out;
}

}  // namespace

Json to_json(const LaunchPlan& plan) {
  Json out = Json::object();
  out.set("schema", kSchema).set("arch", plan.arch);
  out.set("source_sha256", plan.source_sha256).set("cubin_sha256", plan.cubin_sha256);
  out.set("task", plan.task).set("workload", plan.workload);
  Json axes = Json::object();
  for (const auto& [axis, value] : plan.axes) axes.set(axis, value);
  out.set("axes", std::move(axes));
  Json buffers = Json::array(), symbols = Json::array(), modules = Json::array(),
       maps = Json::array();
  for (const PlanBuffer& buffer : plan.buffers) {
    Json item = Json::object();
    item.set("name", buffer.name).set("role", kRoles[static_cast<size_t>(buffer.role)]);
    item.set("address", hex_address(buffer.address)).set("size_bytes", buffer.size_bytes);
    buffers.push_back(std::move(item));
  }
  for (const PlanSymbol& symbol : plan.symbols) {
    Json item = Json::object();
    item.set("module", symbol.module).set("name", symbol.name);
    item.set("address", hex_address(symbol.address)).set("size_bytes", symbol.size_bytes);
    symbols.push_back(std::move(item));
  }
  for (const PlanModule& module : plan.modules) {
    Json kernels = Json::array();
    for (const KernelInfo& kernel : module.kernels) kernels.push_back(kernel_json(kernel));
    Json item = Json::object();
    item.set("name", module.name);
    item.set("ptx_sha256", module.ptx.empty() ? "" : sha256_hex(module.ptx));
    item.set("cubin_sha256", module.cubin.empty() ? "" : sha256_hex(module.cubin));
    item.set("kernels", std::move(kernels));
    modules.push_back(std::move(item));
  }
  for (const PlanTensorMap& map : plan.tensor_maps) maps.push_back(tensor_map_json(map));
  out.set("buffers", std::move(buffers))
      .set("symbols", std::move(symbols))
      .set("modules", std::move(modules));
  out.set("tensor_maps", std::move(maps));
  out.set("setup", operations_json(plan.setup)).set("steady", operations_json(plan.steady));
  return out;
}

Result<LaunchPlan> plan_from_json(const Json& json, std::string_view name) {
  Faults faults;
  ObjectReader in(json, std::string(name), faults);
  LaunchPlan plan;
  if (in.text("schema", 64) != kSchema)
    in.fail("schema", std::string("expected \"") + kSchema + "\"");
  plan.arch = in.text("arch", 32);
  plan.source_sha256 = in.text("source_sha256", 64);
  plan.cubin_sha256 = in.text("cubin_sha256", 64);
  plan.task = in.text("task", PlanLimits::kNameBytes);
  plan.workload = in.text("workload", PlanLimits::kNameBytes);
  if (const Json* axes = in.object("axes")) {
    if (axes->members().size() > 256) in.fail("axes", "more than 256 axes");
    ObjectReader reader(*axes, in.path("axes"), faults);
    for (const auto& [axis, value] : axes->members()) plan.axes[axis] = reader.integer(axis);
  }
  each(in, "buffers", PlanLimits::kBuffers, [&](ObjectReader& item) {
    PlanBuffer buffer;
    buffer.name = item.text("name", PlanLimits::kNameBytes);
    std::string role = item.text("role", 16);
    auto* found = std::find(std::begin(kRoles), std::end(kRoles), role);
    if (found == std::end(kRoles))
      item.fail("role", "expected input, output or scratch");
    else
      buffer.role = static_cast<BufferRole>(found - kRoles);
    buffer.address = item.address("address");
    buffer.size_bytes = item.number("size_bytes", 0, kAny64);
    plan.buffers.push_back(std::move(buffer));
  });
  each(in, "symbols", PlanLimits::kSymbols, [&](ObjectReader& item) {
    PlanSymbol symbol;
    symbol.module = item.number32("module", PlanLimits::kModules - 1);
    symbol.name = item.text("name", PlanLimits::kNameBytes);
    symbol.address = item.address("address");
    symbol.size_bytes = item.number("size_bytes", 0, kAny64);
    plan.symbols.push_back(std::move(symbol));
  });
  each(in, "modules", PlanLimits::kModules, [&](ObjectReader& item) {
    PlanModule module;
    module.name = item.text("name", PlanLimits::kNameBytes);
    item.text("ptx_sha256", 64);  // read_plan compares them with the files' bytes
    item.text("cubin_sha256", 64);
    each(item, "kernels", PlanLimits::kKernels,
         [&](ObjectReader& kernel) { module.kernels.push_back(read_kernel(kernel)); });
    plan.modules.push_back(std::move(module));
  });
  each(in, "tensor_maps", PlanLimits::kTensorMaps,
       [&](ObjectReader& item) { plan.tensor_maps.push_back(read_tensor_map(item)); });
  uint64_t write_total = 0;
  plan.setup = read_operations(in, "setup", write_total);
  plan.steady = read_operations(in, "steady", write_total);
  in.done();
  if (faults.any()) return faults.error();
  return plan;
}

}  // namespace ptxb
