// Owns what a float literal means where it stands (PTX ISA 4.5.2, 4.6): bits of the operand's own
// type, not of the spelling. Which places take one at all follows ptxas 13.0: f32 and f64 operands,
// and bit types of the literal's own size.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ptx/parser.h"

namespace ptxb::ptx {
namespace {

// The type of operand `index`, as far as a float literal may ask.
std::optional<Type> literal_type(const Instruction& instruction, size_t index) {
  const auto& types = instruction.types;
  if (instruction.opcode == Opcode::Createpolicy) return Type::F32;  // the fraction
  if (types.empty()) return std::nullopt;
  if (instruction.opcode == Opcode::Cvt || instruction.opcode == Opcode::Set) return types.back();
  if (instruction.opcode == Opcode::Slct) return index == 3 ? types.back() : types.front();
  for (const Type wide : {Type::F32, Type::F64}) {  // mixed precision: add.rn.f32.bf16
    for (const Type type : types) {
      if (type == wide) return wide;
    }
  }
  return types.front();
}

bool settle(Operand& literal, Type type, int bits) {
  const bool is_f32 = literal.literal == Operand::Literal::F32;
  if (type == Type::F32 && !is_f32) {
    literal.bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(literal.bits)));
    literal.literal = Operand::Literal::F32;
  } else if (type == Type::F64 && is_f32) {
    literal.bits = std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(literal.bits))));
    literal.literal = Operand::Literal::F64;
  } else if (type != Type::F32 && type != Type::F64) {
    return name(type).front() == 'b' && bits == (is_f32 ? 32 : 64);
  }
  return true;
}

bool is_float_literal(const Operand& operand) {
  return operand.kind == Operand::Kind::Immediate && operand.literal != Operand::Literal::Integer;
}

}  // namespace

bool Parser::settle_literals(Instruction& instruction) {
  if (instruction.opcode == Opcode::Call) return true;  // an argument takes its parameter's type
  const auto refuse = [&] {
    return fail(ErrorCode::BadInput, instruction.line,
                "a float literal that '" + ptx::mnemonic(instruction) + "' does not take");
  };
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    Operand& operand = instruction.operands[i];
    const bool is_vector = operand.kind == Operand::Kind::Vector;
    if (!is_vector && !is_float_literal(operand)) continue;
    const auto type = literal_type(instruction, i);
    if (is_float_literal(operand)) {
      if (!type || !settle(operand, *type, size_bits(*type))) return refuse();
      continue;
    }
    for (Operand& element : operand.elements) {
      if (!is_float_literal(element)) continue;
      if (!type) return refuse();
      // mov packs its vector into one operand; everywhere else the type is the element's.
      const int bits = instruction.opcode == Opcode::Mov
                           ? size_bits(*type) / int(operand.elements.size())
                           : size_bits(*type);
      if (!settle(element, *type, bits)) return refuse();
    }
  }
  return true;
}

}  // namespace ptxb::ptx
