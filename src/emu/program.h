// Owns a loaded program: parsed modules, decoded functions, module variables at their addresses,
// counter numbering. Immutable after load, except for the second (checking) decode made on demand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emu/code.h"
#include "emu/emulate.h"
#include "emu/memory.h"

namespace ptxb::emu {

struct ModuleVariable {
  uint32_t module = 0;
  std::string name;
  uint64_t address = 0, size_bytes = 0;
  bool constant = false;
  std::vector<uint8_t> bytes;  // relocated; shorter than size_bytes: rest zero
};

// How instructions are decoded: Checked inserts the hooks of check mode and gives every virtual
// register its own slot.
enum class Flavour : uint8_t { Plain, Exact, Checked };

// An instruction that hooks of checked code stand for.
struct CheckSite {
  const Code* code = nullptr;
  uint32_t origin = 0;
};

// A kernel with the device functions that it can reach. Every kernel has its own copies of those:
// their shared memory addresses and counters are the kernel's.
struct DecodedKernel {
  uint32_t module = 0;
  const Code* entry = nullptr;
  std::map<std::string, std::unique_ptr<Code>> functions;
  std::vector<CounterPlace> counters;
  std::map<uint64_t, const Code*> by_address;  // targets of indirect calls
  bool unbounded_stack = false;                // recursion or indirect calls
  // Results depend on the order of blocks: float atomics, atomics that return values. Such launches
  // run on one thread.
  bool order_matters = false;
  std::vector<CheckSite> check_sites;  // of checked code
};
using DecodedProgram = std::map<std::pair<uint32_t, std::string>, std::unique_ptr<DecodedKernel>>;

struct Program::State {
  std::vector<std::unique_ptr<ptx::Module>> modules;
  std::vector<ModuleVariable> variables;
  std::map<std::pair<uint32_t, std::string>, size_t> variable_index;
  std::vector<std::pair<uint32_t, std::string>> kernels;  // those the plan launches
  std::string arch;
  std::map<std::pair<uint32_t, std::string>, uint64_t> function_addresses;
  mutable std::array<std::unique_ptr<DecodedProgram>, 3> decoded;
  mutable std::mutex decode_lock;
  Result<const DecodedProgram*> code(Flavour flavour) const;  // decoded at the first call
};

}  // namespace ptxb::emu
