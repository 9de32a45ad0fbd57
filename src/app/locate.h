// Owns finding our own files: the tasks folder, the programs and libraries beside this executable, the cache folder.
// The only place (with terminal.cc) that reads the environment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/file.h"
#include "base/result.h"

namespace ptxb::app {

// PTXBENCH_DATA, else the project folder that holds this executable (build/bin/ptxbench -> ../..), else ../share/ptxbench.
// Error NotFound says what was looked for. The folder that holds `tasks/`.
Result<Path> data_folder();
// Folder of this executable.
Path program_folder();
// PTXBENCH_CACHE, else XDG_CACHE_HOME/ptxbench, else HOME/.cache/ptxbench, else /tmp/ptxbench-cache-<uid>.
Path cache_folder();
// "" when unset.
std::string environment(const char* name);

}  // namespace ptxb::app
