// SPDX-License-Identifier: Apache-2.0
#include "os/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"
#include "os/keeper.h"
#include "os/process_tree.h"

extern char** environ;

namespace ptxb::os {

namespace {

// How often the tree's memory and process count are looked at. A process touching memory at 5 GB/s
// overshoots by 250 MB.
constexpr double kWatchEvery_s = 0.05;
constexpr double kFolderEvery_s = 0.25;
// SIGKILL takes effect at once unless the kernel itself hangs (dead network disk): then we say so
// instead of waiting.
constexpr double kKillPatience_s = 30;

Error posix_error(const std::string& what) { return io_error(what + ": " + std::strerror(errno)); }

struct Pipe {
  Descriptor read, write;
};

// Both ends at 3 or above, so that they never sit where a standard stream belongs.
Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return posix_error("making a pipe");
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  for (Descriptor* end : {&pipe.read, &pipe.write}) {
    if (end->get() >= 3) continue;
    Descriptor higher(::fcntl(end->get(), F_DUPFD_CLOEXEC, 3));
    if (!higher) return posix_error("making a pipe");
    *end = std::move(higher);
  }
  return pipe;
}

Result<Descriptor> open_input(const std::string& bytes) {
  if (bytes.empty()) {
    Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) return posix_error("opening /dev/null");
    return null;
  }
  // A memory file needs no pumping and cannot block us, whatever the child does with its stdin.
  Descriptor file(::memfd_create("stdin", MFD_CLOEXEC));
  if (!file) return posix_error("making the child's input");
  for (size_t done = 0; done < bytes.size();) {
    ssize_t wrote = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return posix_error("writing the child's input");
    done += static_cast<size_t>(wrote);
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::vector<KeeperOrders::Limit> resource_limits(const ProcessLimits& limits, uint64_t user_tasks) {
  std::vector<KeeperOrders::Limit> list{{RLIMIT_CORE, 0}};
  auto add = [&](int resource, uint64_t value) {
    if (value) list.push_back({resource, static_cast<rlim_t>(value)});
  };
  add(RLIMIT_CPU, limits.cpu_s);
  add(RLIMIT_AS, limits.address_space_bytes);
  add(RLIMIT_DATA, limits.data_bytes);
  add(RLIMIT_FSIZE, limits.file_size_bytes);
  add(RLIMIT_NOFILE, limits.open_files);
  add(RLIMIT_NPROC, user_tasks);
  return list;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (const std::string& text : strings) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

bool is_executable_file(const Path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

const char* step_name(KeeperReport::Step step) {
  using Step = KeeperReport::Step;
  switch (step) {
    case Step::None:
      break;
    case Step::Fork:
      return "fork";
    case Step::Folder:
      return "entering its folder";
    case Step::Descriptors:
      return "passing descriptors";
    case Step::Limits:
      return "setting limits";
    case Step::Cgroup:
      return "joining its cgroup";
    case Step::Filter:
      return "installing the system call filter";
    case Step::Exec:
      return "exec";
  }
  return "start";
}

// Reads one whole report; false at the end of the pipe.
bool read_report(int fd, KeeperReport& report) {
  for (;;) {
    ssize_t got = ::read(fd, &report, sizeof report);
    if (got < 0 && errno == EINTR) continue;
    return got == static_cast<ssize_t>(sizeof report);
  }
}

void keep_bytes(std::string_view bytes, const ProcessLimits& limits, Captured& captured) {
  captured.total_bytes += bytes.size();
  size_t to_head = std::min<size_t>(bytes.size(), limits.output_head_bytes - captured.head.size());
  captured.head.append(bytes.substr(0, to_head));
  bytes.remove_prefix(to_head);
  captured.tail.append(bytes);
  // Trimmed in strides, so that a flood of small writes does not move the tail each time.
  if (captured.tail.size() > 2 * limits.output_tail_bytes + 65536) {
    captured.tail.erase(0, captured.tail.size() - limits.output_tail_bytes);
  }
}

void trim_tail(const ProcessLimits& limits, Captured& captured) {
  if (captured.tail.size() > limits.output_tail_bytes) {
    captured.tail.erase(0, captured.tail.size() - limits.output_tail_bytes);
  }
}

}  // namespace

void DescriptorTraits::close(int fd) noexcept { ::close(fd); }

std::string Captured::text() const {
  uint64_t dropped = dropped_bytes();
  if (dropped == 0) return head + tail;
  return head + "\n[... " + std::to_string(dropped) + " bytes left out ...]\n" + tail;
}

std::string summary(const Exit& exit) {
  switch (exit.kind) {
    case Exit::Kind::Code:
      return "exit code " + std::to_string(exit.number);
    case Exit::Kind::Signal: {
      const char* name = ::sigabbrev_np(exit.number);
      return "signal " + std::to_string(exit.number) +
             (name ? " (SIG" + std::string(name) + ")" : "");
    }
    case Exit::Kind::TimedOut:
      return "timed out";
    case Exit::Kind::OutputLimit:
      return "wrote too much output";
    case Exit::Kind::MemoryLimit:
      return "used too much memory";
    case Exit::Kind::ProcessLimit:
      return "started too many processes";
    case Exit::Kind::FolderLimit:
      return "wrote too much into its folders";
  }
  return "unknown";
}

struct Subprocess::State {
  ProcessLimits limits;
  std::vector<Path> watched_folders;
  std::function<Result<void>(Finished&)> conclude;
  pid_t keeper = -1, child = -1;
  Descriptor lifeline, report, out, err;
  double started_s = 0, next_watch_s = 0, next_folder_s = 0;
  std::optional<Exit::Kind> ended_by;  // the limit that made us kill it
  double killed_s = 0;
  Finished finished;
  bool done = false;
  std::optional<Error> broken;

  bool drain(Descriptor& from, Captured& into, int rounds);
  void end(Exit::Kind why);
  void check_limits(double now);
  void settle(const KeeperReport& report);
  void step(double wait_s);
};

// Returns whether bytes came. Closes the descriptor at its end.
bool Subprocess::State::drain(Descriptor& from, Captured& into, int rounds) {
  char chunk[1 << 16];
  bool any = false;
  while (from && rounds-- > 0) {
    ssize_t got = ::read(from.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      from.reset();
      break;
    }
    keep_bytes({chunk, static_cast<size_t>(got)}, limits, into);
    any = true;
  }
  return any;
}

void Subprocess::State::end(Exit::Kind why) {
  if (ended_by) return;
  ended_by = why;
  killed_s = now_s();
  lifeline.reset();
}

void Subprocess::State::check_limits(double now) {
  if (ended_by) return;
  if (finished.out.total_bytes + finished.err.total_bytes > limits.output_bytes &&
      limits.output_bytes) {
    return end(Exit::Kind::OutputLimit);
  }
  if (now - started_s >= limits.wall_s) return end(Exit::Kind::TimedOut);
  if ((limits.memory_bytes || limits.processes) && now >= next_watch_s) {
    TreeUse use = tree_use(keeper, limits.processes);
    if (limits.memory_bytes && use.resident_bytes > limits.memory_bytes)
      return end(Exit::Kind::MemoryLimit);
    if (limits.processes && use.processes > limits.processes) return end(Exit::Kind::ProcessLimit);
    next_watch_s = now_s() + kWatchEvery_s;
  }
  if (limits.folder_bytes && now >= next_folder_s) {
    for (const Path& folder : watched_folders) {
      if (folder_bytes(folder, limits.folder_bytes) > limits.folder_bytes) {
        return end(Exit::Kind::FolderLimit);
      }
    }
    next_folder_s = now_s() + kFolderEvery_s;
  }
}

// The keeper has reported the end (or died): everything below it is gone.
void Subprocess::State::settle(const KeeperReport& last) {
  // What the pipes still hold is bounded by their size; a flood was cut before.
  drain(out, finished.out, 64);
  drain(err, finished.err, 64);
  out.reset();
  err.reset();
  trim_tail(limits, finished.out);
  trim_tail(limits, finished.err);
  int status = 0;
  while (::waitpid(keeper, &status, 0) < 0 && errno == EINTR) {
  }
  done = true;
  finished.wall_s = now_s() - started_s;
  if (last.kind != KeeperReport::Kind::Ended) {
    broken = io_error("the process that watches a child was itself killed");
    return;
  }
  finished.cpu_s = last.cpu_s;
  if (!ended_by && limits.output_bytes &&
      finished.out.total_bytes + finished.err.total_bytes > limits.output_bytes) {
    ended_by = Exit::Kind::OutputLimit;
  }
  if (ended_by) {
    finished.exit = {*ended_by, 0};
  } else if (WIFSIGNALED(last.wait_status)) {
    finished.exit = {Exit::Kind::Signal, WTERMSIG(last.wait_status)};
  } else {
    finished.exit = {Exit::Kind::Code, WEXITSTATUS(last.wait_status)};
  }
  if (!conclude) return;
  if (auto concluded = std::exchange(conclude, nullptr)(finished); !concluded)
    broken = concluded.error();
}

void Subprocess::State::step(double wait_s) {
  double now = now_s();
  double until_s = wait_s;
  if (!ended_by) until_s = std::min(until_s, started_s + limits.wall_s - now);
  if (!ended_by && (limits.memory_bytes || limits.processes))
    until_s = std::min(until_s, next_watch_s - now);
  if (!ended_by && limits.folder_bytes) until_s = std::min(until_s, next_folder_s - now);
  pollfd events[3] = {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {report.get(), POLLIN, 0}};
  int timeout_ms = static_cast<int>(std::ceil(std::clamp(until_s, 0.0, 60.0) * 1000));
  ::poll(events, 3, timeout_ms);
  if (events[0].revents) drain(out, finished.out, 16);
  if (events[1].revents) drain(err, finished.err, 16);
  if (events[2].revents) {
    KeeperReport last;
    last.kind = KeeperReport::Kind::Failed;
    read_report(report.get(), last);
    return settle(last);
  }
  check_limits(now_s());
  if (ended_by && now_s() - killed_s > kKillPatience_s) {
    broken = io_error("a child could not be killed within " +
                      std::to_string(static_cast<int>(kKillPatience_s)) + " s (pid " +
                      std::to_string(child) + ")");
    done = true;
  }
}

Subprocess::Subprocess(std::unique_ptr<State> state) : state_(std::move(state)) {}
Subprocess::Subprocess(Subprocess&&) noexcept = default;
Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this != &other) {
    kill();
    state_ = std::move(other.state_);
  }
  return *this;
}
Subprocess::~Subprocess() { kill(); }

pid_t Subprocess::pid() const { return state_->child; }

Result<Subprocess> Subprocess::start(const Command& command) {
  if (command.argv.empty() || command.argv[0].empty()) return bad_input("an empty command");
  const char* path = std::getenv("PATH");
  auto program = find_program(command.argv[0], path ? path : "/usr/bin:/bin");
  if (!program) return not_found("no such program: " + command.argv[0]);
  std::error_code fault;
  if (!command.folder.empty() && !std::filesystem::is_directory(command.folder, fault)) {
    return not_found("no such folder: " + command.folder.string());
  }
  std::string program_text = program->string(), folder_text = command.folder.string();

  PTXB_TRY(Descriptor input, open_input(command.input));
  PTXB_TRY(Pipe out, make_pipe());
  PTXB_TRY(Pipe err, make_pipe());
  PTXB_TRY(Pipe lifeline, make_pipe());
  PTXB_TRY(Pipe report, make_pipe());
  PTXB_TRY(Pipe exec_report, make_pipe());

  std::vector<PassedDescriptor> passed = command.descriptors;
  std::sort(passed.begin(), passed.end(), [](auto a, auto b) { return a.there < b.there; });
  std::vector<int> sources{input.get(), out.write.get(), err.write.get()}, targets{0, 1, 2};
  for (const PassedDescriptor& one : passed) {
    if (one.there <= targets.back() || one.here < 0)
      return bad_input("descriptors passed to a child must differ");
    sources.push_back(one.here);
    targets.push_back(one.there);
  }

  std::vector<char*> argv = pointers(command.argv);
  std::vector<char*> envp =
      command.environment ? pointers(*command.environment) : std::vector<char*>();
  std::vector<KeeperOrders::Limit> limits =
      resource_limits(command.limits, command.confinement.user_tasks);
  KeeperOrders orders;
  orders.program = program_text.c_str();
  orders.argv = argv.data();
  orders.envp = command.environment ? envp.data() : environ;
  orders.folder = command.folder.empty() ? nullptr : folder_text.c_str();
  orders.lifeline = lifeline.read.get();
  orders.report = report.write.get();
  orders.exec_report = exec_report.write.get();
  orders.sources = sources.data();
  orders.targets = targets.data();
  orders.descriptor_count = targets.size();
  orders.limits = limits.data();
  orders.limit_count = limits.size();
  orders.cgroup_procs = command.confinement.cgroup_procs.data();
  orders.cgroup_count = command.confinement.cgroup_procs.size();
  orders.filter = command.confinement.seccomp_filter.empty()
                      ? nullptr
                      : command.confinement.seccomp_filter.data();
  orders.filter_bytes = command.confinement.seccomp_filter.size();

  auto state = std::make_unique<State>();
  state->limits = command.limits;
  state->watched_folders = command.watched_folders;
  state->conclude = command.confinement.conclude;
  state->started_s = now_s();
  // No handler of ours may run in the new process.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t keeper = ::fork();
  if (keeper == 0) keep(orders);
  int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (keeper < 0) return io_error(std::string("starting a process: ") + std::strerror(fork_error));
  state->keeper = keeper;
  lifeline.read.reset();
  report.write.reset();
  exec_report.write.reset();
  out.write.reset();
  err.write.reset();

  KeeperReport first;
  if (read_report(exec_report.read.get(), first)) {
    lifeline.write.reset();
    while (::waitpid(keeper, nullptr, 0) < 0 && errno == EINTR) {
    }
    std::string what = command.argv[0] + ": cannot start (" + step_name(first.step) +
                       "): " + std::strerror(first.error);
    bool absent =
        first.step == KeeperReport::Step::Exec && (first.error == ENOENT || first.error == ENOTDIR);
    return Error{absent ? ErrorCode::NotFound : ErrorCode::Io, what};
  }
  if (read_report(report.read.get(), first)) state->child = first.pid;
  ::fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err.read.get(), F_SETFL, O_NONBLOCK);
  state->out = std::move(out.read);
  state->err = std::move(err.read);
  state->lifeline = std::move(lifeline.write);
  state->report = std::move(report.read);
  return Subprocess(std::move(state));
}

