// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "app/commands.h"
#include "app/locate.h"
#include "app/session.h"
#include "base/parallel.h"
#include "base/text.h"

namespace ptxb::app {

namespace {

struct Line {
  std::string what;
  bool fine = true, needed = true;
  std::string detail;
};

void look_at_compiler(std::vector<Line>& lines) {
  auto toolchain = build::find_toolchain(toolchain_query());
  if (!toolchain) {
    lines.push_back({"nvcc", false, true, toolchain.error().message});
    return;
  }
  lines.push_back({"nvcc", true, true, toolchain->version + " in " + toolchain->home.string()});
  lines.push_back({"host compiler", true, true, toolchain->host_compiler.string()});
  lines.push_back({"nvdisasm", toolchain->nvdisasm.has_value(), false,
                   toolchain->nvdisasm ? toolchain->nvdisasm->string() : "not found: SASS listings and GPU instruction counts need it"});
  lines.push_back({"tvm-ffi", toolchain->tvm_ffi.has_value(), false,
                   toolchain->tvm_ffi ? toolchain->tvm_ffi->string() : "not found: candidates with the tvm-ffi binding need it"});
}

void look_at_sandbox(std::vector<Line>& lines) {
  auto sandbox = os::Sandbox::probe(os::SandboxPolicy::AllowMissing);
  if (!sandbox) {
    lines.push_back({"sandbox", false, true, sandbox.error().message});
    return;
  }
  for (const os::Layer& layer : sandbox->layers()) {
    lines.push_back({"sandbox: " + layer.name, layer.active, layer.essential, layer.detail});
  }
}

}  // namespace

Result<int> run_doctor(const Options& options, const Terminal& terminal) {
  std::vector<Line> lines;
  auto data = data_folder();
  lines.push_back({"tasks", data.has_value(), true, data ? (*data / "tasks").string() : data.error().message});
  look_at_compiler(lines);
  look_at_sandbox(lines);
  lines.push_back({"cores", true, true, std::to_string(available_cores())});
  lines.push_back({"build cache", true, true, cache_folder().string()});
  GpuBackend gpu = open_gpu(options);
  lines.push_back({"GPU", gpu.backend != nullptr, false,
                   gpu.backend ? gpu.backend->chip() + ", driver " + gpu.backend->driver() : gpu.absent});
  bool able = true;
  Json json = Json::array();
  std::string text;
  for (const Line& line : lines) {
    able &= line.fine || !line.needed;
    std::string mark = line.fine     ? terminal.paint(Colour::Green, "ok     ")
                       : line.needed ? terminal.paint(Colour::Red, "MISSING")
                                     : terminal.paint(Colour::Yellow, "absent ");
    text += fmt::format("{} {:<28} {}\n", mark, line.what, printable(line.detail, 500));
    json.push_back(Json::object().set("what", line.what).set("fine", line.fine).set("needed", line.needed).set("detail", line.detail));
  }
  text += able ? "\nCandidates can be evaluated here.\n" : "\nCandidates cannot be evaluated here until what is MISSING is mended.\n";
  if (options.json != "-") terminal.print(text);
  if (!options.json.empty()) PTXB_CHECK_OK(write_json(options.json, json, terminal));
  return able ? 0 : 3;
}

}  // namespace ptxb::app
