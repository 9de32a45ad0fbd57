// Owns starting, limiting, listening to and ending one child process with everything it starts.
// Never uses a shell, never leaves a process, zombie or descriptor behind, knows nothing of what it
// runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/handle.h"
#include "base/result.h"

namespace ptxb::os {

struct DescriptorTraits {
  using Value = int;
  static int none() { return -1; }
  static void close(int fd) noexcept;
};
using Descriptor = Handle<DescriptorTraits>;

// 0 means "not limited" for every field but wall_s. Core files are always off.
struct ProcessLimits {
  double wall_s = 60;                 // then the child and all its descendants are killed
  uint64_t cpu_s = 0;                 // RLIMIT_CPU, each process
  uint64_t address_space_bytes = 0;   // RLIMIT_AS, each process; counts PROT_NONE reservations too
  uint64_t data_bytes = 0;            // RLIMIT_DATA, each process: private writable memory only
  uint64_t file_size_bytes = 0;       // RLIMIT_FSIZE, each file
  uint64_t open_files = 256;          // RLIMIT_NOFILE, each process
  uint64_t processes = 0;             // of the whole tree: watched from outside
  uint64_t memory_bytes = 0;          // resident, of the whole tree: watched from outside
  uint64_t output_bytes = 64u << 20;  // stdout + stderr; more ends the child with Kind::OutputLimit
  uint64_t output_head_bytes = 256u << 10, output_tail_bytes = 64u << 10;  // kept of each stream
  uint64_t folder_bytes = 0;  // sum of the files in Command::watched_folders
};

struct PassedDescriptor {
  int here = -1;   // stays open and owned by the caller
  int there = -1;  // its number in the child, >= 3
};

// One output stream: all of it when short, else its beginning and its end.
struct Captured {
  std::string head, tail;
  uint64_t total_bytes = 0;
  uint64_t dropped_bytes() const { return total_bytes - head.size() - tail.size(); }
  std::string text() const;  // head, a line naming the dropped bytes when there are any, tail
};

struct Exit {
  enum class Kind { Code, Signal, TimedOut, OutputLimit, MemoryLimit, ProcessLimit, FolderLimit };
  Kind kind = Kind::Code;
  int number = 0;  // exit code or signal
  bool ok() const { return kind == Kind::Code && number == 0; }
};
std::string summary(const Exit& exit);  // "exit code 3", "signal 11 (SIGSEGV)", "timed out" ...

struct Finished {
  Exit exit;
  Captured out, err;
  double wall_s = 0, cpu_s = 0;
};

// What makes a command a sandboxed one. Filled by sandbox.cc only.
struct Confinement {
  std::string
      seccomp_filter;  // compiled BPF program, set just before exec with no_new_privs; empty: none
  std::vector<int> cgroup_procs;  // open cgroup.procs files to join
  uint64_t user_tasks = 0;        // RLIMIT_NPROC: counts every thread of the user; 0: not set
  std::function<Result<void>(Finished&)>
      conclude;  // called once when all processes are gone; may amend the answer
};

struct Command {
  std::vector<std::string> argv;  // argv[0]: a path with '/', or a name looked up on our own PATH
  std::optional<std::vector<std::string>> environment;  // "NAME=value" each; nullopt: ours
  Path folder;                                          // working folder; empty: ours
  std::string input;                                    // bytes for stdin; empty: /dev/null
  std::vector<PassedDescriptor> descriptors;            // every other descriptor is closed
  std::vector<Path> watched_folders;                    // limits.folder_bytes
  Confinement confinement;
  ProcessLimits limits;
};

// Each child runs below a small keeper process of its own (a child subreaper), which ends every
// descendant, daemonised ones too, when the child ends, when it is killed, and when this process
// dies. Threads may run children at once.
class Subprocess {
 public:
  // Error NotFound: no such program or working folder. Io: the system refused (which call, why).
  // Nothing is left running.
  static Result<Subprocess> start(const Command& command);
  Subprocess(Subprocess&&) noexcept;
  Subprocess& operator=(Subprocess&&) noexcept;
  ~Subprocess();  // kills and reaps

  // Reads output for at most wait_s; nullopt: still running. After an answer every later call gives
  // the same.
  Result<std::optional<Finished>> poll(double wait_s);
  // Until it ends by itself or by a limit.
  Result<Finished> wait();
  // The child and all descendants; returns when they are gone.
  void kill();
  pid_t pid() const;  // of the child, for messages and /proc; not for kill()

 private:
  struct State;
  explicit Subprocess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// start + wait.
Result<Finished> run(const Command& command);

// Absolute path of a program: `name` itself when it has a '/', else the first executable on `path`
// ("a:b:c").
std::optional<Path> find_program(std::string_view name, std::string_view path);

}  // namespace ptxb::os
