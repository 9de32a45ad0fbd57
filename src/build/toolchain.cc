// SPDX-License-Identifier: Apache-2.0
#include "build/toolchain.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "os/subprocess.h"

namespace ptxb::build {

namespace {

bool is_file(const Path& path) {
  std::error_code fault;
  return std::filesystem::is_regular_file(path, fault);
}

// A tool's answer about itself; these are trusted programs.
Result<std::string> ask(const Path& tool, std::vector<std::string> arguments) {
  os::Command command;
  command.argv = {tool.string()};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.limits.wall_s = 30;
  PTXB_TRY(auto finished, os::run(command));
  if (!finished.exit.ok()) {
    return harness_error(tool.string() + " " + join(arguments, " ") + ": " +
                         os::summary(finished.exit) + ": " +
                         printable(trim(finished.err.text()), 300));
  }
  return finished.out.text();
}

// "Cuda compilation tools, release 13.0, V13.0.88" -> "13.0.88".
std::string version_of(std::string_view text) {
  size_t at = text.rfind(", V");
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + 3);
  size_t length = 0;
  while (length < text.size() &&
         ((text[length] >= '0' && text[length] <= '9') || text[length] == '.'))
    ++length;
  return std::string(text.substr(0, length));
}

// Everything that tells one build of a program from another without reading its 70 MB.
std::string stamp(const Path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return file.string() + " absent";
  return file.filename().string() + " " + std::to_string(status.st_size) + " " +
         std::to_string(status.st_mtim.tv_sec);
}

std::vector<Path> site_packages(const Path& venv) {
  std::vector<Path> found;
  std::error_code fault;
  for (std::filesystem::directory_iterator it(venv / "lib", fault), end; !fault && it != end;
       it.increment(fault)) {
    Path packages = it->path() / "site-packages";
    if (it->path().filename().string().starts_with("python3") &&
        std::filesystem::is_directory(packages, fault)) {
      found.push_back(packages);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The wheels nvidia-cuda-* of one CUDA major version share the folder nvidia/cu<major>; newest
// first.
std::vector<Path> wheel_homes(const std::vector<Path>& venvs) {
  std::vector<Path> found;
  for (const Path& venv : venvs) {
    for (const Path& packages : site_packages(venv)) {
      std::error_code fault;
      for (std::filesystem::directory_iterator it(packages / "nvidia", fault), end;
           !fault && it != end; it.increment(fault)) {
        if (it->path().filename().string().starts_with("cu1")) found.push_back(it->path());
      }
    }
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

Path home_of(const Path& nvcc) {
  std::error_code fault;
  Path real = std::filesystem::canonical(nvcc, fault);
  return fault ? Path() : real.parent_path().parent_path();
}

struct Search {
  std::optional<Path> home;
  std::string tried;  // for the message
};

Search find_home(const ToolchainQuery& query, const std::vector<Path>& wheels) {
  Search search;
  auto attempt = [&](const Path& home, const char* what) {
    search.tried += "\n  " + home.string() + " (" + what + ")";
    if (!search.home && is_file(home / "bin" / "nvcc"))
      search.home = home_of(home / "bin" / "nvcc");
  };
  if (query.forced_home) {
    attempt(*query.forced_home, "PTXBENCH_CUDA_HOME");
    return search;
  }
  if (query.system == SystemToolkit::Use) {
    if (query.cuda_home) attempt(*query.cuda_home, "CUDA_HOME");
    if (!search.home) attempt("/usr/local/cuda", "usual place");
    if (!search.home) {
      if (auto nvcc = os::find_program("nvcc", query.path)) search.home = home_of(*nvcc);
      search.tried += "\n  nvcc on PATH";
    }
  }
  for (const Path& home : wheels) {
    if (!search.home) attempt(home, "wheels");
  }
  if (wheels.empty()) {
    for (const Path& venv : query.venvs)
      search.tried += "\n  " + venv.string() + " (no CUDA wheels in it)";
  }
  return search;
}

std::optional<Path> first_file(const std::vector<Path>& places) {
  for (const Path& place : places) {
    if (is_file(place)) return place;
  }
  return std::nullopt;
}

std::optional<Path> find_disassembler(const char* name, const Path& home,
                                      const ToolchainQuery& query,
                                      const std::vector<Path>& wheels) {
  std::vector<Path> places{home / "bin" / name};
  for (const Path& wheel : wheels) places.push_back(wheel / "bin" / name);
  if (auto found = first_file(places)) return found;
  return query.system == SystemToolkit::Use ? os::find_program(name, query.path) : std::nullopt;
}

std::optional<Path> find_runtime(const Path& home) {
  for (const char* folder : {"lib", "lib64", "targets/x86_64-linux/lib"}) {
    std::vector<Path> found;
    std::error_code fault;
    for (std::filesystem::directory_iterator it(home / folder, fault), end; !fault && it != end;
         it.increment(fault)) {
      std::string name = it->path().filename().string();
      // The name that programs ask for: libcudart.so.13, not libcudart.so or libcudart.so.13.0.96.
      if (name.starts_with("libcudart.so.") && parse_uint(name.substr(13)))
        found.push_back(it->path());
    }
    if (!found.empty()) return *std::max_element(found.begin(), found.end());
  }
  return std::nullopt;
}

void find_tvm_ffi(const ToolchainQuery& query, Toolchain& toolchain) {
  for (const Path& venv : query.venvs) {
    for (const Path& packages : site_packages(venv)) {
      Path folder = packages / "tvm_ffi";
      if (!is_file(folder / "include" / "tvm" / "ffi" / "function.h") ||
          !is_file(folder / "lib" / "libtvm_ffi.so"))
        continue;
      std::error_code fault;
      toolchain.tvm_ffi = std::filesystem::canonical(folder, fault);
      std::string version = "?";
      for (std::filesystem::directory_iterator it(packages, fault), end; !fault && it != end;
           it.increment(fault)) {
        std::string name = it->path().filename().string();
        if (name.starts_with("apache_tvm_ffi-") && name.ends_with(".dist-info"))
          version = name.substr(15, name.size() - 25);
      }
      toolchain.tools.push_back("tvm-ffi " + version);
      toolchain.identity +=
          toolchain.tools.back() + " " + stamp(folder / "lib" / "libtvm_ffi.so") + "\n";
      return;
    }
  }
}

// Numbers of "13.0.88", missing parts 0.
std::pair<int, int> major_minor(const std::string& version) {
  auto parts = split(version, '.');
  auto number = [&](size_t i) {
    return static_cast<int>(i < parts.size() ? parse_int(parts[i]).value_or(0) : 0);
  };
  return {number(0), number(1)};
}

Result<void> ask_versions(Toolchain& toolchain) {
  PTXB_TRY(std::string nvcc, ask(toolchain.nvcc, {"--version"}));
  PTXB_TRY(std::string ptxas, ask(toolchain.ptxas, {"--version"}));
  PTXB_TRY(std::string host, ask(toolchain.host_compiler, {"-dumpfullversion"}));
  PTXB_TRY(std::string archs, ask(toolchain.nvcc, {"--list-gpu-code"}));
  toolchain.version = version_of(nvcc);
  // sm_100a came with 12.8.
  if (major_minor(toolchain.version) < std::pair(12, 8)) {
    return harness_error(toolchain.nvcc.string() + ": version '" + toolchain.version +
                         "' is older than 12.8, the first that knows sm_100a");
  }
  for (std::string_view line : split_lines(archs)) {
    if (!trim(line).empty()) toolchain.archs.push_back(std::string(trim(line)));
  }
  toolchain.tools = {"nvcc " + toolchain.version, "ptxas " + version_of(ptxas),
                     "g++ " + std::string(trim(host))};
  toolchain.identity = nvcc + ptxas + "g++ " + host;
  for (const Path& tool : {toolchain.nvcc, toolchain.ptxas, toolchain.home / "bin" / "cudafe++",
                           toolchain.home / "nvvm" / "bin" / "cicc", toolchain.host_compiler,
                           toolchain.runtime_library}) {
    toolchain.identity += stamp(tool) + "\n";
  }
  return {};
}

}  // namespace

Result<Toolchain> find_toolchain(const ToolchainQuery& query) {
  std::vector<Path> wheels = wheel_homes(query.venvs);
  Search search = find_home(query, wheels);
  if (!search.home) {
    return not_found(
        "no CUDA toolkit found; looked at:" + search.tried +
        "\nrun scripts/setup.sh to install NVIDIA's compiler wheels into .venv/, or set CUDA_HOME");
  }
  Toolchain toolchain;
  toolchain.home = *search.home;
  toolchain.nvcc = toolchain.home / "bin" / "nvcc";
  toolchain.ptxas = toolchain.home / "bin" / "ptxas";
  toolchain.include = toolchain.home / "include";
  for (const Path& needed : {toolchain.ptxas, toolchain.include / "cuda_runtime.h",
                             toolchain.home / "nvvm" / "bin" / "cicc"}) {
    if (!is_file(needed))
      return harness_error("the CUDA toolkit in " + toolchain.home.string() +
                           " is incomplete: " + needed.string() + " is missing");
  }
  auto runtime = find_runtime(toolchain.home);
  if (!runtime)
    return harness_error("the CUDA toolkit in " + toolchain.home.string() +
                         " is incomplete: no libcudart.so.N");
  toolchain.runtime_library = *runtime;
  // Inside the sandbox only the system's folders are on the path: the compiler that nvcc will find
  // there.
  auto host = os::find_program("g++", "/usr/bin:/bin");
  if (!host) return not_found("no host compiler: /usr/bin/g++ is missing (Debian package: g++)");
  toolchain.host_compiler = *host;
  toolchain.nvdisasm = find_disassembler("nvdisasm", toolchain.home, query, wheels);
  toolchain.cuobjdump = find_disassembler("cuobjdump", toolchain.home, query, wheels);
  PTXB_CHECK_OK(ask_versions(toolchain));
  find_tvm_ffi(query, toolchain);
  toolchain.identity = sha256_hex(toolchain.identity);
  return toolchain;
}

bool supports(const Toolchain& toolchain, std::string_view arch) {
  std::string number(arch);
  bool suffix = number.ends_with('a') || number.ends_with('f');
  if (suffix) number.pop_back();
  if (std::find(toolchain.archs.begin(), toolchain.archs.end(), number) == toolchain.archs.end())
    return false;
  return !suffix || parse_uint(std::string_view(number).substr(3)).value_or(0) >= 90;
}

}  // namespace ptxb::build
