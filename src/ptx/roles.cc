// Owns operand patterns against operands; see roles.h.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/roles.h"

#include <algorithm>
#include <span>

namespace ptxb::ptx {
namespace {

using Kind = Operand::Kind;

bool is_destination(const Operand& operand) {
  const auto writable = [](const Operand& part) {
    return !part.negated && (part.kind == Kind::Register || part.kind == Kind::Sink);
  };
  if (operand.kind != Kind::Vector) return writable(operand);
  return std::all_of(operand.elements.begin(), operand.elements.end(), writable);
}

bool is_source(const Operand& operand) {
  const auto readable = [](const Operand& part) {
    return !part.negated && (part.kind == Kind::Register || part.kind == Kind::Immediate ||
                             part.kind == Kind::Special || part.kind == Kind::Symbol);
  };
  if (operand.kind != Kind::Vector) return readable(operand);
  return std::all_of(operand.elements.begin(), operand.elements.end(), readable);
}

bool fits(Role role, const Operand& operand) {
  switch (role) {
    case Role::Destination:
      return is_destination(operand);
    case Role::DestinationPair:
      return operand.kind == Kind::Pair || is_destination(operand);
    case Role::Accumulator:
      return operand.kind != Kind::Sink && is_destination(operand);
    case Role::Source:
      return is_source(operand);
    case Role::Vector:
      return operand.kind == Kind::Vector && is_source(operand);
    case Role::Predicate:
      return operand.kind == Kind::Register || operand.kind == Kind::Immediate;
    case Role::Immediate:
      return operand.kind == Kind::Immediate;
    case Role::AddressRead:
    case Role::AddressWritten:
    case Role::AddressUpdated:
      return operand.kind == Kind::Address;
    case Role::SourceOrAddress:
      return operand.kind == Kind::Address || is_source(operand);
    case Role::Label:
      return operand.kind == Kind::Label;
    case Role::Table:
      return operand.kind == Kind::LabelTable;
  }
  return false;
}

// Depth-first over "take or leave out" of optional slots: at most 11 slots and few optional ones.
bool match(std::span<const RoleSlot> slots, std::span<const Operand> operands,
           std::vector<Role>& roles) {
  if (operands.size() > slots.size()) return false;
  if (slots.empty()) return true;
  const RoleSlot& slot = slots.front();
  if (!operands.empty() && fits(slot.role, operands.front())) {
    roles.push_back(slot.role);
    if (match(slots.subspan(1), operands.subspan(1), roles)) return true;
    roles.pop_back();
  }
  return slot.optional && match(slots.subspan(1), operands, roles);
}

}  // namespace

std::optional<std::vector<Role>> operand_roles(const Instruction& instruction) {
  std::vector<Role> roles;
  if (instruction.opcode == Opcode::Call) return roles;
  roles.reserve(instruction.operands.size());
  for (const auto& pattern : operand_patterns(instruction.opcode)) {
    if (match(pattern, instruction.operands, roles)) return roles;
    roles.clear();
  }
  return std::nullopt;
}

std::string_view name(Role role) {
  switch (role) {
    case Role::Destination:
      return "destination";
    case Role::DestinationPair:
      return "destination or pair";
    case Role::Accumulator:
      return "accumulator";
    case Role::Source:
      return "source";
    case Role::Vector:
      return "vector";
    case Role::Predicate:
      return "predicate";
    case Role::Immediate:
      return "immediate";
    case Role::AddressRead:
      return "source address";
    case Role::AddressWritten:
      return "destination address";
    case Role::AddressUpdated:
      return "address";
    case Role::SourceOrAddress:
      return "source or address";
    case Role::Label:
      return "label";
    case Role::Table:
      return "table";
  }
  return "";
}

std::string describe_operands(Opcode opcode) {
  std::string text;
  bool first_pattern = true;
  for (const auto& pattern : operand_patterns(opcode)) {
    if (!first_pattern) text += " or ";
    first_pattern = false;
    text += '(';
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (i > 0) text += ", ";
      text += name(pattern[i].role);
      if (pattern[i].optional) text += '?';
    }
    text += ')';
  }
  return text;
}

}  // namespace ptxb::ptx
