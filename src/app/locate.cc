// SPDX-License-Identifier: Apache-2.0
#include "app/locate.h"

#include <unistd.h>

#include <cstdlib>

namespace ptxb::app {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Path program_folder() {
  std::error_code fault;
  Path self = std::filesystem::read_symlink("/proc/self/exe", fault);
  return fault ? Path(".") : self.parent_path();
}

Result<Path> data_folder() {
  auto holds_tasks = [](const Path& folder) { return std::filesystem::is_directory(folder / "tasks" / "definitions"); };
  if (std::string given = environment("PTXBENCH_DATA"); !given.empty()) {
    if (holds_tasks(given)) return Path(given);
    return not_found("PTXBENCH_DATA=" + given + ": holds no tasks/definitions folder");
  }
  Path folder = program_folder();
  // A build folder inside the project, at any depth up to four, or an installed tree.
  for (int up = 0; up < 4; ++up) {
    folder = folder.parent_path();
    if (holds_tasks(folder)) return folder;
    if (holds_tasks(folder / "share" / "ptxbench")) return folder / "share" / "ptxbench";
  }
  return not_found("the tasks folder is not beside " + program_folder().string() + "; set PTXBENCH_DATA to the folder that holds tasks/");
}

Path cache_folder() {
  if (std::string given = environment("PTXBENCH_CACHE"); !given.empty()) return given;
  if (std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) return Path(xdg) / "ptxbench";
  if (std::string home = environment("HOME"); !home.empty()) return Path(home) / ".cache" / "ptxbench";
  return "/tmp/ptxbench-cache-" + std::to_string(::getuid());
}

}  // namespace ptxb::app
