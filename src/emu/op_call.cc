// Owns control instructions that are no plain branch: brx.idx, call, ret, exit, trap, nanosleep
// and the like (PTX ISA 9.7.12, 9.7.19), and the device functions that the driver provides.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "emu/control.h"
#include "emu/device_functions.h"
#include "emu/emit.h"
#include "emu/report.h"
#include "emu/split.h"
#include "emu/worker.h"

namespace ptxb::emu {

using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;

namespace {

constexpr uint32_t kDepthLimit = 1024;

struct Piece {
  uint32_t caller = 0, callee = 0, bytes = 0;  // offsets in the stack frames
};
struct CallSite {
  const Code* callee = nullptr;  // nullptr: indirect, the address is in slot Insn::a
  std::vector<Piece> arguments, results;
};

// Offsets of variables laid out one after the other, as in a callee's frame (program.cc).
std::vector<std::pair<uint32_t, uint32_t>> natural_layout(
    const std::vector<ptx::Variable>& params, const std::vector<ptx::Variable>& returns) {
  std::vector<std::pair<uint32_t, uint32_t>> places;
  uint64_t at = 0;
  for (const auto* list : {&params, &returns}) {
    for (const ptx::Variable& v : *list) {
      uint64_t alignment = std::max(v.alignment_bytes, 1u);
      at = (at + alignment - 1) / alignment * alignment;
      places.emplace_back(static_cast<uint32_t>(at), static_cast<uint32_t>(v.size_bytes));
      at += v.size_bytes;
    }
  }
  return places;
}

uint32_t callee_base(const Frame& frame) { return frame.local_base + frame.code->local_bytes; }

uint8_t* stack(Warp& w, uint32_t lane, uint64_t offset) {
  return w.local.data() + uint64_t{lane} * w.local_stride + offset;
}

const Insn* enter(Warp& w, const Insn* i, const CallSite& site, const Code& callee) {
  Frame& frame = w.frame();
  uint32_t base = callee_base(frame);
  uint32_t lane = static_cast<uint32_t>(std::countr_zero(w.exec));
  if (frame.depth + 1 >= kDepthLimit || uint64_t{base} + callee.local_bytes > w.local_stride) {
    return fault(w, i, FindingKind::OutOfBounds,
                 thread_text(w, lane) + " overflows its stack at call depth " +
                     std::to_string(frame.depth + 1) + " (" + callee.function->name + ")",
                 "unbounded recursion? the emulator gives a thread " +
                     std::to_string(w.local_stride) + " bytes");
  }
  for (const Piece& piece : site.arguments)
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
      uint32_t l = static_cast<uint32_t>(std::countr_zero(rest));
      std::memcpy(stack(w, l, base + piece.callee), stack(w, l, frame.local_base + piece.caller),
                  piece.bytes);
    }
  Frame* pushed = push_frame(w, callee, &frame, i + 1, w.exec, base);
  w.split().frame = pushed;
  w.r = pushed->registers;
  return callee.insns.data();
}

const Insn* call(Warp& w, const Insn* i) {
  const CallSite& site = *static_cast<const CallSite*>(i->more);
  return enter(w, i, site, *site.callee);
}

const Insn* call_indirect(Warp& w, const Insn* i) {
  const CallSite& site = *static_cast<const CallSite*>(i->more);
  const U64* address = lanes<U64>(w, i->a);
  uint32_t first = static_cast<uint32_t>(std::countr_zero(w.exec)), same = 0;
  for (uint32_t l = 0; l < 32; ++l)
    same |= static_cast<uint32_t>(address[l] == address[first]) << l;
  same &= w.exec;
  const auto& known = w.worker->launch.kernel.by_address;
  auto found = known.find(address[first]);
  if (found == known.end() || found->second == w.worker->launch.kernel.entry) {
    return fault(
        w, i, FindingKind::WildPointer,
        thread_text(w, first) + " calls " + hex_text(address[first]) + ", which is no function");
  }
  const Code& callee = *found->second;
  auto matches = [](const std::vector<Piece>& pieces,
                    const std::vector<std::pair<uint32_t, uint32_t>>& places) {
    return pieces.size() == places.size() &&
           std::equal(pieces.begin(), pieces.end(), places.begin(),
                      [](const Piece& p, const auto& q) {
                        return p.callee == q.first && p.bytes == q.second;
                      });
  };
  if (!matches(site.arguments, callee.param_copies) ||
      !matches(site.results, callee.return_places)) {
    return fault(w, i, FindingKind::IllegalInstruction,
                 thread_text(w, first) + " calls " + callee.function->name +
                     " through a prototype that does not fit it");
  }
  // Lanes with other targets take their own turn at this instruction.
  if (same != w.exec) diverge(w, i, i, w.exec & ~same, nullptr);
  return enter(w, i, site, callee);
}

const Insn* take_results(Warp& w, const Insn* i) {
  const CallSite& site = *static_cast<const CallSite*>(i->more);
  const Frame& frame = w.frame();
  for (const Piece& piece : site.results)
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
      uint32_t l = static_cast<uint32_t>(std::countr_zero(rest));
      std::memcpy(stack(w, l, frame.local_base + piece.caller),
                  stack(w, l, callee_base(frame) + piece.callee), piece.bytes);
    }
  return i + 1;
}

