// SPDX-License-Identifier: Apache-2.0
#include "task/document.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/text.h"

namespace ptxb::dataset {

std::string field_of(std::string_view owner, std::string_view key) {
  std::string shown = printable(key, 80);
  return owner.empty() ? shown : std::string(owner) + "." + shown;
}

std::string item_of(std::string_view field, size_t index) {
  return std::string(field) + "[" + std::to_string(index) + "]";
}

// The parser keeps no positions, so the line is found again by walking the field's keys through the
// text.
int Document::line_of(std::string_view field) const {
  size_t position = 0;
  for (std::string_view key : split(field, '.')) {
    key = key.substr(0, key.find('['));
    std::string quoted = "\"";
    quoted.append(key).append("\"");
    size_t found = text_.find(quoted, position);
    if (found == std::string_view::npos) break;
    position = found;
  }
  return first_line_ + static_cast<int>(std::count(
                           text_.begin(), text_.begin() + static_cast<long>(position), '\n'));
}

void Document::fail(std::string_view field, std::string_view what) {
  if (fault_) return;
  std::string message = std::string(name_) + ":" + std::to_string(line_of(field)) + ": ";
  if (!field.empty()) message.append(field).append(": ");
  fault_ = bad_input(message.append(what));
}

void Document::only_keys(const Json& object, std::string_view owner,
                         std::initializer_list<std::string_view> keys) {
  if (!object.is_object()) return fail(owner, "expected an object");
  for (const Json::Member& member : object.members()) {
    if (std::find(keys.begin(), keys.end(), member.first) != keys.end()) continue;
    std::string close = nearest(member.first, std::vector<std::string>(keys.begin(), keys.end()));
    return fail(field_of(owner, member.first),
                "unknown field" + (close.empty() ? "" : "; did you mean " + close + "?"));
  }
}

const Json* Document::member(const Json& object, std::string_view owner, std::string_view key) {
  if (failed()) return nullptr;
  const Json* found = object.find(key);
  if (!found) fail(owner, "misses the field " + std::string(key));
  return found;
}

std::string Document::text(const Json& object, std::string_view owner, std::string_view key) {
  const Json* found = member(object, owner, key);
  if (!found) return {};
  if (!found->is_string()) return fail(field_of(owner, key), "expected text"), std::string();
  return found->as_string();
}

std::string Document::optional_text(const Json& object, std::string_view owner,
                                    std::string_view key) {
  const Json* found = object.find(key);
  return !found || found->is_null() ? std::string() : text(object, owner, key);
}

double Document::number(const Json& object, std::string_view owner, std::string_view key,
                        double least, double most) {
  const Json* found = member(object, owner, key);
  if (!found) return least;
  double value = found->is_number() ? found->as_double() : least - 1;
  if (!(value >= least && value <= most)) {
    fail(field_of(owner, key),
         "expected a number within " + std::to_string(least) + " and " + std::to_string(most));
    return least;
  }
  return value;
}

int64_t Document::integer(const Json& value, std::string_view field, int64_t least, int64_t most) {
  if (failed()) return least;
  if (!value.is_integer() || value.as_int() < least || value.as_int() > most) {
    fail(field, "expected a whole number within " + std::to_string(least) + " and " +
                    std::to_string(most));
    return least;
  }
  return value.as_int();
}

const Json::Object& Document::object(const Json& owner_object, std::string_view owner,
                                     std::string_view key) {
  static const Json::Object kNone;
  const Json* found = member(owner_object, owner, key);
  if (!found) return kNone;
  if (!found->is_object()) return fail(field_of(owner, key), "expected an object"), kNone;
  return found->members();
}

void Document::each_text(const Json& list, std::string_view field,
                         const std::function<void(const std::string&)>& body) {
  if (failed()) return;
  if (!list.is_array()) return fail(field, "expected a list of texts");
  for (size_t i = 0; i < list.items().size() && !failed(); ++i) {
    if (!list.items()[i].is_string()) return fail(item_of(field, i), "expected text");
    body(list.items()[i].as_string());
  }
}

bool is_identifier(std::string_view text) {
  auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  auto other = [&](char c) { return letter(c) || std::isdigit(static_cast<unsigned char>(c)); };
  return !text.empty() && text.size() <= 128 && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), other);
}

bool is_file_name(std::string_view text) {
  auto legal = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= 128 && std::isalnum(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), legal);
}

std::string blob_path_fault(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path[0] == '/' || path[0] == '~')
    return "is absolute; blobs are named relative to the dataset";
  if (path.find('\\') != std::string_view::npos) return "has a backslash";
  for (char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return "has a control byte";
  }
  for (std::string_view part : split(path, '/')) {
    if (part == "..") return "leaves the dataset ('..')";
  }
  return {};
}

bool is_lfs_pointer(std::string_view bytes) {
  return bytes.substr(0, 42) == "version https://git-lfs.github.com/spec/v1" ||
         bytes.substr(0, 25) == "version https://hawser.gi";
}

}  // namespace ptxb::dataset
