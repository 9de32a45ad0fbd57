// Owns variables, parameters, registers and their initialisers (PTX ISA 5.1-5.4, 11.6).
// Sizes are checked against budgets before anything is allocated.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "ptx/parser.h"

namespace ptxb::ptx {
namespace {

constexpr uint64_t kMostVariableBytes = uint64_t{1} << 40;
constexpr uint64_t kMostInitialBytes = uint64_t{64} << 20;  // of a whole module
constexpr uint32_t kMostAlignment = 1u << 16;

uint32_t vector_length_of(std::string_view directive) {
  if (directive == "v2") return 2;
  if (directive == "v4") return 4;
  return directive == "v8" ? 8 : 0;
}

bool is_opaque_type(std::string_view word) {
  return word == "texref" || word == "samplerref" || word == "surfref";
}

}  // namespace

bool Parser::space_of_directive(Space& out) {
  if (token_.kind != Token::Kind::Directive) return unexpected("a directive");
  if (token_.text == "global")
    out = Space::Global;
  else if (token_.text == "shared")
    out = Space::Shared;
  else if (token_.text == "const")
    out = Space::Const;
  else if (token_.text == "local")
    out = Space::Local;
  else if (token_.text == "param")
    out = Space::Param;
  else
    return fail(ErrorCode::Unsupported, token_.line, "directive ." + std::string(token_.text));
  advance();
  return true;
}

// .attribute(.managed) and .unified change where an object lives, not what it holds (PTX
// ISA 5.4.8).
bool Parser::attributes() {
  if (!expect('(')) return false;
  do {
    if (!token_.is_directive("managed") && !token_.is_directive("unified")) {
      return fail(ErrorCode::Unsupported, token_.line, "attribute " + shown(token_.text));
    }
    advance();
    if (take('(')) {
      uint64_t ignored = 0;
      if (!integer(ignored, "a number") || !expect(',')) return false;
      if (!integer(ignored, "a number") || !expect(')')) return false;
    }
  } while (take(','));
  return expect(')');
}

bool Parser::alignment(uint32_t& out) {
  const int line = token_.line;
  uint64_t value = 0;
  if (!integer(value, "an alignment")) return false;
  if (!std::has_single_bit(value) || value > kMostAlignment) {
    return fail(ErrorCode::BadInput, line, "an alignment that is no power of two up to 65536");
  }
  out = uint32_t(value);
  return true;
}

bool Parser::element_type(Type& type, uint32_t& vector_length) {
  if (token_.kind == Token::Kind::Directive) {
    if (const uint32_t length = vector_length_of(token_.text)) {
      vector_length = length;
      advance();
    }
  }
  if (token_.kind != Token::Kind::Directive) return unexpected("a type");
  const auto found = find_type(token_.text);
  if (!found) {
    return fail(ErrorCode::Unsupported, token_.line,
                std::string(is_opaque_type(token_.text) ? "texture and surface type ." : "type .") +
                    std::string(token_.text));
  }
  // PTX ISA 5.2: only the fundamental types declare things.
  if (size_bits(*found) < 8 ? *found != Type::Pred : size_bits(*found) > 128) {
    return bad("type ." + std::string(token_.text) + " declares nothing");
  }
  type = *found;
  advance();
  return true;
}

// name[dimension]...; an empty first dimension is kept as 0.
bool Parser::declarator(Variable& variable, uint32_t vector_length,
                        std::vector<uint64_t>& dimensions) {
  variable.line = token_.line;
  if (!identifier(declared_name_, "a name")) return false;
  variable.name = declared_name_;
  dimensions.clear();
  while (take('[')) {
    if (dimensions.size() >= 16) return bad("an array of more than 16 dimensions");
    uint64_t count = 0;
    if (token_.is(']')) {
      if (!dimensions.empty()) return bad("an empty dimension that is not the first");
      variable.is_extern_array = true;
    } else {
      if (!constant_integer(count, "a dimension")) return false;
      // [0] does occur (empty structures passed by value) and is not "sized later".
      if (count > kMostVariableBytes) return bad("an array dimension too large");
    }
    if (!expect(']')) return false;
    dimensions.push_back(count);
  }
  if (vector_length > 1) dimensions.push_back(vector_length);
  return extents(variable, dimensions);
}

bool Parser::extents(Variable& variable, const std::vector<uint64_t>& dimensions) {
  uint64_t bytes = uint64_t(size_bytes(variable.type));
  bool empty = false;
  for (const uint64_t count : dimensions) {
    // Empty dimensions do not hide the others from the check: initialisers multiply the inner ones.
    empty |= count == 0;
    if (count != 0 && bytes > kMostVariableBytes / count) {
      return fail(ErrorCode::Limit, variable.line,
                  "variable " + shown(variable.name) + " of more than 2^40 bytes");
    }
    if (count != 0) bytes *= count;
  }
  variable.size_bytes = empty ? 0 : bytes;
  return true;
}

bool Parser::variable_directive(Where where, const Linkage& linkage) {
  Variable prototype;
  const int line = token_.line;
  if (!space_of_directive(prototype.space)) return false;
  if (where == Where::Module && prototype.space == Space::Param) {
    return fail(ErrorCode::BadInput, line, ".param outside a function");
  }
  uint32_t vector_length = 1;
  uint32_t declared_alignment = 0;
  for (;;) {
    if (take_directive("attribute")) {
      if (!attributes()) return false;
    } else if (take_directive("align")) {
      if (!alignment(declared_alignment)) return false;
    } else {
      break;
    }
  }
  if (!element_type(prototype.type, vector_length)) return false;
  if (prototype.type == Type::Pred) return bad("a predicate in memory");
  prototype.alignment_bytes = declared_alignment
                                  ? declared_alignment
                                  : uint32_t(size_bytes(prototype.type)) * vector_length;
  do {
    Variable variable = prototype;
    std::vector<uint64_t> dimensions;
    if (!declarator(variable, vector_length, dimensions)) return false;
    if (take('=')) {
      if (!initialiser(variable, dimensions)) return false;
    } else if (variable.is_extern_array && !linkage.is_extern) {
      return fail(ErrorCode::BadInput, variable.line,
                  "array " + shown(variable.name) + " without a size");
    }
    if (!declare_variable(where, std::move(variable), linkage)) return false;
  } while (take(','));
  return expect(';');
}

bool Parser::declare_variable(Where where, Variable variable, const Linkage& linkage) {
  variable.is_extern = linkage.is_extern;
  Meaning meaning;
  meaning.kind = Meaning::Kind::Variable;
  const std::string_view name = declared_name_;
  if (where == Where::Function) {
    meaning.owner = Meaning::Owner::Locals;
    meaning.index = uint32_t(function_.locals.size());
    if (!names_.declare(name, meaning)) {
      return fail(ErrorCode::BadInput, variable.line, "name declared twice: " + shown(name));
    }
    variable.name = names_.unique(name);
    function_.locals.push_back(std::move(variable));
    return true;
  }
  meaning.index = uint32_t(module_.variables.size());
  if (names_.declare(name, meaning)) {
    names_.reserve_for_module(name);
    module_.variables.push_back(std::move(variable));
    return true;
  }
  const auto old = names_.find(name);
  if (old && old->kind == Meaning::Kind::Variable) {
    Variable& known = module_.variables[old->index];
    if (variable.is_extern) return true;  // a declaration after the definition, or the same twice
    if (known.is_extern) {
      known = std::move(variable);
      return true;
    }
  }
  return fail(ErrorCode::BadInput, variable.line, "name declared twice: " + shown(name));
}

bool Parser::reserve_initial(Variable& variable, uint64_t bytes) {
  const uint64_t more = bytes - variable.initial.size();
  initial_bytes_ += more;
  if (bytes > kMostInitialBytes || initial_bytes_ > kMostInitialBytes) {
    return fail(ErrorCode::Limit, token_.line, "more than 64 MiB of initialised variables");
  }
  variable.initial.resize(size_t(bytes));
  return true;
}

bool Parser::initialiser(Variable& variable, std::vector<uint64_t> dimensions) {
  if (variable.space != Space::Global && variable.space != Space::Const) {
    return bad("an initialiser outside .global and .const");
  }
  const bool open = variable.is_extern_array;
  if (!open && !reserve_initial(variable, variable.size_bytes)) return false;
  masked_bytes_.clear();
  if (!initial_level(variable, dimensions, 0, 0)) return false;
  if (open) {
    variable.is_extern_array = false;
    variable.size_bytes = variable.initial.size();
  }
  if (!gather_masked_bytes(variable)) return false;
  // All zero and nothing to relocate is spelled as no initialiser: one canonical form.
  const bool zero = std::all_of(variable.initial.begin(), variable.initial.end(),
                                [](uint8_t byte) { return byte == 0; });
  if (zero && variable.relocations.empty()) variable.initial.clear();
  return true;
}

// One brace level of an array of `dimensions`; recursion is bounded by their number (16 and the
// vector).
bool Parser::initial_level(Variable& variable, const std::vector<uint64_t>& dimensions,
                           size_t level, uint64_t begin) {
  if (level == dimensions.size()) return initial_element(variable, begin);
  uint64_t stride = uint64_t(size_bytes(variable.type));
  for (size_t inner = level + 1; inner < dimensions.size(); ++inner) stride *= dimensions[inner];
  const bool open = level == 0 && variable.is_extern_array;
  if (!expect('{')) return false;
  uint64_t count = 0;
  while (!token_.is('}')) {
    if (count > 0 && !expect(',')) return false;
    if (!open && count >= dimensions[level]) return bad("more initial values than elements");
    const uint64_t at = begin + count * stride;
    if (open && !reserve_initial(variable, at + stride)) return false;
    if (!initial_level(variable, dimensions, level + 1, at)) return false;
    ++count;
  }
  return expect('}');
}

// symbol, generic(symbol), each with "+ constant" (PTX ISA 5.4.4)
bool Parser::address_constant(Variable::Relocation& out) {
  std::string_view symbol;
  const int line = token_.line;
  if (!identifier(symbol, "a symbol")) return false;
  if (symbol == "generic" && take('(')) {
    out.generic = true;
    if (!identifier(symbol, "a symbol") || !expect(')')) return false;
  }
  const auto meaning = names_.find(symbol);
  if (!meaning ||
      (meaning->kind != Meaning::Kind::Variable && meaning->kind != Meaning::Kind::Function)) {
    return fail(ErrorCode::BadInput, line, "undeclared symbol " + shown(symbol));
  }
  out.symbol = symbol;
  out.addend = 0;
  return offset(out.addend);
}

bool Parser::initial_element(Variable& variable, uint64_t at) {
  if (token_.kind == Token::Kind::Identifier && !token_.is_word("WARP_SZ")) {
    Variable::Relocation relocation;
    relocation.offset = at;
    const int line = token_.line;
    if (!address_constant(relocation)) return false;
    if (size_bytes(variable.type) != 8) {
      return fail(ErrorCode::Unsupported, line, "an address in an initialiser that is not 64-bit");
    }
    variable.relocations.push_back(std::move(relocation));
    return true;
  }
  Constant value;
  if (!constant(value)) return false;
  if (!take('(')) return store_constant(variable, at, value);
  MaskedByte masked;
  masked.offset = at;
  masked.mask = value.bits;
  const int line = token_.line;
  if (!address_constant(masked.target) || !expect(')')) return false;
  if (!value.is_integer() || size_bytes(variable.type) != 1) {
    return fail(ErrorCode::BadInput, line, "a masked address that is not one byte");
  }
  masked_bytes_.push_back(std::move(masked));
  return true;
}

bool Parser::store_constant(Variable& variable, uint64_t at, const Constant& value) {
  const Type type = variable.type;
  const int bytes = size_bytes(type);
  uint64_t bits = value.bits;
  if (type == Type::F32 || type == Type::F64) {
    if (value.is_integer()) return bad("an integer initialises a float variable");
    if (type == Type::F32 && value.kind == Constant::Kind::F64) {
      bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(value.bits)));
    } else if (type == Type::F64 && value.kind == Constant::Kind::F32) {
      bits = std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(value.bits))));
    }
  } else if (!value.is_integer()) {
    const int literal_bytes = value.kind == Constant::Kind::F32 ? 4 : 8;
    if (name(type).front() != 'b' || bytes != literal_bytes) {
      return bad("a float initialises an integer variable");
    }
  }
  for (int i = 0; i < std::min(bytes, 8); ++i) {
    variable.initial[size_t(at) + size_t(i)] = uint8_t(bits >> (8 * i));
  }
  return true;
}

