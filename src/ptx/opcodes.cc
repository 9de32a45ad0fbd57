// Owns the lookups over opcodes.def; never reads PTX text beyond one mnemonic.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/opcodes.h"

#include <bitset>
#include <iterator>
#include <unordered_map>

#include "base/result.h"

namespace ptxb::ptx {
namespace {

constexpr std::string_view kModifierNames[] = {
#define PTXB_MODIFIER(enumerator, spelling) std::string_view(spelling),
#define PTXB_SHAPE(m, n, k) std::string_view("m" #m "n" #n "k" #k),
#include "ptx/opcodes.def"
};

constexpr MatrixShape kShapes[] = {
#define PTXB_MODIFIER(enumerator, spelling) MatrixShape{},
#define PTXB_SHAPE(m, n, k) MatrixShape{m, n, k},
#include "ptx/opcodes.def"
};

struct TypeRow {
  std::string_view name;
  int bits;
};
constexpr TypeRow kTypes[] = {
#define PTXB_TYPE(enumerator, spelling, bits) TypeRow{spelling, bits},
#include "ptx/opcodes.def"
};

struct SpecialRow {
  std::string_view name;
  Type type;
  int members;
};
constexpr SpecialRow kSpecials[] = {
    SpecialRow{"", Type::B32, 0},
#define PTXB_SPECIAL(enumerator, spelling, type, members) SpecialRow{spelling, Type::type, members},
#include "ptx/opcodes.def"
};

std::vector<OpcodeInfo> opcode_rows() {
  return {
#define PTXB_OPCODE(enumerator, mnemonic, category, sync, proxy, ptx, target, section, operands, \
                    forms)                                                                       \
  OpcodeInfo{Opcode::enumerator,                                                                 \
             mnemonic,                                                                           \
             Category::category,                                                                 \
             SyncClass::sync,                                                                    \
             Proxy::proxy,                                                                       \
             ptx,                                                                                \
             target,                                                                             \
             section,                                                                            \
             operands,                                                                           \
             forms},
#include "ptx/opcodes.def"
  };
}

constexpr bool is_form_punctuation(char c) {
  return c == '.' || c == '{' || c == '}' || c == '(' || c == ')' || c == '|' || c == ';';
}

struct Allowed {
  std::bitset<std::size(kModifierNames)> modifiers;
  std::bitset<std::size(kTypes)> types;
};

Allowed allowed_by(std::string_view forms) {
  Allowed allowed;
  size_t at = 0;
  while (at < forms.size()) {
    if (is_form_punctuation(forms[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < forms.size() && !is_form_punctuation(forms[end])) ++end;
    const std::string_view token = forms.substr(at, end - at);
    const auto type = find_type(token);
    const auto modifier = find_modifier(token);
    PTXB_CHECK(type.has_value() || modifier.has_value());  // a misspelt row of opcodes.def
    if (type) allowed.types.set(size_t(*type));
    if (modifier) allowed.modifiers.set(size_t(*modifier));
    at = end;
  }
  return allowed;
}

const Allowed& allowed(Opcode opcode) {
  static const std::vector<Allowed> table = [] {
    std::vector<Allowed> rows(1);  // Invalid allows nothing
    for (const OpcodeInfo& row : all_opcodes()) rows.push_back(allowed_by(row.forms));
    return rows;
  }();
  return table[size_t(opcode) < table.size() ? size_t(opcode) : 0];
}

Role role_of(char letter) {
  switch (letter) {
    case 'D':
      return Role::Destination;
    case 'Q':
      return Role::DestinationPair;
    case 'X':
      return Role::Accumulator;
    case 'S':
      return Role::Source;
    case 'V':
      return Role::Vector;
    case 'P':
      return Role::Predicate;
    case 'I':
      return Role::Immediate;
    case 'M':
      return Role::AddressRead;
    case 'W':
      return Role::AddressWritten;
    case 'A':
      return Role::AddressUpdated;
    case 'Z':
      return Role::SourceOrAddress;
    case 'L':
      return Role::Label;
    case 'T':
      return Role::Table;
    default:
      break;
  }
  PTXB_CHECK(!"a role letter of opcodes.def");
  return Role::Source;
}

std::vector<std::vector<RoleSlot>> patterns_of(std::string_view text) {
  std::vector<std::vector<RoleSlot>> alternatives(1);
  for (const char c : text) {
    if (c == ' ') continue;
    if (c == '|') {
      alternatives.emplace_back();
    } else if (c == '?') {
      alternatives.back().back().optional = true;
    } else {
      alternatives.back().push_back({role_of(c), false});
    }
  }
  return alternatives;
}

// The choices of each position of one form; an optional position offers "" too.
std::vector<std::vector<std::string_view>> slots_of(std::string_view form) {
  std::vector<std::vector<std::string_view>> slots;
  size_t at = 0;
  while (at < form.size()) {
    const char open = form[at];
    if (open == '{' || open == '(') {
      slots.emplace_back();
      if (open == '{') slots.back().push_back("");
      const size_t close = form.find(open == '{' ? '}' : ')', at);
      std::string_view group = form.substr(at + 1, close - at - 1);
      for (size_t bar = 0; bar != std::string_view::npos;) {
        bar = group.find('|');
        slots.back().push_back(group.substr(0, bar));
        if (bar != std::string_view::npos) group.remove_prefix(bar + 1);
      }
      at = close + 1;
    } else {
      size_t end = at + 1;
      while (end < form.size() && !is_form_punctuation(form[end])) ++end;
      slots.push_back({form.substr(at, end - at)});
      at = end;
    }
  }
  return slots;
}

void expand(std::string_view base, std::string_view form, size_t limit,
            std::vector<std::string>& out) {
  const auto slots = slots_of(form);
  std::vector<size_t> choice(slots.size(), 0);
  while (out.size() < limit) {
    std::string text(base);
    for (size_t i = 0; i < slots.size(); ++i) text += slots[i][choice[i]];
    out.push_back(std::move(text));
    size_t digit = slots.size();
    while (digit > 0 && ++choice[digit - 1] == slots[digit - 1].size()) choice[--digit] = 0;
    if (digit == 0) return;
  }
}

template <class Rows, class Name>
auto index_of(const Rows& rows, Name name_of) {
  std::unordered_map<std::string_view, uint16_t> index;
  for (size_t i = 0; i < std::size(rows); ++i) index.emplace(name_of(rows[i]), uint16_t(i));
  return index;
}

std::unordered_map<std::string_view, Opcode> opcode_index() {
  std::unordered_map<std::string_view, Opcode> index;
  for (const OpcodeInfo& row : all_opcodes()) index.emplace(row.mnemonic, row.opcode);
#define PTXB_ALIAS(spelling, enumerator) index.emplace(spelling, Opcode::enumerator);
#include "ptx/opcodes.def"
  return index;
}

}  // namespace

const std::vector<OpcodeInfo>& all_opcodes() {
  static const std::vector<OpcodeInfo> rows = opcode_rows();
  return rows;
}

const OpcodeInfo& info(Opcode opcode) {
  static const OpcodeInfo invalid;
  const auto& rows = all_opcodes();
  const size_t index = size_t(opcode);
  return index == 0 || index > rows.size() ? invalid : rows[index - 1];
}

const std::vector<std::vector<RoleSlot>>& operand_patterns(Opcode opcode) {
  static const std::vector<std::vector<std::vector<RoleSlot>>> table = [] {
    std::vector<std::vector<std::vector<RoleSlot>>> rows(1);
    for (const OpcodeInfo& row : all_opcodes()) {
      rows.push_back(row.opcode == Opcode::Call ? decltype(patterns_of("")){}
                                                : patterns_of(row.operands));
    }
    return rows;
  }();
  return table[size_t(opcode) < table.size() ? size_t(opcode) : 0];
}

bool allows(Opcode opcode, Modifier modifier) {
  return allowed(opcode).modifiers.test(size_t(modifier));
}

bool allows(Opcode opcode, Type type) { return allowed(opcode).types.test(size_t(type)); }

std::vector<std::string> variants(Opcode opcode, size_t limit) {
  std::vector<std::string> out;
  const OpcodeInfo& row = info(opcode);
  std::string_view rest = row.forms;
  while (out.size() < limit) {
    const size_t end = rest.find(';');
    expand(row.mnemonic, rest.substr(0, end), limit, out);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return out;
}

std::string_view name(Opcode opcode) { return info(opcode).mnemonic; }
std::string_view name(Modifier modifier) { return kModifierNames[size_t(modifier)]; }
std::string_view name(Type type) { return kTypes[size_t(type)].name; }
std::string_view name(Special special) { return kSpecials[size_t(special)].name; }

std::string_view name(Category category) {
  static constexpr std::string_view kNames[] = {
      "Integer", "Float",     "Compare", "Logic",   "Move",     "Convert", "Memory",
      "Atomic",  "AsyncCopy", "Warp",    "Barrier", "Mbarrier", "Fence",   "Matrix",
      "Wgmma",   "Tcgen05",   "Control", "Stack",   "System",   "Refused"};
  return kNames[size_t(category)];
}

std::string_view name(SyncClass sync) {
  static constexpr std::string_view kNames[] = {"None",     "Warp",  "Warpgroup",  "Cta", "Cluster",
                                                "Mbarrier", "Fence", "AsyncGroup", "Grid"};
  return kNames[size_t(sync)];
}

int size_bits(Type type) { return kTypes[size_t(type)].bits; }
int size_bytes(Type type) { return (size_bits(type) + 7) / 8; }

bool is_float(Type type) {
  switch (type) {
    case Type::F16:
    case Type::F16x2:
    case Type::BF16:
    case Type::BF16x2:
    case Type::TF32:
    case Type::F32:
    case Type::F32x2:
    case Type::F64:
      return true;
    default:
      return false;
  }
}

bool is_signed(Type type) {
  switch (type) {
    case Type::S2:
    case Type::S4:
    case Type::S8:
    case Type::S16:
    case Type::S32:
    case Type::S64:
    case Type::S16x2:
      return true;
    default:
      return false;
  }
}

std::optional<MatrixShape> matrix_shape(Modifier modifier) {
  const MatrixShape shape = kShapes[size_t(modifier)];
  if (shape.m == 0) return std::nullopt;
  return shape;
}

Type type_of(Special special) { return kSpecials[size_t(special)].type; }
int component_count(Special special) { return kSpecials[size_t(special)].members; }

OpcodeMatch find_opcode(std::string_view mnemonic) {
  static const auto index = opcode_index();
  constexpr int kLongestBase = 5;  // dot-parts of "cp.async.bulk.prefetch.tensor"
  OpcodeMatch best;
  size_t end = 0;
  for (int part = 0; part < kLongestBase && end != std::string_view::npos; ++part) {
    end = mnemonic.find('.', part == 0 ? 0 : end + 1);
    const auto found = index.find(mnemonic.substr(0, end));
    if (found == index.end()) continue;
    best = {found->second, found->first.size()};
  }
  return best;
}

std::optional<Modifier> find_modifier(std::string_view spelling) {
  static const auto index = index_of(kModifierNames, [](std::string_view row) { return row; });
  const auto found = index.find(spelling);
  if (found == index.end()) return std::nullopt;
  return Modifier(found->second);
}

std::optional<Type> find_type(std::string_view spelling) {
  static const auto index = index_of(kTypes, [](const TypeRow& row) { return row.name; });
  const auto found = index.find(spelling);
  if (found == index.end()) return std::nullopt;
  return Type(found->second);
}

SpecialMatch find_special(std::string_view spelling) {
  static const auto index = index_of(kSpecials, [](const SpecialRow& row) { return row.name; });
  if (const auto found = index.find(spelling); found != index.end()) {
    const auto special = Special(found->second);
    if (special == Special::Envreg || special == Special::Pm) return {};  // these need their number
    return {special, 0};
  }
  size_t digits = spelling.size();
  while (digits > 0 && spelling[digits - 1] >= '0' && spelling[digits - 1] <= '9') --digits;
  const std::string_view number = spelling.substr(digits);
  if (number.empty() || number.size() > 2 || (number.size() == 2 && number[0] == '0')) return {};
  const auto found = index.find(spelling.substr(0, digits));
  if (found == index.end()) return {};
  const auto special = Special(found->second);
  int value = 0;
  for (const char c : number) value = value * 10 + (c - '0');
  const bool numbered = special == Special::Envreg || special == Special::Pm;
  if (!numbered || value >= component_count(special)) return {};
  return {special, uint8_t(value)};
}

}  // namespace ptxb::ptx
