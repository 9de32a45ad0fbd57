// Owns which name means what where: block scopes (PTX ISA 4.4, 7.1) and the unique spelling a
// flattened function needs. Private to the room; knows no grammar. Names are views into the parsed
// text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ptxb::ptx {

struct Meaning {
  enum class Kind : uint8_t {
    Register,  // index into Function::registers
    Vector,    // `count` registers from index on
    Variable,  // index into Module::variables, Function::params, returns or locals, by `owner`
    Function,  // index into Module::functions
    Table,     // index into Function::tables
  };
  enum class Owner : uint8_t { Module, Params, Returns, Locals };
  Kind kind = Kind::Register;
  Owner owner = Owner::Module;
  uint32_t index = 0;
  uint32_t count = 1;
};

class Names {
 public:
  void push_scope() { marks_.push_back(bindings_.size()); }
  void pop_scope();
  size_t depth() const { return marks_.size(); }

  // False: the scope has that name already.
  bool declare(std::string_view name, const Meaning& meaning);
  // prefix0 .. prefix{count-1}: registers from index on.
  bool declare_range(std::string_view prefix, uint32_t index, uint32_t count);
  std::optional<Meaning> find(std::string_view name) const;

  // A spelling no other name of the function has: the name itself, or "name$1" ... Deterministic.
  std::string unique(std::string_view name);
  // The same for prefix0 .. prefix{count-1}: the prefix to use.
  std::string unique_prefix(std::string_view prefix, uint32_t count);
  // Keeps the name as it is (parameters, module scope).
  void reserve(std::string_view name) { mark_used(used_, name); }
  // Starts a function: forgets what the last one used, keeps module names.
  void forget_used();
  void reserve_for_module(std::string_view name) { mark_used(module_used_, name); }

 private:
  struct Binding {
    std::string_view name;
    Meaning meaning;
    size_t depth = 0;
    bool is_range = false;
    int64_t previous = -1;
  };
  using Index = std::unordered_map<std::string_view, int64_t>;
  bool bind(Index& index, const Binding& binding);
  const Binding* latest(const Index& index, std::string_view name) const;
  // Spellings taken, and for numbered ones the smallest number of each prefix: a range collides
  // when it reaches that far.
  struct Used {
    std::unordered_set<std::string> names;
    std::unordered_map<std::string, uint32_t> smallest;  // prefix -> number
  };
  static void mark_used(Used& used, std::string_view name);
  static bool reaches(const Used& used, const std::string& prefix, uint32_t count);
  bool is_used(const std::string& name) const;

  std::vector<Binding> bindings_;
  std::vector<size_t> marks_;
  Index singles_, ranges_;
  Used used_, module_used_;
  std::unordered_map<std::string, uint32_t> used_ranges_;  // prefix -> count
  std::unordered_map<std::string, uint32_t> next_suffix_;
};

// "%r12" -> 12 and the prefix's length, when the digits are canonical (no leading zero, below
// 2^31).
struct NumberedName {
  size_t prefix_length = 0;
  uint32_t number = 0;
};
std::optional<NumberedName> numbered(std::string_view name);

}  // namespace ptxb::ptx