// Eight bytes 0xFF(s), 0xFF00(s) ... in a row are one address; nothing else is written by
// compilers.
bool Parser::gather_masked_bytes(Variable& variable) {
  if (masked_bytes_.empty()) return true;
  const auto refuse = [&] {
    return fail(
        ErrorCode::Unsupported, variable.line,
        "a masked address of " + shown(variable.name) + " that is not all 8 bytes in order");
  };
  if (masked_bytes_.size() % 8 != 0) return refuse();
  for (size_t first = 0; first < masked_bytes_.size(); first += 8) {
    const MaskedByte& lead = masked_bytes_[first];
    for (size_t i = 0; i < 8; ++i) {
      const MaskedByte& byte = masked_bytes_[first + i];
      const bool same = byte.target.symbol == lead.target.symbol &&
                        byte.target.addend == lead.target.addend &&
                        byte.target.generic == lead.target.generic;
      if (!same || byte.offset != lead.offset + i || byte.mask != uint64_t{0xFF} << (8 * i)) {
        return refuse();
      }
    }
    variable.relocations.push_back(lead.target);
    variable.relocations.back().offset = lead.offset;
  }
  return true;
}

// .reg {.vN} .type a, b<N>, ...; (PTX ISA 5.4.2)
bool Parser::register_directive() {
  advance();
  Type type = Type::B32;
  uint32_t vector_length = 1;
  if (!element_type(type, vector_length)) return false;
  do {
    std::string_view name;
    if (!identifier(name, "a register name")) return false;
    if (take('<')) {
      if (vector_length > 1) {
        return fail(ErrorCode::Unsupported, token_.line, "a range of vector registers");
      }
      if (!register_range(name, type)) return false;
    } else if (!registers(name, type, vector_length)) {
      return false;
    }
  } while (take(','));
  return expect(';');
}

