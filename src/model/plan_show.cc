// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/hash.h"
#include "base/text.h"
#include "model/launch_plan.h"
#include "model/strict_json.h"

namespace ptxb {

namespace {

constexpr size_t kRowsShown = 40;  // of each list; "one screen" for ordinary plans

std::string dim_text(const Dim3& d) {
  if (d.z != 1) return fmt::format("{}x{}x{}", d.x, d.y, d.z);
  if (d.y != 1) return fmt::format("{}x{}", d.x, d.y);
  return std::to_string(d.x);
}

std::string clean(std::string_view text) { return printable(text, 100); }

// "C+0x100", "scratch0", or the bare value.
std::string place_text(const LaunchPlan& plan, uint64_t address) {
  auto within = [address](uint64_t begin, uint64_t size) {
    return address >= begin && address - begin < size;
  };
  auto named = [address](const std::string& name, uint64_t begin) {
    return address == begin ? clean(name) : clean(name) + "+" + hex_address(address - begin);
  };
  for (const PlanBuffer& buffer : plan.buffers) {
    if (within(buffer.address, buffer.size_bytes)) return named(buffer.name, buffer.address);
  }
  for (const PlanSymbol& symbol : plan.symbols) {
    if (within(symbol.address, symbol.size_bytes)) return named("&" + symbol.name, symbol.address);
  }
  return address < kWindowBegin ? std::to_string(address) : hex_address(address);  // small: a number, no pointer
}

uint64_t little_endian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

std::string params_text(const LaunchPlan& plan, const KernelLaunch& launch) {
  const KernelInfo* kernel = nullptr;
  if (launch.module < plan.modules.size()) {
    for (const KernelInfo& k : plan.modules[launch.module].kernels) {
      if (k.name == launch.kernel) kernel = &k;
    }
  }
  if (!kernel || launch.params.size() != param_bytes(*kernel))
    return fmt::format("{} bytes", launch.params.size());
  std::vector<std::string> parts;
  for (const KernelParam& p : kernel->params) {
    auto bytes = std::span(launch.params).subspan(p.offset_bytes, p.size_bytes);
    std::vector<size_t> images = tensor_map_images(bytes, p.offset_bytes);
    if (!images.empty())
      parts.push_back(fmt::format("tensor_map {}", tensor_map_index(bytes, images[0])));
    else if (p.size_bytes == 8)
      parts.push_back(place_text(plan, little_endian(bytes)));
    else if (p.size_bytes <= 4)
      parts.push_back(std::to_string(little_endian(bytes)));
    else
      parts.push_back(fmt::format("{{{} bytes}}", p.size_bytes));
    if (parts.size() == 16) break;
  }
  if (parts.size() < kernel->params.size()) parts.push_back("...");
  return join(parts, ", ");
}

std::string action_text(const LaunchPlan& plan, const KernelLaunch& launch) {
  std::string out = fmt::format("launch {} <<<{}, {}", clean(launch.kernel), dim_text(launch.grid),
                                dim_text(launch.block));
  if (launch.dynamic_shared_bytes) out += fmt::format(", {} B shared", launch.dynamic_shared_bytes);
  if (launch.cluster != Dim3{0, 0, 0}) out += fmt::format(", cluster {}", dim_text(launch.cluster));
  if (launch.cooperative) out += ", cooperative";
  if (launch.programmatic_serialization) out += ", programmatic serialization";
  return out + ">>>(" + params_text(plan, launch) + ")";
}
std::string action_text(const LaunchPlan& plan, const Memset& m) {
  return fmt::format(
      "memset {} = {} x {:#x} of {} B{}", place_text(plan, m.address), m.width_elements, m.value,
      m.element_bytes,
      m.height > 1 ? fmt::format(", {} rows {} B apart", m.height, m.pitch_bytes) : "");
}
std::string action_text(const LaunchPlan& plan, const CopyDevice& copy) {
  return fmt::format("copy {} -> {}, {} B{}", place_text(plan, copy.source),
                     place_text(plan, copy.destination), copy.width_bytes,
                     copy.height > 1 ? fmt::format(" x {} rows", copy.height) : "");
}
std::string action_text(const LaunchPlan& plan, const WriteBytes& write) {
  return fmt::format("write {} B to {}", write.bytes.size(), place_text(plan, write.address));
}

void show_operations(const LaunchPlan& plan, const std::vector<PlanOperation>& list,
                     std::string_view title, std::string& out) {
  out += fmt::format("{}: {} operation{}\n", title, list.size(), list.size() == 1 ? "" : "s");
  for (size_t i = 0; i < list.size() && i < kRowsShown; ++i) {
    std::string action =
        std::visit([&](const auto& one) { return action_text(plan, one); }, list[i].action);
    out += fmt::format("  {:3} stream {}  {}", i, list[i].stream, action);
    std::vector<std::string> after;
    for (uint32_t earlier : list[i].after) after.push_back(std::to_string(earlier));
    if (!after.empty()) out += "  after " + join(after, ", ");
    out += '\n';
  }
  if (list.size() > kRowsShown) out += fmt::format("  ... {} more\n", list.size() - kRowsShown);
}

}  // namespace

std::string show(const LaunchPlan& plan) {
  constexpr const char* kRoles[] = {"input", "output", "scratch"};
  std::string out = fmt::format("launch plan for {} {}", clean(plan.arch), clean(plan.task));
  for (const auto& [axis, value] : plan.axes) out += fmt::format(" {}={}", clean(axis), value);
  out += '\n';
  for (size_t i = 0; i < plan.buffers.size() && i < kRowsShown; ++i) {
    const PlanBuffer& b = plan.buffers[i];
    out += fmt::format("  {:8} {:12} {} {:>12} B\n", kRoles[static_cast<size_t>(b.role)],
                       clean(b.name), hex_address(b.address), b.size_bytes);
  }
  if (plan.buffers.size() > kRowsShown)
    out += fmt::format("  ... {} more buffers\n", plan.buffers.size() - kRowsShown);
  for (const PlanSymbol& s : plan.symbols) {
    out += fmt::format("  symbol   {:12} {} {:>12} B\n", clean(s.name), hex_address(s.address),
                       s.size_bytes);
  }
  for (size_t i = 0; i < plan.tensor_maps.size() && i < kRowsShown; ++i) {
    const PlanTensorMap& m = plan.tensor_maps[i];
    std::vector<std::string> dims, box;
    for (uint32_t d = 0; d < m.rank && d < 5; ++d) {
      dims.push_back(std::to_string(m.dims[d]));
      box.push_back(std::to_string(m.box[d]));
    }
    out += fmt::format("  tensor map {}: {} type {} dims {} box {} swizzle {}\n", i,
                       place_text(plan, m.address), m.dtype, join(dims, "x"), join(box, "x"),
                       m.swizzle);
  }
  if (!plan.setup.empty()) show_operations(plan, plan.setup, "setup (first call)", out);
  show_operations(plan, plan.steady, "steady call", out);
  return out;
}

}  // namespace ptxb
