// Owns the one canonical spelling of a module: flat functions, declarations first, exact bits.
// parse(dump(m)) dumps the same. Never shortens: what a Module holds is what is printed (comments,
// columns and visibility are not held).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "ptx/names.h"
#include "ptx/parse.h"

namespace ptxb::ptx {
namespace {

std::string hexadecimal(uint64_t bits, int digits) {
  std::string text(size_t(digits), '0');
  for (int i = digits - 1; i >= 0; --i, bits >>= 4) text[size_t(i)] = "0123456789ABCDEF"[bits & 15];
  return text;
}

void append_offset(std::string& out, int64_t offset) {
  if (offset != 0) out += "+" + std::to_string(offset);
}

std::string label_at(const Function& function, uint32_t position) {
  const auto found =
      std::lower_bound(function.labels.begin(), function.labels.end(), position,
                       [](const auto& label, uint32_t wanted) { return label.second < wanted; });
  return found != function.labels.end() && found->second == position ? found->first : "?";
}

void append_special(std::string& out, const Operand& operand) {
  out += name(operand.special);
  const int members = component_count(operand.special);
  if (members == 4) {
    out += '.';
    out += "xyzw"[operand.component & 3];
  } else if (members > 1) {
    out += std::to_string(operand.component);
  }
}

void append_operand(std::string& out, const Operand& operand, const Function& function);

void append_list(std::string& out, const std::vector<Operand>& operands, std::string_view between,
                 const Function& function) {
  bool first = true;
  for (const Operand& each : operands) {
    if (!first) out += between;
    first = false;
    append_operand(out, each, function);
  }
}

void append_immediate(std::string& out, const Operand& operand) {
  switch (operand.literal) {
    case Operand::Literal::Integer:
      out += std::to_string(int64_t(operand.bits));
      break;
    case Operand::Literal::F32:
      out += "0f" + hexadecimal(operand.bits, 8);
      break;
    case Operand::Literal::F64:
      out += "0d" + hexadecimal(operand.bits, 16);
      break;
  }
}

void append_address(std::string& out, const Operand& operand, const Function& function) {
  out += '[';
  if (!operand.elements.empty()) append_operand(out, operand.elements[0], function);
  append_offset(out, operand.offset);
  for (size_t i = 1; i < operand.elements.size(); ++i) {
    out += ", ";
    append_operand(out, operand.elements[i], function);
  }
  out += ']';
}

void append_operand(std::string& out, const Operand& operand, const Function& function) {
  switch (operand.kind) {
    case Operand::Kind::Register:
      if (operand.negated) out += '!';
      out += operand.reg < function.registers.size() ? function.registers[operand.reg].name : "?";
      break;
    case Operand::Kind::Sink:
      out += '_';
      break;
    case Operand::Kind::Immediate:
      append_immediate(out, operand);
      break;
    case Operand::Kind::Special:
      append_special(out, operand);
      break;
    case Operand::Kind::Symbol:
      out += operand.symbol;
      append_offset(out, operand.offset);
      break;
    case Operand::Kind::Address:
      append_address(out, operand, function);
      break;
    case Operand::Kind::Vector:
      out += '{';
      append_list(out, operand.elements, ", ", function);
      out += '}';
      break;
    case Operand::Kind::Pair:
      append_list(out, operand.elements, "|", function);
      break;
    case Operand::Kind::Label:
      out += label_at(function, operand.label);
      break;
    case Operand::Kind::LabelTable:
      out += operand.symbol;
      break;
  }
}

void append_call(std::string& out, const Instruction& call, const Function& function) {
  if (!call.operands[0].elements.empty()) {
    out += " (";
    append_list(out, call.operands[0].elements, ", ", function);
    out += "),";
  }
  out += ' ';
  append_operand(out, call.operands[1], function);
  if (!call.operands[2].elements.empty()) {
    out += ", (";
    append_list(out, call.operands[2].elements, ", ", function);
    out += ')';
  }
  if (call.operands.size() > 3) out += ", " + call.operands[3].symbol;
}

// The few modifiers that stand behind the types: mma's bit operation, wmma's .satfinite, prmt's
// mode.
bool follows_types(Opcode opcode, Modifier modifier) {
  if (opcode == Opcode::Prmt) return true;
  if (opcode == Opcode::WmmaMma) return modifier == Modifier::Satfinite;
  if (opcode != Opcode::Mma && opcode != Opcode::WgmmaMmaAsync) return false;
  return modifier == Modifier::And || modifier == Modifier::Xor || modifier == Modifier::Popc;
}

void append_type_and_name(std::string& out, const Variable& variable) {
  out += ".align " + std::to_string(variable.alignment_bytes) + " .";
  out += name(variable.type);
  out += ' ' + variable.name;
  const auto element = uint64_t(size_bytes(variable.type));
  if (variable.is_extern_array) {
    out += "[]";
  } else if (variable.size_bytes != element) {
    out += '[' + std::to_string(variable.size_bytes / element) + ']';
  }
}

uint64_t bytes_at(const Variable& variable, uint64_t offset, uint64_t count) {
  uint64_t bits = 0;
  for (uint64_t i = 0; i < std::min<uint64_t>(count, 8); ++i) {
    bits |= uint64_t{variable.initial[size_t(offset + i)]} << (8 * i);
  }
  return bits;
}

std::string relocation_text(const Variable::Relocation& relocation) {
  std::string text = relocation.generic ? "generic(" + relocation.symbol + ")" : relocation.symbol;
  append_offset(text, relocation.addend);
  return text;
}

void append_initialiser(std::string& out, const Variable& variable) {
  if (variable.initial.empty()) return;
  std::map<uint64_t, const Variable::Relocation*> relocations;
  for (const auto& each : variable.relocations) relocations[each.offset] = &each;
  const auto element = uint64_t(size_bytes(variable.type));
  const bool array = variable.size_bytes != element;
  out += array ? " = {" : " = ";
  for (uint64_t at = 0; at < variable.initial.size(); at += element) {
    if (at > 0) out += ", ";
    const auto relocation = relocations.find(at);
    if (relocation != relocations.end()) {
      const std::string target = relocation_text(*relocation->second);
      if (element == 8) {
        out += target;
        continue;
      }
      for (int i = 0; i < 8; ++i) {
        if (i > 0) out += ", ";
        out += std::to_string(uint64_t{0xFF} << (8 * i)) + "(" + target + ")";
      }
      at += 7;
      continue;
    }
    const uint64_t bits = bytes_at(variable, at, element);
    if (variable.type == Type::F32)
      out += "0f" + hexadecimal(bits, 8);
    else if (variable.type == Type::F64)
      out += "0d" + hexadecimal(bits, 16);
    else
      out += std::to_string(bits);
  }
  if (array) out += '}';
}

std::string_view space_name(Space space) {
  switch (space) {
    case Space::Reg:
      return "reg";
    case Space::Param:
      return "param";
    case Space::Const:
      return "const";
    case Space::Global:
      return "global";
    case Space::Shared:
      return "shared";
    case Space::Local:
      return "local";
    case Space::None:
      break;
  }
  return "none";
}

void append_variable(std::string& out, const Variable& variable) {
  if (variable.is_extern) out += ".extern ";
  out += '.';
  out += space_name(variable.space);
  out += ' ';
  append_type_and_name(out, variable);
  append_initialiser(out, variable);
  out += ";\n";
}

void append_parameters(std::string& out, const std::vector<Variable>& parameters) {
  out += '(';
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i > 0) out += ", ";
    if (parameters[i].space == Space::Reg) {
      out += ".reg .";
      out += name(parameters[i].type);
      out += ' ' + parameters[i].name;
    } else {
      out += ".param ";
      append_type_and_name(out, parameters[i]);
    }
  }
  out += ')';
}

