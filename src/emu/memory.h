// Owns device memory of a run: allocations at device addresses with host bytes behind them, and
// the tagged windows of the generic address space. Never decides what a bad access means for the
// run (report.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emu/emulate.h"

namespace ptxb::emu {

// Windows of the generic address space outside kWindowBegin..kWindowEnd. The real ones are
// undocumented; isspacep and cvta are the only legal ways to see them. Shared: 16 MiB a CTA, the
// cluster rank in bits 24.. (CUTLASS relies on it).
inline constexpr uint64_t kSharedWindow = 0x7f00'0000'0000, kSharedWindowEnd = 0x7f01'0000'0000;
inline constexpr uint64_t kLocalWindow = 0x7e00'0000'0000, kLocalWindowEnd = 0x7e01'0000'0000;
inline constexpr uint64_t kParamWindow = 0x7d00'0000'0000, kParamWindowEnd = 0x7d00'0010'0000;
// Module variables whose address the host did not take.
inline constexpr uint64_t kModuleWindow = 0x2900'0000'0000;
// Shared memory below this offset is the system's (CUDA 13, sm_90: 1 KiB a CTA); kernels' variables
// start here.
inline constexpr uint32_t kSharedBase = 1024;

struct Allocation {
  uint64_t begin = 0, end = 0;
  uint8_t* host = nullptr;
  std::string name;
  bool writable = true;
  bool constant = false;  // .const variable
  bool parameters = false;
  bool input = false;                    // BufferRole::Input
  std::atomic<bool> initialised{false};  // every byte
  std::vector<uint8_t> written;          // Check mode: one bit a byte, empty while not needed
  uint64_t size() const { return end - begin; }
  uint8_t* at(uint64_t address) const { return host + (address - begin); }
};

// Zero-filled pages from the operating system, given back on destruction.
class Pages {
 public:
  Pages() = default;
  explicit Pages(uint64_t size_bytes);
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();
  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_bytes_; }

 private:
  uint8_t* data_ = nullptr;
  uint64_t size_bytes_ = 0;
};

struct Memory::State {
  std::vector<Pages> pages;
  std::vector<std::unique_ptr<Allocation>> allocations;  // sorted by begin
  std::vector<Allocation*> buffers;                      // by plan index
  // The allocation that holds [address, address+size), or nullptr.
  Allocation* find(uint64_t address, uint64_t size_bytes) const;
  // Within 2 MiB of an allocation.
  bool near(uint64_t address) const;
  // "C+0x1fe (last byte 0x1ff)" or "no buffer; 2 bytes past the end of C (512 bytes)".
  std::string describe(uint64_t address, uint64_t size_bytes) const;
};

}  // namespace ptxb::emu
