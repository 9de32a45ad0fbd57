// SPDX-License-Identifier: Apache-2.0
#include "model/launch_plan.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/plan_json.h"

namespace ptxb {

uint32_t param_bytes(const KernelInfo& kernel) {
  uint32_t end = 0;
  for (const KernelParam& p : kernel.params) end = std::max(end, p.offset_bytes + p.size_bytes);
  return end;
}

std::vector<size_t> tensor_map_images(std::span<const uint8_t> bytes, uint64_t address) {
  constexpr size_t kAlignment = 64;  // of CUtensorMap
  std::vector<size_t> found;
  size_t at = static_cast<size_t>((kAlignment - address % kAlignment) % kAlignment);
  for (; at + kTensorMapBytes <= bytes.size(); at += kAlignment) {
    if (std::memcmp(bytes.data() + at, kTensorMapMagic.data(), kTensorMapMagic.size()) == 0)
      found.push_back(at);
  }
  return found;
}

uint32_t tensor_map_index(std::span<const uint8_t> bytes, size_t position) {
  uint32_t index = 0;
  std::memcpy(&index, bytes.data() + position + kTensorMapMagic.size(), sizeof index);
  return index;
}

namespace {

struct Range {
  uint64_t begin, end;  // [begin, end)
  std::string what;
};

std::string in_quotes(std::string_view name) { return "\"" + printable(name, 120) + "\""; }

// Where data lies, and the checks that need to know it.
class Checker {
 public:
  explicit Checker(const LaunchPlan& plan) : plan_(plan) {}

  Result<void> all() {
    if (plan_.arch.empty()) return bad_input("plan.arch: empty");
    PTXB_CHECK_OK(places());
    PTXB_CHECK_OK(modules());
    for (size_t i = 0; i < plan_.tensor_maps.size(); ++i) {
      PTXB_CHECK_OK(tensor_map(plan_.tensor_maps[i], "tensor_maps[" + std::to_string(i) + "]"));
    }
    PTXB_CHECK_OK(operations(plan_.setup, "setup"));
    return operations(plan_.steady, "steady");
  }

 private:
  Result<void> place(uint64_t address, uint64_t size_bytes, const std::string& what) {
    constexpr uint64_t kLongest = kWindowEnd - kWindowBegin;
    if (address < kWindowBegin || address >= kWindowEnd || size_bytes > kLongest ||
        kWindowEnd - address < size_bytes) {
      return bad_input(what + ": outside the address window");
    }
    uint64_t begin = mapping_begin(address, size_bytes);
    if (address % kBufferAlignment || begin % kMappingBytes || begin < kWindowBegin ||
        placed_address(begin, size_bytes) != address) {
      return bad_input(what + ": " + hex_address(address) +
                       " does not put the last byte at the end of a 2 MiB mapping");
    }
    mappings_.push_back({begin, begin + mapping_bytes(size_bytes) + kMappingBytes, what});
    data_.push_back({address, address + size_bytes, what});
    return {};
  }

  Result<void> places() {
    std::set<std::string> names;
    BufferRole last = BufferRole::Input;
    if (plan_.buffers.size() > PlanLimits::kBuffers) return bad_input("plan.buffers: too many");
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const PlanBuffer& buffer = plan_.buffers[i];
      std::string what = "buffers[" + std::to_string(i) + "] " + in_quotes(buffer.name);
      if (buffer.name.empty() || !names.insert(buffer.name).second)
        return bad_input(what + ": no name or a name used twice");
      if (buffer.role < last)
        return bad_input(what + ": inputs come first, then outputs, then scratch");
      last = buffer.role;
      PTXB_CHECK_OK(place(buffer.address, buffer.size_bytes, what));
    }
    std::set<std::pair<uint32_t, std::string>> symbols;
    for (size_t i = 0; i < plan_.symbols.size(); ++i) {
      const PlanSymbol& symbol = plan_.symbols[i];
      std::string what = "symbols[" + std::to_string(i) + "] " + in_quotes(symbol.name);
      if (symbol.module >= plan_.modules.size()) return bad_input(what + ": no such module");
      if (!symbols.insert({symbol.module, symbol.name}).second)
        return bad_input(what + ": listed twice");
      PTXB_CHECK_OK(place(symbol.address, symbol.size_bytes, what));
    }
    auto by_begin = [](const Range& a, const Range& b) { return a.begin < b.begin; };
    std::sort(mappings_.begin(), mappings_.end(), by_begin);
    std::sort(data_.begin(), data_.end(), by_begin);
    for (size_t i = 1; i < mappings_.size(); ++i) {
      if (mappings_[i].begin < mappings_[i - 1].end) {
        return bad_input(mappings_[i].what + ": overlaps " + mappings_[i - 1].what +
                         " or its guard");
      }
    }
    return {};
  }

