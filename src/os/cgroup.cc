// SPDX-License-Identifier: Apache-2.0
#include "os/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/text.h"

namespace ptxb::os {

namespace {

constexpr const char* kPrefix = "ptxbench.";

Result<void> write_value(const Path& file, const std::string& value) {
  Descriptor open_file(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!open_file || ::write(open_file.get(), value.data(), value.size()) < 0) {
    return io_error(file.string() + ": " + std::strerror(errno));
  }
  return {};
}

// Value of `key` in a "key value" file, or of a file with one number when key is empty.
uint64_t read_value(const Path& file, std::string_view key) {
  auto text = read_file(file, 1 << 16);
  if (!text) return 0;
  if (key.empty()) return parse_uint(trim(*text)).value_or(0);
  for (std::string_view line : split_lines(*text)) {
    auto words = split(line, ' ');
    if (words.size() == 2 && words[0] == key) return parse_uint(words[1]).value_or(0);
  }
  return 0;
}

bool has_word(const std::string& text, std::string_view word) {
  for (std::string_view one : split(trim(text), ' ')) {
    if (one == word) return true;
  }
  return false;
}

// Groups whose maker died before removing them: named after its pid.
void sweep(const Path& parent) {
  std::error_code fault;
  for (std::filesystem::directory_iterator it(parent, fault), end; !fault && it != end;
       it.increment(fault)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    auto pid = parse_int(split(std::string_view(name).substr(std::strlen(kPrefix)), '.')[0]);
    if (pid && *pid > 0 && ::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH)
      ::rmdir(it->path().c_str());
  }
}

Path fresh_folder(const Path& parent) {
  static std::atomic<uint64_t> serial{0};
  return parent / (kPrefix + std::to_string(::getpid()) + "." + std::to_string(serial++));
}

// Can a group with the wanted control files be made below `parent`?
bool proven(const Path& parent, const std::vector<std::string>& files) {
  sweep(parent);
  Path folder = fresh_folder(parent);
  if (::mkdir(folder.c_str(), 0755) != 0) return false;
  bool good = true;
  for (const std::string& file : files) good = good && ::access((folder / file).c_str(), W_OK) == 0;
  ::rmdir(folder.c_str());
  return good;
}

struct Hierarchy {
  std::string controllers;  // "memory", "cpu,cpuacct", "" for v2
  Path mount;
  std::string path;  // of this process below the mount
};

std::vector<Hierarchy> hierarchies() {
  std::vector<Hierarchy> found;
  auto own = read_file("/proc/self/cgroup", 1 << 20);
  auto mounts = read_file("/proc/self/mountinfo", 1 << 24);
  if (!own || !mounts) return found;
  for (std::string_view line : split_lines(*own)) {  // "4:memory:/path", "0::/path"
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    found.push_back({std::string(line.substr(first + 1, second - first - 1)),
                     {},
                     std::string(line.substr(second + 1))});
  }
  for (std::string_view line : split_lines(*mounts)) {
    // "36 35 0:30 ROOT MOUNT options - TYPE source super_options" (proc(5)); ROOT is what of the
    // hierarchy is mounted.
    size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    auto left = split(line.substr(0, dash), ' ');
    auto right = split(line.substr(dash + 3), ' ');
    if (left.size() < 6 || right.size() < 3) continue;
    for (Hierarchy& one : found) {
      bool v2 = one.controllers.empty() && right[0] == "cgroup2";
      bool v1 =
          !one.controllers.empty() && right[0] == "cgroup" && !one.controllers.starts_with("name=");
      if (v1) {
        v1 = false;
        for (std::string_view option : split(right[2], ',')) {
          v1 = v1 || option == split(one.controllers, ',')[0];
        }
      }
      if (!v1 && !v2) continue;
      one.mount = Path(left[4]);
      std::string root(left[3]);
      if (root != "/" && one.path.starts_with(root)) one.path = one.path.substr(root.size());
    }
  }
  return found;
}

std::optional<CgroupSite> v1_site(const Hierarchy& one, bool memory) {
  CgroupSite site{CgroupSite::Version::V1, one.mount / Path(one.path).relative_path(), memory,
                  !memory};
  std::string file = memory ? "memory.limit_in_bytes" : "pids.max";
  if (!proven(site.folder, {file})) return std::nullopt;
  return site;
}

// A v2 group with processes cannot hand controllers to children, so the parent is tried too.
std::optional<CgroupSite> v2_site(const Hierarchy& one) {
  Path own = one.mount / Path(one.path).relative_path();
  std::vector<Path> places{own};
  if (own != one.mount && one.path != "/") places.push_back(own.parent_path());
  for (const Path& place : places) {
    auto enabled = read_file(place / "cgroup.subtree_control", 4096);
    if (!enabled) continue;
    CgroupSite site{CgroupSite::Version::V2, place, has_word(*enabled, "memory"),
                    has_word(*enabled, "pids")};
    std::vector<std::string> files;
    if (site.memory) files.push_back("memory.max");
    if (site.pids) files.push_back("pids.max");
    if (!files.empty() && proven(place, files)) return site;
  }
  return std::nullopt;
}

}  // namespace

CgroupSearch find_cgroups() {
  CgroupSearch search;
  bool memory = false, pids = false;
  for (const Hierarchy& one : hierarchies()) {
    if (one.mount.empty()) continue;
    if (one.controllers.empty()) {
      auto site = v2_site(one);
      if (!site) continue;
      memory = memory || site->memory;
      pids = pids || site->pids;
      search.sites.push_back(*site);
      continue;
    }
    for (std::string_view controller : split(one.controllers, ',')) {
      bool is_memory = controller == "memory";
      if (!is_memory && controller != "pids") continue;
      auto site = v1_site(one, is_memory);
      if (!site) continue;
      (is_memory ? memory : pids) = true;
      search.sites.push_back(*site);
    }
  }
  const char* why =
      "no control group of ours can be made here (not root, read-only, or the controller is not "
      "delegated)";
  if (!memory) search.memory_missing = why;
  if (!pids) search.pids_missing = why;
  return search;
}

Result<Cgroup> Cgroup::make(const std::vector<CgroupSite>& sites, uint64_t memory_bytes,
                            uint64_t processes) {
  Cgroup made;
  for (const CgroupSite& site : sites) {
    Group group{site, fresh_folder(site.folder), {}};
    if (::mkdir(group.folder.c_str(), 0755) != 0) {
      return io_error(group.folder.string() +
                      ": cannot make a control group: " + std::strerror(errno));
    }
    made.groups_.push_back(std::move(group));
    const Path& folder = made.groups_.back().folder;
    if (site.memory && memory_bytes) {
      bool v1 = site.version == CgroupSite::Version::V1;
      PTXB_CHECK_OK(write_value(folder / (v1 ? "memory.limit_in_bytes" : "memory.max"),
                                std::to_string(memory_bytes)));
      // Swap would turn a memory limit into a slow machine; absent where swap accounting is off.
      auto ignored = write_value(folder / (v1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max"),
                                 v1 ? std::to_string(memory_bytes) : "0");
      if (!v1) ignored = write_value(folder / "memory.oom.group", "1");
    }
    if (site.pids && processes)
      PTXB_CHECK_OK(write_value(folder / "pids.max", std::to_string(processes)));
    made.groups_.back().procs.reset(
        ::open((folder / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!made.groups_.back().procs) return io_error(folder.string() + ": cannot open cgroup.procs");
  }
  return made;
}

Cgroup::~Cgroup() {
  for (Group& group : groups_) {
    group.procs.reset();
    // A member that was just reaped may still be leaving the group.
    for (int tries = 0; ::rmdir(group.folder.c_str()) != 0 && errno == EBUSY && tries < 200;
         ++tries)
      ::usleep(2000);
  }
}

std::vector<int> Cgroup::procs() const {
  std::vector<int> list;
  for (const Group& group : groups_) list.push_back(group.procs.get());
  return list;
}

bool Cgroup::ran_out_of_memory() const {
  for (const Group& group : groups_) {
    if (!group.site.memory) continue;
    bool v1 = group.site.version == CgroupSite::Version::V1;
    if (read_value(group.folder / (v1 ? "memory.oom_control" : "memory.events"), "oom_kill") > 0)
      return true;
  }
  return false;
}

bool Cgroup::ran_out_of_processes() const {
  for (const Group& group : groups_) {
    if (group.site.pids && read_value(group.folder / "pids.events", "max") > 0) return true;
  }
  return false;
}

}  // namespace ptxb::os
