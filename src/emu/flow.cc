// Owns control-flow analysis. Works on parsed PTX only.
// SPDX-License-Identifier: Apache-2.0
#include "emu/flow.h"

#include <algorithm>
#include <set>

namespace ptxb::emu {

using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;

bool is_branch(const Instruction& in) {
  return in.opcode == Opcode::Bra || in.opcode == Opcode::BrxIdx;
}

bool synchronises_lanes(const Instruction& in) {
  if (in.has(Modifier::Aligned)) return true;
  const ptx::OpcodeInfo& facts = ptx::info(in.opcode);
  // bar{.cta} is barrier.cta.sync.aligned by definition (PTX ISA 9.7.13.1); the others wait for
  // their member mask.
  if (in.opcode == Opcode::BarSync || in.opcode == Opcode::BarArrive ||
      in.opcode == Opcode::BarRed || in.opcode == Opcode::BarWarpSync || in.opcode == Opcode::Elect)
    return true;
  return in.has(Modifier::Sync) &&
         (facts.category == ptx::Category::Warp || facts.category == ptx::Category::Matrix);
}

bool needs_own_block(const ptx::Function& f, const Instruction& in) {
  if (in.opcode == Opcode::Call) return true;
  if (in.opcode == Opcode::Ret) return !f.is_entry;  // in a kernel it ends the thread, like exit
  ptx::SyncClass sync = ptx::info(in.opcode).sync;
  return synchronises_lanes(in) || sync == ptx::SyncClass::Cta || sync == ptx::SyncClass::Cluster ||
         sync == ptx::SyncClass::Warp || ptx::info(in.opcode).category == ptx::Category::Mbarrier;
}

namespace {

bool ends_thread(const Instruction& in) {
  return in.opcode == Opcode::Exit || in.opcode == Opcode::Trap;
}

void find_blocks(const ptx::Function& f, Flow& flow) {
  const uint32_t count = static_cast<uint32_t>(f.body.size());
  std::vector<bool> leader(count + 1, false);
  if (count) leader[0] = true;
  leader[count] = true;
  for (const auto& [name, at] : f.labels) leader[at] = true;
  for (uint32_t k = 0; k < count; ++k) {
    const Instruction& in = f.body[k];
    bool own = in.guard && needs_own_block(f, in);
    if (own) leader[k] = true;
    if (own || is_branch(in) || ends_thread(in) || in.opcode == Opcode::Ret ||
        in.opcode == Opcode::Call)
      leader[k + 1] = true;
  }
  flow.block_of.assign(count + 1, 0);
  for (uint32_t k = 0; k <= count; ++k) {
    if (leader[k]) {
      if (!flow.blocks.empty()) flow.blocks.back().end = k;
      flow.blocks.push_back({k, k, {}, kNone});
    }
    flow.block_of[k] = static_cast<uint32_t>(flow.blocks.size() - 1);
  }
  flow.blocks.back().end = count;
  flow.exit_block = static_cast<uint32_t>(flow.blocks.size() - 1);
}

void find_edges(const ptx::Function& f, Flow& flow) {
  for (uint32_t b = 0; b < flow.exit_block; ++b) {
    Block& block = flow.blocks[b];
    auto to = [&](uint32_t target) {
      if (std::find(block.next.begin(), block.next.end(), target) == block.next.end())
        block.next.push_back(target);
    };
    const Instruction& last = f.body[block.end - 1];
    bool guarded = last.guard.has_value();
    if (last.opcode == Opcode::Bra) {
      to(flow.block_of[last.operands[0].label]);
      if (guarded) to(b + 1);
    } else if (last.opcode == Opcode::BrxIdx) {
      for (const ptx::BranchTable& table : f.tables)
        if (table.name == last.operands[1].symbol)
          for (uint32_t label : table.labels) to(flow.block_of[label]);
      if (guarded) to(b + 1);
    } else if (last.opcode == Opcode::Ret && !(guarded && f.is_entry)) {
      to(flow.exit_block);
      if (guarded) to(b + 1);
    } else if (ends_thread(last) && !guarded) {
      to(flow.exit_block);
    } else {
      to(b + 1);
    }
  }
}

// Where a thread of a kernel ends: a branch to such a block does not keep its siblings from meeting
// elsewhere.
bool leaves(const ptx::Function& f, const Flow& flow, uint32_t b) {
  if (!f.is_entry) return false;
  if (b == flow.exit_block) return true;
  const Instruction& last = f.body[flow.blocks[b].end - 1];
  return !last.guard && (ends_thread(last) || last.opcode == Opcode::Ret);
}

// Whether a thread that leaves block b not for `avoided` can still end: then the siblings of an
// early return meet elsewhere.
bool ends_without(const Flow& flow, const std::vector<bool>& leaving, uint32_t b,
                  uint32_t avoided) {
  constexpr size_t kMostVisited = 4096;
  std::vector<uint32_t> open;
  std::set<uint32_t> seen{avoided};
  for (uint32_t n : flow.blocks[b].next)
    if (seen.insert(n).second) open.push_back(n);
  while (!open.empty() && seen.size() < kMostVisited) {
    uint32_t at = open.back();
    open.pop_back();
    if (leaving[at]) return true;
    for (uint32_t n : flow.blocks[at].next)
      if (seen.insert(n).second) open.push_back(n);
  }
  return false;
}

// Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm", on the reversed graph.
void find_postdominators(const ptx::Function& f, Flow& flow) {
  size_t count = flow.blocks.size();
  std::vector<std::vector<uint32_t>> previous(count), following(count);
  std::vector<bool> leaving(count);
  for (uint32_t b = 0; b < count; ++b) leaving[b] = leaves(f, flow, b);
  for (uint32_t b = 0; b < count; ++b) {
    for (uint32_t n : flow.blocks[b].next)
      if (!leaving[n] || !ends_without(flow, leaving, b, n)) following[b].push_back(n);
    if (following[b].empty()) following[b] = flow.blocks[b].next;
    for (uint32_t n : following[b]) previous[n].push_back(b);
  }
  std::vector<uint32_t> order,
      position(count, kNone);  // postorder of the reversed graph from the exit
  std::vector<std::pair<uint32_t, size_t>> stack{{flow.exit_block, 0}};
  std::vector<bool> seen(count, false);
  seen[flow.exit_block] = true;
  while (!stack.empty()) {
    auto& [node, edge] = stack.back();
    if (edge < previous[node].size()) {
      uint32_t p = previous[node][edge++];
      if (!seen[p]) {
        seen[p] = true;
        stack.push_back({p, 0});
      }
    } else {
      position[node] = static_cast<uint32_t>(order.size());
      order.push_back(node);
      stack.pop_back();
    }
  }
  std::vector<uint32_t> dominator(count, kNone);
  dominator[flow.exit_block] = flow.exit_block;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = order.size(); k-- > 0;) {
      uint32_t node = order[k];
      if (node == flow.exit_block) continue;
      uint32_t best = kNone;
      for (uint32_t n : following[node]) {
        if (position[n] == kNone || dominator[n] == kNone) continue;
        if (best == kNone) {
          best = n;
          continue;
        }
        uint32_t x = n, y = best;
        while (x != y) {
          while (position[x] < position[y]) x = dominator[x];
          while (position[y] < position[x]) y = dominator[y];
        }
        best = x;
      }
      if (best != dominator[node]) {
        dominator[node] = best;
        changed = true;
      }
    }
  }
  for (uint32_t b = 0; b < count; ++b)
    if (b != flow.exit_block) flow.blocks[b].postdominator = dominator[b];
}