bool Parser::add_register(std::string name, Type type) {
  if (++register_count_ > limits_.registers) {
    return fail(ErrorCode::Limit, token_.line,
                "more than " + std::to_string(limits_.registers) + " registers");
  }
  function_.registers.push_back({std::move(name), type});
  return true;
}

bool Parser::register_range(std::string_view prefix, Type type) {
  constexpr int kAdditive = 9;  // binds tighter than the closing '>'
  Constant count;
  const int line = token_.line;
  if (!constant_from(kAdditive, count) || !expect('>')) return false;
  if (!count.is_integer()) return fail(ErrorCode::BadInput, line, "a range that is no integer");
  if (count.bits > limits_.registers) {
    return fail(ErrorCode::Limit, line,
                "more than " + std::to_string(limits_.registers) + " registers");
  }
  const uint32_t number = uint32_t(count.bits);
  if (prefix.back() >= '0' &&
      prefix.back() <= '9') {  // "r1<3>": r10 could be read as r<..> number 10
    for (uint32_t i = 0; i < number; ++i) {
      generated_names_.push_back(std::string(prefix) + std::to_string(i));
      if (!registers(generated_names_.back(), type, 1)) return false;
    }
    return true;
  }
  if (!names_.declare_range(prefix, uint32_t(function_.registers.size()), number)) {
    return fail(ErrorCode::BadInput, line, "register range declared twice: " + shown(prefix));
  }
  const std::string own = names_.unique_prefix(prefix, number);
  for (uint32_t i = 0; i < number; ++i) {
    if (!add_register(own + std::to_string(i), type)) return false;
  }
  return true;
}

bool Parser::registers(std::string_view name, Type type, uint32_t vector_length) {
  Meaning meaning;
  meaning.kind = vector_length > 1 ? Meaning::Kind::Vector : Meaning::Kind::Register;
  meaning.index = uint32_t(function_.registers.size());
  meaning.count = vector_length;
  if (!names_.declare(name, meaning)) return bad("name declared twice: " + shown(name));
  if (vector_length == 1) return add_register(names_.unique(name), type);
  // A vector register becomes its members: "v.x" is spelled "v_x".
  constexpr std::string_view kMembers = "xyzwefgh";
  for (uint32_t i = 0; i < vector_length; ++i) {
    const std::string member = std::string(name) + "_" + kMembers[i];
    if (!add_register(names_.unique(member), type)) return false;
  }
  return true;
}

}  // namespace ptxb::ptx
