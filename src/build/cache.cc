// SPDX-License-Identifier: Apache-2.0
#include "build/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/text.h"

namespace ptxb::build {

namespace {

namespace fs = std::filesystem;

Error folder_error(const Path& folder, const std::string& why) {
  return io_error("cannot use the build cache " + folder.string() + ": " + why +
                  " (another place: XDG_CACHE_HOME or --cache)");
}

uint64_t size_of(const Path& folder) {
  uint64_t sum = 0;
  std::error_code fault;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) sum += it->file_size(ignored);
  }
  return sum;
}

struct Entry {
  Path folder;
  fs::file_time_type used;
  uint64_t bytes = 0;
};

std::vector<Entry> entries_below(const Path& folder) {
  std::vector<Entry> found;
  std::error_code fault;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault)) {
    std::error_code ignored;
    found.push_back({it->path(), fs::last_write_time(it->path(), ignored), size_of(it->path())});
  }
  std::sort(found.begin(), found.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  return found;
}

}  // namespace

Result<Cache> Cache::open(const Path& folder) {
  if (folder.empty()) return bad_input("no build cache folder given");
  for (const char* name : {"entries", "locks", "work"}) {
    std::error_code fault;
    fs::create_directories(folder / name, fault);
    if (fault) return folder_error(folder, fault.message());
    if (::access((folder / name).c_str(), W_OK | X_OK) != 0)
      return folder_error(folder, std::strerror(errno));
  }
  // access() says yes to root even on a read-only mount of some filesystems: only writing proves
  // it.
  Path probe = folder / "work" / ("probe" + std::to_string(::getpid()));
  os::Descriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) return folder_error(folder, std::strerror(errno));
  ::unlink(probe.c_str());
  std::error_code fault;
  return Cache(fs::absolute(folder, fault));
}

Result<os::Descriptor> Cache::lock(std::string_view key) const {
  Path path = folder_ / "locks" / key;
  for (;;) {
    os::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file) return folder_error(folder_, std::strerror(errno));
    while (::flock(file.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return folder_error(folder_, std::strerror(errno));
    }
    // Whoever cleared the cache meanwhile may have removed the file that we now hold: then it
    // guards nothing.
    struct stat held {
    }, named{};
    if (::fstat(file.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino)
      return file;
  }
}

std::optional<Path> Cache::find(std::string_view key) const {
  Path entry = folder_ / "entries" / key;
  std::error_code fault;
  if (!fs::is_directory(entry, fault)) return std::nullopt;
  fs::last_write_time(entry, fs::file_time_type::clock::now(), fault);
  return entry;
}

Result<Path> Cache::make_work_folder() const {
  std::string name = (folder_ / "work" / (std::to_string(::getpid()) + "-XXXXXX")).string();
  if (!::mkdtemp(name.data())) return folder_error(folder_, std::strerror(errno));
  ::chmod(name.c_str(), 0755);  // the sandbox's user must get through
  return Path(name);
}

Result<void> Cache::publish(const Path& folder, std::string_view key) const {
  Path entry = folder_ / "entries" / key;
  std::error_code fault;
  fs::rename(folder, entry, fault);
  if (!fault) return {};
  // A folder that is not empty cannot be renamed over: the old one goes aside first.
  Path aside = folder.parent_path() / "replaced";
  fs::rename(entry, aside, fault);
  fs::rename(folder, entry, fault);
  if (fault) return folder_error(folder_, fault.message());
  fs::remove_all(aside, fault);
  return {};
}

void Cache::shrink(uint64_t limit_bytes, double keep_s) const {
  std::vector<Entry> entries = entries_below(folder_ / "entries");
  uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  auto keep_after =
      fs::file_time_type::clock::now() - std::chrono::duration_cast<fs::file_time_type::duration>(
                                             std::chrono::duration<double>(keep_s));
  for (const Entry& entry : entries) {
    if (total <= limit_bytes || entry.used > keep_after) break;
    std::error_code fault;
    fs::remove_all(entry.folder, fault);
    fs::remove(folder_ / "locks" / entry.folder.filename(), fault);
    total -= entry.bytes;
  }
  sweep_work();
}

void Cache::sweep_work() const {
  std::error_code fault;
  for (fs::directory_iterator it(folder_ / "work", fault), end; !fault && it != end;
       it.increment(fault)) {
    std::string name = it->path().filename().string();
    auto pid = parse_int(split(name, '-')[0]);
    bool dead = pid && *pid > 0 && ::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH;
    std::error_code ignored;
    if (dead) fs::remove_all(it->path(), ignored);
  }
}

uint64_t Cache::clear() const {
  uint64_t freed = 0;
  for (const Entry& entry : entries_below(folder_ / "entries")) {
    std::error_code fault;
    fs::remove_all(entry.folder, fault);
    if (!fault) freed += entry.bytes;
    fs::remove(folder_ / "locks" / entry.folder.filename(), fault);
  }
  sweep_work();
  return freed;
}

}  // namespace ptxb::build
