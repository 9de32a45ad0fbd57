// Owns the making of Code: operands to slots, blocks to instruction runs, guards, counters, joins.
// Never executes.
// SPDX-License-Identifier: Apache-2.0
#include "emu/decode.h"

#include <algorithm>

#include "emu/check_hooks.h"
#include "emu/control.h"
#include "emu/warp.h"
#include "ptx/parse.h"

namespace ptxb::emu {

using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Special;

namespace {
constexpr uint32_t kScratchBytes = 8 * 512;
const Operand kMissing{};

bool is_dynamic(Special special) {
  switch (special) {
    case Special::Clock:
    case Special::ClockHi:
    case Special::Clock64:
    case Special::Globaltimer:
    case Special::GlobaltimerLo:
    case Special::GlobaltimerHi:
      return true;
    default:
      return false;
  }
}

uint32_t operand_block(const Flow& flow, uint32_t label) { return flow.block_of[label]; }
}  // namespace

Decoder::Decoder(Code& code_in, DecodedKernel& kernel_in, const Symbols& symbols_in,
                 Flavour flavour_in)
    : code_(code_in), kernel_(kernel_in), symbols_(symbols_in), flavour_(flavour_in) {}

const Operand& Decoder::operand(size_t k) const {
  return k < instruction_->operands.size() ? instruction_->operands[k] : kMissing;
}

bool Decoder::refuse(std::string_view what) {
  if (!error_) {
    error_ = unsupported("PTX line " + std::to_string(instruction_->line) +
                         ": the emulator does not support \"" + ptx::mnemonic(*instruction_) +
                         "\"" + (what.empty() ? "" : ": ") + std::string(what));
  }
  return false;
}

uint32_t Decoder::constant(Constant c) {
  auto key = std::make_tuple(static_cast<uint8_t>(c.kind), c.width_bytes, c.bytes, c.is_signed,
                             c.component, c.value);
  auto found = constants_.find(key);
  if (found != constants_.end()) return found->second;
  uint32_t size = c.width_bytes == 0 ? 64 : c.width_bytes * 32u;
  c.slot = frame_;
  frame_ += size;
  constants_.emplace(key, c.slot);
  code_.constants.push_back(c);
  if (frame_ > kFrameLimitBytes && !error_)
    error_ = limit_error(function().name + ": too many registers and constants");
  return c.slot;
}

uint32_t Decoder::bits(uint64_t value, int width_bytes) {
  Constant c;
  c.width_bytes = static_cast<uint8_t>(width_bytes);
  c.value = width_bytes == 4 ? value & 0xffffffffu : width_bytes == 0 ? (value ? kAll : 0) : value;
  return constant(c);
}

uint32_t Decoder::scratch(int width_bytes) {
  uint32_t size = width_bytes == 0 ? 64 : static_cast<uint32_t>(width_bytes) * 32u;
  if (scratch_used_ + size > kScratchBytes) {
    refuse("too many temporary values");
    return scratch_base_;
  }
  uint32_t slot = scratch_base_ + scratch_used_;
  scratch_used_ += size;
  return slot;
}

int Decoder::width_of(const Operand& o) const {
  if (o.kind == Operand::Kind::Special)
    return ptx::size_bytes(ptx::type_of(o.special)) == 8 ? 8 : 4;
  if (o.kind != Operand::Kind::Register) return 0;
  uint32_t size = slot_bytes(function().registers[o.reg].type);
  return size == 4 ? 1 : static_cast<int>(size / 32);
}

uint32_t Decoder::source(const Operand& o, int width) {
  switch (o.kind) {
    case Operand::Kind::Register: {
      int have = width_of(o);
      if (have != width) {
        // Wider registers are legal sources of ld, st and cvt: the low part is meant.
        if (have == 8 && width == 4) {
          uint32_t slot = scratch(4);
          Insn& insn = emit(narrow_handler());
          insn.d = slot;
          insn.a = slots_.offset[o.reg];
          return slot;
        }
        if (have == 4 && width == 8) {
          uint32_t slot = scratch(8);
          Insn& insn = emit(widen_handler());
          insn.d = slot;
          insn.a = slots_.offset[o.reg];
          return slot;
        }
        refuse("operand of " + std::to_string(have * 8) + " bits where " +
               std::to_string(width * 8) + " are needed");
        return scratch_base_;
      }
      return slots_.offset[o.reg];
    }
    case Operand::Kind::Immediate: {
      uint64_t value = o.bits;
      return bits(value, width);
    }
    case Operand::Kind::Special: {
      if (is_dynamic(o.special)) {
        uint32_t slot = scratch(width);
        Insn& insn = emit(clock_handler(width));
        insn.d = slot;
        insn.x = static_cast<uint32_t>(o.special);
        return slot;
      }
      Constant c;
      c.kind = Constant::Kind::Special;
      c.width_bytes = static_cast<uint8_t>(width);
      c.component = o.component;
      c.value = static_cast<uint64_t>(o.special);
      return constant(c);
    }
    case Operand::Kind::Symbol: {
      Constant c;
      c.width_bytes = static_cast<uint8_t>(width);
      if (auto shared = symbols_.shared.find(o.symbol); shared != symbols_.shared.end()) {
        c.kind = Constant::Kind::Shared;
        c.value = shared->second + static_cast<uint64_t>(o.offset);
        return constant(c);
      }
      if (auto local = symbols_.local.find(o.symbol); local != symbols_.local.end()) {
        c.kind = Constant::Kind::Local;
        c.value = local->second + static_cast<uint64_t>(o.offset);
        return constant(c);
      }
      if (auto param = symbols_.params.find(o.symbol); param != symbols_.params.end()) {
        c.kind = Constant::Kind::ParameterAddress;
        c.value = param->second + static_cast<uint64_t>(o.offset);
        return constant(c);
      }
      const Program::State& program = *symbols_.program;
      auto variable = program.variable_index.find({symbols_.module, o.symbol});
      if (variable != program.variable_index.end()) {
        c.value = program.variables[variable->second].address + static_cast<uint64_t>(o.offset);
        if (width == 4) refuse("32-bit address of the module variable " + o.symbol);
        return constant(c);
      }
      auto function_address = program.function_addresses.find({symbols_.module, o.symbol});
      if (function_address != program.function_addresses.end()) {
        c.value = function_address->second;
        return constant(c);
      }
      refuse("unknown symbol " + o.symbol);
      return scratch_base_;
    }
    default:
      refuse("operand of an unexpected kind");
      return scratch_base_;
  }
}

uint32_t Decoder::source128(const Operand& o) {
  if (o.kind == Operand::Kind::Register && width_of(o) == 16) return slots_.offset[o.reg];
  refuse("a 128-bit register is needed");
  return scratch_base_;
}

uint32_t Decoder::destination(const Operand& o, int width) {
  if (o.kind == Operand::Kind::Sink) return scratch(width);
  if (o.kind == Operand::Kind::Register && width_of(o) == width) return slots_.offset[o.reg];
  refuse("destination is not a register of " + std::to_string(width * 8) + " bits");
  return scratch_base_;
}

uint32_t Decoder::predicate_source(const Operand& o) {
  if (o.kind == Operand::Kind::Immediate) return bits(o.bits, 0);
  if (o.kind == Operand::Kind::Special) {
    Constant c;
    c.kind = Constant::Kind::Special;
    c.width_bytes = 0;
    c.value = static_cast<uint64_t>(o.special);
    return constant(c);
  }
  if (o.kind == Operand::Kind::Register && width_of(o) == 1) return slots_.offset[o.reg];
  refuse("a predicate is needed");
  return scratch_base_;
}

uint32_t Decoder::predicate_destination(const Operand& o) {
  if (o.kind == Operand::Kind::Sink) return scratch(0);
  if (o.kind == Operand::Kind::Register && width_of(o) == 1) return slots_.offset[o.reg];
  refuse("destination is not a predicate");
  return scratch_base_;
}

Decoder::Address Decoder::address(const Operand& o) {
  Address a;
  if (o.kind != Operand::Kind::Address || o.elements.empty()) {
    refuse("an address is needed");
    return a;
  }
  const Operand& base = o.elements[0];
  a.offset = o.offset;
  if (base.kind == Operand::Kind::Register) {
    a.wide = width_of(base) == 8;
    a.slot = source(base, a.wide ? 8 : 4);
  } else if (base.kind == Operand::Kind::Immediate) {
    a.wide = true;
    a.slot = bits(base.bits, 8);
  } else {
    bool shared = base.kind == Operand::Kind::Symbol && symbols_.shared.count(base.symbol);
    a.wide = !shared;
    a.slot = source(base, shared ? 4 : 8);
  }
  return a;
}

Insn& Decoder::emit(Handler fn) {
  Insn insn;
  insn.fn = fn;
  insn.origin = index_;
  if (instruction_ && instruction_->guard) insn.flags |= kGuarded;
  code_.insns.push_back(insn);
  return code_.insns.back();
}

int64_t Decoder::join_of_block() const {
  uint32_t join = flow_.blocks[flow_.block_of[index_]].postdominator;
  return join == kNone ? -1 : static_cast<int64_t>(join);
}

// Counters
// ------------------------------------------------------------------------------------------------------------

void Decoder::start_counter(uint32_t index) {
  // Reuse a counter that nothing has been added to: two labels on one place.
  counter_ = static_cast<uint32_t>(kernel_.counters.size());
  kernel_.counters.push_back({&code_, {}});
  counter_insn_ = static_cast<uint32_t>(code_.insns.size());
  const Instruction* saved = instruction_;
  instruction_ = nullptr;
  Insn& insn = emit(count_handler());
  instruction_ = saved;
  insn.origin = index;
  insn.x = counter_;
}

void Decoder::count(uint32_t index) {
  kernel_.counters[counter_].origins.push_back(index);
  ++code_.insns[counter_insn_].imm;
}

// Branches
// ------------------------------------------------------------------------------------------------------------

void Decoder::branch(uint32_t index, uint32_t block_index) {
  const Instruction& in = *instruction_;
  uint32_t join = flow_.blocks[block_index].postdominator;
  uint32_t target = operand_block(flow_, in.operands[0].label);
  uint16_t flags = in.operands[0].label <= index ? kBackward : 0;
  if (flow_.polling[index]) flags |= kPolling;
  uint32_t guard_slot = 0;
  bool negated = false;
  if (in.guard) {
    guard_slot = slots_.offset[in.guard->reg];
    negated = in.guard->negated;
  }
  Insn& insn = emit(in.guard ? branch_if_handler() : branch_handler());
  insn.flags = flags;
  insn.a = guard_slot;
  insn.b = negated ? kAll : 0;
  insn.imm = join == kNone ? -1 : static_cast<int64_t>(join);
  if (in.guard) {
    insn.x = static_cast<uint32_t>(kernel_.counters.size());
    kernel_.counters.push_back({&code_, {index}});
    ++code_.insns[counter_insn_].imm;
  }
  fixes_.push_back({static_cast<uint32_t>(code_.insns.size() - 1), target});
}

// @p op, where op may block: lanes without p go around it as a split of their own. Returns the
// branch to be counted.
uint32_t Decoder::own_branch(uint32_t index, uint32_t block_index) {
  const Instruction& in = *instruction_;
  (void)index;
  Insn& insn = emit(skip_if_handler());
  insn.flags = 0;
  insn.a = slots_.offset[in.guard->reg];
  insn.b = in.guard->negated ? 0 : kAll;  // lanes that skip
  uint32_t join = flow_.blocks[block_index].postdominator;
  insn.imm = join == kNone ? -1 : static_cast<int64_t>(join);
  fixes_.push_back({static_cast<uint32_t>(code_.insns.size() - 1), block_index + 1});
  return static_cast<uint32_t>(code_.insns.size() - 1);
}

// Instructions
// --------------------------------------------------------------------------------------------------------

bool Decoder::operation() {
  scratch_used_ = 0;
  checked_load_ = false;
  size_t before = code_.insns.size();
  using Family = bool (*)(Decoder&);
  static constexpr Family kFamilies[] = {
      decode_control, decode_integer, decode_logic,   decode_float,  decode_compare,
      decode_convert, decode_move,    decode_tensor,  decode_memory, decode_atomic,
      decode_async,   decode_warp,    decode_barrier, decode_matrix, decode_mbarrier,
      decode_bulk,    decode_wgmma,   decode_remote};
  for (Family family : kFamilies) {
    if (family(*this) && !refused()) {
      emit_taint_step(*this);
      emit_product_check(*this);
      return true;
    }
    if (refused()) return false;
    if (code_.insns.size() != before) return refuse("half decoded");
  }
  return refuse("");
}

void Decoder::instruction(uint32_t index, bool& converged) {
  const Instruction& in = function().body[index];
  instruction_ = &in;
  index_ = index;
  uint32_t b = flow_.block_of[index];
  bool own = in.guard && needs_own_block(function(), in);
  if (own) {
    own_branch(index, b);
    converged = false;
  }
  if (synchronises_lanes(in)) {
    bool whole = in.has(Modifier::Aligned) || in.opcode == Opcode::BarSync ||
                 in.opcode == Opcode::BarRed || in.opcode == Opcode::BarArrive;
    if (!whole || !converged) {
      scratch_used_ = 0;
      if (whole) {
        emit(converge_all_handler());
      } else {
        size_t mask_at = in.operands.size() - 1;
        if (in.opcode == Opcode::Match || in.opcode == Opcode::Redux || in.opcode == Opcode::Vote)
          mask_at = 2;
        if (in.opcode == Opcode::Shfl) mask_at = 4;
        uint32_t slot = source(mask_at, 4);
        if (refused()) return;
        emit(in.opcode == Opcode::BarWarpSync ? sync_warp_handler() : converge_mask_handler()).a =
            slot;
      }
      start_counter(index);
    }
    converged = whole;
  } else if (own) {
    start_counter(index);
  }
  if (in.opcode == Opcode::Bra) {
    emit_branch_check(*this);
    if (!in.guard) count(index);
    branch(index, b);
    return;
  }
  bool guarded = in.guard && !own;
  size_t guard_at = code_.insns.size();
  if (guarded) {
    Insn& insn = emit(guard_handler());
    insn.a = slots_.offset[in.guard->reg];
    insn.b = in.guard->negated ? kAll : 0;
    insn.x = static_cast<uint32_t>(kernel_.counters.size());
    kernel_.counters.push_back({&code_, {index}});
    ++code_.insns[counter_insn_].imm;  // costs fuel all the same
  } else {
    count(index);
  }
  if (!operation()) return;
  if (guarded) code_.insns[guard_at].n = static_cast<uint16_t>(code_.insns.size() - guard_at - 1);
  if (in.guard || in.opcode == Opcode::Call) converged = false;
}

void Decoder::block(uint32_t b) {
  const Block& block = flow_.blocks[b];
  start_[b] = static_cast<uint32_t>(code_.insns.size());
  instruction_ = nullptr;
  index_ = block.begin;
  if (flow_.join[b]) emit(join_handler());
  if (b == flow_.exit_block) {
    code_.exit_index = static_cast<uint32_t>(code_.insns.size());
    emit(function().is_entry ? exit_handler() : return_handler());
    return;
  }
  start_counter(block.begin);
  bool converged = false;
  for (uint32_t k = block.begin; k < block.end && !error_; ++k) instruction(k, converged);
}

Result<void> Decoder::run() {
  flow_ = analyse_flow(function());
  slots_ =
      allocate_slots(function(), flow_,
                     flavour_ == Flavour::Checked ? SlotPolicy::OneEach : SlotPolicy::LinearScan);
  if (slots_.total > kFrameLimitBytes) return limit_error(function().name + ": too many registers");
  scratch_base_ = slots_.total;
  frame_ = slots_.total + kScratchBytes;
  code_.variable_bytes = slots_.total;
  code_.clear_registers = !slots_.undefined_at_entry.empty() || flavour_ == Flavour::Checked;
  start_.assign(flow_.blocks.size(), 0);
  for (uint32_t b = 0; b < flow_.blocks.size() && !error_; ++b) block(b);
  if (error_) return *error_;
  for (const Fix& fix : fixes_)
    code_.insns[fix.insn].target = code_.insns.data() + start_[fix.block];
  // A join is named by its block until here.
  for (Insn& insn : code_.insns) {
    if (insn.fn == branch_if_handler() || insn.fn == skip_if_handler() ||
        insn.fn == branch_indexed_handler())
      if (insn.imm >= 0) insn.imm = start_[static_cast<size_t>(insn.imm)];
  }
  for (auto& table : code_.branch_tables)
    for (uint32_t& label : table->targets) label = start_[operand_block(flow_, label)];
  code_.frame_bytes = (frame_ + 127) / 128 * 128;
  return {};
}

}  // namespace ptxb::emu
