// Owns the two visitors behind `describe(visitor, struct)`: one description of a struct both writes and reads its JSON.
// Private to model/. Reading is strict on types, lenient on unknown keys (newer minor versions may add some).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/json.h"

namespace ptxb {

template <class T>
Json write_fields(const T& value);

class JsonWriter {
 public:
  explicit JsonWriter(Json& out) : out_(out) {}
  template <class T>
  void operator()(const char* key, T& value) { out_.set(key, write(value)); }
  // An enum with a name() function; `last` bounds the reader's search.
  template <class E>
  void choice(const char* key, E& value, E) { out_.set(key, std::string(name(value))); }

 private:
  static Json write(const std::string& v) { return v; }
  static Json write(bool v) { return v; }
  static Json write(double v) { return v; }
  template <class T>
  static Json write(const T& v) {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) return static_cast<int64_t>(v);
      else return static_cast<uint64_t>(v);
    } else {
      return write_fields(v);
    }
  }
  template <class T>
  static Json write(const std::optional<T>& v) { return v ? write(*v) : Json(); }
  template <class T>
  static Json write(const std::vector<T>& v) {
    Json out = Json::array();
    for (const T& item : v) out.push_back(write(item));
    return out;
  }
  template <class T>
  static Json write(const std::map<std::string, T>& v) {
    Json out = Json::object();
    for (const auto& [key, item] : v) out.set(key, write(item));
    return out;
  }
  Json& out_;
};

class JsonReader {
 public:
  JsonReader(const Json& in, std::string where, std::string& fault) : in_(in), where_(std::move(where)), fault_(fault) {}
  template <class T>
  void operator()(const char* key, T& value) {
    const Json* found = in_.find(key);
    if (!fault_.empty()) return;
    if (!found) {
      fault_ = where_ + "." + key + ": missing";
      return;
    }
    read(*found, value, where_ + "." + key);
  }
  template <class E>
  void choice(const char* key, E& value, E last) {
    std::string text;
    (*this)(key, text);
    if (!fault_.empty()) return;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (name(static_cast<E>(i)) == text) {
        value = static_cast<E>(i);
        return;
      }
    }
    fault_ = where_ + "." + key + ": unknown value \"" + text + "\"";
  }

 private:
  void read(const Json& j, std::string& v, const std::string& where) {
    if (!j.is_string()) fault_ = where + ": expected text";
    else v = j.as_string();
  }
  void read(const Json& j, bool& v, const std::string& where) {
    if (!j.is_bool()) fault_ = where + ": expected true or false";
    else v = j.as_bool();
  }
  void read(const Json& j, double& v, const std::string& where) {
    // null stands for NaN and infinities, which JSON cannot spell.
    if (j.is_null()) v = std::numeric_limits<double>::quiet_NaN();
    else if (!j.is_number()) fault_ = where + ": expected a number";
    else v = j.as_double();
  }
  template <class T>
  void read(const Json& j, T& v, const std::string& where) {
    if constexpr (std::is_integral_v<T>) {
      if (!j.is_integer() || (std::is_unsigned_v<T> && j.as_int() < 0)) fault_ = where + ": expected a whole number";
      else v = static_cast<T>(std::is_unsigned_v<T> ? j.as_uint() : static_cast<uint64_t>(j.as_int()));
    } else {
      if (!j.is_object()) {
        fault_ = where + ": expected an object";
        return;
      }
      JsonReader inner(j, where, fault_);
      describe(inner, v);
    }
  }
  template <class T>
  void read(const Json& j, std::optional<T>& v, const std::string& where) {
    if (j.is_null()) v.reset();
    else read(j, v.emplace(), where);
  }
  template <class T>
  void read(const Json& j, std::vector<T>& v, const std::string& where) {
    if (!j.is_array()) {
      fault_ = where + ": expected a list";
      return;
    }
    for (size_t i = 0; i < j.items().size() && fault_.empty(); ++i) {
      read(j.items()[i], v.emplace_back(), where + "[" + std::to_string(i) + "]");
    }
  }
  template <class T>
  void read(const Json& j, std::map<std::string, T>& v, const std::string& where) {
    if (!j.is_object()) {
      fault_ = where + ": expected an object";
      return;
    }
    for (const auto& [key, item] : j.members()) read(item, v[key], where + "." + key);
  }
  const Json& in_;
  std::string where_;
  std::string& fault_;
};

template <class T>
Json write_fields(const T& value) {
  Json out = Json::object();
  JsonWriter writer(out);
  // describe() takes a mutable reference for the reader's sake; the writer only reads.
  describe(writer, const_cast<T&>(value));
  return out;
}

template <class T>
Result<T> read_fields(const Json& json, std::string where) {
  if (!json.is_object()) return bad_input(where + ": expected an object");
  T value;
  std::string fault;
  JsonReader reader(json, where, fault);
  describe(reader, value);
  if (!fault.empty()) return bad_input(fault);
  return value;
}

}  // namespace ptxb