  Result<void> modules() {
    if (plan_.modules.empty()) return bad_input("plan.modules: empty");
    for (size_t i = 0; i < plan_.modules.size(); ++i) {
      const PlanModule& module = plan_.modules[i];
      std::string what = "modules[" + std::to_string(i) + "]";
      if (module.ptx.size() > PlanLimits::kModuleBytes ||
          module.cubin.size() > PlanLimits::kModuleBytes) {
        return bad_input(what + ": larger than 64 MiB");
      }
      if (module.ptx.empty() && module.cubin.empty())
        return bad_input(what + ": neither PTX nor cubin");
      for (const KernelInfo& kernel : module.kernels) {
        std::string kernel_what = what + " kernel " + in_quotes(kernel.name);
        if (kernel.name.empty()) return bad_input(kernel_what + ": no name");
        if (!kernels_.insert({{i, kernel.name}, &kernel}).second)
          return bad_input(kernel_what + ": listed twice");
        uint32_t end = 0;
        for (const KernelParam& p : kernel.params) {
          if (p.offset_bytes < end || p.size_bytes == 0 ||
              p.offset_bytes + p.size_bytes > PlanLimits::kParamBytes) {
            return bad_input(kernel_what + ": parameters overlap, are empty or exceed " +
                             std::to_string(PlanLimits::kParamBytes) + " bytes");
          }
          end = p.offset_bytes + p.size_bytes;
        }
      }
    }
    return {};
  }

  // [address, address + size) inside one buffer or symbol.
  Result<void> inside(uint64_t address, uint64_t size_bytes, const std::string& what) const {
    auto after = std::upper_bound(data_.begin(), data_.end(), address,
                                  [](uint64_t a, const Range& range) { return a < range.begin; });
    if (after != data_.begin()) {
      const Range& range = *std::prev(after);
      if (address < range.end && range.end - address >= size_bytes) return {};
    }
    return bad_input(what + ": " + std::to_string(size_bytes) + " bytes at " +
                     hex_address(address) + " are not inside one buffer");
  }
  // Rows `pitch` apart, without overflow.
  Result<void> rows(uint64_t address, uint64_t width, uint64_t pitch, uint64_t height,
                    const std::string& what) const {
    if (height == 0 || width == 0) return bad_input(what + ": empty");
    if (height > 1 && pitch < width) return bad_input(what + ": rows overlap (pitch below width)");
    constexpr uint64_t kLongest = kWindowEnd - kWindowBegin;
    if (width > kLongest || (height > 1 && (height - 1) > (kLongest - width) / pitch)) {
      return bad_input(what + ": longer than the address window");
    }
    return inside(address, height > 1 ? (height - 1) * pitch + width : width, what);
  }

  Result<void> tensor_map(const PlanTensorMap& map, const std::string& what) const {
    constexpr uint32_t kTypes = 16, kInterleaves = 3, kSwizzles = 7, kPromotions = 4, kFills = 2;
    if (map.rank < 1 || map.rank > 5) return bad_input(what + ".rank: not 1 to 5");
    if (map.dtype >= kTypes || map.interleave >= kInterleaves || map.swizzle >= kSwizzles ||
        map.l2_promotion >= kPromotions || map.oob_fill >= kFills) {
      return bad_input(what + ": unknown type, interleave, swizzle, promotion or fill");
    }
    if (map.address % 16) return bad_input(what + ".address: not a multiple of 16");
    for (uint32_t i = 0; i < map.rank; ++i) {
      if (map.dims[i] == 0 || map.dims[i] > (uint64_t{1} << 32) || map.box[i] == 0 ||
          map.box[i] > 256 || map.element_strides[i] == 0 || map.element_strides[i] > 8) {
        return bad_input(what + ": dimension " + std::to_string(i) +
                         " has an extent, box or element stride out of range");
      }
      if (i > 0 &&
          (map.strides_bytes[i - 1] % 16 || map.strides_bytes[i - 1] >= (uint64_t{1} << 40))) {
        return bad_input(what + ".strides_bytes: not a multiple of 16 below 2^40");
      }
    }
    return inside(map.address, 1, what);
  }

  Result<void> images(std::span<const uint8_t> bytes, uint64_t address,
                      const std::string& what) const {
    for (size_t at : tensor_map_images(bytes, address)) {
      if (tensor_map_index(bytes, at) >= plan_.tensor_maps.size()) {
        return bad_input(what + ": byte " + std::to_string(at) +
                         " names a tensor map that the plan does not have");
      }
    }
    return {};
  }

