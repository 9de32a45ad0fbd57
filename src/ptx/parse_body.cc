// Owns function bodies: blocks, labels, branch tables, source locations (PTX
// ISA 4.4, 7.1, 11.3, 11.5.4). Nesting is bounded; labels are resolved when their block ends.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/parser.h"

namespace ptxb::ptx {

bool Parser::body() {
  label_scopes_.clear();
  return block();
}

// { statement ... }: one scope for names and one for labels.
bool Parser::block() {
  if (label_scopes_.size() >= limits_.nesting) {
    return fail(ErrorCode::Limit, token_.line,
                "blocks nested more than " + std::to_string(limits_.nesting) + " deep");
  }
  if (!expect('{')) return false;
  names_.push_scope();
  label_scopes_.emplace_back();
  while (!token_.is('}')) {
    if (!statement()) return false;
  }
  if (!close_labels()) return false;
  names_.pop_scope();
  advance();
  return true;
}

bool Parser::statement() {
  if (token_.is('{')) return block();
  if (token_.is('@')) return instruction();
  if (token_.kind == Token::Kind::Directive) return directive_statement();
  if (token_.kind != Token::Kind::Identifier) return unexpected("a statement");
  if (!lexer_.at(':')) return instruction();
  const std::string_view name = token_.text;
  const int line = token_.line;
  advance();
  advance();
  return labelled(name, line);
}

bool Parser::directive_statement() {
  if (token_.is_directive("reg")) return register_directive();
  if (token_.is_directive("loc")) return location_directive();
  if (token_.is_directive("pragma")) return pragma_directive();
  Linkage linkage;
  linkage.is_extern = take_directive("extern");
  return variable_directive(Where::Function, linkage);
}

bool Parser::labelled(std::string_view name, int line) {
  if (take_directive("branchtargets")) return branch_targets(name, line);
  if (take_directive("calltargets")) return call_targets(name, line);
  if (take_directive("callprototype")) return call_prototype(name, line);
  return define_label(name, line);
}

bool Parser::define_label(std::string_view name, int line) {
  label_scopes_.back().defined.push_back({name, uint32_t(function_.labels.size()), line});
  function_.labels.emplace_back(names_.unique(name), uint32_t(function_.body.size()));
  return true;
}

bool Parser::declare_table(BranchTable table, int line) {
  Meaning meaning;
  meaning.kind = Meaning::Kind::Table;
  meaning.index = uint32_t(function_.tables.size());
  if (!names_.declare(declared_name_, meaning)) {
    return fail(ErrorCode::BadInput, line, "name declared twice: " + shown(declared_name_));
  }
  table.name = names_.unique(declared_name_);
  function_.tables.push_back(std::move(table));
  return true;
}

// name: .branchtargets L0, L1, ...;
bool Parser::branch_targets(std::string_view name, int line) {
  BranchTable table;
  const uint32_t index = uint32_t(function_.tables.size());
  do {
    std::string_view label;
    const int label_line = token_.line;
    if (!identifier(label, "a label") || !spend_operand()) return false;
    label_scopes_.back().uses.push_back(
        {label, label_line, true, index, uint32_t(table.labels.size())});
    table.labels.push_back(0);
  } while (take(','));
  declared_name_ = name;
  return declare_table(std::move(table), line) && expect(';');
}

bool Parser::call_targets(std::string_view name, int line) {
  BranchTable table;
  do {
    std::string_view function;
    const int function_line = token_.line;
    if (!identifier(function, "a function") || !spend_operand()) return false;
    const auto meaning = names_.find(function);
    if (!meaning || meaning->kind != Meaning::Kind::Function) {
      return fail(ErrorCode::BadInput, function_line, "undeclared function " + shown(function));
    }
    table.functions.emplace_back(function);
  } while (take(','));
  declared_name_ = name;
  return declare_table(std::move(table), line) && expect(';');
}

// name: .callprototype (returns) _ (params) {.noreturn} {.abi_preserve N};
bool Parser::call_prototype(std::string_view name, int line) {
  BranchTable table;
  table.is_prototype = true;
  // parameter_list() notes names for the function in hand; a prototype's are not declared.
  const size_t known = parameter_names_.size();
  if (take('(') && !parameter_list(table.returns)) return false;
  if (!token_.is_word("_")) return unexpected("'_'");
  advance();
  if (take('(') && !parameter_list(table.params)) return false;
  parameter_names_.resize(known);
  Function properties;
  if (!function_properties(properties)) return false;
  declared_name_ = name;
  return declare_table(std::move(table), line) && expect(';');
}

// .loc FILE LINE COLUMN {, function_name LABEL {+ N}, inlined_at FILE LINE COLUMN}
bool Parser::location_directive() {
  advance();
  uint32_t file = 0, line = 0, column = 0;
  if (!integer_32(file, "a file index") || !integer_32(line, "a line")) return false;
  if (!integer_32(column, "a column")) return false;
  place_ = {file, line};
  if (!take(',')) return true;
  if (!token_.is_word("function_name")) return unexpected("function_name");
  advance();
  std::string_view label;
  if (!identifier(label, "a label")) return false;
  uint64_t ignored = 0;
  if (take('+') && !integer(ignored, "a number")) return false;
  if (!expect(',')) return false;
  if (!token_.is_word("inlined_at")) return unexpected("inlined_at");
  advance();
  return integer(ignored, "a file index") && integer(ignored, "a line") &&
         integer(ignored, "a column");
}

// Binds the uses of this block to its labels; what is left may mean a label of an enclosing block
// (PTX ISA 4.4).
bool Parser::close_labels() {
  LabelScope scope = std::move(label_scopes_.back());
  label_scopes_.pop_back();
  std::unordered_map<std::string_view, uint32_t> defined;
  for (const LabelDefinition& definition : scope.defined) {
    if (!defined.emplace(definition.name, definition.label).second) {
      return fail(ErrorCode::BadInput, definition.line,
                  "label defined twice: " + shown(definition.name));
    }
  }
  for (const LabelUse& use : scope.uses) {
    if (const auto found = defined.find(use.name); found != defined.end()) {
      resolve(use, found->second);
    } else if (label_scopes_.empty()) {
      return fail(ErrorCode::BadInput, use.line, "undefined label " + shown(use.name));
    } else {
      label_scopes_.back().uses.push_back(use);
    }
  }
  return true;
}

void Parser::resolve(const LabelUse& use, uint32_t label) {
  const auto& [name, position] = function_.labels[label];
  if (use.in_table) {
    function_.tables[use.index].labels[use.position] = position;
    return;
  }
  Operand& target = function_.body[use.index].operands[0];
  target.symbol = name;
  target.label = position;
}

}  // namespace ptxb::ptx
