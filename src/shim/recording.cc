// SPDX-License-Identifier: Apache-2.0
#include "shim/recording.h"

#include "model/plan_json.h"

namespace ptxb::shim {

namespace {

constexpr const char* kRecordingSchema = "ptxbench.recording/1";
constexpr const char* kRequestSchema = "ptxbench.record_request/1";
constexpr const char* kStreams[] = {"caller", "legacy", "per_thread", "blocking", "non_blocking"};
constexpr const char* kSteps[] = {"work",        "graph",      "record_event", "wait_event",
                                  "sync_stream", "sync_event", "sync_device",  "allocate",
                                  "free",        "free_async"};
constexpr const char* kEndings[] = {"complete", "no_entry", "threw", "unsupported", "exited", "work_library"};
constexpr const char* kBindings[] = {"plain", "tvm-ffi", "ptx"};
constexpr size_t kStepLimit = 8 * PlanLimits::kOperations;
constexpr size_t kTextBytes = 16384;
constexpr uint32_t kEventLimit = 1u << 20;

template <class E, size_t N>
E read_choice(ObjectReader& in, std::string_view key, const char* const (&names)[N]) {
  std::string text = in.text(key, 32);
  for (size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<E>(i);
  }
  in.fail(key, "unknown value \"" + printable(text, 32) + "\"");
  return static_cast<E>(0);
}

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

template <class Items, class Write>
Json list_json(const Items& items, Write write) {
  Json out = Json::array();
  for (const auto& item : items) out.push_back(write(item));
  return out;
}

Json after_json(const std::vector<uint32_t>& after) {
  return list_json(after, [](uint32_t index) { return Json(index); });
}

std::vector<uint32_t> read_after(ObjectReader& in, uint32_t most) {
  std::vector<uint32_t> out;
  for (uint64_t index : in.numbers("after", 0, PlanLimits::kAfter, most))
    out.push_back(static_cast<uint32_t>(index));
  return out;
}

bool has_stream(Step::Kind kind) {
  using K = Step::Kind;
  return kind == K::Work || kind == K::Graph || kind == K::RecordEvent || kind == K::WaitEvent ||
         kind == K::SyncStream || kind == K::FreeAsync;
}
bool has_event(Step::Kind kind) {
  using K = Step::Kind;
  return kind == K::RecordEvent || kind == K::WaitEvent || kind == K::SyncEvent;
}
bool has_allocation(Step::Kind kind) {
  using K = Step::Kind;
  return kind == K::Allocate || kind == K::Free || kind == K::FreeAsync;
}

Json step_json(const Step& step) {
  Json out = Json::object();
  out.set("step", kSteps[static_cast<size_t>(step.kind)]);
  if (has_stream(step.kind)) out.set("stream", step.stream);
  if (has_event(step.kind)) out.set("event", step.event);
  if (has_allocation(step.kind)) out.set("allocation", step.allocation);
  if (step.kind == Step::Kind::Work) write_action(*step.action, out);
  if (step.kind == Step::Kind::Graph) {
    out.set("nodes", list_json(step.nodes, [](const GraphWork& node) {
              Json item = Json::object();
              item.set("after", after_json(node.after));
              if (node.action) write_action(*node.action, item);
              return item;
            }));
  }
  return out;
}

Step read_step(ObjectReader& in, const Recording& recording, size_t& work) {
  Step step;
  step.kind = read_choice<Step::Kind>(in, "step", kSteps);
  auto below = [&in](std::string_view key, size_t count) {
    if (count == 0) return in.fail(key, "there is none"), 0u;
    return in.number32(key, static_cast<uint32_t>(count - 1));
  };
  if (has_stream(step.kind)) step.stream = below("stream", recording.streams.size());
  if (has_event(step.kind)) step.event = below("event", recording.events);
  if (has_allocation(step.kind))
    step.allocation = below("allocation", recording.allocations.size());
  if (step.kind == Step::Kind::Work) {
    step.action = read_action(in);
    ++work;
  }
  if (step.kind == Step::Kind::Graph) {
    each(in, "nodes", PlanLimits::kOperations, [&](ObjectReader& item) {
      GraphWork node;
      node.after = read_after(item, static_cast<uint32_t>(PlanLimits::kOperations));
      for (uint32_t earlier : node.after) {
        if (earlier >= step.nodes.size()) item.fail("after", "not an earlier node");
      }
      if (item.has("op")) node.action = read_action(item);
      step.nodes.push_back(std::move(node));
      ++work;
    });
  }
  if (work > PlanLimits::kOperations) in.fail("step", "too many operations in one call");
  return step;
}

Json symbol_json(const PlanSymbol& symbol) {
  Json item = Json::object();
  item.set("module", symbol.module).set("name", symbol.name);
  item.set("address", hex_address(symbol.address)).set("size_bytes", symbol.size_bytes);
  return item;
}

PlanSymbol read_symbol(ObjectReader& in) {
  PlanSymbol symbol;
  symbol.module = in.number32("module", PlanLimits::kModules);
  symbol.name = in.text("name", PlanLimits::kNameBytes);
  symbol.address = in.address("address");
  symbol.size_bytes = in.number("size_bytes", 0, kWindowEnd - kWindowBegin);
  return symbol;
}

}  // namespace

std::string_view name(Ending ending) { return kEndings[static_cast<size_t>(ending)]; }

Json to_json(const Recording& r) {
  Json out = Json::object();
  out.set("schema", kRecordingSchema)
      .set("ending", name(r.ending))
      .set("call", r.call)
      .set("detail", r.detail);
  out.set("streams", list_json(r.streams, [](StreamKind kind) {
            return Json(kStreams[static_cast<size_t>(kind)]);
          }));
  out.set("events", r.events);
  out.set("allocations", list_json(r.allocations, [](const Allocation& a) {
            Json item = Json::object();
            item.set("address", hex_address(a.address)).set("size_bytes", a.size_bytes);
            return item;
          }));
  out.set("symbols", list_json(r.symbols, symbol_json));
  out.set("modules", list_json(r.modules, [](const PlanModule& m) {
            Json item = Json::object();
            item.set("name", m.name).set("ptx", m.ptx);
            item.set("cubin",
                     to_hex({reinterpret_cast<const uint8_t*>(m.cubin.data()), m.cubin.size()}));
            item.set("kernels", list_json(m.kernels, kernel_json));
            return item;
          }));
  out.set("tensor_maps", list_json(r.tensor_maps, tensor_map_json));
  out.set("calls", list_json(r.calls, [](const std::vector<Step>& steps) {
            return list_json(steps, step_json);
          }));
  out.set("refusals", list_json(r.refusals, [](const Refusal& refusal) {
            Json item = Json::object();
            item.set("call", refusal.call).set("api", refusal.api).set("why", refusal.why);
            return item;
          }));
  out.set("notes", list_json(r.notes, [](const std::string& note) { return Json(note); }));
  return out;
}

Result<Recording> recording_from_json(const Json& json, std::string_view document) {
  Faults faults;
  ObjectReader in(json, std::string(document), faults);
  Recording r;
  if (in.text("schema", 64) != kRecordingSchema)
    in.fail("schema", std::string("expected \"") + kRecordingSchema + "\"");
  r.ending = read_choice<Ending>(in, "ending", kEndings);
  r.call = static_cast<int>(in.number("call", 0, kCalls));
  r.detail = in.text("detail", kTextBytes);
  const Json::Array& streams = in.list("streams", PlanLimits::kStreams);
  for (size_t i = 0; i < streams.size(); ++i) {
    auto* found = streams[i].is_string()
                      ? std::find(std::begin(kStreams), std::end(kStreams), streams[i].as_string())
                      : std::end(kStreams);
    if (found == std::end(kStreams))
      in.fail("streams", "unknown kind of stream");
    else
      r.streams.push_back(static_cast<StreamKind>(found - kStreams));
  }
  r.events = in.number32("events", kEventLimit);
  each(in, "allocations", kStepLimit, [&](ObjectReader& item) {
    Allocation a;
    a.address = item.address("address");
    a.size_bytes = item.number("size_bytes", 0, kWindowEnd - kWindowBegin);
    r.allocations.push_back(a);
  });
  each(in, "symbols", PlanLimits::kSymbols,
       [&](ObjectReader& item) { r.symbols.push_back(read_symbol(item)); });
  each(in, "modules", PlanLimits::kModules - 1, [&](ObjectReader& item) {
    PlanModule module;
    module.name = item.text("name", PlanLimits::kNameBytes);
    module.ptx = item.text("ptx", PlanLimits::kModuleBytes);
    std::vector<uint8_t> cubin = item.hex("cubin", PlanLimits::kModuleBytes);
    module.cubin.assign(cubin.begin(), cubin.end());
    each(item, "kernels", PlanLimits::kKernels,
         [&](ObjectReader& k) { module.kernels.push_back(read_kernel(k)); });
    r.modules.push_back(std::move(module));
  });
  each(in, "tensor_maps", PlanLimits::kTensorMaps,
       [&](ObjectReader& item) { r.tensor_maps.push_back(read_tensor_map(item)); });
  const Json::Array& calls = in.list("calls", kCalls);
  for (size_t c = 0; c < calls.size() && !faults.any(); ++c) {
    std::string where = in.path("calls") + "[" + std::to_string(c) + "]";
    std::vector<Step>& steps = r.calls.emplace_back();
    if (!calls[c].is_array() || calls[c].items().size() > kStepLimit) {
      faults.add(where, "expected a list of at most " + std::to_string(kStepLimit) + " steps");
      break;
    }
    size_t work = 0;
    for (size_t i = 0; i < calls[c].items().size() && !faults.any(); ++i) {
      ObjectReader item(calls[c].items()[i], where + "[" + std::to_string(i) + "]", faults);
      steps.push_back(read_step(item, r, work));
      item.done();
    }
  }
  each(in, "refusals", 4096, [&](ObjectReader& item) {
    Refusal refusal;
    refusal.call = static_cast<int>(item.number("call", 0, kCalls));
    refusal.api = item.text("api", 256);
    refusal.why = item.text("why", kTextBytes);
    r.refusals.push_back(std::move(refusal));
  });
  for (const Json& note : in.list("notes", 4096)) {
    if (!note.is_string())
      in.fail("notes", "expected texts");
    else
      r.notes.push_back(printable(note.as_string(), 1000));
  }
  in.done();
  if (!faults.any() && r.ending == Ending::Complete && r.calls.size() != kCalls)
    in.fail("calls", "expected three calls");
  if (faults.any()) return faults.error();
  return r;
}

namespace {

struct ChipField {
  const char* key;
  uint32_t ChipLimits::*field;
};
constexpr ChipField kChipFields[] = {
    {"major", &ChipLimits::major},
    {"minor", &ChipLimits::minor},
    {"multiprocessors", &ChipLimits::multiprocessors},
    {"max_threads_per_block", &ChipLimits::max_threads_per_block},
    {"max_threads_per_multiprocessor", &ChipLimits::max_threads_per_multiprocessor},
    {"max_blocks_per_multiprocessor", &ChipLimits::max_blocks_per_multiprocessor},
    {"registers_per_multiprocessor", &ChipLimits::registers_per_multiprocessor},
    {"max_registers_per_thread", &ChipLimits::max_registers_per_thread},
    {"shared_per_multiprocessor_bytes", &ChipLimits::shared_per_multiprocessor_bytes},
    {"shared_per_block_bytes", &ChipLimits::shared_per_block_bytes},
    {"shared_per_block_optin_bytes", &ChipLimits::shared_per_block_optin_bytes},
    {"reserved_shared_bytes", &ChipLimits::reserved_shared_bytes},
    {"max_cluster_size", &ChipLimits::max_cluster_size},
    {"max_cluster_size_nonportable", &ChipLimits::max_cluster_size_nonportable},
    {"l2_bytes", &ChipLimits::l2_bytes},
    {"clock_khz", &ChipLimits::clock_khz},
    {"memory_clock_khz", &ChipLimits::memory_clock_khz},
    {"memory_bus_bits", &ChipLimits::memory_bus_bits},
};

Json argument_json(const Argument& a) {
  Json item = Json::object();
  item.set("name", a.name)
      .set("dtype", name(a.dtype))
      .set("scalar", a.scalar)
      .set("output", a.output);
  item.set("shape", list_json(a.shape, [](int64_t extent) { return Json(extent); }));
  item.set("value", a.value).set("size_bytes", a.size_bytes);
  item.set("addresses", list_json(a.addresses, [](uint64_t address) { return Json(address); }));
  return item;
}

Argument read_argument(ObjectReader& in) {
  constexpr uint64_t kAny = std::numeric_limits<int64_t>::max();
  Argument a;
  a.name = in.text("name", 256);
  auto dtype = parse_dtype(in.text("dtype", 32));
  if (dtype)
    a.dtype = *dtype;
  else
    in.fail("dtype", "unknown element type");
  a.scalar = in.boolean("scalar");
  a.output = in.boolean("output");
  for (uint64_t extent : in.numbers("shape", 0, 16, kAny))
    a.shape.push_back(static_cast<int64_t>(extent));
  a.value = in.real("value");
  a.size_bytes = in.number("size_bytes", 0, kAny);
  a.addresses = in.numbers("addresses", a.scalar ? 0 : kCalls, kCalls, kAny);
  return a;
}

}  // namespace

Json to_json(const Request& r) {
  Json out = Json::object(), chip = Json::object();
  chip.set("product", r.chip.product).set("memory_bytes", r.chip.memory_bytes);
  for (const ChipField& field : kChipFields) chip.set(field.key, r.chip.*field.field);
  out.set("schema", kRequestSchema).set("library", r.library).set("tvm_library", r.tvm_library);
  out.set("binding", name(r.binding)).set("chip", std::move(chip));
  out.set("kernels", list_json(r.kernels, kernel_json))
      .set("symbols", list_json(r.symbols, symbol_json));
  out.set("arguments", list_json(r.arguments, argument_json));
  out.set("axes", list_json(r.axes, [](int64_t value) { return Json(value); }));
  out.set("scratch_begin", hex_address(r.scratch_begin));
  return out;
}

Result<Request> request_from_json(const Json& json, std::string_view document) {
  Faults faults;
  ObjectReader in(json, std::string(document), faults);
  Request r;
  if (in.text("schema", 64) != kRequestSchema)
    in.fail("schema", std::string("expected \"") + kRequestSchema + "\"");
  r.library = in.text("library", 4096);
  r.tvm_library = in.text("tvm_library", 4096);
  r.binding = read_choice<Binding>(in, "binding", kBindings);
  if (const Json* chip_json = in.object("chip")) {
    ObjectReader chip(*chip_json, in.path("chip"), faults);
    r.chip.product = chip.text("product", 255);
    r.chip.memory_bytes = chip.number("memory_bytes", 1, uint64_t{1} << 48);
    for (const ChipField& field : kChipFields) r.chip.*field.field = chip.number32(field.key);
    chip.done();
  }
  each(in, "kernels", PlanLimits::kKernels,
       [&](ObjectReader& item) { r.kernels.push_back(read_kernel(item)); });
  each(in, "symbols", PlanLimits::kSymbols,
       [&](ObjectReader& item) { r.symbols.push_back(read_symbol(item)); });
  each(in, "arguments", 256,
       [&](ObjectReader& item) { r.arguments.push_back(read_argument(item)); });
  for (const Json& axis : in.list("axes", 256)) {
    if (!axis.is_integer())
      in.fail("axes", "expected whole numbers");
    else
      r.axes.push_back(axis.as_int());
  }
  r.scratch_begin = in.address("scratch_begin");
  in.done();
  if (faults.any()) return faults.error();
  return r;
}

}  // namespace ptxb::shim
