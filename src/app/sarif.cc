// SPDX-License-Identifier: Apache-2.0
#include "app/sarif.h"

#include <set>

namespace ptxb::app {

namespace {

Json location(const CodePlace& place, const std::string& source_path) {
  Json region = Json::object();
  region.set("startLine", place.source_line > 0 ? place.source_line : 1);
  Json physical = Json::object();
  physical.set("artifactLocation", Json::object().set("uri", source_path)).set("region", region);
  return Json::object().set("physicalLocation", physical);
}

}  // namespace

Json to_sarif(const std::vector<Finding>& findings, const std::string& source_path) {
  Json results = Json::array();
  Json rules = Json::array();
  std::set<std::string> named;
  for (const Finding& f : findings) {
    std::string rule(name(f.kind));
    if (named.insert(rule).second) rules.push_back(Json::object().set("id", rule));
    Json result = Json::object();
    std::string text = f.message + (f.hint.empty() ? "" : " (" + f.hint + ")");
    result.set("ruleId", rule)
        .set("level", f.grade == FindingGrade::Wrong ? "error" : f.grade == FindingGrade::Repaired ? "warning" : "note")
        .set("message", Json::object().set("text", text))
        .set("locations", Json::array({location(f.place, source_path)}));
    if (f.other.source_line > 0) result.set("relatedLocations", Json::array({location(f.other, source_path)}));
    results.push_back(std::move(result));
  }
  Json driver = Json::object().set("name", "ptxbench").set("rules", rules);
  Json run = Json::object().set("tool", Json::object().set("driver", driver)).set("results", results);
  Json out = Json::object();
  out.set("$schema", "https://json.schemastore.org/sarif-2.1.0.json").set("version", "2.1.0").set("runs", Json::array({run}));
  return out;
}

}  // namespace ptxb::app
