// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace ptxb {

int64_t Json::as_int() const {
  if (auto* i = std::get_if<int64_t>(&value_)) return *i;
  if (auto* u = std::get_if<uint64_t>(&value_)) {
    return static_cast<int64_t>(std::min<uint64_t>(*u, std::numeric_limits<int64_t>::max()));
  }
  return static_cast<int64_t>(std::get<double>(value_));
}

uint64_t Json::as_uint() const {
  if (auto* u = std::get_if<uint64_t>(&value_)) return *u;
  int64_t i = as_int();
  return i < 0 ? 0 : static_cast<uint64_t>(i);
}

double Json::as_double() const {
  if (auto* d = std::get_if<double>(&value_)) return *d;
  if (auto* u = std::get_if<uint64_t>(&value_)) return static_cast<double>(*u);
  return static_cast<double>(std::get<int64_t>(value_));
}

const Json* Json::find(std::string_view key) const {
  auto* object = std::get_if<Object>(&value_);
  if (!object) return nullptr;
  for (const Member& member : *object) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  for (Member& member : members()) {
    if (member.first == key) return member.second;
  }
  return members().emplace_back(std::string(key), Json()).second;
}

Json& Json::set(std::string key, Json value) {
  (*this)[key] = std::move(value);
  return *this;
}

void Json::push_back(Json item) {
  if (is_null()) value_ = Array{};
  items().push_back(std::move(item));
}

namespace {

using Library = nlohmann::ordered_json;

// SAX: refuses deep nesting and duplicate keys, which the library's DOM would accept.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Json root;
  std::string fault;
  size_t position = 0;

  bool null() override { return put(Json()); }
  bool boolean(bool v) override { return put(v); }
  bool number_integer(number_integer_t v) override { return put(static_cast<int64_t>(v)); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return put(static_cast<int64_t>(v));
    return put(static_cast<uint64_t>(v));
  }
  bool number_float(number_float_t v, const string_t&) override { return put(v); }
  bool string(string_t& v) override { return put(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { stack_.pop_back(); return true; }
  bool end_array() override { stack_.pop_back(); return true; }
  bool key(string_t& v) override {
    if (stack_.back()->find(v)) {
      fault = "duplicate key \"" + v + "\"";
      return false;
    }
    key_ = std::move(v);
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& e) override {
    position = at;
    fault = e.what();
    // The library prefixes "[json.exception...] parse error at line L, column C: "; keep from "parse error".
    if (size_t cut = fault.find("parse error"); cut != std::string::npos) fault.erase(0, cut);
    return false;
  }

 private:
  Json* add(Json value) {
    if (stack_.empty()) {
      root = std::move(value);
      return &root;
    }
    Json& top = *stack_.back();
    if (top.is_array()) {
      top.items().push_back(std::move(value));
      return &top.items().back();
    }
    return &top.members().emplace_back(std::move(key_), std::move(value)).second;
  }
  bool put(Json value) { add(std::move(value)); return true; }
  bool open(Json value) {
    if (stack_.size() >= 200) {
      fault = "nested deeper than 200 levels";
      return false;
    }
    stack_.push_back(add(std::move(value)));
    return true;
  }
  // Pointers stay valid: a parent is not appended to while its child is open.
  std::vector<Json*> stack_;
  std::string key_;
};

Library to_library(const Json& json) {
  if (json.is_null()) return nullptr;
  if (json.is_bool()) return json.as_bool();
  if (json.is_string()) return json.as_string();
  if (json.is_array()) {
    Library out = Library::array();
    for (const Json& item : json.items()) out.push_back(to_library(item));
    return out;
  }
  if (json.is_object()) {
    Library out = Library::object();
    for (const auto& [key, value] : json.members()) out.push_back({key, to_library(value)});
    return out;
  }
  if (json.is_integer()) {
    if (json.as_int() == std::numeric_limits<int64_t>::max()) return json.as_uint();
    return json.as_int();
  }
  double d = json.as_double();
  if (!std::isfinite(d)) return nullptr;
  return d;
}

}  // namespace

std::string Json::dump(int indent) const {
  return to_library(*this).dump(indent, ' ', false, Library::error_handler_t::replace);
}

Result<Json> parse_json(std::string_view text, std::string_view name) {
  Builder builder;
  bool ok = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (!ok) return bad_input(std::string(name) + ": not valid JSON: " + builder.fault);
  return std::move(builder.root);
}

}  // namespace ptxb
