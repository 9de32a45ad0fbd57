// Owns the state of one parse: the token in hand, scopes, budgets, the module so far. Private to
// the room; parse.h is the public face. Methods return false after recording the one error; nothing
// is ever skipped silently.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/lex.h"
#include "ptx/module.h"
#include "ptx/names.h"
#include "ptx/parse.h"

namespace ptxb::ptx {

// A value of a constant expression (PTX ISA 4.6): 64-bit signed or unsigned integer, or a float
// literal's bits.
struct Constant {
  enum class Kind : uint8_t { Signed, Unsigned, F32, F64 };
  Kind kind = Kind::Signed;
  uint64_t bits = 0;
  bool is_integer() const { return kind == Kind::Signed || kind == Kind::Unsigned; }
};

// Lets a map keyed by strings be asked with views.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view name, const ParseLimits& limits);
  Result<Module> module();

 private:
  // What stands before .func, .entry or a variable.
  struct Linkage {
    bool is_extern = false;
  };
  struct Mnemonic {
    Opcode opcode = Opcode::Invalid;
    std::vector<Modifier> modifiers;
    std::vector<Type> types;
  };
  // One byte of an address in an initialiser: "0xFF00(symbol)" (PTX ISA 5.4.4, mask()).
  struct MaskedByte {
    uint64_t offset = 0, mask = 0;
    Variable::Relocation target;
  };
  // A label used before the end of its scope is known.
  struct LabelUse {
    std::string_view name;
    int line = 0;
    bool in_table = false;  // else operand 0 of an instruction
    uint32_t index = 0;     // instruction or table
    uint32_t position = 0;  // in the table
  };
  struct LabelDefinition {
    std::string_view name;
    uint32_t label = 0;  // index into Function::labels
    int line = 0;
  };
  struct LabelScope {
    std::vector<LabelDefinition> defined;
    std::vector<LabelUse> uses;
  };
  enum class Where : uint8_t { Module, Function };

  // parse.cc: tokens, errors, module scope.
  void advance() { token_ = lexer_.next(); }
  bool fail(ErrorCode code, int line, std::string what);
  bool bad(std::string what) { return fail(ErrorCode::BadInput, token_.line, std::move(what)); }
  bool unexpected(std::string_view wanted);
  bool expect(char c);
  bool take(char c);
  bool take_directive(std::string_view word);
  bool identifier(std::string_view& out, std::string_view what);
  bool integer(uint64_t& out, std::string_view what);
  bool integer_32(uint32_t& out, std::string_view what);
  std::string shown(std::string_view text) const;
  bool preamble();
  bool version();
  bool target();
  bool module_statement();
  bool file_directive();
  bool section_directive();
  bool pragma_directive();
  bool alias_directive();

  // parse_expression.cc
  bool constant(Constant& out);
  bool constant_from(int least_binding, Constant& out);
  bool constant_primary(Constant& out);
  bool constant_integer(uint64_t& out, std::string_view what);
  bool combine(std::string_view operation, const Constant& right, int line, Constant& left);

  // parse_declaration.cc
  bool variable_directive(Where where, const Linkage& linkage);
  bool space_of_directive(Space& out);
  bool attributes();
  bool declarator(Variable& variable, uint32_t vector_length, std::vector<uint64_t>& dimensions);
  bool element_type(Type& type, uint32_t& vector_length);
  bool extents(Variable& variable, const std::vector<uint64_t>& dimensions);
  bool initialiser(Variable& variable, std::vector<uint64_t> dimensions);
  bool initial_level(Variable& variable, const std::vector<uint64_t>& dimensions, size_t level,
                     uint64_t begin);
  bool initial_element(Variable& variable, uint64_t offset);
  bool store_constant(Variable& variable, uint64_t offset, const Constant& value);
  bool gather_masked_bytes(Variable& variable);
  bool declare_variable(Where where, Variable variable, const Linkage& linkage);
  bool address_constant(Variable::Relocation& out);
  bool alignment(uint32_t& out);
  bool reserve_initial(Variable& variable, uint64_t bytes);
  bool register_directive();
  bool registers(std::string_view name, Type type, uint32_t vector_length);
  bool register_range(std::string_view prefix, Type type);
  bool add_register(std::string name, Type type);

  // parse_function.cc
  bool function_directive(std::string_view kind);
  bool function_properties(Function& function);
  bool dimensions_of(Dim3& out);
  bool function_property(Function& function);
  bool declare_function(bool has_body, uint32_t& index);
  bool declare_parameters();
  bool check_entry_parameters();
  bool parameter(Variable& out);
  bool parameter_list(std::vector<Variable>& out);

  // parse_body.cc
  bool body();
  bool block();
  bool statement();
  bool directive_statement();
  bool labelled(std::string_view name, int line);
  bool define_label(std::string_view name, int line);
  bool branch_targets(std::string_view name, int line);
  bool call_targets(std::string_view name, int line);
  bool call_prototype(std::string_view name, int line);
  bool declare_table(BranchTable table, int line);
  bool location_directive();
  bool close_labels();
  void resolve(const LabelUse& use, uint32_t label);

  // parse_instruction.cc
  bool instruction();
  bool guard(Instruction& out);
  bool mnemonic(Instruction& out);
  const Mnemonic* known_mnemonic(std::string_view spelling, int line);
  bool mnemonic_parts(std::string_view spelling, int line, Mnemonic& out);
  bool operands(Instruction& out);
  bool call_operands(Instruction& out);
  bool call_arguments(Operand& out);
  bool callee(Operand& out);
  bool check_operands(const Instruction& instruction);
  bool check_call(const Instruction& instruction);

  // parse_literal.cc
  bool settle_literals(Instruction& instruction);

  // parse_operand.cc
  bool operand(Operand& out);
  bool simple_operand(Operand& out, int depth);
  bool named_operand(Operand& out);
  bool meaning_operand(std::string_view name, const Meaning& meaning, int line, Operand& out);
  bool vector_register(const Meaning& meaning, Operand& out);
  bool special_operand(std::string_view name, int line, Operand& out);
  bool vector_operand(Operand& out, int depth);
  bool address_operand(Operand& out);
  bool pair_operand(Operand& out);
  bool negated_operand(Operand& out);
  bool immediate_operand(Operand& out);
  bool offset(int64_t& out);
  bool label_operand(Operand& out);
  bool table_operand(Operand& out);
  bool spend_operand();
  const Variable& variable_of(const Meaning& meaning) const;

  std::string_view name_;
  ParseLimits limits_;
  uint64_t text_bytes_;
  Lexer lexer_;
  Token token_;
  std::optional<Error> error_;
  Module module_;
  Names names_;
  std::unordered_map<std::string, Mnemonic, StringHash, std::equal_to<>> mnemonics_;
  std::string mnemonic_storage_;
  // The function being parsed; a plain object, moved into the module when its body ends.
  Function function_;
  std::vector<LabelScope> label_scopes_;
  std::vector<MaskedByte> masked_bytes_;
  // The name declarator() read last, and those of all parameters of the header in hand: views into
  // the text, which outlives the scopes (the strings in Variable move).
  std::string_view declared_name_;
  std::vector<std::string_view> parameter_names_;
  std::deque<std::string> generated_names_;  // names that stand nowhere in the text; addresses stay
  SourcePlace place_;
  uint64_t instruction_count_ = 0, register_count_ = 0, operand_count_ = 0, initial_bytes_ = 0;
  int expression_depth_ = 0;
};

}  // namespace ptxb::ptx
