// SPDX-License-Identifier: Apache-2.0
#include "os/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>

#include "base/text.h"
#include "os/subprocess.h"

namespace ptxb::os {

namespace {

// /proc files vanish with their process: absence is an ordinary, empty answer.
std::string read_proc(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file) return text;
  char chunk[4096];
  for (ssize_t got; (got = ::read(file.get(), chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<size_t>(got));
  }
  return text;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// A child hangs below the thread that made it.
void append_children(pid_t parent, std::vector<pid_t>& out) {
  std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  std::unique_ptr<DIR, CloseFolder> folder(::opendir(tasks.c_str()));
  if (!folder) return;
  while (dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    std::string list = read_proc(tasks + "/" + entry->d_name + "/children");
    for (std::string_view word : split(list, ' ')) {
      if (auto pid = parse_int(trim(word)); pid && *pid > 0)
        out.push_back(static_cast<pid_t>(*pid));
    }
  }
}

// Sum of the numbers after `keys` in /proc/PID/status.
uint64_t status_number(pid_t pid, std::initializer_list<std::string_view> keys) {
  std::string status = read_proc("/proc/" + std::to_string(pid) + "/status");
  uint64_t sum = 0;
  for (std::string_view line : split_lines(status)) {
    for (std::string_view key : keys) {
      if (!line.starts_with(key)) continue;
      std::string_view number = trim(line.substr(key.size()));
      sum += parse_uint(number.substr(0, number.find(' '))).value_or(0);
    }
  }
  return sum;
}

struct FolderSum {
  uint64_t bytes = 0, entries = 0;
};

// Through descriptors and without following links: the folder is written by untrusted code while it
// is read.
void add_folder(int at, const char* name, int depth, uint64_t enough_bytes, FolderSum& sum) {
  constexpr int kMaxDepth = 32;
  constexpr uint64_t kMaxEntries = 100'000;
  Descriptor handle(::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!handle || depth > kMaxDepth) return;
  int fd = handle.get();
  std::unique_ptr<DIR, CloseFolder> folder(::fdopendir(fd));
  if (!folder) return;
  handle.release();
  while (dirent* entry = ::readdir(folder.get())) {
    if (!std::strcmp(entry->d_name, ".") || !std::strcmp(entry->d_name, "..")) continue;
    struct stat status {};
    if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    sum.bytes += static_cast<uint64_t>(status.st_blocks) * 512;
    if (++sum.entries > kMaxEntries) sum.bytes = std::max(sum.bytes, enough_bytes + 1);
    if (S_ISDIR(status.st_mode)) add_folder(fd, entry->d_name, depth + 1, enough_bytes, sum);
    if (sum.bytes > enough_bytes) return;
  }
}

}  // namespace

std::vector<pid_t> descendants(pid_t root, uint64_t enough) {
  std::vector<pid_t> found;
  append_children(root, found);
  for (size_t i = 0; i < found.size() && (!enough || found.size() <= enough); ++i)
    append_children(found[i], found);
  // A process that moves while we look may be met twice.
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

TreeUse tree_use(pid_t root, uint64_t enough_processes) {
  TreeUse use;
  std::vector<pid_t> found = descendants(root, enough_processes);
  use.processes = found.size();
  if (enough_processes && found.size() > enough_processes) return use;
  for (pid_t pid : found) use.resident_bytes += status_number(pid, {"RssAnon:", "RssShmem:"}) << 10;
  return use;
}

uint64_t user_tasks(uid_t user) {
  std::unique_ptr<DIR, CloseFolder> folder(::opendir("/proc"));
  uint64_t tasks = 0;
  while (dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    auto pid = parse_int(entry->d_name);
    struct stat status {};
    if (!pid || ::fstatat(::dirfd(folder.get()), entry->d_name, &status, 0) != 0 ||
        status.st_uid != user)
      continue;
    tasks += std::max<uint64_t>(status_number(static_cast<pid_t>(*pid), {"Threads:"}), 1);
  }
  return tasks;
}

uint64_t folder_bytes(const Path& folder, uint64_t enough_bytes) {
  FolderSum sum;
  add_folder(AT_FDCWD, folder.c_str(), 0, enough_bytes, sum);
  return sum.bytes;
}

}  // namespace ptxb::os
