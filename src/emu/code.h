// Owns the decoded form of a function: instructions with resolved register-file offsets,
// constants, counters. Immutable once decoded and shared by all threads; never holds run state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/launch_plan.h"
#include "ptx/module.h"

namespace ptxb::emu {

struct Warp;
struct Insn;
struct Code;

// Executes one instruction for the lanes in Warp::mask. Returns the next instruction, or nullptr to
// leave the run loop (the current split's state then says why).
using Handler = const Insn* (*)(Warp&, const Insn*);

// Operands are byte offsets into the register frame: 32 lanes of u32 (128 bytes) or of u64 (256
// bytes), predicates one u32 mask. Immediates, parameters, special registers and addresses of
// symbols are constant slots of the same frame.
struct Insn {
  Handler fn = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0;
  int64_t imm = 0;
  union {
    const Insn* target = nullptr;  // branches
    const void* more;              // operation-specific data, owned by Code::store
  };
  uint32_t x = 0, y = 0;  // operation-specific
  uint32_t origin = 0;    // index into Function::body
  uint16_t flags = 0;
  uint16_t n = 0;  // operation-specific small number
};
inline constexpr uint16_t kGuarded = 1;  // a Guard instruction stands before this one
inline constexpr uint16_t kNegated = 2;  // predicate operand `c` (or a branch's `a`) is negated
inline constexpr uint16_t kPolling = 4;  // back edge of a loop that waits for memory to change
inline constexpr uint16_t kBackward = 8;

// A slot whose value is known before the function runs.
struct Constant {
  enum class Kind : uint8_t {
    Bits,       // value
    Parameter,  // value: byte offset in the parameter block, bytes/is_signed: how it extends
    Special,    // value: ptx::Special, component
    Shared,     // value: offset in the CTA's shared window; the cluster rank is added in bits 24..
    Local,      // value: offset in the function's stack frame
    ParameterAddress,  // value: offset in the parameter block, as an address
  };
  Kind kind = Kind::Bits;
  uint8_t width_bytes = 4;  // 4 or 8: of a lane; 0: predicate mask
  uint8_t bytes = 4;        // Parameter: size in the parameter block
  bool is_signed = false;
  uint8_t component = 0;
  uint64_t value = 0;
  uint32_t slot = 0;
  // Same value for every CTA and warp of a launch.
  bool launch_constant() const {
    return kind == Kind::Bits || kind == Kind::Parameter || kind == Kind::ParameterAddress;
  }
};

// What one counter counts: `length` instructions from `origin` on, all executed together.
struct CounterPlace {
  const Code* code = nullptr;
  std::vector<uint32_t> origins;
};

struct BranchTargets {
  std::vector<uint32_t> targets;  // Insn indices
};

struct Code {
  const ptx::Module* module = nullptr;
  const ptx::Function* function = nullptr;
  uint32_t module_index = 0;
  std::vector<Insn> insns;
  std::vector<Constant> constants;
  uint32_t frame_bytes = 0;     // registers and constants
  uint32_t variable_bytes = 0;  // of which predicates and registers, before the constants
  uint32_t local_bytes = 0;     // stack frame of one thread, 16-aligned
  uint32_t stack_bytes =
      0;  // with everything it can call; 0: unbounded (recursion, indirect calls)
  uint32_t static_shared_bytes = 0;  // module and function variables that this kernel can reach
  uint32_t dynamic_shared_offset = 0;
  uint32_t param_bytes = 0;
  std::vector<std::pair<uint32_t, uint32_t>>
      param_copies;  // device functions: offset, size of parameters in the frame
  std::vector<std::pair<uint32_t, uint32_t>> return_places;
  bool has_calls = false;
  bool clear_registers =
      false;  // some may be read before they are written: zeros, so that runs are equal
  std::vector<std::unique_ptr<BranchTargets>> branch_tables;
  uint32_t exit_index = 0;                         // Insn index of the common return
  std::vector<std::shared_ptr<const void>> store;  // backing of Insn::more
  template <class T>
  const T* keep(T value) {
    auto owned = std::make_shared<const T>(std::move(value));
    const T* raw = owned.get();
    store.push_back(std::move(owned));
    return raw;
  }
};

struct Counter {
  uint64_t warps = 0, lanes = 0;
};

}  // namespace ptxb::emu
