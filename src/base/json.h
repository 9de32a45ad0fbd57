// The one door to JSON: a small value type, parse and dump. The library behind it is named in json.cc only.
// Objects keep insertion order. Numbers keep whether they were written as integers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace ptxb {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}  // NOLINT: implicit by design, here and below
  Json(bool value) : value_(value) {}  // NOLINT
  Json(int value) : value_(int64_t{value}) {}  // NOLINT
  Json(int64_t value) : value_(value) {}  // NOLINT
  Json(uint32_t value) : value_(int64_t{value}) {}  // NOLINT
  Json(uint64_t value) : value_(value) {}  // NOLINT
  Json(double value) : value_(value) {}  // NOLINT
  Json(const char* value) : value_(std::string(value)) {}  // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  Json(std::string value) : value_(std::move(value)) {}  // NOLINT
  static Json array(Array items = {}) { Json j; j.value_ = std::move(items); return j; }
  static Json object(Object members = {}) { Json j; j.value_ = std::move(members); return j; }

  bool is_null() const { return value_.index() == 0; }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_) || std::holds_alternative<uint64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // REQUIRES: the matching is_...(); as_int saturates, as_double accepts integers.
  bool as_bool() const { return std::get<bool>(value_); }
  int64_t as_int() const;
  uint64_t as_uint() const;
  double as_double() const;
  const std::string& as_string() const { return std::get<std::string>(value_); }
  const Array& items() const { return std::get<Array>(value_); }
  Array& items() { return std::get<Array>(value_); }
  const Object& members() const { return std::get<Object>(value_); }
  Object& members() { return std::get<Object>(value_); }

  // nullptr when this is no object or has no such key.
  const Json* find(std::string_view key) const;
  // Adds or replaces; turns null into an object.
  Json& set(std::string key, Json value);
  // Finds or adds a null member; turns null into an object.
  Json& operator[](std::string_view key);
  void push_back(Json item);
  bool operator==(const Json&) const = default;

  // indent < 0: one line. NaN and infinities are written as null (JSON has no spelling for them).
  std::string dump(int indent = -1) const;

 private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

// Error: BadInput naming `name` and the byte or line of the fault. Depth over 200 and duplicate keys are refused.
Result<Json> parse_json(std::string_view text, std::string_view name);

}  // namespace ptxb