  Result<void> check(const KernelLaunch& launch, const std::string& what) const {
    auto found = kernels_.find({launch.module, launch.kernel});
    if (found == kernels_.end()) {
      return bad_input(what + ": module " + std::to_string(launch.module) + " has no kernel " +
                       in_quotes(launch.kernel));
    }
    const Dim3 &g = launch.grid, &b = launch.block, &c = launch.cluster;
    if (!g.x || !g.y || !g.z || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
      return bad_input(what + ".grid: out of range");
    if (!b.x || !b.y || !b.z || b.x > 1024 || b.y > 1024 || b.z > 64 || b.volume() > 1024) {
      return bad_input(what + ".block: out of range");
    }
    bool none = c == Dim3{0, 0, 0};
    if (!none && (!c.x || !c.y || !c.z || c.x > 16 || c.y > 16 || c.z > 16 || c.volume() > 16 ||
                  g.x % c.x || g.y % c.y || g.z % c.z)) {
      return bad_input(what + ".cluster: out of range or does not divide the grid");
    }
    if (launch.dynamic_shared_bytes > 256u << 10)
      return bad_input(what + ".dynamic_shared_bytes: out of range");
    if (launch.params.size() != param_bytes(*found->second)) {
      return bad_input(what + ".params: " + std::to_string(launch.params.size()) +
                       " bytes, kernel " + in_quotes(launch.kernel) + " takes " +
                       std::to_string(param_bytes(*found->second)));
    }
    return images(launch.params, 0, what + ".params");
  }
  Result<void> check(const Memset& m, const std::string& what) const {
    if (m.element_bytes != 1 && m.element_bytes != 2 && m.element_bytes != 4) {
      return bad_input(what + ".element_bytes: not 1, 2 or 4");
    }
    if (m.address % m.element_bytes)
      return bad_input(what + ".address: not a multiple of the element size");
    if (m.element_bytes < 4 && m.value >> (8 * m.element_bytes))
      return bad_input(what + ".value: wider than an element");
    if (m.width_elements > (kWindowEnd - kWindowBegin))
      return bad_input(what + ": longer than the address window");
    return rows(m.address, m.width_elements * m.element_bytes, m.pitch_bytes, m.height, what);
  }
  Result<void> check(const CopyDevice& copy, const std::string& what) const {
    PTXB_CHECK_OK(rows(copy.destination, copy.width_bytes, copy.destination_pitch_bytes,
                       copy.height, what + ".destination"));
    return rows(copy.source, copy.width_bytes, copy.source_pitch_bytes, copy.height,
                what + ".source");
  }
  Result<void> check(const WriteBytes& write, const std::string& what) const {
    if (write.bytes.size() > PlanLimits::kWriteBytes)
      return bad_input(what + ".bytes: more than 1 MiB");
    PTXB_CHECK_OK(rows(write.address, write.bytes.size(), 0, 1, what));
    return images(write.bytes, write.address, what);
  }

  Result<void> operations(const std::vector<PlanOperation>& list, const std::string& name) const {
    if (list.size() > PlanLimits::kOperations)
      return bad_input("plan." + name + ": too many operations");
    for (size_t i = 0; i < list.size(); ++i) {
      const PlanOperation& operation = list[i];
      std::string what = name + "[" + std::to_string(i) + "]";
      if (operation.stream >= PlanLimits::kStreams)
        return bad_input(what + ".stream: out of range");
      for (uint32_t earlier : operation.after) {
        if (earlier >= i)
          return bad_input(what + ".after: " + std::to_string(earlier) +
                           " is not an earlier operation");
      }
      PTXB_CHECK_OK(
          std::visit([&](const auto& action) { return check(action, what); }, operation.action));
    }
    return {};
  }

  const LaunchPlan& plan_;
  std::vector<Range> mappings_, data_;
  std::map<std::pair<uint64_t, std::string>, const KernelInfo*> kernels_;
};

std::string module_file(size_t index, const char* ending) {
  return "module" + std::to_string(index) + ending;
}

}  // namespace

Result<void> validate(const LaunchPlan& plan) { return Checker(plan).all(); }

std::string sha256(const LaunchPlan& plan) { return sha256_hex(to_json(plan).dump()); }

Result<void> write_plan(const LaunchPlan& plan, const std::string& folder) {
  Path root(folder);
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    const PlanModule& module = plan.modules[i];
    if (!module.ptx.empty()) PTXB_CHECK_OK(write_file(root / module_file(i, ".ptx"), module.ptx));
    if (!module.cubin.empty())
      PTXB_CHECK_OK(write_file(root / module_file(i, ".cubin"), module.cubin));
  }
  // Last, so that a folder with a plan.json is whole.
  return write_file(root / "plan.json", to_json(plan).dump(1) + "\n");
}

Result<LaunchPlan> read_plan(const std::string& folder) {
  constexpr uint64_t kPlanBytes = 512u << 20;
  Path root(folder), file = root / "plan.json";
  PTXB_TRY(std::string text, read_file(file, kPlanBytes));
  PTXB_TRY(Json json, parse_json(text, file.string()));
  PTXB_TRY(LaunchPlan plan, plan_from_json(json, file.string()));
  const Json::Array& listed = json.find("modules")->items();
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    auto load = [&](const char* key, const char* ending, std::string& bytes) -> Result<void> {
      const std::string& digest = listed[i].find(key)->as_string();
      if (digest.empty()) return {};
      Path part = root / module_file(i, ending);
      PTXB_TRY(bytes, read_file(part, PlanLimits::kModuleBytes));
      if (sha256_hex(bytes) != digest)
        return bad_input(part.string() + ": its bytes are not those that plan.json names");
      return {};
    };
    PTXB_CHECK_OK(load("ptx_sha256", ".ptx", plan.modules[i].ptx));
    PTXB_CHECK_OK(load("cubin_sha256", ".cubin", plan.modules[i].cubin));
  }
  if (auto sense = validate(plan); !sense) return std::move(sense).error().in(file.string());
  return plan;
}

}  // namespace ptxb
