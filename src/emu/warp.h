// Owns the run state that instruction handlers see: Warp, its splits, frames and joins, the CTA and its barriers.
// Never schedules (schedule.cc) and never decodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "emu/code.h"
#include "emu/mbarrier.h"
#include "emu/memory.h"

namespace ptxb::emu {

struct Cta;
struct Cluster;
struct Worker;
struct WarpShadow;
struct CtaShadow;
// Shadows exist in check mode only; their makers know them (check_state.h).
struct DeleteShadow {
  void operator()(WarpShadow* shadow) const;
  void operator()(CtaShadow* shadow) const;
};

inline constexpr uint32_t kAll = 0xffffffffu;
// Register files are plain bytes seen as lanes of different types: the room is compiled without strict aliasing.
using U32 = uint32_t;
using U64 = uint64_t;

// One activation of a function by some lanes of a warp.
struct Frame {
  const Code* code = nullptr;
  uint8_t* registers = nullptr;
  Frame* caller = nullptr;
  const Insn* resume = nullptr;  // in the caller, after the call
  uint32_t live = 0;             // lanes that have not returned
  uint32_t local_base = 0;       // of its stack frame in each lane's local memory
  uint32_t depth = 0;
  Pages pages;                   // of registers
  // Check: lanes whose value was never initialised and where it was read, by virtual register; empty while there are none.
  std::vector<uint32_t> taint, taint_site;
};

// Lanes wait for each other where the paths of a divergent branch meet again (its immediate postdominator). A join that
// would starve a sibling is broken: its lanes then go on separately (independent thread scheduling).
struct Join {
  const Insn* place = nullptr;
  const Frame* frame = nullptr;
  uint32_t mask = 0, arrived = 0;
  int32_t parent = -1;
  bool broken = false;
};

enum class Wait : uint8_t {
  Ready,
  Join,      // at a join, siblings still away
  Converge,  // at a .sync/.aligned instruction, named lanes still away
  Barrier,   // bar.sync / bar.red
  Cluster,   // barrier.cluster.wait
  Mbarrier,  // mbarrier.try_wait
  Warpgroup, // wgmma.wait_group: for products of the other three warps
};

// Lanes of a warp that share a program counter.
struct Split {
  const Insn* pc = nullptr;
  Frame* frame = nullptr;
  uint32_t mask = 0;
  int32_t join = -1;
  Wait wait = Wait::Ready;
  uint8_t barrier = 0;
  uint32_t needed = 0;  // Converge: lanes it waits for
  uint32_t object = 0;  // Mbarrier: its offset; Warpgroup: groups that may stay open
  bool expired = false; // Mbarrier: the wait gives up and returns false
};

// cp.async copies complete at issue; the groups are kept for their rules and for check mode.
struct AsyncGroups {
  uint32_t open = 0;       // copies not committed yet
  uint32_t committed = 0;  // groups not waited for
};

// Why a warp left its run loop.
enum class Pause : uint8_t { None, Blocked, Fuel, Poll, Done, Stop };

struct Warp {
  // What handlers use all the time.
  uint8_t* r = nullptr;    // registers of the running frame
  uint32_t mask = 0;       // lanes that execute this instruction
  uint32_t exec = 0;       // lanes of the running split
  int64_t fuel = 0;        // instructions left before siblings get their turn
  Counter* counters = nullptr;
  uint8_t* shared = nullptr;   // byte kSharedBase of the CTA's shared memory
  uint32_t shared_end = 0;     // offset past its last byte
  uint32_t shared_tag = 0;     // cluster rank << 24
  Worker* worker = nullptr;
  Cta* cta = nullptr;
  // Lanes and splits.
  uint32_t index = 0;          // in the CTA
  uint32_t existing = 0;       // lanes that the block has
  uint32_t exited = 0;
  int current = -1;
  Pause pause = Pause::None;
  std::vector<Split> splits;
  std::vector<Join> joins;
  std::vector<int32_t> free_joins;
  uint32_t starving_slices = 0;  // slices used up while siblings waited at a join
  // Memory of the lanes.
  Pages local;                 // lane-major
  uint32_t local_stride = 0;
  std::vector<std::unique_ptr<Frame>> frames;  // [0]: the kernel's
  std::vector<std::unique_ptr<Frame>> free_frames;
  uint64_t clock = 0;
  uint32_t carry = 0;          // CC.CF of each lane
  uint32_t sync_phase = 0;     // Check: rises when lanes of the warp synchronise
  AsyncGroups async;
  // barrier.cluster: lanes that arrived in the running phase, lanes whose phase has completed and who have not waited yet.
  uint32_t cluster_arrived = 0, cluster_done = 0;
  uint64_t wgmma_issued = 0, wgmma_committed = 0;
  std::unique_ptr<WarpShadow, DeleteShadow> shadow;

  uint32_t live() const { return existing & ~exited; }
  Split& split() { return splits[static_cast<size_t>(current)]; }
  Frame& frame() { return *split().frame; }
};

template <class T>
[[gnu::always_inline]] inline T* lanes(Warp& w, uint32_t offset) {
  return reinterpret_cast<T*>(w.r + offset);
}
[[gnu::always_inline]] inline U32& predicate(Warp& w, uint32_t offset) {
  return *reinterpret_cast<U32*>(w.r + offset);
}

struct Barrier {
  uint32_t expected = 0;   // threads; 0: all of the CTA
  uint32_t arrived = 0;    // threads, warps rounded up
  uint32_t repeated = 0;   // of which by lanes that had arrived before
  bool in_use = false;
  uint32_t popc = 0;       // bar.red
  bool all = true, any = false;
  std::array<uint32_t, 32> lanes{};  // by warp: who arrived in this phase
  const Insn* last_arrival = nullptr;
};

struct Cta {
  Cluster* cluster = nullptr;
  uint64_t linear = 0;      // in the grid
  Dim3 id;
  uint32_t rank = 0;        // in the cluster
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<uint8_t> shared_bytes;
  std::array<Barrier, 16> barriers;
  MbarrierTable mbarriers;
  std::vector<std::shared_ptr<struct WgmmaPanels>> panels;  // by warpgroup
  uint32_t panels_in_use = 0;
  std::unique_ptr<CtaShadow, DeleteShadow> shadow;
};

// The unit of work: CTAs that run together. One CTA when the launch has no clusters.
struct Cluster {
  Worker* worker = nullptr;
  uint64_t linear = 0;
  std::vector<std::unique_ptr<Cta>> ctas;
  uint32_t expired_rounds = 0;  // of blocked try_waits, with nothing happening between
  std::shared_ptr<struct LateWork> late;
  struct {
    uint32_t phase = 0;
  } barrier;  // barrier.cluster
};

}  // namespace ptxb::emu
