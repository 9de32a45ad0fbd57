// SPDX-License-Identifier: Apache-2.0
#include "build/stored.h"

#include "base/hash.h"
#include "base/json.h"

namespace ptxb::build {

namespace {

constexpr const char* kSchema = "ptxbench.build/1";
constexpr const char* kHostLibrary = "candidate.so";
constexpr const char* kPtx = "candidate.ptx";
constexpr const char* kCubin = "candidate.cubin";
constexpr const char* kRecord = "build.json";

Json to_json(const Diagnostic& one) {
  Json json;
  json.set("severity", static_cast<int>(one.severity)).set("tool", one.tool).set("file", one.file);
  json.set("line", one.line).set("code", one.code).set("message", one.message);
  return json;
}

Json to_json(const KernelInfo& one) {
  Json params = Json::array();
  for (const KernelParam& param : one.params)
    params.push_back(Json::array({param.offset_bytes, param.size_bytes}));
  const Dim3& cluster = one.required_cluster;
  Json json;
  json.set("name", one.name).set("params", std::move(params)).set("registers", one.registers);
  json.set("spill_store_bytes", one.spill_store_bytes)
      .set("spill_load_bytes", one.spill_load_bytes);
  json.set("static_shared_bytes", one.static_shared_bytes).set("const_bytes", one.const_bytes);
  json.set("stack_bytes", one.stack_bytes).set("max_threads", one.max_threads);
  json.set("required_cluster", Json::array({cluster.x, cluster.y, cluster.z}));
  return json;
}

Json to_json(const SymbolInfo& one) {
  Json json;
  json.set("name", one.name).set("size_bytes", one.size_bytes).set("constant", one.constant);
  return json;
}

template <class T>
Json list(const std::vector<T>& items) {
  Json json = Json::array();
  for (const T& item : items) json.push_back(to_json(item));
  return json;
}

Json strings(const std::vector<std::string>& items) {
  Json json = Json::array();
  for (const std::string& item : items) json.push_back(item);
  return json;
}

// Reads our own file; anything unexpected makes `good` false and the entry absent.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}
  bool good() const { return good_; }
  std::string text(const char* key) {
    const Json* value = find(key);
    return value && check(value->is_string()) ? value->as_string() : "";
  }
  uint64_t number(const char* key) {
    const Json* value = find(key);
    return value && check(value->is_integer()) ? value->as_uint() : 0;
  }
  uint32_t number32(const char* key) { return static_cast<uint32_t>(number(key)); }
  bool flag(const char* key) {
    const Json* value = find(key);
    return value && check(value->is_bool()) && value->as_bool();
  }
  const Json::Array& items(const char* key) {
    static const Json::Array kNone;
    const Json* value = find(key);
    return value && check(value->is_array()) ? value->items() : kNone;
  }
  std::vector<uint32_t> numbers(const Json& array) {
    std::vector<uint32_t> found;
    if (!check(array.is_array())) return found;
    for (const Json& item : array.items()) {
      if (check(item.is_integer())) found.push_back(static_cast<uint32_t>(item.as_uint()));
    }
    return found;
  }
  bool check(bool condition) { return good_ = good_ && condition; }

