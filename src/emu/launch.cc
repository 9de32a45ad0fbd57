// Owns what makes a launch legal and how much of it runs: limits of the chip, of the kernel, co-
// residency, sampling. Never executes instructions.
// SPDX-License-Identifier: Apache-2.0
#include "emu/launch.h"

#include <algorithm>
#include <set>

namespace ptxb::emu {
namespace {

constexpr uint32_t kUnboundedStack =
    64u << 10;  // a thread's stack where recursion or indirect calls hide its depth
constexpr uint64_t kLocalLimit = uint64_t{32} << 20;  // of a warp

std::string dims(const Dim3& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

uint32_t registers_of(const Launch& launch) {
  for (const KernelInfo& info : launch.run.plan.modules[launch.spec.module].kernels)
    if (info.name == launch.spec.kernel) return info.registers;
  return 0;
}

std::string check_block(const Launch& launch, const arch::Chip& chip) {
  const Dim3 &grid = launch.spec.grid, &block = launch.spec.block;
  const ptx::Function& f = *launch.entry.function;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return "an empty grid " + dims(grid);
  if (grid.y > 65535 || grid.z > 65535 || grid.x > 0x7fffffffu)
    return "grid " + dims(grid) + " exceeds (2147483647,65535,65535)";
  if (block.x == 0 || block.y == 0 || block.z == 0) return "an empty block " + dims(block);
  if (block.x > 1024 || block.y > 1024 || block.z > 64)
    return "block " + dims(block) + " exceeds (1024,1024,64)";
  if (block.volume() > chip.max_threads_per_block)
    return "blocks of " + std::to_string(block.volume()) + " threads; the chip allows " +
           std::to_string(chip.max_threads_per_block);
  auto differs = [](const Dim3& wanted, const Dim3& given) {
    return wanted.x && !(wanted == given);
  };
  Dim3 required = f.required_threads;
  if (required.x) {
    required.y = std::max(required.y, 1u);
    required.z = std::max(required.z, 1u);
  }
  if (differs(required, block)) return "block " + dims(block) + "; .reqntid says " + dims(required);
  Dim3 most = f.max_threads;
  if (most.x && block.volume() > uint64_t{most.x} * std::max(most.y, 1u) * std::max(most.z, 1u))
    return "blocks of " + std::to_string(block.volume()) +
           " threads; .maxntid (__launch_bounds__) says " + dims(most);
  return "";
}

std::string check_cluster(Launch& launch, const arch::Chip& chip) {
  const Dim3& grid = launch.spec.grid;
  Dim3 required = launch.entry.function->required_cluster;
  Dim3 cluster = launch.spec.cluster;
  if (required.x) {
    required.y = std::max(required.y, 1u);
    required.z = std::max(required.z, 1u);
    if (cluster.x && !(cluster == required))
      return "cluster " + dims(cluster) + "; .reqnctapercluster says " + dims(required);
    cluster = required;
  }
  launch.explicit_cluster = cluster.x != 0 || launch.entry.function->explicit_cluster;
  if (!cluster.x) cluster = {1, 1, 1};
  if (cluster.volume() == 0 || cluster.volume() > chip.max_cluster_size_nonportable)
    return "clusters of " + std::to_string(cluster.volume()) + " blocks; the chip allows " +
           std::to_string(chip.max_cluster_size_nonportable);
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return "grid " + dims(grid) + " is not a multiple of the cluster " + dims(cluster);
  launch.cluster = cluster;
  launch.ctas_per_cluster = static_cast<uint32_t>(cluster.volume());
  launch.clusters = grid.volume() / cluster.volume();
  return "";
}

// Blocks that one multiprocessor holds at once, by threads, shared memory and registers.
uint64_t blocks_per_multiprocessor(const Launch& launch, const arch::Chip& chip) {
  uint64_t threads = uint64_t{launch.warps_per_cta} * 32;
  uint64_t blocks = std::min<uint64_t>(chip.max_blocks_per_multiprocessor,
                                       chip.max_threads_per_multiprocessor / threads);
  uint64_t shared = launch.shared_end - kSharedBase + chip.reserved_shared_bytes;
  blocks = std::min(blocks, chip.shared_per_multiprocessor_bytes / std::max<uint64_t>(shared, 1));
  uint64_t registers = round_up(registers_of(launch), 8) * threads;
  if (registers) blocks = std::min(blocks, chip.registers_per_multiprocessor / registers);
  return blocks;
}

}  // namespace

std::string shape_launch(Launch& launch) {
  const arch::Chip* chip = launch.run.chip;
  if (!chip) return "no chip is known for architecture " + launch.run.plan.arch;
  if (std::string bad = check_block(launch, *chip); !bad.empty()) return bad;
  if (std::string bad = check_cluster(launch, *chip); !bad.empty()) return bad;
  const Code& entry = launch.entry;
  if (launch.spec.params.size() != entry.param_bytes) {
    return "parameters of " + std::to_string(launch.spec.params.size()) +
           " bytes; the kernel takes " + std::to_string(entry.param_bytes);
  }
  launch.threads_per_cta = static_cast<uint32_t>(launch.spec.block.volume());
  launch.warps_per_cta = (launch.threads_per_cta + 31) / 32;
  uint64_t end = entry.dynamic_shared_offset;
  if (!launch.spec.dynamic_shared_bytes) end = kSharedBase + entry.static_shared_bytes;
  end += launch.spec.dynamic_shared_bytes;
  if (end - kSharedBase > chip->shared_per_block_optin_bytes) {
    return std::to_string(end - kSharedBase) + " bytes of shared memory a block; the chip allows " +
           std::to_string(chip->shared_per_block_optin_bytes);
  }
  launch.shared_end = static_cast<uint32_t>(end);
  launch.local_stride = launch.kernel.unbounded_stack ? std::max(kUnboundedStack, entry.local_bytes)
                                                      : entry.stack_bytes;
  launch.local_stride = (launch.local_stride + 15) / 16 * 16;
  if (uint64_t{launch.local_stride} * 32 > kLocalLimit)
    return "more than 1 MiB of local memory a thread";
  uint64_t blocks = blocks_per_multiprocessor(launch, *chip);
  if (blocks == 0)
    return "a block that does not fit on a multiprocessor (registers or shared memory)";
  launch.resident_limit =
      std::max<uint64_t>(blocks * chip->multiprocessors / launch.ctas_per_cluster, 1);
  if (launch.spec.cooperative && launch.clusters > launch.resident_limit) {
    return "a cooperative launch of " + std::to_string(launch.spec.grid.volume()) +
           " blocks; only " + std::to_string(launch.resident_limit * launch.ctas_per_cluster) +
           " fit on the chip at once";
  }
  return "";
}

void select_blocks(Launch& launch) {
  const Options& options = launch.run.options;
  bool sampling = options.mode == Mode::Check || options.mode == Mode::Fuzz;
  uint64_t limit = options.block_limit;
  if (!sampling || limit == 0 || launch.spec.cooperative || launch.clusters <= limit) return;
  std::set<uint64_t> chosen{0, launch.clusters - 1};
  uint64_t state = options.seed + 0x9e3779b97f4a7c15u * (launch.grid_index + 1);
  while (chosen.size() < limit) {  // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    chosen.insert((z ^ (z >> 31)) % launch.clusters);
  }
  if (limit == 1) chosen = {0};
  launch.selection.assign(chosen.begin(), chosen.end());
}

}  // namespace ptxb::emu
