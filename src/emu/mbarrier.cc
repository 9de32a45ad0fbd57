// Owns the state changes of mbarrier objects and their misuse in words. Never decodes.
// SPDX-License-Identifier: Apache-2.0
#include "emu/mbarrier.h"

#include <cstring>

#include "emu/address.h"
#include "emu/async.h"
#include "emu/report.h"

namespace ptxb::emu {
namespace {

std::string offset_text(uint32_t offset) { return "shared+" + hex_text(offset - kSharedBase); }

bool misuse(Warp& w, const Insn* i, uint32_t lane, const std::string& what, std::string hint = {}) {
  fault(w, i, FindingKind::BarrierMisuse, thread_text(w, lane) + " " + what, std::move(hint));
  return false;
}

void store_word(const MbarrierPlace& at) {
  uint64_t word = at.barrier->word();
  std::memcpy(at.host, &word, sizeof word);
}

// A phase ends when nothing is missing: the next one starts, waiters look again.
void settle(const MbarrierPlace& at) {
  Mbarrier& b = *at.barrier;
  if (b.pending == 0 && b.tx_bytes == 0) {
    ++b.phase;
    b.pending = b.expected;
    for (auto& warp : at.cta->warps)
      for (Split& s : warp->splits)
        if (s.wait == Wait::Mbarrier && s.object == at.offset) s.wait = Wait::Ready;
    check_mbarrier_phase(at);
  }
  at.cta->cluster->expired_rounds = 0;
  store_word(at);
}

}  // namespace

bool place_mbarrier(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                    MbarrierPlace& out) {
  if (window == Window::Generic) {
    if (address < kSharedWindow || address >= kSharedWindowEnd)
      return misuse(w, i, lane,
                    "names an mbarrier at generic address " + hex_text(address) +
                        ", which is not in shared memory");
    address -= kSharedWindow;
    window = Window::SharedCluster;
  }
  out.host = resolve(w, i, lane, window, address, 8, Access::Update);
  if (!out.host) return false;
  uint32_t rank = static_cast<uint32_t>(address >> 24) & 0xff;
  out.cta = rank == w.cta->rank ? w.cta : w.cta->cluster->ctas[rank].get();
  out.offset = static_cast<uint32_t>(address & 0xffffff);
  return true;
}

namespace {
bool look_up(Warp& w, const Insn* i, uint32_t lane, MbarrierPlace& out) {
  auto found = out.cta->mbarriers.find(out.offset);
  if (found == out.cta->mbarriers.end()) {
    return misuse(w, i, lane,
                  "uses an mbarrier at " + offset_text(out.offset) + " of " + block_text(*out.cta) +
                      " that was not initialised",
                  "mbarrier.init must come first and be ordered before (fence.mbarrier_init and a "
                  "barrier over the cluster, or "
                  "__syncthreads)");
  }
  uint64_t word;
  std::memcpy(&word, out.host, sizeof word);
  if (word != found->second.word()) {
    return misuse(
        w, i, lane,
        "uses an mbarrier at " + offset_text(out.offset) + " of " + block_text(*out.cta) +
            " whose 8 bytes were overwritten by other instructions",
        "shared memory of an mbarrier object may be used otherwise only after mbarrier.inval");
  }
  out.barrier = &found->second;
  return true;
}
}  // namespace

bool find_mbarrier(Warp& w, const Insn* i, uint32_t lane, Window window, uint64_t address,
                   MbarrierPlace& out) {
  return place_mbarrier(w, i, lane, window, address, out) && look_up(w, i, lane, out);
}

bool find_mbarrier_at(Warp& w, const Insn* i, uint32_t lane, Cta& cta, uint32_t offset,
                      MbarrierPlace& out) {
  return find_mbarrier(w, i, lane, Window::SharedCluster, offset | cta.rank << 24, out);
}

bool mbarrier_arrive(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at,
                     uint32_t count) {
  Mbarrier& b = *at.barrier;
  if (count == 0 || count > Mbarrier::kMostArrivals)
    return misuse(w, i, lane,
                  "arrives with a count of " + std::to_string(count) + "; 1 to 1048575 are legal");
  if (count > b.pending) {
    return misuse(w, i, lane,
                  "arrives " + std::to_string(count) + (count == 1 ? " time at " : " times at ") +
                      mbarrier_text(w.worker->launch, *at.cta, at.offset) +
                      ", more than the phase still expects",
                  "the count given to mbarrier.init must be the number of arrivals of a phase");
  }
  b.pending -= count;
  b.last = {w.frame().code, i->origin, w.index, w.cta->rank};
  check_mbarrier_arrive(w, i, at);
  settle(at);
  return true;
}

bool mbarrier_drop(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at, uint32_t count) {
  Mbarrier& b = *at.barrier;
  if (count > b.expected)
    return misuse(w, i, lane,
                  "drops " + std::to_string(count) + " arrivals of " +
                      mbarrier_text(w.worker->launch, *at.cta, at.offset));
  b.expected -= count;
  return mbarrier_arrive(w, i, lane, at, count);
}

bool mbarrier_expect(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at,
                     uint64_t bytes) {
  Mbarrier& b = *at.barrier;
  b.tx_bytes += static_cast<int64_t>(bytes);
  if (bytes > static_cast<uint64_t>(Mbarrier::kMostBytes) || b.tx_bytes > Mbarrier::kMostBytes) {
    return misuse(w, i, lane,
                  "expects " + std::to_string(bytes) + " bytes at " +
                      mbarrier_text(w.worker->launch, *at.cta, at.offset) +
                      "; the transaction count holds 1048575");
  }
  settle(at);
  return true;
}

bool mbarrier_complete(Warp& w, const Insn* i, uint32_t lane, const MbarrierPlace& at,
                       uint64_t bytes) {
  Mbarrier& b = *at.barrier;
  b.tx_bytes -= static_cast<int64_t>(bytes);
  if (b.tx_bytes < -Mbarrier::kMostBytes) {
    return misuse(w, i, lane,
                  "completes " + std::to_string(bytes) + " bytes at " +
                      mbarrier_text(w.worker->launch, *at.cta, at.offset) +
                      "; more than a transaction count can be below zero");
  }
  settle(at);
  return true;
}

std::string mbarrier_text(const Launch& launch, const Cta& cta, uint32_t offset) {
  std::string text = "mbarrier " + offset_text(offset);
  auto found = cta.mbarriers.find(offset);
  if (found == cta.mbarriers.end()) return text + " (not initialised)";
  const Mbarrier& b = found->second;
  text += " (phase " + std::to_string(b.phase) + ": " + std::to_string(b.pending) + " of " +
          std::to_string(b.expected) + " arrivals missing, tx " + std::to_string(b.tx_bytes) +
          " bytes outstanding; ";
  if (!b.last.code) return text + "nobody has arrived yet)";
  CodePlace place = place_of(launch, *b.last.code, b.last.origin);
  text += "last arrival by warp " + std::to_string(b.last.warp);
  if (launch.ctas_per_cluster > 1) text += " of rank " + std::to_string(b.last.cta_rank);
  text += " at PTX line " + std::to_string(place.ptx_line);
  if (place.source_line)
    text += " (" + place.source_file + ":" + std::to_string(place.source_line) + ")";
  return text + ")";
}

}  // namespace ptxb::emu
