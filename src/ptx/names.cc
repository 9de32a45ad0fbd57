// Owns scope lookup and unique spelling; see names.h.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/names.h"

namespace ptxb::ptx {

std::optional<NumberedName> numbered(std::string_view name) {
  constexpr size_t kMostDigits = 9;
  size_t at = name.size();
  uint32_t number = 0, scale = 1;
  while (at > 0 && name.size() - at < kMostDigits && name[at - 1] >= '0' && name[at - 1] <= '9') {
    --at;
    number += uint32_t(name[at] - '0') * scale;
    scale *= 10;
  }
  const size_t digits = name.size() - at;
  if (digits == 0 || at == 0 || (digits > 1 && name[at] == '0')) return std::nullopt;
  return NumberedName{at, number};
}

void Names::pop_scope() {
  const size_t mark = marks_.back();
  marks_.pop_back();
  while (bindings_.size() > mark) {
    const Binding& last = bindings_.back();
    Index& index = last.is_range ? ranges_ : singles_;
    if (last.previous < 0) {
      index.erase(last.name);
    } else {
      index[last.name] = last.previous;
    }
    bindings_.pop_back();
  }
}

const Names::Binding* Names::latest(const Index& index, std::string_view name) const {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : &bindings_[size_t(found->second)];
}

bool Names::bind(Index& index, const Binding& binding) {
  auto [slot, fresh] = index.try_emplace(binding.name, int64_t(bindings_.size()));
  Binding added = binding;
  added.depth = marks_.size();
  if (!fresh) {
    if (bindings_[size_t(slot->second)].depth == added.depth) return false;
    added.previous = slot->second;
    slot->second = int64_t(bindings_.size());
  }
  bindings_.push_back(added);
  return true;
}

bool Names::declare(std::string_view name, const Meaning& meaning) {
  if (const auto parts = numbered(name)) {
    const Binding* range = latest(ranges_, name.substr(0, parts->prefix_length));
    if (range && range->depth == depth() && parts->number < range->meaning.count) return false;
  }
  return bind(singles_, {name, meaning, 0, false, -1});
}

bool Names::declare_range(std::string_view prefix, uint32_t index, uint32_t count) {
  Meaning meaning;
  meaning.index = index;
  meaning.count = count;
  return bind(ranges_, {prefix, meaning, 0, true, -1});
}

std::optional<Meaning> Names::find(std::string_view name) const {
  const Binding* single = latest(singles_, name);
  if (!ranges_.empty()) {
    if (const auto parts = numbered(name)) {
      const auto found = ranges_.find(name.substr(0, parts->prefix_length));
      int64_t at = found == ranges_.end() ? -1 : found->second;
      // An inner, smaller range of the same prefix hides only its own numbers.
      while (at >= 0 && parts->number >= bindings_[size_t(at)].meaning.count) {
        at = bindings_[size_t(at)].previous;
      }
      if (at >= 0 && (!single || single->depth < bindings_[size_t(at)].depth)) {
        Meaning meaning;
        meaning.index = bindings_[size_t(at)].meaning.index + parts->number;
        return meaning;
      }
    }
  }
  if (!single) return std::nullopt;
  return single->meaning;
}

void Names::mark_used(Used& used, std::string_view name) {
  used.names.emplace(name);
  const auto parts = numbered(name);
  if (!parts) return;
  auto [slot, fresh] =
      used.smallest.try_emplace(std::string(name.substr(0, parts->prefix_length)), parts->number);
  if (!fresh && parts->number < slot->second) slot->second = parts->number;
}

bool Names::reaches(const Used& used, const std::string& prefix, uint32_t count) {
  const auto found = used.smallest.find(prefix);
  return found != used.smallest.end() && found->second < count;
}

bool Names::is_used(const std::string& name) const {
  if (used_.names.contains(name) || module_used_.names.contains(name)) return true;
  if (used_ranges_.empty()) return false;
  const auto parts = numbered(name);
  if (!parts) return false;
  const auto range = used_ranges_.find(name.substr(0, parts->prefix_length));
  return range != used_ranges_.end() && parts->number < range->second;
}

std::string Names::unique(std::string_view name) {
  std::string candidate(name);
  if (is_used(candidate)) {
    uint32_t& suffix = next_suffix_[candidate];
    do {
      candidate = std::string(name) + "$" + std::to_string(++suffix);
    } while (is_used(candidate));
  }
  mark_used(used_, candidate);
  return candidate;
}

std::string Names::unique_prefix(std::string_view prefix, uint32_t count) {
  std::string candidate(prefix);
  const auto taken = [&] {
    return used_ranges_.contains(candidate) || reaches(used_, candidate, count) ||
           reaches(module_used_, candidate, count);
  };
  // The suffix counts under its own key: a single name of the same spelling must not share it.
  uint32_t& suffix = next_suffix_[std::string(prefix) + "<>"];
  while (taken()) candidate = std::string(prefix) + "$" + std::to_string(++suffix) + "_";
  used_ranges_.emplace(candidate, count);
  return candidate;
}

void Names::forget_used() {
  used_ = {};
  used_ranges_.clear();
  next_suffix_.clear();
}

}  // namespace ptxb::ptx
