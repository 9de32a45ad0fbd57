// Owns reading and writing whole files. Writes go beside the target and are renamed into place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ptxb {

using Path = std::filesystem::path;

// Error: NotFound when absent, Limit when larger than limit_bytes, Io otherwise (a directory, no permission).
Result<std::string> read_file(const Path& path, uint64_t limit_bytes = uint64_t{1} << 30);
// For files that something untrusted may have put there: plain files only, never through a link, never waiting
// (a FIFO or a device in their place is an Io error).
Result<std::string> read_plain_file(const Path& path, uint64_t limit_bytes);
// Atomic: readers see the old or the new whole file. Makes missing parent folders.
Result<void> write_file(const Path& path, std::string_view bytes);
// mkdtemp under TMPDIR or /tmp; removed with everything in it by the destructor.
class TempFolder {
 public:
  static Result<TempFolder> make(std::string_view prefix);
  TempFolder(TempFolder&& other) noexcept;
  TempFolder& operator=(TempFolder&& other) noexcept;
  ~TempFolder();
  const Path& path() const { return path_; }

 private:
  explicit TempFolder(Path path) : path_(std::move(path)) {}
  Path path_;
};

}  // namespace ptxb
