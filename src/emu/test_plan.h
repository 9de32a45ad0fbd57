// Owns the small plans of this room's tests and benchmarks: PTX text, buffers, one launch. Not
// part of the library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "emu/emulate.h"

namespace ptxb::emu {

inline std::string ptx_module(const std::string& body, const std::string& before = "") {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + before + body;
}
// One kernel "k" with the given parameters, registers (%p %rs %r %rd %f %fd) and body.
inline std::string ptx_kernel(const std::string& params, const std::string& body,
                              const std::string& before = "") {
  return ptx_module(".visible .entry k(" + params +
                        ")\n{\n.reg .pred %p<16>;\n.reg .b16 %rs<32>;\n.reg .b32 %r<64>;\n"
                        ".reg .b64 %rd<64>;\n.reg .f32 %f<32>;\n.reg .f64 %fd<16>;\n" +
                        body + "\n}\n",
                    before);
}

class TestPlan {
 public:
  explicit TestPlan(std::string ptx, std::string kernel = "k") {
    plan_.arch = "sm_90a";
    plan_.modules.push_back({"candidate", std::move(ptx), "", {}});
    launch_.kernel = std::move(kernel);
    launch_.grid = {1, 1, 1};
    launch_.block = {32, 1, 1};
  }
  // Returns the address of the new buffer; its bytes come from `content`.
  template <class T>
  uint64_t buffer(std::string name, std::vector<T> content, BufferRole role = BufferRole::Input) {
    std::vector<uint8_t> bytes(content.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), content.data(), bytes.size());
    uint64_t address = placed_address(next_, bytes.size());
    next_ += mapping_bytes(bytes.size()) + kMappingBytes;
    plan_.buffers.push_back({std::move(name), role, address, bytes.size()});
    contents_.push_back(std::move(bytes));
    return address;
  }
  uint64_t output(std::string name, uint64_t size_bytes) {
    return buffer(std::move(name), std::vector<uint8_t>(size_bytes), BufferRole::Output);
  }
  template <class T>
  TestPlan& arg(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    while (launch_.params.size() % sizeof(T)) launch_.params.push_back(0);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    launch_.params.insert(launch_.params.end(), bytes, bytes + sizeof(T));
    return *this;
  }
  KernelLaunch& launch() { return launch_; }
  LaunchPlan& plan() { return plan_; }
  Options& options() { return options_; }

  // Puts the launch into the plan, loads and runs it.
  Result<Report> run() {
    if (plan_.steady.empty()) plan_.steady.push_back({0, {}, launch_});
    if (!program_) {
      auto loaded = Program::load(plan_);
      if (!loaded) return std::move(loaded).error();
      program_.emplace(*std::move(loaded));
    }
    auto memory = Memory::make(plan_, *program_);
    if (!memory) return std::move(memory).error();
    memory_.emplace(*std::move(memory));
    for (size_t k = 0; k < contents_.size(); ++k) {
      if (plan_.buffers[k].role != BufferRole::Input) continue;
      std::copy(contents_[k].begin(), contents_[k].end(), memory_->bytes(k).begin());
      memory_->mark_initialised(k);
    }
    return emu::run(*program_, *memory_, plan_, plan_.steady, options_);
  }
  template <class T>
  std::vector<T> read(size_t buffer) {
    std::span<uint8_t> bytes = memory_->bytes(buffer);
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
    return out;
  }

 private:
  LaunchPlan plan_;
  KernelLaunch launch_;
  Options options_;
  std::vector<std::vector<uint8_t>> contents_;
  uint64_t next_ = kWindowBegin;
  std::optional<Program> program_;
  std::optional<Memory> memory_;
};

}  // namespace ptxb::emu
