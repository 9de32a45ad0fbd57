// Owns strict reading of hostile JSON: every field typed, ranged and bounded; the first fault is
// kept with its path. Never throws, never converts between types, refuses unknown keys. Used by the
// plan and the recorder's files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace ptxb {

// The first thing that was wrong with a document; later ones are dropped, so readers need no check
// after each field.
class Faults {
 public:
  void add(std::string_view where, std::string_view what) {
    if (text_.empty()) text_ = std::string(where) + ": " + std::string(what);
  }
  bool any() const { return !text_.empty(); }
  Error error() const { return bad_input(text_); }

 private:
  std::string text_;
};

// One JSON object. Each getter marks its key as known; done() refuses the rest. After a fault
// getters give empty values.
class ObjectReader {
 public:
  ObjectReader(const Json& json, std::string where, Faults& faults)
      : json_(json), where_(std::move(where)), faults_(faults) {
    if (!json.is_object()) faults_.add(where_, "expected an object");
  }

  bool has(std::string_view key) const { return json_.find(key) != nullptr; }
  std::string path(std::string_view key) const { return where_ + "." + std::string(key); }
  Faults& faults() { return faults_; }

  std::string text(std::string_view key, size_t limit_bytes) {
    const Json* found = get(key);
    if (!found) return {};
    if (!found->is_string()) return fail(key, "expected text"), std::string();
    if (found->as_string().size() > limit_bytes) {
      return fail(key, "longer than " + std::to_string(limit_bytes) + " bytes"), std::string();
    }
    return found->as_string();
  }
  bool boolean(std::string_view key) {
    const Json* found = get(key);
    if (!found) return false;
    if (!found->is_bool()) return fail(key, "expected true or false"), false;
    return found->as_bool();
  }
  uint64_t number(std::string_view key, uint64_t least, uint64_t most) {
    const Json* found = get(key);
    return found ? number_of(*found, path(key), least, most) : least;
  }
  uint32_t number32(std::string_view key, uint32_t most = std::numeric_limits<uint32_t>::max()) {
    return static_cast<uint32_t>(number(key, 0, most));
  }
  int64_t integer(std::string_view key) {
    const Json* found = get(key);
    if (!found) return 0;
    if (!found->is_integer() || (found->as_int() == std::numeric_limits<int64_t>::max() &&
                                 found->as_uint() > static_cast<uint64_t>(found->as_int()))) {
      return fail(key, "expected a whole number of 64 bits"), 0;
    }
    return found->as_int();
  }
  double real(std::string_view key) {
    const Json* found = get(key);
    if (!found) return 0;
    if (!found->is_number()) return fail(key, "expected a number"), 0.0;
    return found->as_double();
  }
  // "0x2000001ff000": device addresses and raw 64-bit values are text, so that no reader rounds
  // them.
  uint64_t address(std::string_view key) {
    std::string spelled = text(key, 18);
    if (faults_.any()) return 0;
    if (spelled.size() < 3 || spelled.compare(0, 2, "0x") != 0)
      return fail(key, "expected 0x and hexadecimal digits"), 0;
    auto value = parse_uint(spelled);
    if (!value) return fail(key, "expected 0x and hexadecimal digits"), 0;
    return *value;
  }
  std::vector<uint8_t> hex(std::string_view key, size_t limit_bytes) {
    std::string spelled = text(key, 2 * limit_bytes);
    if (faults_.any()) return {};
    auto bytes = from_hex(spelled);
    if (!bytes) return fail(key, "expected hexadecimal digit pairs"), std::vector<uint8_t>();
    return std::move(*bytes);
  }
  // Items of a list, empty on a fault.
  const Json::Array& list(std::string_view key, size_t limit_items) {
    static const Json::Array kNone;
    const Json* found = get(key);
    if (!found) return kNone;
    if (!found->is_array()) return fail(key, "expected a list"), kNone;
    if (found->items().size() > limit_items) {
      return fail(key, "more than " + std::to_string(limit_items) + " items"), kNone;
    }
    return found->items();
  }
  // Whole numbers [least, most], exactly `count` of them unless count is 0 (then up to
  // limit_items).
  std::vector<uint64_t> numbers(std::string_view key, size_t count, size_t limit_items,
                                uint64_t most) {
    const Json::Array& items = list(key, count ? count : limit_items);
    std::vector<uint64_t> out;
    if (count && !faults_.any() && items.size() != count) {
      fail(key, "expected " + std::to_string(count) + " items");
      return std::vector<uint64_t>(count, 0);
    }
    for (size_t i = 0; i < items.size() && !faults_.any(); ++i) {
      out.push_back(number_of(items[i], path(key) + "[" + std::to_string(i) + "]", 0, most));
    }
    if (count) out.resize(count, 0);
    return out;
  }
  const Json* object(std::string_view key) {
    const Json* found = get(key);
    if (found && !found->is_object()) return fail(key, "expected an object"), nullptr;
    return found;
  }
  void fail(std::string_view key, std::string_view what) { faults_.add(path(key), what); }
  void done() {
    if (faults_.any()) return;
    for (const auto& [key, value] : json_.members()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        faults_.add(where_, "unknown key \"" + printable(key, 60) + "\"");
        return;
      }
    }
  }

 private:
  const Json* get(std::string_view key) {
    if (faults_.any()) return nullptr;
    known_.push_back(key);
    const Json* found = json_.find(key);
    if (!found) fail(key, "missing");
    return found;
  }
  uint64_t number_of(const Json& json, const std::string& where, uint64_t least, uint64_t most) {
    if (!json.is_integer() || (json.as_int() < 0 && json.as_uint() == 0)) {
      faults_.add(where, "expected a whole number from " + std::to_string(least) + " to " +
                             std::to_string(most));
      return least;
    }
    uint64_t value = json.as_uint();
    if (value < least || value > most) {
      faults_.add(where, std::to_string(value) + " is not from " + std::to_string(least) + " to " +
                             std::to_string(most));
      return least;
    }
    return value;
  }
  const Json& json_;
  std::string where_;
  Faults& faults_;
  std::vector<std::string_view> known_;  // literals of the caller
};

inline std::string hex_address(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  do {
    out.insert(out.begin(), kDigits[value & 15]);
    value >>= 4;
  } while (value);
  return "0x" + out;
}

}  // namespace ptxb