void find_joins(const ptx::Function& f, Flow& flow) {
  flow.join.assign(flow.blocks.size(), false);
  for (uint32_t b = 0; b < flow.exit_block; ++b) {
    Block& block = flow.blocks[b];
    const Instruction& first = f.body[block.begin];
    bool own = first.guard && needs_own_block(f, first);
    if ((block.next.size() < 2 && !own) || block.postdominator == kNone) continue;
    const Block& meet = flow.blocks[block.postdominator];
    // Lanes that only leave the kernel need not wait for each other.
    if (leaves(f, flow, block.postdominator) && meet.end <= meet.begin + 1)
      block.postdominator = kNone;
    else
      flow.join[block.postdominator] = true;
  }
}

bool reads_changing_memory(const Instruction& in) {
  if (in.opcode == Opcode::MbarrierTestWait || in.opcode == Opcode::MbarrierTryWait) return true;
  bool plain_load = in.opcode == Opcode::Ld;
  if (plain_load)
    return in.has(Modifier::Volatile) || in.has(Modifier::Acquire) || in.has(Modifier::Relaxed);
  if (in.opcode != Opcode::Atom) return false;
  if (in.has(Modifier::Cas) || in.has(Modifier::Exch)) return true;
  if (in.operands.size() < 3) return false;
  const Operand& value = in.operands[2];
  return value.kind == Operand::Kind::Immediate && value.bits == 0;
}

// A loop polls when what decides about leaving it comes from memory that others change.
bool polls(const ptx::Function& f, uint32_t first, uint32_t last) {
  constexpr uint32_t kLongest = 256;
  if (last - first > kLongest) return false;
  std::vector<uint32_t> tainted;
  auto is_tainted = [&](uint32_t reg) {
    return std::find(tainted.begin(), tainted.end(), reg) != tainted.end();
  };
  bool any = false;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t k = first; k <= last; ++k) {
      Uses uses;
      collect_uses(f.body[k], uses);
      bool taint = reads_changing_memory(f.body[k]);
      any = any || taint;
      for (uint32_t r : uses.reads) taint = taint || is_tainted(r);
      if (taint)
        for (uint32_t r : uses.writes)
          if (!is_tainted(r)) tainted.push_back(r);
    }
    if (!any) return false;
  }
  for (uint32_t k = first; k <= last; ++k) {
    const Instruction& in = f.body[k];
    if (!in.guard || !is_tainted(in.guard->reg)) continue;
    if (k == last || in.opcode == Opcode::Exit || in.opcode == Opcode::Ret) return true;
    if (in.opcode == Opcode::Bra && (in.operands[0].label < first || in.operands[0].label > last))
      return true;
  }
  return false;
}

}  // namespace

Flow analyse_flow(const ptx::Function& function) {
  Flow flow;
  find_blocks(function, flow);
  find_edges(function, flow);
  find_postdominators(function, flow);
  find_joins(function, flow);
  flow.polling.assign(function.body.size(), false);
  for (uint32_t k = 0; k < function.body.size(); ++k) {
    const Instruction& in = function.body[k];
    if (in.opcode == Opcode::Bra && in.operands[0].label <= k)
      flow.polling[k] = polls(function, in.operands[0].label, k);
  }
  return flow;
}

}  // namespace ptxb::emu
