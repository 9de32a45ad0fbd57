// Owns register allocation: which bytes of the frame a virtual register lives in. Liveness is a
// property of one thread, so lanes on different paths may share a slot: each lane's bytes are its
// own.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "emu/flow.h"
#include "ptx/roles.h"

namespace ptxb::emu {

using ptx::Instruction;
using ptx::Operand;
using ptx::Role;

std::vector<Role> operand_roles(const Instruction& in) {
  if (auto roles = ptx::operand_roles(in); roles && roles->size() == in.operands.size())
    return *std::move(roles);
  std::vector<Role> roles(in.operands.size(), Role::Source);
  if (in.opcode == ptx::Opcode::Call && !roles.empty()) roles[0] = Role::Destination;
  return roles;
}

namespace {

void add_registers(const Operand& operand, std::vector<uint32_t>& out) {
  if (operand.kind == Operand::Kind::Register) out.push_back(operand.reg);
  for (const Operand& element : operand.elements) add_registers(element, out);
}

constexpr uint64_t kBitLimit = uint64_t{1} << 31;  // liveness bits of one function

struct Interval {
  uint32_t reg = 0, begin = kNone, end = 0;
  void touch(uint32_t at) {
    begin = std::min(begin, at);
    end = std::max(end, at);
  }
};

class Bits {
 public:
  explicit Bits(size_t count = 0) : words_((count + 63) / 64) {}
  bool get(size_t k) const { return words_[k / 64] >> (k % 64) & 1; }
  void set(size_t k) { words_[k / 64] |= uint64_t{1} << (k % 64); }
  // *this = gen | (out & ~kill); true when it changed.
  bool transfer(const Bits& gen, const Bits& out, const Bits& kill) {
    bool changed = false;
    for (size_t k = 0; k < words_.size(); ++k) {
      uint64_t next = gen.words_[k] | (out.words_[k] & ~kill.words_[k]);
      changed = changed || next != words_[k];
      words_[k] = next;
    }
    return changed;
  }
  void merge(const Bits& other) {
    for (size_t k = 0; k < words_.size(); ++k) words_[k] |= other.words_[k];
  }

 private:
  std::vector<uint64_t> words_;
};

// Registers touched in more than one block get a liveness bit; the others live inside their block.
struct Liveness {
  std::vector<uint32_t> shared;  // registers with a bit
  std::vector<Bits> in, out;     // by block
};

Liveness find_liveness(const ptx::Function& f, const Flow& flow) {
  size_t registers = f.registers.size();
  std::vector<uint32_t> home(registers, kNone);
  std::vector<bool> wide(registers, false);
  auto visit = [&](auto&& use) {
    Uses uses;
    for (uint32_t b = 0; b < flow.blocks.size(); ++b) {
      for (uint32_t k = flow.blocks[b].begin; k < flow.blocks[b].end; ++k) {
        collect_uses(f.body[k], uses);
        use(b, k, uses);
      }
    }
  };
  std::vector<bool> written(registers, false);
  visit([&](uint32_t b, uint32_t k, const Uses& uses) {
    auto touch = [&](uint32_t r) {
      if (home[r] != kNone && home[r] != b) wide[r] = true;
      home[r] = b;
    };
    for (uint32_t r : uses.reads) {
      touch(r);
      if (!written[r])
        wide[r] = true;  // read before any write in text order: carried by a loop, or undefined
    }
    for (uint32_t r : uses.writes) {
      touch(r);
      if (!f.body[k].guard) written[r] = true;
    }
  });
  Liveness live;
  std::vector<uint32_t> bit(registers, kNone);
  for (uint32_t r = 0; r < registers; ++r) {
    if (!wide[r]) continue;
    bit[r] = static_cast<uint32_t>(live.shared.size());
    live.shared.push_back(r);
  }
  size_t count = live.shared.size();
  if (count * flow.blocks.size() > kBitLimit) {  // treat every register as live everywhere
    live.in.clear();
    return live;
  }
  std::vector<Bits> gen(flow.blocks.size(), Bits(count)), kill(flow.blocks.size(), Bits(count));
  visit([&](uint32_t b, uint32_t k, const Uses& uses) {
    for (uint32_t r : uses.reads)
      if (bit[r] != kNone && !kill[b].get(bit[r])) gen[b].set(bit[r]);
    if (f.body[k].guard) {  // other lanes keep the old value
      for (uint32_t r : uses.writes)
        if (bit[r] != kNone && !kill[b].get(bit[r])) gen[b].set(bit[r]);
      return;
    }
    for (uint32_t r : uses.writes)
      if (bit[r] != kNone) kill[b].set(bit[r]);
  });
  live.in.assign(flow.blocks.size(), Bits(count));
  live.out.assign(flow.blocks.size(), Bits(count));
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = flow.blocks.size(); b-- > 0;) {
      for (uint32_t n : flow.blocks[b].next) live.out[b].merge(live.in[n]);
      changed = live.in[b].transfer(gen[b], live.out[b], kill[b]) || changed;
    }
  }
  return live;
}

}  // namespace

