// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/handle.h"

namespace ptxb {

namespace {

struct DescriptorTraits {
  using Value = int;
  static int none() { return -1; }
  static void close(int fd) noexcept { ::close(fd); }
};
using Descriptor = Handle<DescriptorTraits>;

Error posix_error(const Path& path, const char* what) {
  int code = errno;
  return {code == ENOENT ? ErrorCode::NotFound : ErrorCode::Io,
          path.string() + ": cannot " + what + ": " + std::strerror(code)};
}

Result<std::string> read_open(const Path& path, const Descriptor& file, uint64_t limit_bytes) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return posix_error(path, "stat");
  if (S_ISDIR(status.st_mode)) return io_error(path.string() + ": is a folder, not a file");
  std::string bytes;
  if (S_ISREG(status.st_mode)) {
    if (static_cast<uint64_t>(status.st_size) > limit_bytes) {
      return limit_error(path.string() + ": larger than " + std::to_string(limit_bytes) + " bytes");
    }
    bytes.reserve(static_cast<size_t>(status.st_size));
  }
  char chunk[1 << 16];
  for (;;) {
    ssize_t got = ::read(file.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return posix_error(path, "read");
    if (got == 0) return bytes;
    if (bytes.size() + static_cast<size_t>(got) > limit_bytes) {
      return limit_error(path.string() + ": larger than " + std::to_string(limit_bytes) + " bytes");
    }
    bytes.append(chunk, static_cast<size_t>(got));
  }
}

}  // namespace

Result<std::string> read_file(const Path& path, uint64_t limit_bytes) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return posix_error(path, "open");
  return read_open(path, file, limit_bytes);
}

Result<std::string> read_plain_file(const Path& path, uint64_t limit_bytes) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file) return posix_error(path, "open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return posix_error(path, "stat");
  if (!S_ISREG(status.st_mode)) return io_error(path.string() + ": is not a plain file");
  return read_open(path, file, limit_bytes);
}

Result<void> write_file(const Path& path, std::string_view bytes) {
  std::error_code fault;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), fault);
  static std::atomic<uint64_t> serial{0};
  Path beside = path;
  beside += ".tmp" + std::to_string(::getpid()) + "." + std::to_string(serial++);
  Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return posix_error(path, "write");
  std::string_view rest = bytes;
  while (!rest.empty()) {
    ssize_t wrote = ::write(file.get(), rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      Error error = posix_error(path, "write");
      ::unlink(beside.c_str());
      return error;
    }
    rest.remove_prefix(static_cast<size_t>(wrote));
  }
  file.reset();
  if (::rename(beside.c_str(), path.c_str()) != 0) {
    Error error = posix_error(path, "rename into place");
    ::unlink(beside.c_str());
    return error;
  }
  return {};
}

Result<TempFolder> TempFolder::make(std::string_view prefix) {
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base && *base ? base : "/tmp") + "/" + std::string(prefix) + "XXXXXX";
  if (!::mkdtemp(name.data())) return posix_error(name, "make a temporary folder");
  return TempFolder(Path(name));
}

TempFolder::TempFolder(TempFolder&& other) noexcept : path_(std::exchange(other.path_, Path())) {}

TempFolder& TempFolder::operator=(TempFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempFolder::~TempFolder() {
  if (path_.empty()) return;
  std::error_code fault;
  std::filesystem::remove_all(path_, fault);
  if (!fault) return;
  // A hostile child may have taken its own folder's write permission away.
  for (auto it = std::filesystem::recursive_directory_iterator(
           path_, std::filesystem::directory_options::skip_permission_denied, fault);
       !fault && it != std::filesystem::recursive_directory_iterator(); it.increment(fault)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
      std::filesystem::permissions(it->path(), std::filesystem::perms::owner_all, ignored);
    }
  }
  std::filesystem::remove_all(path_, fault);
}

}  // namespace ptxb
