// Owns device memory: making it from a plan and looking addresses up. Never executes anything.
// SPDX-License-Identifier: Apache-2.0
#include "emu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "emu/program.h"

namespace ptxb::emu {
namespace {
constexpr uint64_t kMapFrom = 1u << 20;  // smaller blocks come from the heap
constexpr uint64_t kMemoryLimit = uint64_t{64} << 30;

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}
}  // namespace

Pages::Pages(uint64_t size_bytes) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes >= kMapFrom) {
    void* p = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
  } else {
    uint64_t rounded = (size_bytes + 63) / 64 * 64;
    data_ = static_cast<uint8_t*>(std::aligned_alloc(64, rounded));
    if (data_) std::memset(data_, 0, rounded);
  }
  if (!data_) size_bytes_ = 0;
}
Pages::Pages(Pages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}
Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}
Pages::~Pages() {
  if (!data_) return;
  if (size_bytes_ >= kMapFrom)
    munmap(data_, size_bytes_);
  else
    std::free(data_);
}

Allocation* Memory::State::find(uint64_t address, uint64_t size_bytes) const {
  auto after =
      std::upper_bound(allocations.begin(), allocations.end(), address,
                       [](uint64_t a, const auto& allocation) { return a < allocation->begin; });
  if (after == allocations.begin()) return nullptr;
  Allocation* candidate = std::prev(after)->get();
  if (address >= candidate->end || candidate->end - address < size_bytes) return nullptr;
  return candidate;
}

bool Memory::State::near(uint64_t address) const {
  auto after =
      std::upper_bound(allocations.begin(), allocations.end(), address,
                       [](uint64_t a, const auto& allocation) { return a < allocation->begin; });
  if (after != allocations.end() && (*after)->begin - address < kMappingBytes) return true;
  return after != allocations.begin() &&
         address - std::min(address, (*std::prev(after))->end) < kMappingBytes;
}

std::string Memory::State::describe(uint64_t address, uint64_t size_bytes) const {
  if (const Allocation* inside = find(address, 1)) {
    uint64_t over = address + size_bytes > inside->end ? address + size_bytes - inside->end : 0;
    std::string text = inside->name + "+" + hex(address - inside->begin);
    if (over)
      text += ", " + std::to_string(over) + " bytes past its end (" +
              std::to_string(inside->size()) + " bytes)";
    return text;
  }
  const Allocation* below = nullptr;
  const Allocation* above = nullptr;
  for (const auto& a : allocations) {
    if (a->end <= address) below = a.get();
    if (a->begin > address && !above) above = a.get();
  }
  if (below && address - below->end < kMappingBytes)
    return hex(address) + ", " + std::to_string(address - below->end) + " bytes after the end of " +
           below->name + " (" + std::to_string(below->size()) + " bytes)";
  if (above && above->begin - address < kMappingBytes)
    return hex(address) + ", " + std::to_string(above->begin - address) + " bytes before " +
           above->name;
  return hex(address) + (address < 4096 ? " (null pointer)" : ", no buffer near");
}

Memory::Memory(std::unique_ptr<State> state) : state_(std::move(state)) {}
Memory::Memory(Memory&&) noexcept = default;
Memory& Memory::operator=(Memory&&) noexcept = default;
Memory::~Memory() = default;

Result<Memory> Memory::make(const LaunchPlan& plan, const Program& program) {
  auto state = std::make_unique<State>();
  uint64_t total = 0;
  auto add = [&](std::string name, uint64_t address, uint64_t size) -> Result<Allocation*> {
    if (size == 0) size = 1;
    if (size > kMemoryLimit || (total += size) > kMemoryLimit)
      return limit_error("device memory: more than 64 GiB");
    if (address == 0 || address > UINT64_MAX - size)
      return bad_input("device memory: " + name + " has no legal address");
    Pages pages(size);
    if (!pages.data())
      return limit_error("device memory: the system gives no " + std::to_string(size) +
                         " bytes for " + name);
    auto allocation = std::make_unique<Allocation>();
    allocation->begin = address;
    allocation->end = address + size;
    allocation->host = pages.data();
    allocation->name = std::move(name);
    state->pages.push_back(std::move(pages));
    state->allocations.push_back(std::move(allocation));
    return state->allocations.back().get();
  };
  for (const PlanBuffer& buffer : plan.buffers) {
    PTXB_TRY(Allocation * made, add(buffer.name, buffer.address, buffer.size_bytes));
    made->end = made->begin + buffer.size_bytes;
    made->input = buffer.role == BufferRole::Input;
    std::memset(made->host, 0xFF, buffer.size_bytes);
    state->buffers.push_back(made);
  }
  for (const ModuleVariable& variable : program.state().variables) {
    PTXB_TRY(Allocation * made, add(variable.name, variable.address, variable.size_bytes));
    if (!variable.bytes.empty())
      std::memcpy(made->host, variable.bytes.data(), variable.bytes.size());
    made->writable = !variable.constant;
    made->constant = variable.constant;
    made->initialised = true;
  }
  std::sort(state->allocations.begin(), state->allocations.end(),
            [](const auto& a, const auto& b) { return a->begin < b->begin; });
  for (size_t i = 1; i < state->allocations.size(); ++i) {
    const Allocation &low = *state->allocations[i - 1], &high = *state->allocations[i];
    if (low.end > high.begin)
      return bad_input("device memory: " + low.name + " and " + high.name + " overlap");
  }
  return Memory(std::move(state));
}

std::span<uint8_t> Memory::bytes(size_t buffer) {
  PTXB_CHECK(buffer < state_->buffers.size());
  Allocation* a = state_->buffers[buffer];
  return {a->host, a->size()};
}

void Memory::mark_initialised(size_t buffer) {
  PTXB_CHECK(buffer < state_->buffers.size());
  state_->buffers[buffer]->initialised = true;
}

void Memory::poison(size_t buffer, uint8_t pattern) {
  PTXB_CHECK(buffer < state_->buffers.size());
  Allocation* a = state_->buffers[buffer];
  std::memset(a->host, pattern, a->size());
  a->initialised = false;
  std::fill(a->written.begin(), a->written.end(), uint8_t{0});
}

}  // namespace ptxb::emu