void collect_uses(const Instruction& in, Uses& uses) {
  uses.reads.clear();
  uses.writes.clear();
  if (in.guard) uses.reads.push_back(in.guard->reg);
  std::vector<Role> roles = emu::operand_roles(in);
  for (size_t k = 0; k < in.operands.size(); ++k) {
    bool writes = roles[k] == Role::Destination || roles[k] == Role::DestinationPair ||
                  roles[k] == Role::Accumulator;
    bool reads = !writes || roles[k] == Role::Accumulator;
    if (reads) add_registers(in.operands[k], uses.reads);
    if (writes) add_registers(in.operands[k], uses.writes);
  }
}

uint32_t slot_bytes(ptx::Type type) {
  if (type == ptx::Type::Pred) return 4;
  int bits = ptx::size_bits(type);
  return bits <= 32 ? 128 : bits <= 64 ? 256 : 512;
}

Slots allocate_slots(const ptx::Function& f, const Flow& flow, SlotPolicy policy) {
  Slots slots;
  slots.offset.assign(f.registers.size(), 0);
  const uint32_t sizes[] = {512, 256, 128, 4};
  std::vector<Interval> intervals(f.registers.size());
  for (uint32_t r = 0; r < intervals.size(); ++r) intervals[r].reg = r;
  Uses uses;
  for (uint32_t k = 0; k < f.body.size(); ++k) {
    collect_uses(f.body[k], uses);
    for (uint32_t r : uses.reads) intervals[r].touch(k);
    for (uint32_t r : uses.writes) intervals[r].touch(k);
  }
  if (policy == SlotPolicy::LinearScan) {
    Liveness live = find_liveness(f, flow);
    for (uint32_t b = 0; b < live.in.size(); ++b) {
      const Block& block = flow.blocks[b];
      for (uint32_t bit = 0; bit < live.shared.size(); ++bit) {
        if (live.in[b].get(bit)) intervals[live.shared[bit]].touch(block.begin);
        if (live.out[b].get(bit))
          intervals[live.shared[bit]].touch(block.end > block.begin ? block.end - 1 : block.end);
      }
    }
    if (live.in.empty())
      policy = SlotPolicy::OneEach;
    else
      for (uint32_t bit = 0; bit < live.shared.size(); ++bit)
        if (live.in[0].get(bit)) slots.undefined_at_entry.push_back(live.shared[bit]);
  }
  for (uint32_t size : sizes) {
    std::vector<Interval> mine;
    for (const Interval& i : intervals)
      if (i.begin != kNone && slot_bytes(f.registers[i.reg].type) == size) mine.push_back(i);
    std::sort(mine.begin(), mine.end(),
              [](const Interval& x, const Interval& y) { return x.begin < y.begin; });
    std::multimap<uint32_t, uint32_t> active;  // end -> offset
    std::vector<uint32_t> free;
    for (const Interval& i : mine) {
      // Strictly before: an instruction's results never share a slot with its operands.
      while (policy == SlotPolicy::LinearScan && !active.empty() &&
             active.begin()->first < i.begin) {
        free.push_back(active.begin()->second);
        active.erase(active.begin());
      }
      uint32_t offset = slots.total;
      if (free.empty()) {
        slots.total += size;
      } else {
        offset = free.back();
        free.pop_back();
      }
      slots.offset[i.reg] = offset;
      active.emplace(i.end, offset);
      if (slots.total > kFrameLimitBytes) return slots;
    }
    slots.total = (slots.total + 127) / 128 * 128;
  }
  return slots;
}

}  // namespace ptxb::emu
