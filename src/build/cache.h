// Owns the folder of finished builds: one folder per key, made beside and renamed into place,
// oldest removed first. Never looks inside an entry and never waits without a lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "os/subprocess.h"

namespace ptxb::build {

// Layout: entries/<key>/, locks/<key>, work/<pid>-XXXXXX/. All on one filesystem, so that rename is
// atomic.
class Cache {
 public:
  // Makes missing folders. Error Io naming the folder that cannot be made or written, and what to
  // set instead.
  static Result<Cache> open(const Path& folder);

  // Held until the returned descriptor closes; waits for other threads and processes.
  Result<os::Descriptor> lock(std::string_view key) const;
  // The entry's folder when it is there; marks it as just used.
  std::optional<Path> find(std::string_view key) const;
  // A new folder for one build; the caller removes it (or publishes a folder inside it).
  Result<Path> make_work_folder() const;
  // Renames `folder` to entries/<key>, replacing an older entry. REQUIRES: the key's lock is held.
  Result<void> publish(const Path& folder, std::string_view key) const;
  // Removes the least recently used entries until at most `limit_bytes` remain; entries used within
  // keep_s stay.
  void shrink(uint64_t limit_bytes, double keep_s = 3600) const;
  // Removes all entries and what dead processes left in work/. Returns the bytes freed.
  uint64_t clear() const;

 private:
  explicit Cache(Path folder) : folder_(std::move(folder)) {}
  void sweep_work() const;
  Path folder_;
};

}  // namespace ptxb::build
