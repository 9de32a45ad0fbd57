// Owns finding out which sandbox layers this machine can give. Part of Sandbox.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "os/sandbox.h"
#include "os/seccomp.h"

namespace ptxb::os {

namespace {

Layer essential(std::string name, bool active, std::string detail) {
  return {std::move(name), active, true, std::move(detail)};
}
Layer extra(std::string name, bool active, std::string detail) {
  return {std::move(name), active, false, std::move(detail)};
}

}  // namespace

// Runs /usr/bin/true as untrusted commands are run. nullopt: it worked; else why not.
std::optional<std::string> Sandbox::trial() const {
  Command command;
  command.argv = {"/usr/bin/true"};
  command.limits.wall_s = 20;
  auto finished = run(command, {});
  if (!finished) return finished.error().message;
  if (!finished->exit.ok())
    return summary(finished->exit) + ": " + printable(trim(finished->err.text()), 300);
  return std::nullopt;
}

std::string Sandbox::try_namespaces() {
  const char* path = std::getenv("PATH");
  bubblewrap_ = find_program("bwrap", path ? path : "/usr/bin:/bin");
  if (!bubblewrap_) return "bubblewrap is not installed (Debian package: bubblewrap)";
  identity_ = ::geteuid() == 0 ? SandboxIdentity::DroppedRoot : SandboxIdentity::MappedOnce;
  auto fault = trial();
  if (!fault) return "";
  if (identity_ == SandboxIdentity::MappedOnce) {
    identity_ = SandboxIdentity::Mapped;  // bubblewrap before 0.8, or a kernel without the
                                          // per-namespace limit
    fault = trial();
    if (!fault) return "";
  }
  bubblewrap_.reset();
  return "bubblewrap does not work here (" + *fault +
         "); it needs root or unprivileged user namespaces (sysctl user.max_user_namespaces, "
         "kernel.unprivileged_userns_clone)";
}

std::string Sandbox::try_filter() {
  auto filter = compile_filter();
  if (!filter) return filter.error().message;
  filter_ = *std::move(filter);
  auto fault = trial();
  if (!fault) return "";
  filter_.clear();
  return "the kernel refuses the filter (" + *fault + ")";
}

Result<Sandbox> Sandbox::probe(SandboxPolicy policy) {
  Sandbox sandbox;
  std::string no_namespaces = sandbox.try_namespaces();
  std::string no_filter = sandbox.try_filter();
  CgroupSearch search = find_cgroups();
  sandbox.cgroups_ = search.sites;
  if (auto fault = sandbox.cgroups_.empty() ? std::nullopt : sandbox.trial_with_limits()) {
    search.memory_missing = search.pids_missing = "joining a control group fails (" + *fault + ")";
    sandbox.cgroups_.clear();
  }

  bool spaces = no_namespaces.empty();
  auto by_namespaces = [&](const char* name, const char* how) {
    return essential(name, spaces, spaces ? how : no_namespaces);
  };
  std::vector<Layer>& layers = sandbox.layers_;
  bool dropped = sandbox.identity_ == SandboxIdentity::DroppedRoot;
  layers.push_back(by_namespaces("unprivileged user",
                                 dropped ? "uid and gid 65534, no capabilities, no new privileges"
                                         : "65534 in an own user namespace, no capabilities"));
  layers.push_back(by_namespaces("read-only files",
                                 "only /usr, the loader cache and the named paths are there"));
  layers.push_back(by_namespaces("private /tmp", "tmpfs of fixed size"));
  layers.push_back(by_namespaces("no network", "own network namespace without interfaces"));
  layers.push_back(by_namespaces("private processes", "own pid and ipc namespaces, ended as one"));
  layers.push_back(by_namespaces("no device nodes", "null, zero, full, random, tty only: no GPU"));
  layers.push_back(
      essential("system call filter", no_filter.empty(),
                no_filter.empty() ? "seccomp allow-list, EPERM for the rest" : no_filter));
  layers.push_back(essential("cleared environment", true, "five fixed variables and the room's"));
  layers.push_back(essential("resource limits", true,
                             "rlimits for CPU, memory, file size, open files, core; wall clock"));
  bool nesting_off = sandbox.identity_ == SandboxIdentity::MappedOnce;
  if (spaces && !dropped) {
    layers.push_back(
        extra("nested namespaces off", nesting_off,
              nesting_off ? "user.max_user_namespaces is 0 inside"
                          : "needs bubblewrap 0.8; the system call filter refuses them as well"));
  }
  bool memory = search.memory_missing.empty(), pids = search.pids_missing.empty();
  layers.push_back(extra("memory control group", memory,
                         memory
                             ? "the kernel's limit for the whole tree"
                             : search.memory_missing + "; memory is watched every 50 ms instead"));
  layers.push_back(
      extra("process control group", pids,
            pids ? "the kernel's limit for the whole tree"
                 : search.pids_missing + "; processes are counted every 50 ms instead"));
  if (policy == SandboxPolicy::RequireAll) {
    std::string missing;
    for (const Layer& layer : layers) {
      if (layer.essential && !layer.active) missing += "\n  " + layer.name + ": " + layer.detail;
    }
    if (!missing.empty()) return harness_error("the sandbox lacks essential layers:" + missing);
  }
  return sandbox;
}

// Limits far above what /usr/bin/true needs: only whether groups can be joined is tried.
std::optional<std::string> Sandbox::trial_with_limits() const {
  Command command;
  command.argv = {"/usr/bin/true"};
  command.limits.wall_s = 20;
  command.limits.memory_bytes = uint64_t{1} << 30;
  command.limits.processes = 64;
  auto finished = run(command, {});
  if (!finished) return finished.error().message;
  if (!finished->exit.ok()) return summary(finished->exit);
  return std::nullopt;
}

}  // namespace ptxb::os
