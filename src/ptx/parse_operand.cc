// Owns operands (PTX ISA 6.1-6.4): registers, constants, special registers, addresses, vectors,
// pairs, names.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/parser.h"

namespace ptxb::ptx {
namespace {

constexpr uint64_t kMostOperands =
    16'000'000;                      // of a module: bounds memory by more than the text's length
constexpr int kTighterThanSum = 10;  // binding strength of '*'

// ".x" and colour names of a vector member; -1: neither.
int member_index(std::string_view member) {
  if (member.size() != 1) return -1;
  const size_t at = std::string_view("xyzwrgba").find(member[0]);
  return at == std::string_view::npos ? -1 : int(at % 4);
}

}  // namespace

bool Parser::spend_operand() {
  if (++operand_count_ <= kMostOperands) return true;
  return fail(ErrorCode::Limit, token_.line,
              "more than " + std::to_string(kMostOperands) + " operands");
}

const Variable& Parser::variable_of(const Meaning& meaning) const {
  switch (meaning.owner) {
    case Meaning::Owner::Params:
      return function_.params[meaning.index];
    case Meaning::Owner::Returns:
      return function_.returns[meaning.index];
    case Meaning::Owner::Locals:
      return function_.locals[meaning.index];
    case Meaning::Owner::Module:
      break;
  }
  return module_.variables[meaning.index];
}

bool Parser::operand(Operand& out) {
  if (token_.is('[')) return address_operand(out);
  if (!simple_operand(out, 0)) return false;
  return token_.is('|') ? pair_operand(out) : true;
}

bool Parser::simple_operand(Operand& out, int depth) {
  if (!spend_operand()) return false;
  if (token_.kind == Token::Kind::Identifier && !token_.is_word("WARP_SZ")) {
    return named_operand(out);
  }
  if (token_.is('{')) return vector_operand(out, depth);
  if (token_.is('!')) return negated_operand(out);
  return immediate_operand(out);
}

bool Parser::immediate_operand(Operand& out) {
  Constant value;
  if (!constant(value)) return false;
  out.kind = Operand::Kind::Immediate;
  out.bits = value.bits;
  if (value.kind == Constant::Kind::F32) out.literal = Operand::Literal::F32;
  if (value.kind == Constant::Kind::F64) out.literal = Operand::Literal::F64;
  return true;
}

// !p, or a constant expression that starts with '!'.
bool Parser::negated_operand(Operand& out) {
  advance();
  if (token_.kind == Token::Kind::Identifier && !token_.is_word("WARP_SZ")) {
    const int line = token_.line;
    if (!named_operand(out)) return false;
    if (out.kind != Operand::Kind::Register || function_.registers[out.reg].type != Type::Pred) {
      return fail(ErrorCode::BadInput, line, "'!' before something that is no predicate");
    }
    out.negated = true;
    return true;
  }
  Constant value;
  if (!constant_primary(value)) return false;
  if (!value.is_integer()) return bad("'!' before a float");
  out.kind = Operand::Kind::Immediate;
  out.bits = value.bits == 0 ? 1 : 0;
  return true;
}

bool Parser::named_operand(Operand& out) {
  const std::string_view name = token_.text;
  const int line = token_.line;
  advance();
  if (name == "_") {
    out.kind = Operand::Kind::Sink;
    return true;
  }
  if (const auto meaning = names_.find(name)) return meaning_operand(name, *meaning, line, out);
  if (name.front() == '%') return special_operand(name, line, out);
  return fail(ErrorCode::BadInput, line, "undeclared name " + shown(name));
}

bool Parser::meaning_operand(std::string_view name, const Meaning& meaning, int line,
                             Operand& out) {
  switch (meaning.kind) {
    case Meaning::Kind::Register:
      out.kind = Operand::Kind::Register;
      out.reg = meaning.index;
      return true;
    case Meaning::Kind::Vector:
      return vector_register(meaning, out);
    case Meaning::Kind::Function:
      out.kind = Operand::Kind::Symbol;
      out.symbol = module_.functions[meaning.index].name;
      return true;
    case Meaning::Kind::Variable:
      out.kind = Operand::Kind::Symbol;
      out.symbol = variable_of(meaning).name;
      if (token_.is('[')) {
        return fail(ErrorCode::Unsupported, line, "an indexed array operand: " + shown(name));
      }
      return offset(out.offset);
    case Meaning::Kind::Table:
      break;
  }
  return fail(ErrorCode::BadInput, line, "a table of targets as an operand: " + shown(name));
}

// v.x is one register, v alone all of them.
bool Parser::vector_register(const Meaning& meaning, Operand& out) {
  if (token_.kind == Token::Kind::Directive) {
    const int member = member_index(token_.text);
    if (member < 0 || uint32_t(member) >= meaning.count) return unexpected("a member like .x");
    advance();
    out.kind = Operand::Kind::Register;
    out.reg = meaning.index + uint32_t(member);
    return true;
  }
  out.kind = Operand::Kind::Vector;
  for (uint32_t i = 0; i < meaning.count; ++i) {
    if (!spend_operand()) return false;
    Operand element;
    element.kind = Operand::Kind::Register;
    element.reg = meaning.index + i;
    out.elements.push_back(std::move(element));
  }
  return true;
}

bool Parser::special_operand(std::string_view name, int line, Operand& out) {
  const SpecialMatch match = find_special(name);
  if (match.special == Special::None) {
    return fail(ErrorCode::BadInput, line, "undeclared register " + shown(name));
  }
  out.kind = Operand::Kind::Special;
  out.special = match.special;
  out.component = match.index;
  if (component_count(match.special) != 4) return true;
  if (token_.kind != Token::Kind::Directive) {
    return fail(ErrorCode::Unsupported, line, "a whole vector register: " + shown(name));
  }
  const int member = member_index(token_.text);
  if (member < 0) return unexpected("a member like .x");
  out.component = uint8_t(member);
  advance();
  return true;
}

bool Parser::vector_operand(Operand& out, int depth) {
  constexpr size_t kMostElements = 256;  // tcgen05.ld.x128 and wgmma.m64n256 have 128
  if (depth > 0) return bad("a vector inside a vector");
  advance();
  out.kind = Operand::Kind::Vector;
  do {
    if (out.elements.size() >= kMostElements) {
      return fail(ErrorCode::Limit, token_.line, "a vector of more than 256 elements");
    }
    Operand element;
    if (!simple_operand(element, depth + 1)) return false;
    out.elements.push_back(std::move(element));
  } while (take(','));
  return expect('}');
}

// p|q: two destinations of one instruction.
bool Parser::pair_operand(Operand& out) {
  advance();
  Operand second;
  const int line = token_.line;
  if (!simple_operand(second, 1)) return false;
  const auto is_destination = [](const Operand& operand) {
    return !operand.negated &&
           (operand.kind == Operand::Kind::Register || operand.kind == Operand::Kind::Sink);
  };
  if (!is_destination(out) || !is_destination(second)) {
    return fail(ErrorCode::BadInput, line, "a pair of something other than registers");
  }
  Operand pair;
  pair.kind = Operand::Kind::Pair;
  pair.elements.push_back(std::move(out));
  pair.elements.push_back(std::move(second));
  out = std::move(pair);
  return true;
}

// "+ constant" and "+ -constant", as often as they come; nothing is 0. Also "- constant", which
// some people write.
bool Parser::offset(int64_t& out) {
  uint64_t sum = 0;
  while (token_.is('+') || token_.is('-')) {
    const bool minus = token_.is('-');
    advance();
    Constant value;
    if (!constant_from(kTighterThanSum, value)) return false;
    if (!value.is_integer()) return bad("an offset that is no integer");
    sum = minus ? sum - value.bits : sum + value.bits;
  }
  out = int64_t(sum);
  return true;
}

// [base], [base + offset], [base, {c0, c1}]
bool Parser::address_operand(Operand& out) {
  if (!spend_operand()) return false;
  advance();
  out.kind = Operand::Kind::Address;
  Operand base;
  const int line = token_.line;
  if (!simple_operand(base, 1)) return false;
  switch (base.kind) {
    case Operand::Kind::Register:
      if (base.negated) return bad("'!' in an address");
      if (!offset(out.offset)) return false;
      break;
    case Operand::Kind::Symbol:
      out.offset = base.offset;
      base.offset = 0;
      break;
    case Operand::Kind::Immediate:
      if (base.literal != Operand::Literal::Integer) return bad("a float as an address");
      break;
    default:
      return fail(ErrorCode::BadInput, line, "an address that is no register or symbol");
  }
  out.elements.push_back(std::move(base));
  while (take(',')) {
    if (out.elements.size() >= 4) return bad("an address of more than 4 parts");
    Operand part;
    if (!simple_operand(part, 0)) return false;
    out.elements.push_back(std::move(part));
  }
  if (!expect(']')) return false;
  if (token_.kind == Token::Kind::Directive) {
    return fail(ErrorCode::Unsupported, token_.line,
                "an address with ." + std::string(token_.text));
  }
  return true;
}

bool Parser::label_operand(Operand& out) {
  if (!spend_operand()) return false;
  std::string_view name;
  const int line = token_.line;
  if (!identifier(name, "a label")) return false;
  out.kind = Operand::Kind::Label;
  label_scopes_.back().uses.push_back({name, line, false, uint32_t(function_.body.size()), 0});
  return true;
}

bool Parser::table_operand(Operand& out) {
  if (!spend_operand()) return false;
  std::string_view name;
  const int line = token_.line;
  if (!identifier(name, "a table of targets")) return false;
  const auto meaning = names_.find(name);
  if (!meaning || meaning->kind != Meaning::Kind::Table) {
    return fail(ErrorCode::BadInput, line, "undeclared table of targets " + shown(name));
  }
  out.kind = Operand::Kind::LabelTable;
  out.symbol = function_.tables[meaning->index].name;
  out.label = meaning->index;
  return true;
}

}  // namespace ptxb::ptx