 private:
  const Json* find(const char* key) {
    const Json* value = json_.find(key);
    check(value != nullptr);
    return value;
  }
  const Json& json_;
  bool good_ = true;
};

bool read(const Json& json, Diagnostic& out) {
  Fields fields(json);
  uint64_t severity = fields.number("severity");
  fields.check(severity <= static_cast<uint64_t>(Diagnostic::Severity::Error));
  out = {static_cast<Diagnostic::Severity>(severity), fields.text("tool"), fields.text("file"),
         static_cast<int>(fields.number("line")),     fields.text("code"), fields.text("message")};
  return fields.good();
}

bool read(const Json& json, KernelInfo& out) {
  Fields fields(json);
  out.name = fields.text("name");
  for (const Json& param : fields.items("params")) {
    std::vector<uint32_t> pair = fields.numbers(param);
    if (fields.check(pair.size() == 2)) out.params.push_back({pair[0], pair[1]});
  }
  out.registers = fields.number32("registers");
  out.spill_store_bytes = fields.number32("spill_store_bytes");
  out.spill_load_bytes = fields.number32("spill_load_bytes");
  out.static_shared_bytes = fields.number32("static_shared_bytes");
  out.const_bytes = fields.number32("const_bytes");
  out.stack_bytes = fields.number32("stack_bytes");
  out.max_threads = fields.number32("max_threads");
  const Json* cluster = json.find("required_cluster");
  std::vector<uint32_t> sides =
      fields.check(cluster != nullptr) ? fields.numbers(*cluster) : std::vector<uint32_t>();
  if (fields.check(sides.size() == 3)) out.required_cluster = {sides[0], sides[1], sides[2]};
  return fields.good();
}

bool read(const Json& json, SymbolInfo& out) {
  Fields fields(json);
  out = {fields.text("name"), fields.number("size_bytes"), fields.flag("constant")};
  return fields.good();
}

bool read(const Json& json, std::string& out) {
  if (json.is_string()) out = json.as_string();
  return json.is_string();
}

template <class T>
bool read_list(const Json::Array& items, std::vector<T>& out) {
  for (const Json& item : items) {
    T one;
    if (!read(item, one)) return false;
    out.push_back(std::move(one));
  }
  return true;
}

std::optional<std::string> read_checked(const Path& file, const std::string& digest) {
  auto bytes = read_file(file);
  if (!bytes || sha256_hex(*bytes) != digest) return std::nullopt;
  return *std::move(bytes);
}

std::optional<Built> load_failure(const Json& json) {
  Fields fields(json);
  auto verdict = parse_verdict(fields.text("verdict"));
  BuildFailure failure;
  if (!fields.check(verdict.has_value())) return std::nullopt;
  failure.verdict = *verdict;
  failure.cause = fields.text("cause");
  failure.hint = fields.text("hint");
  fields.check(read_list(fields.items("diagnostics"), failure.diagnostics));
  if (!fields.good()) return std::nullopt;
  return Built(std::move(failure));
}

std::optional<Built> load_artifact(const Json& json, const Path& folder) {
  Fields fields(json);
  Artifact artifact;
  artifact.source_sha256 = fields.text("source_sha256");
  artifact.arch = fields.text("arch");
  uint64_t binding = fields.number("binding");
  fields.check(binding <= static_cast<uint64_t>(Binding::Ptx));
  artifact.binding = static_cast<Binding>(binding);
  artifact.folder = folder.string();
  artifact.cubin_sha256 = fields.text("cubin_sha256");
  fields.check(read_list(fields.items("kernels"), artifact.kernels));
  fields.check(read_list(fields.items("symbols"), artifact.symbols));
  fields.check(read_list(fields.items("diagnostics"), artifact.diagnostics));
  fields.check(read_list(fields.items("tools"), artifact.tools));
  auto ptx = read_checked(folder / kPtx, fields.text("ptx_sha256"));
  auto cubin = read_checked(folder / kCubin, artifact.cubin_sha256);
  if (!fields.good() || !ptx || !cubin) return std::nullopt;
  artifact.ptx = *std::move(ptx);
  artifact.cubin = *std::move(cubin);
  if (artifact.binding != Binding::Ptx) {
    if (!read_checked(folder / kHostLibrary, fields.text("host_sha256"))) return std::nullopt;
    artifact.host_library = (folder / kHostLibrary).string();
  }
  return Built(std::move(artifact));
}

}  // namespace

Result<void> store(const Built& built, const std::string& host_library, const Path& folder) {
  Json json;
  json.set("schema", kSchema);
  if (const BuildFailure* failure = std::get_if<BuildFailure>(&built)) {
    json.set("built", false).set("verdict", name(failure->verdict)).set("cause", failure->cause);
    json.set("hint", failure->hint).set("diagnostics", list(failure->diagnostics));
  } else {
    const Artifact& artifact = std::get<Artifact>(built);
    json.set("built", true).set("source_sha256", artifact.source_sha256).set("arch", artifact.arch);
    json.set("binding", static_cast<int>(artifact.binding))
        .set("cubin_sha256", artifact.cubin_sha256);
    json.set("ptx_sha256", sha256_hex(artifact.ptx)).set("host_sha256", sha256_hex(host_library));
    json.set("kernels", list(artifact.kernels)).set("symbols", list(artifact.symbols));
    json.set("diagnostics", list(artifact.diagnostics)).set("tools", strings(artifact.tools));
    PTXB_CHECK_OK(write_file(folder / kPtx, artifact.ptx));
    PTXB_CHECK_OK(write_file(folder / kCubin, artifact.cubin));
    if (artifact.binding != Binding::Ptx)
      PTXB_CHECK_OK(write_file(folder / kHostLibrary, host_library));
  }
  PTXB_CHECK_OK(write_file(folder / kRecord, json.dump(1) + "\n"));
  // Whatever our umask: the sandbox's user reads these when the recorder loads them.
  std::error_code fault;
  namespace fs = std::filesystem;
  fs::permissions(folder, fs::perms(0755), fault);
  for (const char* name : {kPtx, kCubin, kHostLibrary, kRecord})
    fs::permissions(folder / name, fs::perms(0644), fault);
  return {};
}

std::optional<Built> load_stored(const Path& folder) {
  auto text = read_file(folder / kRecord, 64u << 20);
  if (!text) return std::nullopt;
  auto json = parse_json(*text, kRecord);
  if (!json) return std::nullopt;
  const Json* schema = json->find("schema");
  const Json* built = json->find("built");
  if (!schema || !schema->is_string() || schema->as_string() != kSchema || !built ||
      !built->is_bool())
    return std::nullopt;
  return built->as_bool() ? load_artifact(*json, folder) : load_failure(*json);
}

}  // namespace ptxb::build
