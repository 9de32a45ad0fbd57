// Owns running an untrusted command with as little as it needs: bubblewrap namespaces, seccomp,
// rlimits, cgroup limits. Never weakens itself silently: what is in force and what is missing is
// data, and missing layers must be allowed first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/cgroup.h"
#include "os/subprocess.h"

namespace ptxb::os {

enum class SandboxPolicy {
  RequireAll,    // an essential layer that this machine cannot give is an Error
  AllowMissing,  // run anyway, the report names what is missing
};

// A host path and where the command sees it. Without namespaces both must be equal.
struct Bind {
  Path source;
  Path target;
  Bind(Path path) : source(path), target(std::move(path)) {}  // NOLINT: implicit by design
  Bind(Path from, Path to) : source(std::move(from)), target(std::move(to)) {}
};

// What one command may touch beyond the base system (/usr, /bin, /lib*, loader cache, minimal /dev
// and /proc, private /tmp). ProcessLimits of the Command apply as well: memory_bytes and processes
// also go to the cgroup where there is one.
struct SandboxRoom {
  std::vector<Bind> read_only;  // files or folders
  std::vector<Bind> writable;   // folders, given to uid 65534 when we are root; the command cannot
                                // make a file larger than limits.file_size_bytes
  std::vector<std::string>
      environment;                  // added to the fixed PATH, HOME=/tmp, TMPDIR=/tmp, LANG, LC_ALL
  uint64_t tmp_bytes = 256u << 20;  // size of the private /tmp
};

struct Layer {
  std::string name;  // "user namespace", "no network", "seccomp", ...
  bool active = false;
  bool essential = false;  // RequireAll insists on it
  std::string detail;      // how it is enforced, or why it is missing and what would bring it
};

// Who the command is for the kernel. In a user namespace made by root, "65534" would still be the
// kernel's uid 0, which owns /proc/sys whatever the capabilities: so root changes its user for real
// and needs no user namespace.
enum class SandboxIdentity {
  DroppedRoot,  // we are root: uid 65534, bounding set empty. Read-only binds must be readable for
                // everyone
  MappedOnce,  // we are not: our uid, shown as 65534 in a user namespace that allows no further one
  Mapped,      // the same without that (bubblewrap before 0.8)
};

class Sandbox {
 public:
  // Looks at the machine (starts bubblewrap once or twice, about 20 ms). Error Harness: an
  // essential layer is missing and `policy` is RequireAll; the message names each with its remedy.
  static Result<Sandbox> probe(SandboxPolicy policy);

  // The layers in force for every command that this sandbox runs, and the missing ones.
  const std::vector<Layer>& layers() const { return layers_; }
  std::vector<std::string> active_names() const;
  std::vector<std::string> missing_names() const;  // "seccomp: <why>"
  // Whether commands see Bind::target (namespaces in force), else they see Bind::source.
  bool remaps_paths() const { return bubblewrap_.has_value(); }
  Path inside(const Bind& bind) const { return remaps_paths() ? bind.target : bind.source; }

  // command.environment must be nullopt (the room's is used); command.folder is a path inside
  // (empty: /tmp); argv[0] must be an absolute path inside. Errors as Subprocess::start; a program
  // missing inside is NotFound.
  Result<Subprocess> start(const Command& command, const SandboxRoom& room) const;
  Result<Finished> run(const Command& command, const SandboxRoom& room) const;

 private:
  Sandbox() = default;
  Result<Command> confine(const Command& command, const SandboxRoom& room) const;
  Result<Subprocess> start_in_namespaces(Command inner, const SandboxRoom& room) const;
  std::optional<std::string> trial() const;
  std::optional<std::string> trial_with_limits() const;
  std::string try_namespaces();  // "" or why not
  std::string try_filter();

  std::optional<Path> bubblewrap_;
  SandboxIdentity identity_ = SandboxIdentity::MappedOnce;
  std::string filter_;  // compiled BPF program; empty: none
  std::vector<CgroupSite> cgroups_;
  std::vector<Layer> layers_;
};

}  // namespace ptxb::os
