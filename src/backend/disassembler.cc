// Owns calling nvdisasm: no shell, output to a file, a deadline.
// SPDX-License-Identifier: Apache-2.0
#include "backend/disassembler.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

extern char** environ;

namespace ptxb {

namespace {

constexpr double kDeadlineS = 60;

Result<int> run_tool(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> argv;
  std::vector<std::string> copies = words;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int spawned = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0)
    return harness_error("cannot start " + words[0] + ": error " + std::to_string(spawned));
  const double deadline_s = now_s() + kDeadlineS;
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) return harness_error("waiting for " + words[0] + " failed");
    if (now_s() > deadline_s) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return limit_error(words[0] + " took longer than 60 s");
    }
    ::poll(nullptr, 0, 2);
  }
}

}  // namespace

std::string find_nvdisasm() {
  std::vector<std::string> patterns;
  if (const char* path = ::getenv("PATH")) {
    for (std::string_view folder : split(path, ':'))
      patterns.push_back(std::string(folder) + "/nvdisasm");
  }
  if (const char* home = ::getenv("CUDA_HOME"))
    patterns.push_back(std::string(home) + "/bin/nvdisasm");
  patterns.push_back("/usr/local/cuda/bin/nvdisasm");
  patterns.push_back(".venv/lib/python3*/site-packages/nvidia/*/bin/nvdisasm");
  std::string found;
  for (const std::string& pattern : patterns) {
    glob_t matches = {};
    if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
      for (size_t i = 0; found.empty() && i < matches.gl_pathc; ++i) {
        if (::access(matches.gl_pathv[i], X_OK) == 0) found = matches.gl_pathv[i];
      }
    }
    ::globfree(&matches);
    if (!found.empty()) break;
  }
  return found;
}

Result<std::string> disassemble(const std::string& cubin, const std::string& nvdisasm) {
  if (nvdisasm.empty())
    return unsupported("no nvdisasm on this machine: machine instructions cannot be named");
  PTXB_TRY(const TempFolder folder, TempFolder::make("ptxb-sass"));
  const std::string input = (folder.path() / "module.cubin").string(),
                    output = (folder.path() / "listing").string();
  PTXB_CHECK_OK(write_file(input, cubin));
  PTXB_TRY(const int status, run_tool({nvdisasm, "-c", input}, output));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return harness_error("nvdisasm failed on the module");
  return read_file(output, 256u << 20);
}

}  // namespace ptxb
