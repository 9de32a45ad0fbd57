// SPDX-License-Identifier: Apache-2.0
#include "os/sandbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "os/process_tree.h"
#include "os/seccomp.h"

namespace ptxb::os {

namespace {

constexpr const char* kTool = "bwrap";
constexpr const char* kUser = "65534";  // nobody
constexpr uid_t kUserId = 65534;
// RLIMIT_NPROC counts every thread of the user, whoever started it: room for what the others start
// meanwhile. It stops a fork bomb from outrunning the count from outside where there is no process
// control group.
constexpr uint64_t kTaskSlack = 1000;
// From util-linux, an essential package.
constexpr const char* kDropTool = "/usr/bin/setpriv";
// /dev/shm is needed by nothing we run, but libc expects a folder there.
constexpr uint64_t kSharedMemoryBytes = 1u << 20;

std::vector<std::string> fixed_environment() {
  return {"PATH=/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp", "LANG=C", "LC_ALL=C"};
}

bool is_there(const Path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

void add(std::vector<std::string>& list, std::initializer_list<std::string> more) {
  list.insert(list.end(), more.begin(), more.end());
}

// /usr with what hangs on it; on older layouts /bin and /lib are folders of their own.
void add_base_system(std::vector<std::string>& args) {
  add(args, {"--ro-bind", "/usr", "/usr"});
  for (const char* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code fault;
    auto status = std::filesystem::symlink_status(name, fault);
    if (std::filesystem::is_symlink(status)) {
      add(args, {"--symlink", std::filesystem::read_symlink(name, fault).string(), name});
    } else if (std::filesystem::is_directory(status)) {
      add(args, {"--ro-bind", name, name});
    }
  }
  add(args, {"--perms", "0755", "--dir", "/etc"});
  for (const char* name : {"/etc/ld.so.cache", "/etc/alternatives"})
    add(args, {"--ro-bind-try", name, name});
}

// bubblewrap makes missing parents of a bound file for its own user only.
void add_parents(std::vector<std::string>& args, const Path& target) {
  std::vector<std::string> parents;
  for (Path parent = target.parent_path(); parent.has_relative_path();
       parent = parent.parent_path()) {
    parents.insert(parents.begin(), parent.string());
  }
  if (!parents.empty() && parents[0] == "/usr") return;
  for (const std::string& parent : parents) add(args, {"--perms", "0755", "--dir", parent});
}

void add_binds(std::vector<std::string>& args, const char* option, const std::vector<Bind>& binds) {
  for (const Bind& bind : binds) {
    add_parents(args, bind.target);
    add(args, {option, bind.source.string(), bind.target.string()});
  }
}

std::vector<std::string> namespace_arguments(const SandboxRoom& room, SandboxIdentity identity) {
  std::vector<std::string> args{kTool, "--die-with-parent", "--new-session", "--cap-drop", "ALL"};
  if (identity == SandboxIdentity::DroppedRoot) {
    add(args, {"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
               "--unshare-cgroup-try"});
    for (const char* name : {"CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"})
      add(args, {"--cap-add", name});
  } else {
    add(args, {"--unshare-all", "--unshare-user", "--uid", kUser, "--gid", kUser});
    if (identity == SandboxIdentity::MappedOnce) args.push_back("--disable-userns");
  }
  add(args, {"--hostname", "sandbox"});
  add_base_system(args);
  add(args, {"--proc", "/proc", "--dev", "/dev"});
  add(args,
      {"--perms", "1777", "--size", std::to_string(kSharedMemoryBytes), "--tmpfs", "/dev/shm"});
  add(args, {"--perms", "1777", "--size", std::to_string(std::max<uint64_t>(room.tmp_bytes, 1)),
             "--tmpfs", "/tmp"});
  add_binds(args, "--ro-bind", room.read_only);
  add_binds(args, "--bind", room.writable);
  // The new root and /dev are memory of no fixed size: nobody may write there.
  add(args, {"--remount-ro", "/dev", "--remount-ro", "/"});
  args.push_back("--clearenv");
  std::vector<std::string> environment = fixed_environment();
  environment.insert(environment.end(), room.environment.begin(), room.environment.end());
  for (const std::string& setting : environment) {
    size_t equals = setting.find('=');
    if (equals == std::string::npos) continue;
    add(args, {"--setenv", setting.substr(0, equals), setting.substr(equals + 1)});
  }
  return args;
}

// Where a path seen inside comes from, for saying "missing" before anything is started. Longest
// target wins, as mounted.
Path outside(const Path& inside, const SandboxRoom& room) {
  Path source = inside;
  size_t best = 0;
  for (const auto* binds : {&room.read_only, &room.writable}) {
    for (const Bind& bind : *binds) {
      std::string target = bind.target.string();
      std::string_view rest = inside.native();
      if (!rest.starts_with(target) || target.size() < best) continue;
      rest.remove_prefix(target.size());
      if (!rest.empty() && rest.front() != '/') continue;
      best = target.size();
      source = bind.source.string() + std::string(rest);
    }
  }
  return source;
}

Result<Descriptor> memory_file(const char* name, std::string_view bytes) {
  Descriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (!file) return io_error(std::string("making a memory file: ") + std::strerror(errno));
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return io_error(std::string("writing a memory file: ") + std::strerror(errno));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// bubblewrap writes one JSON object a line; "exit-code" comes only from a command that was really
// started.
std::optional<int64_t> reported_exit(int fd) {
  std::string text(4096, '\0');
  ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  std::optional<int64_t> code;
  for (std::string_view line : split_lines(text)) {
    auto object = parse_json(line, "status of bubblewrap");
    if (!object) continue;
    const Json* value = object->find("exit-code");
    if (value && value->is_integer()) code = value->as_int();
  }
  return code;
}

// A command that the kernel or a shell-like parent killed ends bubblewrap with 128 + signal.
void unfold_signal(Exit& exit) {
  if (exit.kind == Exit::Kind::Code && exit.number > 128 && exit.number <= 128 + 64) {
    exit = {Exit::Kind::Signal, exit.number - 128};
  }
}

void blame_cgroup(const Cgroup& group, Exit& exit) {
  bool failed = (exit.kind == Exit::Kind::Code && exit.number != 0) ||
                exit.kind == Exit::Kind::Signal || exit.kind == Exit::Kind::TimedOut;
  if (!failed) return;
  if (group.ran_out_of_memory()) {
    exit = {Exit::Kind::MemoryLimit, 0};
  } else if (group.ran_out_of_processes()) {
    exit = {Exit::Kind::ProcessLimit, 0};
  }
}

}  // namespace

std::vector<std::string> Sandbox::active_names() const {
  std::vector<std::string> names;
  for (const Layer& layer : layers_) {
    if (layer.active) names.push_back(layer.name);
  }
  return names;
}

std::vector<std::string> Sandbox::missing_names() const {
  std::vector<std::string> names;
  for (const Layer& layer : layers_) {
    if (!layer.active) names.push_back(layer.name + ": " + layer.detail);
  }
  return names;
}

Result<Finished> Sandbox::run(const Command& command, const SandboxRoom& room) const {
  PTXB_TRY(Subprocess child, start(command, room));
  return child.wait();
}

// Everything but the namespaces: filter, limits, control groups, cleared environment.
Result<Command> Sandbox::confine(const Command& command, const SandboxRoom& room) const {
  Command inner = command;
  if (command.argv.empty() || !Path(command.argv[0]).is_absolute()) {
    return bad_input("a sandboxed command needs the absolute path of its program");
  }
  for (const Bind& bind : room.writable) {
    inner.watched_folders.push_back(bind.source);
    if (identity_ != SandboxIdentity::DroppedRoot || !bubblewrap_) continue;
    if (::chown(bind.source.c_str(), kUserId, kUserId) != 0) {
      return io_error(bind.source.string() +
                      ": cannot be handed to the sandbox's user: " + std::strerror(errno));
    }
  }
  if (command.limits.processes) {
    uid_t user = identity_ == SandboxIdentity::DroppedRoot ? kUserId : ::geteuid();
    inner.confinement.user_tasks = user_tasks(user) + command.limits.processes + kTaskSlack;
  }
  if (!cgroups_.empty() && (command.limits.memory_bytes || command.limits.processes)) {
    auto made = Cgroup::make(cgroups_, command.limits.memory_bytes, command.limits.processes);
    if (!made) return std::move(made).error();
    auto group = std::make_shared<Cgroup>(*std::move(made));
    inner.confinement.cgroup_procs = group->procs();
    inner.confinement.conclude = [group](Finished& finished) -> Result<void> {
      blame_cgroup(*group, finished.exit);
      return {};
    };
    // The kernel's exact count replaces our looking from time to time.
    for (const CgroupSite& site : cgroups_) {
      if (site.memory) inner.limits.memory_bytes = 0;
      if (site.pids) inner.limits.processes = 0;
    }
  }
  return inner;
}

Result<Subprocess> Sandbox::start(const Command& command, const SandboxRoom& room) const {
  if (command.environment)
    return bad_input("a sandboxed command's environment belongs to its room");
  PTXB_TRY(Command inner, confine(command, room));
  if (!is_there(outside(command.argv[0], room)))
    return not_found("no such program: " + command.argv[0]);
  if (!bubblewrap_) {
    inner.environment = fixed_environment();
    inner.environment->insert(inner.environment->end(), room.environment.begin(),
                              room.environment.end());
    inner.confinement.seccomp_filter = filter_;
    if (inner.folder.empty()) inner.folder = "/tmp";
    return Subprocess::start(inner);
  }
  return start_in_namespaces(std::move(inner), room);
}

Result<Subprocess> Sandbox::start_in_namespaces(Command inner, const SandboxRoom& room) const {
  int next = 3;
  for (const PassedDescriptor& one : inner.descriptors) next = std::max(next, one.there + 1);
  std::vector<std::string> args = namespace_arguments(room, identity_);
  PTXB_TRY(Descriptor made_status, memory_file("status", ""));
  auto status = std::make_shared<Descriptor>(std::move(made_status));
  inner.descriptors.push_back({status->get(), next});
  add(args, {"--json-status-fd", std::to_string(next++)});
  Descriptor filter;
  if (!filter_.empty()) {
    PTXB_TRY(filter, memory_file("filter", filter_));
    inner.descriptors.push_back({filter.get(), next});
    add(args, {"--seccomp", std::to_string(next++)});
  }
  add(args, {"--chdir", inner.folder.empty() ? "/tmp" : inner.folder.string(), "--"});
  if (identity_ == SandboxIdentity::DroppedRoot) {
    add(args,
        {kDropTool, "--reuid", kUser, "--regid", kUser, "--clear-groups", "--inh-caps", "-all"});
    add(args, {"--bounding-set", "-all", "--no-new-privs", "--"});
  }
  args.insert(args.end(), inner.argv.begin(), inner.argv.end());
  inner.argv = std::move(args);
  inner.argv[0] = bubblewrap_->string();
  inner.environment.emplace();
  inner.folder = "/";
  auto blame = std::move(inner.confinement.conclude);
  inner.confinement.conclude = [status, blame](Finished& finished) -> Result<void> {
    // Signal 0 is Subprocess::kill, by us; another signal hit bubblewrap itself, from outside.
    bool killed = finished.exit.kind == Exit::Kind::Signal && finished.exit.number == 0;
    bool by_itself = finished.exit.kind == Exit::Kind::Code ||
                     (finished.exit.kind == Exit::Kind::Signal && !killed);
    if (by_itself) {
      auto code = reported_exit(status->get());
      if (code) {
        finished.exit = {Exit::Kind::Code, static_cast<int>(*code)};
        unfold_signal(finished.exit);
      }
      if (blame) PTXB_CHECK_OK(blame(finished));
      if (!code && finished.exit.kind != Exit::Kind::MemoryLimit &&
          finished.exit.kind != Exit::Kind::ProcessLimit) {
        return harness_error("the sandbox did not run its command (" + summary(finished.exit) +
                             "): " + printable(trim(finished.err.text()), 500));
      }
      return {};
    }
    return blame ? blame(finished) : Result<void>();
  };
  return Subprocess::start(inner);
}

}  // namespace ptxb::os
