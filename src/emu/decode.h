// Owns the making of Code from a parsed function. Each op_*.cc turns the instructions of its
// family into handlers through this interface; none knows about blocks, guards, counters or
// register allocation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "emu/code.h"
#include "emu/flow.h"
#include "emu/program.h"
#include "ptx/module.h"

namespace ptxb::emu {

// Addresses of everything a function can name.
struct Symbols {
  const Program::State* program = nullptr;
  uint32_t module = 0;
  std::map<std::string, uint32_t, std::less<>> shared;  // offset in the CTA's window
  std::map<std::string, uint32_t, std::less<>>
      local;  // offset in the stack frame, parameters of device functions too
  std::map<std::string, uint32_t, std::less<>>
      params;  // of the kernel: offset in the parameter block
};

class Decoder {
 public:
  Decoder(Code& code_in, DecodedKernel& kernel_in, const Symbols& symbols_in, Flavour flavour_in);
  Result<void> run();

  // The instruction being decoded.
  const ptx::Instruction& in() const { return *instruction_; }
  bool has(ptx::Modifier m) const { return instruction_->has(m); }
  ptx::Type type(size_t k = 0) const {
    return k < instruction_->types.size() ? instruction_->types[k] : ptx::Type::B32;
  }
  const ptx::Operand& operand(size_t k) const;
  size_t operands() const { return instruction_->operands.size(); }
  ptx::Opcode opcode() const { return instruction_->opcode; }

  // Slots of a source: 4- or 8-byte lanes. Immediates and the like become constants; `width` must
  // be that of the type.
  uint32_t source(const ptx::Operand& operand, int width_bytes);
  uint32_t source(size_t k, int width_bytes) { return source(operand(k), width_bytes); }
  uint32_t source128(const ptx::Operand& operand);
  uint32_t destination(const ptx::Operand& operand, int width_bytes);
  uint32_t destination(size_t k, int width_bytes) { return destination(operand(k), width_bytes); }
  uint32_t predicate_source(const ptx::Operand& operand);  // kNegated is the caller's business
  uint32_t predicate_destination(const ptx::Operand& operand);
  uint32_t constant(Constant constant);
  uint32_t bits(uint64_t value, int width_bytes);
  uint32_t scratch(int width_bytes);  // a slot for this instruction alone
  // Bytes of the lanes of a register operand: 4, 8 or 16; immediates: 0.
  int width_of(const ptx::Operand& operand) const;

  // [base + offset]: the slot of the base with its lane width, and the constant offset.
  struct Address {
    uint32_t slot = 0;
    bool wide = false;
    int64_t offset = 0;
  };
  Address address(const ptx::Operand& operand);

  Insn& emit(Handler fn);
  // Block where lanes of the branch being decoded meet again, for Insn::imm; -1: nowhere.
  int64_t join_of_block() const;
  uint32_t memory_ordinal() { return next_memory_++ & 63; }
  template <class T>
  const T* keep(T value) {
    return code_.keep(std::move(value));
  }
  Code& code() { return code_; }
  const ptx::Function& function() const { return *code_.function; }
  DecodedKernel& kernel() { return kernel_; }
  const Symbols& symbols() const { return symbols_; }
  Flavour flavour() const { return flavour_; }

  // Check: the instruction's own hook has looked for uninitialised values of its loads.
  bool checked_load() const { return checked_load_; }
  void mark_checked_load() { checked_load_ = true; }

  // Check: by register, whether some wgmma uses it; filled when first needed.
  std::vector<uint8_t>& product_registers() { return product_registers_; }

  // Always false, so that a family can `return refuse("...")`.
  bool refuse(std::string_view what);
  bool refused() const { return error_.has_value(); }

 private:
  void block(uint32_t b);
  void instruction(uint32_t index, bool& converged);
  void start_counter(uint32_t index);
  void count(uint32_t index);
  void branch(uint32_t index, uint32_t block_index);
  uint32_t own_branch(uint32_t index, uint32_t block_index);
  bool operation();

  Code& code_;
  DecodedKernel& kernel_;
  const Symbols& symbols_;
  Flavour flavour_;
  Flow flow_;
  Slots slots_;
  const ptx::Instruction* instruction_ = nullptr;
  uint32_t index_ = 0;
  std::map<std::tuple<uint8_t, uint8_t, uint8_t, bool, uint8_t, uint64_t>, uint32_t> constants_;
  uint32_t frame_ = 0;
  uint32_t scratch_base_ = 0, scratch_used_ = 0;
  uint32_t counter_ = 0;
  bool checked_load_ = false;
  std::vector<uint8_t> product_registers_;
  uint32_t counter_insn_ = 0;
  uint32_t next_memory_ = 0;
  struct Fix {
    uint32_t insn, block;
  };
  std::vector<Fix> fixes_;
  std::vector<uint32_t> start_;
  std::optional<Error> error_;
};

// Families: true when the instruction is theirs and has been emitted; false with d.refused() when
// they refuse it.
bool decode_integer(Decoder& d);
bool decode_logic(Decoder& d);
bool decode_float(Decoder& d);
bool decode_compare(Decoder& d);
bool decode_convert(Decoder& d);
bool decode_move(Decoder& d);
bool decode_memory(Decoder& d);
bool decode_atomic(Decoder& d);
bool decode_async(Decoder& d);
bool decode_warp(Decoder& d);
bool decode_barrier(Decoder& d);
bool decode_matrix(Decoder& d);
bool decode_control(Decoder& d);
bool decode_mbarrier(Decoder& d);
bool decode_bulk(Decoder& d);
bool decode_tensor(Decoder& d);
bool decode_wgmma(Decoder& d);
bool decode_remote(Decoder& d);

}  // namespace ptxb::emu
