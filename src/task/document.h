// Owns strict reading of one dataset document: typed fields, unknown keys refused, the first fault
// kept as "file:line: field: what". Private to the task room. Never converts between types.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace ptxb::dataset {

// One JSON document, or one line of a JSONL file (then first_line is its line number).
class Document {
 public:
  Document(std::string_view text, std::string_view name, int first_line)
      : text_(text), name_(name), first_line_(first_line) {}
  // Keeps the first fault only. field: "inputs.A.shape[1]".
  void fail(std::string_view field, std::string_view what);
  bool failed() const { return fault_.has_value(); }
  Error error() const { return *fault_; }

  // Each gives an empty value after a fault. `owner` is the path of the object, "" for the document
  // itself.
  void only_keys(const Json& object, std::string_view owner,
                 std::initializer_list<std::string_view> keys);
  const Json* member(const Json& object, std::string_view owner,
                     std::string_view key);  // fails when absent
  std::string text(const Json& object, std::string_view owner, std::string_view key);
  std::string optional_text(const Json& object, std::string_view owner, std::string_view key);
  double number(const Json& object, std::string_view owner, std::string_view key, double least,
                double most);
  int64_t integer(const Json& value, std::string_view field, int64_t least, int64_t most);
  const Json::Object& object(const Json& object, std::string_view owner, std::string_view key);
  void each_text(const Json& list, std::string_view field,
                 const std::function<void(const std::string&)>& body);

 private:
  int line_of(std::string_view field) const;
  std::string_view text_, name_;
  int first_line_;
  std::optional<Error> fault_;
};

std::string field_of(std::string_view owner, std::string_view key);  // "axes.M"
std::string item_of(std::string_view field, size_t index);           // "shape[1]"
bool is_identifier(std::string_view text);                           // [A-Za-z_][A-Za-z0-9_]*
bool is_file_name(std::string_view text);  // [A-Za-z0-9][A-Za-z0-9_.-]*, 128 at most
// Why a blob path may not be read, or "": absolute, has "..", empty, control bytes.
std::string blob_path_fault(std::string_view path);
// A Git LFS pointer stands where the content should be.
bool is_lfs_pointer(std::string_view bytes);

}  // namespace ptxb::dataset