Result<std::optional<Finished>> Subprocess::poll(double wait_s) {
  State& state = *state_;
  double until_s = now_s() + wait_s;
  while (!state.done) {
    double left_s = until_s - now_s();
    state.step(std::max(0.0, left_s));
    if (left_s <= 0) break;
  }
  if (state.broken) return *state.broken;
  if (!state.done) return std::optional<Finished>();
  return std::optional<Finished>(state.finished);
}

Result<Finished> Subprocess::wait() {
  while (!state_->done) state_->step(60);
  if (state_->broken) return *state_->broken;
  return state_->finished;
}

void Subprocess::kill() {
  if (!state_ || state_->done) return;
  if (!state_->ended_by) {
    state_->ended_by = Exit::Kind::Signal;
    state_->killed_s = now_s();
    state_->lifeline.reset();
  }
  while (!state_->done) state_->step(1);
  if (state_->finished.exit.kind == Exit::Kind::Signal) state_->finished.exit.number = SIGKILL;
}

Result<Finished> run(const Command& command) {
  PTXB_TRY(Subprocess child, Subprocess::start(command));
  return child.wait();
}

std::optional<Path> find_program(std::string_view name, std::string_view path) {
  if (name.find('/') != std::string_view::npos) {
    Path full = std::filesystem::absolute(Path(name));
    if (is_executable_file(full)) return full;
    return std::nullopt;
  }
  for (std::string_view folder : split(path, ':')) {
    if (folder.empty()) continue;
    Path full = Path(folder) / name;
    if (is_executable_file(full)) return full;
  }
  return std::nullopt;
}

}  // namespace ptxb::os
