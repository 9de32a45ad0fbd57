// Owns the parsed form of PTX text: Module -> Function -> Instruction, names and block scopes
// resolved. No semantics. Source of the grammar: PTX ISA 9.0 chapters 4, 5, 10, 11. Both front ends
// of nvcc 13 (NVVM 7 and NVVM 20 dialects) parse.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/types.h"
#include "ptx/opcodes.h"

namespace ptxb::ptx {

enum class Space : uint8_t { None, Reg, Param, Const, Global, Shared, Local };

struct SourcePlace {
  uint32_t file = 0;  // .file index, 0: none
  uint32_t line = 0;  // source line of the last .loc, 0: none
};

// A virtual register of one function; block-scoped names are already told apart (Operand::reg
// indexes Function::registers).
struct Register {
  std::string name;  // as written, "%r12"
  Type type = Type::B32;
};

// A .shared/.local/.global/.const variable or a .param.
struct Variable {
  std::string name;  // as written
  Space space = Space::None;
  Type type = Type::B8;
  uint32_t alignment_bytes = 1;
  uint64_t size_bytes = 0;  // 0 with is_extern_array: sized at launch (dynamic shared memory)
  bool is_extern_array = false;
  bool is_extern = false;
  std::vector<uint8_t> initial;  // empty: zero; else size_bytes of them
  struct Relocation {  // initial[offset, offset+8) holds the generic or state-space address of a
                       // symbol
    uint64_t offset = 0;
    std::string symbol;
    int64_t addend = 0;
    bool generic = false;
  };
  std::vector<Relocation> relocations;
  int line = 0;
};

struct Operand {
  enum class Kind : uint8_t {
    Register,   // reg
    Sink,       // "_"
    Immediate,  // bits: integer (two's complement, 64 bits) or float bits of `literal`
    Special,    // special + component: %tid.x, %laneid, %clock64 ...
    Symbol,     // symbol (+ offset): address of a variable, or a function's name
    Address,  // [base + offset]: base is a register, symbol or immediate; vectors of coordinates in
              // `elements`
    Vector,   // {a, b, ...} in elements
    Pair,     // a|b in elements (setp p|q, shfl d|p, elect)
    Label,    // label: instruction index in Function::body
    LabelTable,  // branch targets / call targets / call prototype: symbol names it, label indexes
                 // Function::tables
  };
  enum class Literal : uint8_t { Integer, F32, F64 };
  Kind kind = Kind::Sink;
  bool negated = false;  // predicate operand written !p
  Literal literal = Literal::Integer;
  uint32_t reg = 0;
  uint64_t bits = 0;
  Special special = Special::None;
  uint8_t component = 0;  // 0..3 = x..w
  std::string symbol;
  int64_t offset = 0;  // Symbol and Address
  uint32_t label = 0;
  // Address: elements[0] is the base (Register, Symbol or Immediate), further elements are
  // coordinate vectors etc. in source order, e.g. [tensorMap, {c0, c1}] has two elements. Vector
  // and Pair: the members.
  std::vector<Operand> elements;
};

struct Guard {
  uint32_t reg = 0;
  bool negated = false;
};

struct Instruction {
  Opcode opcode = Opcode::Invalid;
  std::vector<Modifier> modifiers;  // after the base mnemonic in source order, types left out
  std::vector<Type> types;          // in source order
  std::optional<Guard> guard;
  std::vector<Operand> operands;  // in source order, destination first; call: see below
  // call: operands = {return params as Vector, callee Symbol or Register, arguments as Vector,
  // optional LabelTable}
  int line = 0;  // 1-based line in the PTX text
  SourcePlace source;
  bool has(Modifier m) const {
    for (Modifier own : modifiers)
      if (own == m) return true;
    return false;
  }
};

struct BranchTable {  // .branchtargets, .calltargets, .callprototype
  std::string name;
  std::vector<uint32_t> labels;  // instruction indices
  std::vector<std::string> functions;
  bool is_prototype = false;
  std::vector<Variable> params, returns;  // callprototype
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;  // extern or forward: no body
  bool noreturn = false;
  std::vector<Variable> params,
      returns;  // in order, with natural offsets computable from alignment and size
  std::vector<Register> registers;
  std::vector<Variable>
      locals;  // .shared/.local/.param declared inside, names made unique ("name$3" when shadowed)
  std::vector<BranchTable> tables;
  std::vector<Instruction> body;
  // A label that ends the body has index body.size().
  std::vector<std::pair<std::string, uint32_t>> labels;
  Dim3 max_threads{0, 0, 0}, required_threads{0, 0, 0}, required_cluster{0, 0, 0};
  uint32_t min_blocks = 0, max_registers = 0, max_cluster_rank = 0;
  bool explicit_cluster = false;
  int line = 0;
};

struct Module {
  int version_major = 0, version_minor = 0;
  std::string target;  // "sm_90a"
  int address_size = 64;
  std::vector<Variable> variables;  // module scope
  std::vector<Function> functions;
  std::vector<std::pair<uint32_t, std::string>> files;       // .file index, path
  std::vector<std::pair<std::string, std::string>> aliases;  // .alias: name, function it stands for
  // A definition where one exists, aliases followed; nullptr: no such function.
  const Function* find(std::string_view name) const;
  const Variable* variable(std::string_view name) const;
  std::string file(uint32_t index) const;
};

}  // namespace ptxb::ptx