// Matches the operands of a call with the places of parameters; false after a refusal.
bool pieces_of(Decoder& d, const Operand& list,
               const std::vector<std::pair<uint32_t, uint32_t>>& places, size_t first, size_t count,
               std::vector<Piece>& out) {
  std::vector<Operand> members;
  if (list.kind == Operand::Kind::Vector) members = list.elements;
  if (members.size() != count)
    return d.refuse("a call with another number of arguments than the function has");
  for (size_t k = 0; k < count; ++k) {
    auto local = d.symbols().local.find(members[k].symbol);
    if (members[k].kind != Operand::Kind::Symbol || local == d.symbols().local.end())
      return d.refuse("call arguments that are not .param variables");
    out.push_back({local->second, places[first + k].first, places[first + k].second});
  }
  return true;
}

const ptx::BranchTable* table_of(const Decoder& d, const Operand& operand) {
  for (const ptx::BranchTable& table : d.function().tables)
    if (table.name == operand.symbol) return &table;
  return nullptr;
}

bool place_call(Decoder& d, Handler handler, uint32_t address, CallSite site) {
  const CallSite* kept = d.keep(std::move(site));
  Insn& insn = d.emit(handler);
  insn.a = address;
  insn.more = kept;
  d.emit(take_results).more = kept;
  return true;
}

bool decode_indirect(Decoder& d) {
  const Operand& callee = d.operand(1);
  const ptx::BranchTable* table = d.operands() > 3 ? table_of(d, d.operand(3)) : nullptr;
  if (!table) return d.refuse("an indirect call without prototype");
  std::vector<ptx::Variable> params = table->params, returns = table->returns;
  if (!table->functions.empty()) {
    const ptx::Function* f = d.code().module->find(table->functions[0]);
    if (!f) return d.refuse("an unknown call target");
    params = f->params;
    returns = f->returns;
  }
  auto places = natural_layout(params, returns);
  CallSite site;
  if (!pieces_of(d, d.operand(2), places, 0, params.size(), site.arguments)) return false;
  if (!pieces_of(d, d.operand(0), places, params.size(), returns.size(), site.results))
    return false;
  uint32_t address = d.source(callee, 8);
  if (d.refused()) return false;
  return place_call(d, call_indirect, address, std::move(site));
}

bool decode_call(Decoder& d) {
  const Operand& callee = d.operand(1);
  if (callee.kind != Operand::Kind::Symbol) return decode_indirect(d);
  const ptx::Function* f = d.code().module->find(callee.symbol);
  if (!f) return d.refuse("call of " + callee.symbol + ", which the module does not declare");
  if (f->is_declaration) return decode_device_function(d, *f);
  auto found = d.kernel().functions.find(f->name);
  if (found == d.kernel().functions.end() || f->is_entry)
    return d.refuse("call of " + callee.symbol);
  CallSite site;
  site.callee = found->second.get();
  if (!pieces_of(d, d.operand(2), site.callee->param_copies, 0, site.callee->param_copies.size(),
                 site.arguments))
    return false;
  if (!pieces_of(d, d.operand(0), site.callee->return_places, 0, site.callee->return_places.size(),
                 site.results))
    return false;
  return place_call(d, call, 0, std::move(site));
}

bool decode_indexed(Decoder& d) {
  if (d.in().guard) return d.refuse("a guard");
  const ptx::BranchTable* table = table_of(d, d.operand(1));
  if (!table) return d.refuse("an unknown branch table");
  auto targets = std::make_unique<BranchTargets>();
  targets->targets = table->labels;
  uint32_t index = d.source(0, 4);
  if (d.refused()) return false;
  Insn& insn = d.emit(branch_indexed_handler());
  insn.a = index;
  insn.more = targets.get();
  insn.imm = d.join_of_block();
  d.code().branch_tables.push_back(std::move(targets));
  return true;
}

const Insn* trap(Warp& w, const Insn* i) {
  return fault(w, i, FindingKind::Trap,
               thread_text(w, static_cast<uint32_t>(std::countr_zero(w.mask))) + " executes " +
                   (i->n ? "brkpt" : "trap"));
}

// Time passes; a loop around it polls and yields by itself.
const Insn* nanosleep(Warp& w, const Insn* i) {
  w.clock += lanes<U32>(w, i->a)[std::countr_zero(w.mask)];
  return i + 1;
}

bool decode_setmaxnreg(Decoder& d) {
  const Operand& count = d.operand(0);
  if (count.kind != Operand::Kind::Immediate || count.bits < 24 || count.bits > 256 ||
      count.bits % 8)
    return d.refuse("a register count outside 24..256 or no multiple of 8");
  d.emit(nothing_handler());
  return true;
}

}  // namespace

bool decode_control(Decoder& d) {
  switch (d.opcode()) {
    case Opcode::BrxIdx:
      return decode_indexed(d);
    case Opcode::Call:
      return decode_call(d);
    case Opcode::Ret:
      d.emit(d.function().is_entry ? exit_handler() : return_handler());
      return true;
    case Opcode::Exit:
      d.emit(exit_handler());
      return true;
    case Opcode::Trap:
    case Opcode::Brkpt:
      d.emit(trap).n = d.opcode() == Opcode::Brkpt;
      return true;
    case Opcode::Nanosleep: {
      uint32_t a = d.source(0, 4);
      if (d.refused()) return false;
      d.emit(nanosleep).a = a;
      return true;
    }
    case Opcode::Pmevent:
    case Opcode::PmeventMask:
    case Opcode::Griddepcontrol:  // launches run one after the other: every dependency is met
      d.emit(nothing_handler());
      return true;
    case Opcode::Setmaxnreg:
      return decode_setmaxnreg(d);
    default:
      return false;
  }
}

}  // namespace ptxb::emu