void append_extent(std::string& out, std::string_view directive, const Dim3& extent) {
  if (extent == Dim3{0, 0, 0}) return;
  out += '\n';
  out += directive;
  out += ' ' + std::to_string(extent.x) + ", " + std::to_string(extent.y) + ", " +
         std::to_string(extent.z);
}

void append_count(std::string& out, std::string_view directive, uint32_t count) {
  if (count == 0) return;
  out += '\n';
  out += directive;
  out += ' ' + std::to_string(count);
}

void append_header(std::string& out, const Function& function) {
  out += function.is_entry ? ".entry " : ".func ";
  if (!function.returns.empty()) {
    append_parameters(out, function.returns);
    out += ' ';
  }
  out += function.name;
  append_parameters(out, function.params);
  append_extent(out, ".maxntid", function.max_threads);
  append_extent(out, ".reqntid", function.required_threads);
  append_extent(out, ".reqnctapercluster", function.required_cluster);
  append_count(out, ".minnctapersm", function.min_blocks);
  append_count(out, ".maxnreg", function.max_registers);
  append_count(out, ".maxclusterrank", function.max_cluster_rank);
  if (function.explicit_cluster) out += "\n.explicitcluster";
  if (function.noreturn) out += "\n.noreturn";
}

// How many registers from `first` on are prefix0, prefix1, ... of one type.
size_t range_length(const Function& function, size_t first) {
  const auto& registers = function.registers;
  const auto start = numbered(registers[first].name);
  if (!start || start->number != 0) return 0;
  const std::string prefix = registers[first].name.substr(0, start->prefix_length);
  size_t length = 1;
  while (first + length < registers.size() &&
         registers[first + length].type == registers[first].type &&
         registers[first + length].name == prefix + std::to_string(length)) {
    ++length;
  }
  return length;
}

