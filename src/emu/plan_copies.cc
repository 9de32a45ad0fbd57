// Owns the plan operations that are not kernels: memset, device copies, host literals. Bounds are
// those of the buffers.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "emu/launch.h"
#include "emu/report.h"

namespace ptxb::emu {
namespace {

bool refuse(RunState& run, const char* what, uint64_t address, uint64_t size) {
  Finding finding;
  finding.kind = FindingKind::OutOfBounds;
  finding.message = std::string(what) + " of " + std::to_string(size) + " bytes at " +
                    run.memory.describe(address, size);
  finding.hint = "the host code asked for this; check sizes and pitches of the call";
  {
    std::lock_guard hold(run.lock);
    run.has_fault = true;
    run.status = RunStatus::Fault;
    run.cause = finding.message;
    run.fault = std::move(finding);
  }
  run.stop = true;
  return false;
}

Allocation* writable(RunState& run, const char* what, uint64_t address, uint64_t size) {
  Allocation* found = run.memory.find(address, size);
  if (!found) refuse(run, what, address, size);
  return found;
}

// In check mode what the host writes counts as written, also before the first launch has made the shadow.
void mark(RunState& run, Allocation& allocation, uint64_t address, uint64_t size) {
  bool checking = run.options.mode == Mode::Check || run.options.mode == Mode::Fuzz;
  if (allocation.initialised || !checking) return;
  if (allocation.written.empty()) allocation.written.assign((allocation.size() + 7) / 8, 0);
  for (uint64_t k = address - allocation.begin, end = k + size; k < end; ++k)
    allocation.written[k / 8] = static_cast<uint8_t>(allocation.written[k / 8] | 1u << (k % 8));
}

bool apply(RunState& run, const Memset& set) {
  uint64_t row_bytes = set.width_elements * set.element_bytes;
  for (uint64_t row = 0; row < set.height && row_bytes; ++row) {
    uint64_t address = set.address + row * set.pitch_bytes;
    Allocation* a = writable(run, "memset", address, row_bytes);
    if (!a) return false;
    uint8_t* at = a->at(address);
    if (set.element_bytes == 1) {
      std::memset(at, static_cast<int>(set.value & 0xff), row_bytes);
    } else {
      for (uint64_t k = 0; k < set.width_elements; ++k)
        std::memcpy(at + k * set.element_bytes, &set.value, set.element_bytes);
    }
    mark(run, *a, address, row_bytes);
  }
  return true;
}

bool apply(RunState& run, const CopyDevice& copy) {
  for (uint64_t row = 0; row < copy.height && copy.width_bytes; ++row) {
    uint64_t to = copy.destination + row * copy.destination_pitch_bytes;
    uint64_t from = copy.source + row * copy.source_pitch_bytes;
    Allocation* source = writable(run, "copy from", from, copy.width_bytes);
    Allocation* target = source ? writable(run, "copy to", to, copy.width_bytes) : nullptr;
    if (!target) return false;
    std::memmove(target->at(to), source->at(from), copy.width_bytes);
    mark(run, *target, to, copy.width_bytes);
  }
  return true;
}

bool apply(RunState& run, const WriteBytes& write) {
  if (write.bytes.empty()) return true;
  Allocation* a = writable(run, "write", write.address, write.bytes.size());
  if (!a) return false;
  std::memcpy(a->at(write.address), write.bytes.data(), write.bytes.size());
  mark(run, *a, write.address, write.bytes.size());
  return true;
}

bool apply(RunState&, const KernelLaunch&) { return true; }

}  // namespace

bool run_copy(RunState& run, const PlanAction& action) {
  return std::visit([&](const auto& each) { return apply(run, each); }, action);
}

}  // namespace ptxb::emu
