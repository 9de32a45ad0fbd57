// SPDX-License-Identifier: Apache-2.0
#include "app/manifest.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace ptxb::app {

namespace {

Result<std::string> text_of(const toml::table& table, const char* key, const std::string& where) {
  auto value = table[key].value<std::string>();
  if (!value) return bad_input(where + ": " + key + ": expected text");
  return *value;
}

Result<ManifestEntry> read_entry(const toml::table& table, const std::string& where) {
  ManifestEntry entry;
  PTXB_TRY(entry.file, text_of(table, "file", where));
  PTXB_TRY(entry.task, text_of(table, "task", where));
  PTXB_TRY(entry.arch, text_of(table, "arch", where));
  PTXB_TRY(std::string verdict, text_of(table, "verdict", where));
  auto parsed = parse_verdict(verdict);
  if (!parsed) return bad_input(where + ": verdict: unknown value \"" + verdict + "\"");
  entry.verdict = *parsed;
  PTXB_TRY(std::string stage, text_of(table, "stage", where));
  if (stage != name(stage_of(entry.verdict))) {
    return bad_input(where + ": stage: \"" + verdict + "\" belongs to stage " + std::string(name(stage_of(entry.verdict))));
  }
  const toml::table* axes = table["axes"].as_table();
  if (!axes) return bad_input(where + ": axes: expected a table");
  for (const auto& [axis, value] : *axes) {
    auto number = value.value<int64_t>();
    if (!number) return bad_input(where + ": axes." + std::string(axis.str()) + ": expected a whole number");
    entry.selector += (entry.selector.empty() ? "" : ",") + std::string(axis.str()) + "=" + std::to_string(*number);
  }
  entry.note = table["note"].value_or(std::string());
  entry.values_right = table["values"].value_or(std::string()) == "right";
  entry.quickstart = table["quickstart"].value_or(false);
  return entry;
}

}  // namespace

Result<std::vector<ManifestEntry>> read_manifest(const Path& path) {
  PTXB_TRY(std::string text, read_file(path, 4u << 20));
  toml::parse_result parsed = toml::parse(text, path.string());
  if (!parsed) {
    return bad_input(path.string() + ":" + std::to_string(parsed.error().source().begin.line) + ": " +
                     std::string(parsed.error().description()));
  }
  const toml::array* kernels = parsed.table()["kernel"].as_array();
  if (!kernels) return bad_input(path.string() + ": no [[kernel]] entries");
  std::vector<ManifestEntry> entries;
  for (size_t i = 0; i < kernels->size(); ++i) {
    const toml::table* table = kernels->get(i)->as_table();
    std::string where = path.string() + ": kernel " + std::to_string(i + 1);
    if (!table) return bad_input(where + ": expected a table");
    PTXB_TRY(ManifestEntry entry, read_entry(*table, where));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace ptxb::app
