// Owns the GPU that the worker holds: its context, its facts, our own device memory and kernels.
// One a process. Never runs a candidate's code; that is replay.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/handle.h"
#include "base/json.h"
#include "base/result.h"
#include "cuda/driver.h"
#include "cuda/kernels/calls.h"
#include "task/generator.h"

namespace ptxb::cuda {

struct StreamTraits {
  using Value = CUstream;
  static Value none() { return nullptr; }
  static void close(Value stream) noexcept {
    if (!context_abandoned()) driver().cuStreamDestroy(stream);
  }
};
using Stream = Handle<StreamTraits>;
struct EventTraits {
  using Value = CUevent;
  static Value none() { return nullptr; }
  static void close(Value event) noexcept {
    if (!context_abandoned()) driver().cuEventDestroy(event);
  }
};
using Event = Handle<EventTraits>;
struct MemoryTraits {
  using Value = CUdeviceptr;
  static Value none() { return 0; }
  static void close(Value address) noexcept {
    if (!context_abandoned()) driver().cuMemFree(address);
  }
};
using DeviceMemory = Handle<MemoryTraits>;
struct ModuleTraits {
  using Value = CUmodule;
  static Value none() { return nullptr; }
  static void close(Value module) noexcept {
    if (!context_abandoned()) driver().cuModuleUnload(module);
  }
};
using Module = Handle<ModuleTraits>;
// Page-locked host memory that the device sees at the same address.
struct HostTraits {
  using Value = void*;
  static Value none() { return nullptr; }
  static void close(Value memory) noexcept {
    if (!context_abandoned()) driver().cuMemFreeHost(memory);
  }
};
using HostMemory = Handle<HostTraits>;

enum class EventKind { Order, Timing };

struct DeviceFacts {
  int ordinal = 0;
  std::string name, bus_id, driver_version, cubin_arch;  // cubin_arch: "sm_90a"
  int major = 0, minor = 0, multiprocessors = 0, l2_bytes = 0, clock_khz = 0;
  uint64_t memory_bytes = 0, granularity_bytes = 0;
};
Json to_json(const DeviceFacts& facts);

class Device {
 public:
  // Takes the primary context. Error: Harness (no driver, no such device); Unsupported (an
  // architecture without our kernels).
  static Result<Device> open(int ordinal);
  const DeviceFacts& facts() const { return facts_; }

  Result<Stream> make_stream() const;
  Result<Event> make_event(EventKind kind) const;
  // Error: Limit when the device has not that much left.
  Result<DeviceMemory> allocate(uint64_t size_bytes, std::string_view what) const;
  Result<HostMemory> allocate_host(uint64_t size_bytes) const;

  // Our kernels, queued on a stream. Grid sizes are theirs.
  Result<void> fill(CUstream stream, const GeneratorSpec& spec, int64_t count, Element element,
                    CUdeviceptr out) const;
  Result<void> add_digest(CUstream stream, CUdeviceptr data, uint64_t size_bytes, uint64_t salt,
                          CUdeviceptr sum) const;
  Result<void> stamp(CUstream stream, CUdeviceptr slots, uint64_t hold_ns) const;
  Result<void> reference_gemm(CUstream stream, const GemmCall& call) const;
  Result<void> reference_attention(CUstream stream, const AttentionCall& call) const;
  Result<void> compare(CUstream stream, const CompareCall& call, CUdeviceptr totals) const;
  Result<void> row_norms(CUstream stream, CUdeviceptr data, int64_t rows, int64_t length,
                         CUdeviceptr norms) const;
  // L2 is overwritten with more than twice its size and persisting lines are given back.
  Result<void> flush_l2(CUstream stream) const;

 private:
  struct Kernels;
  Device() = default;
  Result<void> launch(CUstream stream, CUfunction function, uint64_t blocks, uint32_t threads,
                      void** arguments, std::string_view what, uint32_t blocks_y = 1,
                      uint32_t shared_bytes = 0) const;

  DeviceFacts facts_;
  CUdevice device_ = 0;
  std::shared_ptr<Kernels> kernels_;
  std::shared_ptr<DeviceMemory> flush_;
  uint64_t flush_bytes_ = 0;
};

}  // namespace ptxb::cuda