void append_registers(std::string& out, const Function& function) {
  size_t at = 0;
  for (const auto* list : {&function.returns, &function.params}) {
    for (const Variable& each : *list) at += each.space == Space::Reg && each.name != "_";
  }
  while (at < function.registers.size()) {
    const Type type = function.registers[at].type;
    out += "\t.reg .";
    out += name(type);
    if (const size_t length = range_length(function, at)) {
      const std::string& first = function.registers[at].name;
      out += ' ' + first.substr(0, first.size() - 1) + '<' + std::to_string(length) + '>';
      at += length;
    } else {
      out += ' ' + function.registers[at].name;
      ++at;
    }
    out += ";\n";
  }
}

void append_table(std::string& out, const BranchTable& table, const Function& function) {
  out += table.name + ": ";
  if (table.is_prototype) {
    out += ".callprototype ";
    append_parameters(out, table.returns);
    out += " _ ";
    append_parameters(out, table.params);
  } else if (!table.functions.empty()) {
    out += ".calltargets ";
    for (size_t i = 0; i < table.functions.size(); ++i) {
      out += (i > 0 ? ", " : "") + table.functions[i];
    }
  } else {
    out += ".branchtargets ";
    for (size_t i = 0; i < table.labels.size(); ++i) {
      out += (i > 0 ? ", " : "") + label_at(function, table.labels[i]);
    }
  }
  out += ";\n";
}

void append_body(std::string& out, const Function& function) {
  out += "\n{\n";
  append_registers(out, function);
  for (const Variable& local : function.locals) {
    out += '\t';
    append_variable(out, local);
  }
  for (const BranchTable& table : function.tables) append_table(out, table, function);
  SourcePlace place;
  size_t next_label = 0;
  for (size_t i = 0; i <= function.body.size(); ++i) {
    for (; next_label < function.labels.size() && function.labels[next_label].second == i;
         ++next_label) {
      out += function.labels[next_label].first + ":\n";
    }
    if (i == function.body.size()) break;
    const Instruction& instruction = function.body[i];
    if (instruction.source.file != place.file || instruction.source.line != place.line) {
      place = instruction.source;
      out += ".loc " + std::to_string(place.file) + ' ' + std::to_string(place.line) + " 0\n";
    }
    out += '\t' + spelling(instruction, function) + ";\n";
  }
  out += "}\n";
}

}  // namespace

std::string mnemonic(const Instruction& instruction) {
  std::string out(name(instruction.opcode));
  const auto append = [&out](std::string_view part) {
    out += '.';
    out += part;
  };
  for (const Modifier each : instruction.modifiers) {
    if (!follows_types(instruction.opcode, each)) append(name(each));
  }
  for (const Type each : instruction.types) append(name(each));
  for (const Modifier each : instruction.modifiers) {
    if (follows_types(instruction.opcode, each)) append(name(each));
  }
  return out;
}

std::string spelling(const Instruction& instruction, const Function& function) {
  std::string out;
  if (instruction.guard) {
    out += instruction.guard->negated ? "@!" : "@";
    out += function.registers[instruction.guard->reg].name + ' ';
  }
  out += mnemonic(instruction);
  if (instruction.opcode == Opcode::Call) {
    append_call(out, instruction, function);
  } else if (!instruction.operands.empty()) {
    out += ' ';
    append_list(out, instruction.operands, ", ", function);
  }
  return out;
}

std::string dump(const Function& function) {
  std::string out;
  append_header(out, function);
  if (function.is_declaration) {
    out += ";\n";
  } else {
    append_body(out, function);
  }
  return out;
}

std::string dump(const Module& module) {
  std::string out = ".version " + std::to_string(module.version_major) + '.' +
                    std::to_string(module.version_minor) + "\n.target " + module.target +
                    "\n.address_size " + std::to_string(module.address_size) + '\n';
  for (const auto& [index, path] : module.files) {
    out += ".file " + std::to_string(index) + " \"" + path + "\"\n";
  }
  // Declarations first: variables may hold addresses of functions, functions may call later ones.
  for (const Function& function : module.functions) {
    if (function.is_entry && !function.is_declaration) continue;
    append_header(out, function);
    out += ";\n";
  }
  for (const Variable& variable : module.variables) append_variable(out, variable);
  for (const bool entries : {false, true}) {
    for (const Function& function : module.functions) {
      if (function.is_entry == entries && !function.is_declaration) out += dump(function);
    }
  }
  for (const auto& [alias, aliasee] : module.aliases) {
    out += ".alias " + alias + ", " + aliasee + ";\n";
  }
  return out;
}

}  // namespace ptxb::ptx
