// Owns the shadow state of check mode: who last wrote and read each word, vector clocks, copies in flight, values that were
// never initialised. Facts only; check_*.cc decide what is a finding.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "emu/worker.h"

namespace ptxb::emu {

// Clocks of the warps of a block: an access of warp r at clock c happened before warp w's next step when c <= w.seen[r]
// (FastTrack; Flanagan, Freund: PLDI 2009). Lanes of a warp count as one thread here, except where said.
// Beside them goes what is known of asynchronous work (check_async.cc); all of it spreads along the same edges.
struct Clocks : std::array<uint32_t, 32> {
  std::array<uint32_t, 32> proxied{};  // writes up to these clocks are visible to the async proxy
  std::vector<uint32_t> products;      // wgmma groups known to be complete, by rank * 32 + warp
  std::vector<uint32_t> bulk;          // bulk groups known to have read their source, likewise
  std::vector<uint32_t> phases;        // phases known to be complete, by the cluster's mbarrier number
  Clocks() : std::array<uint32_t, 32>{} {}
  void fill(uint32_t clock) {
    std::array<uint32_t, 32>::fill(clock);
    proxied.fill(clock);
    products.clear();
    bulk.clear();
    phases.clear();
  }
};
void join_known(std::vector<uint32_t>& into, const std::vector<uint32_t>& from);
// Without the clocks of the block's warps: what another block may learn.
inline void join_asynchronous(Clocks& into, const Clocks& from) {
  join_known(into.products, from.products);
  join_known(into.bulk, from.bulk);
  join_known(into.phases, from.phases);
}
inline void join(Clocks& into, const Clocks& from) {
  for (size_t k = 0; k < into.size(); ++k) {
    into[k] = into[k] < from[k] ? from[k] : into[k];
    into.proxied[k] = into.proxied[k] < from.proxied[k] ? from.proxied[k] : into.proxied[k];
  }
  join_asynchronous(into, from);
}

inline constexpr uint8_t kSeveralLanes = 0xff;
inline constexpr uint32_t kLineBytes = 128;  // of AsyncLine

// Four bytes of shared memory. Masks have a bit a byte.
struct SharedWord {
  uint32_t write_clock = 0, write_site = 0, write_phase = 0, write_step = 0;
  uint32_t read_clock = 0, read_site = 0;
  uint32_t readers = 0;     // 0: only read_warp; else index + 1 into CtaShadow::readers
  uint32_t own_readers = 0;  // the same index, kept for the next time
  uint32_t tainted_site = 0;  // where the uninitialised value in it was read
  uint8_t write_warp = 0, write_lane = 0, write_mask = 0;
  uint8_t read_warp = 0, read_lane = 0, read_mask = 0;
  uint8_t initialised = 0;
  bool write_atomic : 1 = false;
  bool in_flight : 1 = false;  // cp.async, not waited for
};

// What a strong write left at its place for those who read it.
struct Published {
  uint32_t block_clock = 0;
  Clocks clocks{};
};

// kLineBytes of shared memory, as asynchronous work sees them.
struct AsyncLine {
  uint32_t site = 0;        // of the last asynchronous write
  uint32_t barrier = 0;     // number + 1 of the mbarrier that it signals
  uint32_t phase = 0;       // in which it completes
  bool written = false;     // by asynchronous work, and by nothing since
  bool generic = false;     // ordinary accesses since then: their words count
  bool read = false;        // by asynchronous work: see CtaShadow::async_reads
};
struct AsyncRead {  // of one line by one warp: 1 + the group that it belongs to; 0: none
  uint32_t product = 0, bulk = 0;
};
struct MbarrierShadow {
  uint32_t number = 0;  // in the cluster
  Clocks gathering, complete;
};

struct CtaShadow {
  std::vector<AsyncLine> lines;
  std::vector<AsyncRead> async_reads;  // line * 32 + warp
  std::unordered_map<uint32_t, MbarrierShadow> mbarriers;  // by offset
  uint32_t mbarrier_count = 0;  // of the cluster, in rank 0's
  std::vector<SharedWord> words;
  std::vector<std::array<uint32_t, 32>> readers;     // clocks by warp, one a word that several warps have read
  std::array<Clocks, 16> barrier{};
  Clocks cluster_barrier{};
  uint32_t clock = 1;                                // rises at each release to other blocks
  std::unordered_map<uint32_t, uint32_t> acquired;   // other blocks' clocks
  std::unordered_map<uint32_t, Clocks> published;    // by shared offset
};

struct Flight {  // one lane's cp.async
  uint32_t offset = 0, bytes = 0, group = 0;
  uint8_t lane = 0;
};

struct Product {  // a wgmma in flight
  const struct ProductRegisters* registers = nullptr;
  const Frame* frame = nullptr;
  uint64_t group = 0;
  uint32_t site = 0;
};

struct WarpShadow {
  std::vector<Product> products;
  bool product_fence = false;      // some wgmma.fence has been executed
  std::vector<uint32_t> unfenced;  // by register: 1 + where it was written since the last wgmma.fence
  uint32_t product_site = 0, bulk_site = 0;  // of its last asynchronous reads
  uint32_t bulk_groups = 0;                  // committed
  Clocks seen{};
  uint32_t clock = 1;  // its own entry of `seen` as well
  uint32_t step = 0;
  std::vector<Flight> flights;
  std::array<uint32_t, 32> groups{};   // committed, by lane
  // Of the load that runs: lanes that get a value never initialised, by destination register.
  std::array<uint32_t, 8> load_taint{};
  uint32_t load_site = 0;
  bool fenced = false;  // since its last barrier: plain stores may be flags
};

// Four bytes of a tracked global buffer.
struct GlobalWord {
  uint32_t write_block = 0, write_block_clock = 0, write_clock = 0, write_site = 0;
  uint32_t read_block = 0, read_block_clock = 0, read_clock = 0, read_site = 0;
  uint32_t other_block = 0, other_block_clock = 0;  // an earlier reader of another block
  uint8_t write_warp = 0, write_lane = 0, write_mask = 0;
  uint8_t read_warp = 0, read_lane = 0, read_mask = 0, other_mask = 0;
  bool write_atomic = false;
};

struct GlobalShadow {
  Pages pages;  // GlobalWord each
  uint64_t words = 0;
  GlobalWord* at(uint64_t word) { return reinterpret_cast<GlobalWord*>(pages.data()) + word; }
};

class Checker {
 public:
  explicit Checker(Launch& launch_in) : launch(launch_in) {}
  Launch& launch;
  std::unordered_map<const Allocation*, GlobalShadow> global;
  std::unordered_map<uint64_t, std::unordered_map<uint32_t, Published>> published;  // by global address, then block
  std::unordered_map<uint32_t, std::string> first_uninitialised;  // by site: what was read there first
  // Of wgmma: 128-byte lines and their 16-byte chunks, by instruction, descriptor and quarter (4: operand B).
  std::map<std::tuple<const Insn*, uint64_t, int>, std::vector<std::pair<uint32_t, uint32_t>>> operand_lines;
  GlobalShadow* shadow_of(const Allocation& allocation, bool for_write);
  CodePlace place(uint32_t site) const;
};

struct AccessWords {  // one lane's access
  uint32_t lane = 0;
  uint64_t offset = 0;  // in the block's shared memory or the buffer
  uint32_t bytes = 0;
};

// How an access takes part.
struct AccessKind {
  bool writes = false, atomic = false, asynchronous = false;
  uint32_t site = 0;
  // Writes: the bytes that will be stored, so that writing what is there already is no conflict; nullptr: not known.
  const uint8_t* data = nullptr;
  const uint8_t* present = nullptr;
};

// Ordinary accesses against asynchronous work (check_async.cc).
void check_against_async(Warp& w, const AccessWords& access, const AccessKind& kind);
void start_async_shadow(Cta& cta);
void check_proxy_fence(Warp& w);  // fence.proxy.async
// The warp has read all of it since its last barrier and since it was written: nothing new can be found. At most 16 bytes.
bool read_before(Warp& w, uint64_t offset, uint32_t bytes);
void check_shared_access(Warp& w, const AccessWords& access, const AccessKind& kind);
void check_global_access(Warp& w, const Allocation& allocation, const AccessWords& access, const AccessKind& kind);
// Strong operations order what they connect; nothing is demanded of their fences (no correct protocol is accused).
void acquire_at(Warp& w, bool shared, uint64_t address);
void release_at(Warp& w, bool shared, uint64_t address);

}  // namespace ptxb::emu
