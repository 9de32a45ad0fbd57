// Owns lookups in a parsed module and the driver's layout of kernel parameters.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/module.h"

#include "ptx/parse.h"

namespace ptxb::ptx {
namespace {

const Function* find_plain(const Module& module, std::string_view name) {
  const Function* declared = nullptr;
  for (const Function& function : module.functions) {
    if (function.name != name) continue;
    if (!function.is_declaration) return &function;
    declared = &function;
  }
  return declared;
}

}  // namespace

const Function* Module::find(std::string_view name) const {
  const Function* found = find_plain(*this, name);
  // An alias may stand for an alias; a ring of them ends after as many steps as there are aliases.
  for (size_t step = 0; step < aliases.size() && found && found->is_declaration; ++step) {
    const Function* next = nullptr;
    for (const auto& [alias, aliasee] : aliases) {
      if (alias == found->name) next = find_plain(*this, aliasee);
    }
    if (!next) break;
    found = next;
  }
  return found;
}

const Variable* Module::variable(std::string_view name) const {
  for (const Variable& each : variables) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

std::string Module::file(uint32_t index) const {
  for (const auto& [own, path] : files) {
    if (own == index) return path;
  }
  return {};
}

std::vector<ParamPlace> param_layout(const Function& entry) {
  std::vector<ParamPlace> places;
  uint64_t at = 0;
  for (const Variable& param : entry.params) {
    const uint64_t alignment = param.alignment_bytes ? param.alignment_bytes : 1;
    at = (at + alignment - 1) / alignment * alignment;
    places.push_back({uint32_t(at), uint32_t(param.size_bytes)});
    at += param.size_bytes;
  }
  return places;
}

}  // namespace ptxb::ptx
