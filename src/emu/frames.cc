// Owns the making of clusters, warps and function frames, and the values of their constant slots.
// Never schedules.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>

#include "emu/async.h"
#include "emu/check.h"
#include "emu/worker.h"
#include "ptx/opcodes.h"

namespace ptxb::emu {
namespace {

using ptx::Special;

Dim3 position(uint64_t linear, const Dim3& extent) {
  Dim3 p;
  p.x = static_cast<uint32_t>(linear % extent.x);
  p.y = static_cast<uint32_t>(linear / extent.x % extent.y);
  p.z = static_cast<uint32_t>(linear / extent.x / extent.y);
  return p;
}

uint32_t component(const Dim3& v, uint32_t which) {
  return which == 0 ? v.x : which == 1 ? v.y : which == 2 ? v.z : 0;
}

Dim3 clusters_in_grid(const Launch& launch) {
  const Dim3 &grid = launch.spec.grid, &cluster = launch.cluster;
  return {grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z};
}

uint64_t special_value(const Warp& w, Special special, uint32_t which, uint32_t lane) {
  const Cta& cta = *w.cta;
  const Launch& launch = w.worker->launch;
  uint32_t lane_bit = 1u << lane;
  switch (special) {
    case Special::Tid:
      return component(position(uint64_t{w.index} * 32 + lane, launch.spec.block), which);
    case Special::Ntid:
      return which == 3 ? 0 : component(launch.spec.block, which);
    case Special::Laneid:
      return lane;
    case Special::Warpid:
      return w.index;
    case Special::Nwarpid:
      return launch.warps_per_cta;
    case Special::Ctaid:
      return component(cta.id, which);
    case Special::Nctaid:
      return which == 3 ? 0 : component(launch.spec.grid, which);
    case Special::Smid:
      return launch.run.chip ? cta.linear % launch.run.chip->multiprocessors : 0;
    case Special::Nsmid:
      return launch.run.chip ? launch.run.chip->multiprocessors : 1;
    case Special::Gridid:
      return launch.grid_index;
    case Special::IsExplicitCluster:
      return launch.explicit_cluster ? 1 : 0;
    case Special::Clusterid: {
      Dim3 id{cta.id.x / launch.cluster.x, cta.id.y / launch.cluster.y,
              cta.id.z / launch.cluster.z};
      return component(id, which);
    }
    case Special::Nclusterid:
      return which == 3 ? 0 : component(clusters_in_grid(launch), which);
    case Special::ClusterCtaid:
      return component(position(cta.rank, launch.cluster), which);
    case Special::ClusterNctaid:
      return which == 3 ? 0 : component(launch.cluster, which);
    case Special::ClusterCtarank:
      return cta.rank;
    case Special::ClusterNctarank:
      return launch.ctas_per_cluster;
    case Special::LanemaskEq:
      return lane_bit;
    case Special::LanemaskLe:
      return lane_bit | (lane_bit - 1);
    case Special::LanemaskLt:
      return lane_bit - 1;
    case Special::LanemaskGe:
      return ~(lane_bit - 1);
    case Special::LanemaskGt:
      return ~(lane_bit | (lane_bit - 1));
    case Special::ReservedSmemOffsetEnd:
    case Special::ReservedSmemOffsetCap:
      return kSharedBase;
    case Special::TotalSmemSize:
    case Special::AggrSmemSize:
      return launch.shared_end;
    case Special::DynamicSmemSize:
      return launch.spec.dynamic_shared_bytes;
    default:
      return 0;
  }
}

uint64_t constant_value(const Warp& w, const Frame& frame, const Constant& c, uint32_t lane) {
  const Launch& launch = w.worker->launch;
  switch (c.kind) {
    case Constant::Kind::Bits:
      return c.value;
    case Constant::Kind::ParameterAddress:
      return kParamWindow + c.value;
    case Constant::Kind::Shared:
      return c.value + w.shared_tag;
    case Constant::Kind::Local:
      return c.value + frame.local_base;
    case Constant::Kind::Special:
      return special_value(w, static_cast<Special>(c.value), c.component, lane);
    case Constant::Kind::Parameter: {
      uint64_t value = 0;
      if (c.value + c.bytes <= launch.parameter_bytes.size())
        std::memcpy(&value, launch.parameter_bytes.data() + c.value, c.bytes);
      if (c.is_signed && c.bytes < 8 && (value >> (c.bytes * 8 - 1) & 1))
        value |= ~uint64_t{0} << (c.bytes * 8);
      return value;
    }
  }
  return 0;
}

bool same_in_all_lanes(const Constant& c) {
  if (c.kind != Constant::Kind::Special) return true;
  switch (static_cast<Special>(c.value)) {
    case Special::Tid:
    case Special::Laneid:
    case Special::LanemaskEq:
    case Special::LanemaskLe:
    case Special::LanemaskLt:
    case Special::LanemaskGe:
    case Special::LanemaskGt:
      return false;
    default:
      return true;
  }
}

void fill(const Warp& w, const Frame& frame, const Constant& c) {
  uint8_t* slot = frame.registers + c.slot;
  bool uniform = same_in_all_lanes(c);
  uint64_t value = constant_value(w, frame, c, 0);
  if (c.width_bytes == 0) {
    uint32_t mask = value ? kAll : 0;
    if (c.kind == Constant::Kind::Bits) mask = static_cast<uint32_t>(c.value);
    std::memcpy(slot, &mask, 4);
  } else if (c.width_bytes == 4) {
    auto* lane = reinterpret_cast<uint32_t*>(slot);
    for (uint32_t l = 0; l < 32; ++l)
      lane[l] = static_cast<uint32_t>(uniform ? value : constant_value(w, frame, c, l));
  } else {
    auto* lane = reinterpret_cast<uint64_t*>(slot);
    for (uint32_t l = 0; l < 32; ++l) lane[l] = uniform ? value : constant_value(w, frame, c, l);
  }
}

void start_warp(Worker& worker, Warp& w) {
  Launch& launch = worker.launch;
  w.exited = 0;
  w.current = -1;
  w.pause = Pause::None;
  w.joins.clear();
  w.free_joins.clear();
  w.splits.clear();
  w.starving_slices = 0;
  w.clock = 0;
  w.carry = 0;
  w.sync_phase = 0;
  w.async = {};
  w.cluster_arrived = w.cluster_done = 0;
  uint32_t first = w.index * 32;
  uint32_t count = std::min(32u, launch.threads_per_cta - first);
  w.existing = count == 32 ? kAll : (1u << count) - 1;
  if (w.frames.empty()) {
    push_frame(w, launch.entry, nullptr, nullptr, w.existing, 0);
  } else {
    while (w.frames.size() > 1) free_frame(w, w.frames.back().get());
    Frame& frame = *w.frames[0];
    frame.live = w.existing;
    if (frame.code->clear_registers) std::memset(frame.registers, 0, frame.code->variable_bytes);
    fill_constants(w, frame, 2);
  }
  if (launch.entry.function->body.empty()) return;
  w.splits.push_back(
      {launch.entry.insns.data(), w.frames[0].get(), w.existing, -1, Wait::Ready, 0, 0});
}

}  // namespace

void fill_constants(Warp& w, Frame& frame, uint32_t which) {
  for (const Constant& c : frame.code->constants)
    if (which & (c.launch_constant() ? 1u : 2u)) fill(w, frame, c);
}

Frame* push_frame(Warp& w, const Code& code, Frame* caller, const Insn* resume, uint32_t lanes_in,
                  uint32_t local_base) {
  std::unique_ptr<Frame> frame;
  auto spare = std::find_if(w.free_frames.begin(), w.free_frames.end(),
                            [&](const auto& f) { return f->code == &code; });
  bool fresh = spare == w.free_frames.end();
  if (fresh) {
    frame = std::make_unique<Frame>();
    frame->pages = Pages(std::max<uint64_t>(code.frame_bytes, 128));
    PTXB_CHECK(frame->pages.data() != nullptr);
    frame->registers = frame->pages.data();
    frame->code = &code;
  } else {
    frame = std::move(*spare);
    w.free_frames.erase(spare);
    if (code.clear_registers) std::memset(frame->registers, 0, code.variable_bytes);
  }
  frame->caller = caller;
  frame->resume = resume;
  frame->live = lanes_in;
  frame->local_base = local_base;
  frame->taint.clear();
  frame->depth = caller ? caller->depth + 1 : 0;
  fill_constants(w, *frame, fresh ? 3 : 2);
  w.frames.push_back(std::move(frame));
  return w.frames.back().get();
}

void free_frame(Warp& w, Frame* frame) {
  constexpr size_t kSpareFrames = 16;
  auto found = std::find_if(w.frames.begin(), w.frames.end(),
                            [&](const auto& f) { return f.get() == frame; });
  if (found == w.frames.end()) return;
  if (w.free_frames.size() < kSpareFrames) w.free_frames.push_back(std::move(*found));
  w.frames.erase(found);
}

std::unique_ptr<Cluster> make_cluster(Worker& worker) {
  Launch& launch = worker.launch;
  auto cluster = std::make_unique<Cluster>();
  cluster->worker = &worker;
  for (uint32_t rank = 0; rank < launch.ctas_per_cluster; ++rank) {
    auto cta = std::make_unique<Cta>();
    cta->cluster = cluster.get();
    cta->rank = rank;
    cta->shared_bytes.resize(launch.shared_end - kSharedBase + 64);
    for (uint32_t index = 0; index < launch.warps_per_cta; ++index) {
      auto warp = std::make_unique<Warp>();
      warp->worker = &worker;
      warp->cta = cta.get();
      warp->index = index;
      warp->counters = worker.counters.data();
      warp->shared = cta->shared_bytes.data();
      warp->shared_end = launch.shared_end;
      warp->shared_tag = rank << 24;
      warp->local_stride = launch.local_stride;
      warp->local = Pages(uint64_t{launch.local_stride} * 32);
      cta->warps.push_back(std::move(warp));
    }
    cluster->ctas.push_back(std::move(cta));
  }
  return cluster;
}

void start_cluster(Worker& worker, Cluster& cluster, uint64_t linear) {
  Launch& launch = worker.launch;
  cluster.worker = &worker;
  cluster.linear = linear;
  cluster.barrier = {};
  Dim3 at = position(linear, clusters_in_grid(launch));
  for (auto& cta : cluster.ctas) {
    Dim3 inside = position(cta->rank, launch.cluster);
    cta->id = {at.x * launch.cluster.x + inside.x, at.y * launch.cluster.y + inside.y,
               at.z * launch.cluster.z + inside.z};
    const Dim3& grid = launch.spec.grid;
    cta->linear = cta->id.x + uint64_t{grid.x} * (cta->id.y + uint64_t{grid.y} * cta->id.z);
    std::fill(cta->shared_bytes.begin(), cta->shared_bytes.end(), uint8_t{0});
    for (Barrier& barrier : cta->barriers) barrier = {};
    reset_async(*cta);
    for (auto& warp : cta->warps) start_warp(worker, *warp);
  }
  check_start(cluster);
}

}  // namespace ptxb::emu
