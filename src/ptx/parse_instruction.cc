// Owns one instruction (PTX ISA 9.2-9.3): guard, mnemonic against the opcode table, operands
// against its patterns. What the table does not know is refused by name, never skipped.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/parser.h"
#include "ptx/roles.h"

namespace ptxb::ptx {

bool Parser::instruction() {
  Instruction out;
  out.line = token_.line;
  out.source = place_;
  if (++instruction_count_ > limits_.instructions) {
    return fail(ErrorCode::Limit, token_.line,
                "more than " + std::to_string(limits_.instructions) + " instructions");
  }
  if (token_.is('@') && !guard(out)) return false;
  if (!mnemonic(out) || !operands(out)) return false;
  if (!token_.is(';')) return unexpected("';'");
  if (!check_operands(out) || !settle_literals(out)) return false;
  advance();
  function_.body.push_back(std::move(out));
  return true;
}

bool Parser::guard(Instruction& out) {
  advance();
  Guard guard;
  guard.negated = take('!');
  const int line = token_.line;
  if (token_.kind != Token::Kind::Identifier) return unexpected("a predicate");
  Operand predicate;
  if (!named_operand(predicate)) return false;
  if (predicate.kind != Operand::Kind::Register ||
      function_.registers[predicate.reg].type != Type::Pred) {
    return fail(ErrorCode::BadInput, line, "a guard that is no predicate");
  }
  guard.reg = predicate.reg;
  out.guard = guard;
  return true;
}

bool Parser::mnemonic(Instruction& out) {
  if (token_.kind != Token::Kind::Identifier) return unexpected("an instruction");
  const int line = token_.line;
  const std::string_view spelling = lexer_.mnemonic(token_, mnemonic_storage_);
  const Mnemonic* known = known_mnemonic(spelling, line);
  if (!known) return false;
  out.opcode = known->opcode;
  out.modifiers = known->modifiers;
  out.types = known->types;
  advance();
  return true;
}

const Parser::Mnemonic* Parser::known_mnemonic(std::string_view spelling, int line) {
  if (const auto found = mnemonics_.find(spelling); found != mnemonics_.end()) {
    return &found->second;
  }
  Mnemonic parsed;
  if (!mnemonic_parts(spelling, line, parsed)) return nullptr;
  return &mnemonics_.emplace(std::string(spelling), std::move(parsed)).first->second;
}

bool Parser::mnemonic_parts(std::string_view spelling, int line, Mnemonic& out) {
  const OpcodeMatch match = find_opcode(spelling);
  out.opcode = match.opcode;
  if (match.opcode == Opcode::Invalid) {
    return fail(ErrorCode::Unsupported, line, "unknown instruction " + shown(spelling));
  }
  if (info(match.opcode).category == Category::Refused) {
    return fail(ErrorCode::Unsupported, line,
                "texture, surface and video instructions are not supported: " + shown(spelling));
  }
  size_t at = match.length;
  while (at < spelling.size()) {
    const size_t end = std::min(spelling.find('.', at + 1), spelling.size());
    const std::string_view token = spelling.substr(at + 1, end - at - 1);
    at = end;
    const auto type = find_type(token);
    if (type && allows(match.opcode, *type)) {
      out.types.push_back(*type);
      continue;
    }
    const auto modifier = find_modifier(token);
    if (modifier && allows(match.opcode, *modifier)) {
      out.modifiers.push_back(*modifier);
      continue;
    }
    const bool known = type || modifier;
    return fail(ErrorCode::Unsupported, line,
                (known ? std::string("modifier not of this instruction: ") : "unknown modifier ") +
                    shown("." + std::string(token)) + " in " + shown(spelling));
  }
  return true;
}

bool Parser::operands(Instruction& out) {
  if (out.opcode == Opcode::Call) return call_operands(out);
  if (token_.is(';')) return true;
  constexpr size_t kMostOperandsOfOne = 16, kUsualOperands = 4;
  out.operands.reserve(kUsualOperands);
  do {
    if (out.operands.size() >= kMostOperandsOfOne)
      return bad("an instruction of too many operands");
    Operand& next = out.operands.emplace_back();
    const size_t position = out.operands.size();
    bool good = false;
    if (out.opcode == Opcode::Bra && position == 1) {
      good = label_operand(next);
    } else if (out.opcode == Opcode::BrxIdx && position == 2) {
      good = table_operand(next);
    } else {
      good = operand(next);
    }
    if (!good) return false;
  } while (take(','));
  return true;
}

bool Parser::check_operands(const Instruction& instruction) {
  if (instruction.opcode == Opcode::Call) return check_call(instruction);
  const auto roles = operand_roles(instruction);
  if (!roles) {
    return fail(ErrorCode::BadInput, instruction.line,
                "operands of '" + ptx::mnemonic(instruction) + "' are not " +
                    describe_operands(instruction.opcode));
  }
  for (size_t i = 0; i < roles->size(); ++i) {
    const Operand& operand = instruction.operands[i];
    if ((*roles)[i] == Role::Predicate && operand.kind == Operand::Kind::Register &&
        function_.registers[operand.reg].type != Type::Pred) {
      return fail(ErrorCode::BadInput, instruction.line,
                  "operand " + std::to_string(i + 1) + " of '" + ptx::mnemonic(instruction) +
                      "' is no predicate");
    }
  }
  return true;
}

// call{.uni} {(returns),} callee {, (arguments)} {, table}; (PTX ISA 9.7.12.5)
bool Parser::call_operands(Instruction& out) {
  out.operands.resize(3);
  for (const size_t list : {0, 2}) out.operands[list].kind = Operand::Kind::Vector;
  if (token_.is('(') && (!call_arguments(out.operands[0]) || !expect(','))) return false;
  if (!callee(out.operands[1])) return false;
  if (!take(',')) return true;
  if (token_.is('(')) {
    if (!call_arguments(out.operands[2])) return false;
    if (!take(',')) return true;
  }
  return table_operand(out.operands.emplace_back());
}

bool Parser::call_arguments(Operand& out) {
  advance();
  if (take(')')) return true;
  do {
    Operand& argument = out.elements.emplace_back();
    if (!simple_operand(argument, 1)) return false;
  } while (take(','));
  return expect(')');
}

bool Parser::callee(Operand& out) {
  std::string_view name;
  const int line = token_.line;
  if (!spend_operand() || !identifier(name, "a function")) return false;
  const auto meaning = names_.find(name);
  if (!meaning) return fail(ErrorCode::BadInput, line, "undeclared function " + shown(name));
  if (meaning->kind == Meaning::Kind::Register) {
    out.kind = Operand::Kind::Register;
    out.reg = meaning->index;
    return true;
  }
  if (meaning->kind == Meaning::Kind::Function) {
    out.kind = Operand::Kind::Symbol;
    out.symbol = module_.functions[meaning->index].name;
    return true;
  }
  return fail(ErrorCode::BadInput, line, "a call of something that is no function: " + shown(name));
}

bool Parser::check_call(const Instruction& instruction) {
  const Operand& target = instruction.operands[1];
  const bool has_table = instruction.operands.size() > 3;
  if (target.kind == Operand::Kind::Register) {
    if (has_table) return true;
    return fail(ErrorCode::BadInput, instruction.line,
                "an indirect call without targets or prototype");
  }
  const auto meaning = names_.find(target.symbol);
  if (!meaning || meaning->kind != Meaning::Kind::Function) return true;
  const Function& function = module_.functions[meaning->index];
  const size_t arguments = instruction.operands[2].elements.size();
  const size_t returns = instruction.operands[0].elements.size();
  // The last parameter of a variadic function is an array without a size (PTX ISA 7.1.2).
  const bool variadic = !function.params.empty() && function.params.back().is_extern_array;
  const bool fits =
      arguments == function.params.size() || (variadic && arguments + 1 >= function.params.size());
  if (fits && returns == function.returns.size()) return true;
  return fail(ErrorCode::BadInput, instruction.line,
              "call of " + shown(function.name) + " with " + std::to_string(arguments) +
                  " arguments and " + std::to_string(returns) + " results, it has " +
                  std::to_string(function.params.size()) + " and " +
                  std::to_string(function.returns.size()));
}

}  // namespace ptxb::ptx
