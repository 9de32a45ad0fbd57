// The device address space as the host sees it: where things lie, and which accesses CUDA would
// refuse.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "shim/recorder.h"

namespace ptxb::shim {

namespace {

std::string bytes_text(uint64_t count) { return std::to_string(count) + " bytes"; }

}  // namespace

// Addresses are never used twice, so that a stale pointer is always told from a live one.
uint64_t Recorder::place(uint64_t size_bytes) {
  uint64_t begin = round_up(next_address_, kMappingBytes);
  next_address_ = begin + mapping_bytes(size_bytes) + kMappingBytes;
  if (next_address_ > kWindowEnd) unsupported("cudaMalloc", "the device address window is used up");
  return placed_address(begin, size_bytes);
}

uint64_t Recorder::free_bytes() const {
  uint64_t total = request_.chip.memory_bytes;
  return used_bytes_ < total ? total - used_bytes_ : 0;
}

Code Recorder::allocate(std::string_view api, void** pointer, uint64_t size_bytes, Stream* stream) {
  if (!pointer) return abi::kInvalidValue;
  *pointer = nullptr;
  if (stream && stream->capture) unsupported(api, "allocation inside a stream capture");
  if (!stream && any_capture())
    return refuse(api, abi::kCaptureUnsupported, "not permitted while a stream is being captured");
  if (size_bytes == 0) return abi::kSuccess;
  if (size_bytes > free_bytes()) {
    return refuse(api, abi::kOutOfMemory,
                  bytes_text(size_bytes) + " asked for, " + bytes_text(free_bytes()) + " free");
  }
  if (recording_.allocations.size() >= PlanLimits::kBuffers)
    unsupported(api, "too many allocations");
  Step step;
  step.kind = Step::Kind::Allocate;
  step.allocation = static_cast<uint32_t>(recording_.allocations.size());
  uint64_t address = place(size_bytes);
  recording_.allocations.push_back({address, size_bytes});
  regions_[address] = {Region::Kind::Allocation, step.allocation, address, size_bytes, true};
  used_bytes_ += size_bytes;
  add_step(api, std::move(step));
  *pointer = reinterpret_cast<void*>(address);
  return abi::kSuccess;
}

Code Recorder::release(std::string_view api, uint64_t address, Stream* stream) {
  if (address == 0) return abi::kSuccess;
  auto found = regions_.find(address);
  if (found == regions_.end() || !found->second.live ||
      found->second.kind != Region::Kind::Allocation) {
    return refuse(api, abi::kInvalidValue,
                  "not the beginning of a live allocation of the host function");
  }
  if (stream && stream->capture) unsupported(api, "free inside a stream capture");
  found->second.live = false;
  used_bytes_ -= found->second.size_bytes;
  Step step;
  step.kind = stream ? Step::Kind::FreeAsync : Step::Kind::Free;
  step.allocation = found->second.index;
  step.stream = stream ? stream->id : 0;
  add_step(api, std::move(step));
  return abi::kSuccess;
}

const Recorder::Region* Recorder::region_of(uint64_t address) const {
  auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  const Region& region = std::prev(after)->second;
  return address - region.address < region.size_bytes ? &region : nullptr;
}

Code Recorder::check_range(std::string_view api, uint64_t address, uint64_t width, uint64_t pitch,
                           uint64_t height) {
  const Region* region = region_of(address);
  if (!region || !region->live)
    return refuse(api, abi::kInvalidValue, "the address is in no live allocation");
  if (height > 1 && pitch < width)
    return refuse(api, abi::kInvalidPitch, "the pitch is smaller than the width");
  uint64_t room = region->size_bytes - (address - region->address);
  bool fits = width <= room && (height <= 1 || (height - 1) <= (room - width) / pitch);
  if (!fits) {
    return refuse(api, abi::kInvalidValue,
                  "goes beyond the end of the allocation (" + bytes_text(room) + " left, " +
                      std::to_string(height) + " rows of " + bytes_text(width) + ")");
  }
  return abi::kSuccess;
}

Code Recorder::memset(std::string_view api, Memset memset, Stream* stream) {
  uint64_t width = memset.width_elements * memset.element_bytes;
  if (width == 0 || memset.height == 0) return abi::kSuccess;
  if (memset.width_elements > (uint64_t{1} << 46)) return abi::kInvalidValue;
  if (memset.element_bytes < 4) memset.value &= (1u << (8 * memset.element_bytes)) - 1;
  if (memset.address % memset.element_bytes)
    return refuse(api, abi::kInvalidValue, "the address is not aligned to the element");
  if (Code code = check_range(api, memset.address, width, memset.pitch_bytes, memset.height))
    return code;
  if (memset.height == 1) memset.pitch_bytes = 0;
  return submit(api, stream, memset);
}

Code Recorder::copy(std::string_view api, const Copy& copy, Stream* stream) {
  if (copy.width_bytes == 0 || copy.height == 0) return abi::kSuccess;
  bool from_device = is_device(copy.source), to_device = is_device(copy.destination);
  int kind = (from_device ? 2 : 0) + (to_device ? 1 : 0);  // the CopyKind that the addresses say
  if (copy.kind != abi::kDefaultKind && copy.kind != kind) {
    return refuse(api, abi::kInvalidMemcpyDirection, "the direction does not fit the pointers");
  }
  if (to_device) {
    if (Code code = check_range(api, copy.destination, copy.width_bytes, copy.destination_pitch,
                                copy.height))
      return code;
  }
  if (from_device) {
    if (Code code = check_range(api, copy.source, copy.width_bytes, copy.source_pitch, copy.height))
      return code;
  }
  if (kind == abi::kDeviceToHost) {
    unsupported(api, "the host reads device data (" + bytes_text(copy.width_bytes * copy.height) +
                         "); a recorded run has none");
  }
  if (kind == abi::kHostToHost) {
    for (uint64_t row = 0; row < copy.height; ++row) {
      std::memmove(reinterpret_cast<char*>(copy.destination) + row * copy.destination_pitch,
                   reinterpret_cast<const char*>(copy.source) + row * copy.source_pitch,
                   copy.width_bytes);
    }
    return abi::kSuccess;
  }
  if (kind == abi::kDeviceToDevice) {
    CopyDevice action{copy.destination,       copy.source,       copy.width_bytes,
                      copy.destination_pitch, copy.source_pitch, copy.height};
    if (copy.height == 1) action.destination_pitch_bytes = action.source_pitch_bytes = 0;
    return submit(api, stream, action);
  }
  for (uint64_t row = 0; row < copy.height; ++row) {
    const auto* source = reinterpret_cast<const char*>(copy.source) + row * copy.source_pitch;
    uint64_t destination = copy.destination + row * copy.destination_pitch;
    if (Code code = submit_host_write(api, stream, destination, source, copy.width_bytes))
      return code;
  }
  return abi::kSuccess;
}

WriteBytes Recorder::host_bytes(std::string_view api, uint64_t address, const void* source,
                                uint64_t size_bytes) {
  if (size_bytes > PlanLimits::kWriteBytes) {
    unsupported(api,
                "copies " + bytes_text(size_bytes) + " from the host (at most 1 MiB in one copy)");
  }
  written_bytes_ += size_bytes;
  if (written_bytes_ > PlanLimits::kWriteBytesTotal)
    unsupported(api, "copies more than 64 MiB from the host in all");
  WriteBytes write;
  write.address = address;
  write.bytes.resize(size_bytes);
  std::memcpy(write.bytes.data(), source, size_bytes);
  return write;
}

uint64_t Recorder::symbol_address(uint32_t module, const std::string& name, uint64_t size_bytes) {
  auto [entry, fresh] = symbols_.try_emplace({module, name}, recording_.symbols.size());
  if (fresh) {
    if (recording_.symbols.size() >= PlanLimits::kSymbols)
      unsupported("cudaGetSymbolAddress", "too many symbols");
    uint64_t address = place(size_bytes);
    auto index = static_cast<uint32_t>(recording_.symbols.size());
    regions_[address] = {Region::Kind::Symbol, index, address, size_bytes, true};
    recording_.symbols.push_back({module, name, address, size_bytes});
  }
  return recording_.symbols[entry->second].address;
}

}  // namespace ptxb::shim
