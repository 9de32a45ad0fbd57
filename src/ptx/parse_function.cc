// Owns function headers: .entry and .func with their parameters and directives (PTX
// ISA 7.1, 11.2, 11.4, 11.7).
// SPDX-License-Identifier: Apache-2.0
#include "ptx/parser.h"

namespace ptxb::ptx {

// .param .align 8 .b8 name[16] | .param .u64 .ptr .global .align 16 name | .reg .u32 name
bool Parser::parameter(Variable& out) {
  uint32_t vector_length = 1, declared_alignment = 0;
  if (take_directive("reg")) {
    out.space = Space::Reg;
  } else if (take_directive("param")) {
    out.space = Space::Param;
  } else {
    return unexpected(".param or .reg");
  }
  while (take_directive("align")) {
    if (!alignment(declared_alignment)) return false;
  }
  if (!element_type(out.type, vector_length)) return false;
  if (take_directive("ptr")) {  // what the pointer points to: advice for the optimiser only
    Space ignored = Space::None;
    if (token_.kind == Token::Kind::Directive && !token_.is_directive("align") &&
        !space_of_directive(ignored)) {
      return false;
    }
    uint32_t pointee = 1;
    if (take_directive("align") && !alignment(pointee)) return false;
  }
  out.alignment_bytes =
      declared_alignment ? declared_alignment : uint32_t(size_bytes(out.type)) * vector_length;
  std::vector<uint64_t> dimensions;
  if (!declarator(out, vector_length, dimensions)) return false;
  if (out.space == Space::Reg && !dimensions.empty())
    return bad("a register parameter with a size");
  if (out.space == Space::Param && out.type == Type::Pred) return bad("a predicate in memory");
  return true;
}

// After '('; consumes the ')'.
bool Parser::parameter_list(std::vector<Variable>& out) {
  if (take(')')) return true;
  do {
    if (out.size() >= 4096) return fail(ErrorCode::Limit, token_.line, "more than 4096 parameters");
    Variable variable;
    if (!parameter(variable)) return false;
    parameter_names_.push_back(declared_name_);
    out.push_back(std::move(variable));
  } while (take(','));
  return expect(')');
}

bool Parser::dimensions_of(Dim3& out) {
  out = {1, 1, 1};
  if (!integer_32(out.x, "an extent")) return false;
  if (!take(',')) return true;
  if (!integer_32(out.y, "an extent")) return false;
  return !take(',') || integer_32(out.z, "an extent");
}

bool Parser::function_properties(Function& function) {
  while (token_.kind == Token::Kind::Directive) {
    if (!function_property(function)) return false;
  }
  return true;
}

bool Parser::function_property(Function& function) {
  uint32_t ignored = 0;
  if (take_directive("maxntid")) return dimensions_of(function.max_threads);
  if (take_directive("reqntid")) return dimensions_of(function.required_threads);
  if (take_directive("reqnctapercluster")) return dimensions_of(function.required_cluster);
  if (take_directive("minnctapersm")) return integer_32(function.min_blocks, "a count");
  if (take_directive("maxnctapersm")) return integer_32(ignored, "a count");
  if (take_directive("maxnreg")) return integer_32(function.max_registers, "a count");
  if (take_directive("maxclusterrank")) return integer_32(function.max_cluster_rank, "a count");
  // Register conventions of separately compiled code: no meaning before register allocation.
  if (take_directive("abi_preserve")) return integer_32(ignored, "a count");
  if (take_directive("abi_preserve_control")) return integer_32(ignored, "a count");
  if (take_directive("explicitcluster")) {
    function.explicit_cluster = true;
    return true;
  }
  if (take_directive("noreturn")) {
    function.noreturn = true;
    return true;
  }
  if (token_.is_directive("pragma")) return pragma_directive();
  return fail(ErrorCode::Unsupported, token_.line,
              "function directive ." + std::string(token_.text));
}

bool Parser::function_directive(std::string_view kind) {
  function_ = Function{};
  parameter_names_.clear();
  function_.is_entry = kind == "entry";
  function_.line = token_.line;
  if (take_directive("attribute") && !attributes()) return false;
  if (!function_.is_entry && take('(') && !parameter_list(function_.returns)) return false;
  std::string_view own_name;
  if (!identifier(own_name, "a function name")) return false;
  function_.name = own_name;
  if (take('(') && !parameter_list(function_.params)) return false;
  if (function_.is_entry && !check_entry_parameters()) return false;
  if (!function_properties(function_)) return false;
  const bool has_body = token_.is('{');
  function_.is_declaration = !has_body;
  declared_name_ = own_name;
  uint32_t index = 0;
  if (!declare_function(has_body, index)) return false;
  if (!has_body) return expect(';');

  names_.forget_used();
  names_.push_scope();
  place_ = {};
  if (!declare_parameters() || !body()) return false;
  names_.pop_scope();
  module_.functions[index] = std::move(function_);
  return true;
}

// The driver takes at most 32,764 bytes of kernel parameters (PTX ISA 11.2.1).
bool Parser::check_entry_parameters() {
  constexpr uint64_t kMostParameterBytes = 32764;
  uint64_t end = 0;
  for (const Variable& param : function_.params) {
    if (param.space == Space::Reg) {
      return fail(ErrorCode::BadInput, param.line, "a kernel with a register parameter");
    }
    const uint64_t alignment = param.alignment_bytes;
    end = (end + alignment - 1) / alignment * alignment + param.size_bytes;
    if (end > kMostParameterBytes) {
      return fail(ErrorCode::BadInput, param.line, "more than 32764 bytes of kernel parameters");
    }
  }
  return true;
}

// Enters the name; a definition takes the place of its declaration.
bool Parser::declare_function(bool has_body, uint32_t& index) {
  Meaning meaning;
  meaning.kind = Meaning::Kind::Function;
  meaning.index = uint32_t(module_.functions.size());
  if (names_.declare(declared_name_, meaning)) {
    names_.reserve_for_module(declared_name_);
    index = meaning.index;
    // Callers inside the body need the signature at once; the body follows.
    module_.functions.push_back(function_);
    return true;
  }
  const auto old = names_.find(declared_name_);
  const bool is_function = old && old->kind == Meaning::Kind::Function;
  if (!is_function || (has_body && !module_.functions[old->index].is_declaration)) {
    return fail(ErrorCode::BadInput, function_.line,
                "name declared twice: " + shown(declared_name_));
  }
  index = old->index;
  if (has_body) module_.functions[index] = function_;
  return true;
}

bool Parser::declare_parameters() {
  const size_t returns = function_.returns.size();
  for (size_t i = 0; i < parameter_names_.size(); ++i) {
    const bool is_return = i < returns;
    const size_t own = is_return ? i : i - returns;
    Variable& variable = is_return ? function_.returns[own] : function_.params[own];
    const std::string_view name = parameter_names_[i];
    if (name == "_") continue;
    if (variable.space == Space::Reg) {
      if (!registers(name, variable.type, 1)) return false;
      variable.name = function_.registers.back().name;
      continue;
    }
    Meaning meaning;
    meaning.kind = Meaning::Kind::Variable;
    meaning.owner = is_return ? Meaning::Owner::Returns : Meaning::Owner::Params;
    meaning.index = uint32_t(own);
    if (!names_.declare(name, meaning)) {
      return fail(ErrorCode::BadInput, variable.line, "name declared twice: " + shown(name));
    }
    names_.reserve(name);
  }
  return true;
}

}  // namespace ptxb::ptx
