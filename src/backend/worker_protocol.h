// Owns the frames between ptxbench and ptxbench-worker: a fixed header, one JSON text, a few byte
// blobs; bounded both ways. Never reads or writes a descriptor; both ends treat what they receive
// as hostile. Layout: docs/gpu.md, "Worker frames".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ptxb {

inline constexpr uint32_t kFrameMagic = 0x57585450;  // "PTXW", little endian
inline constexpr uint16_t kFrameVersion = 1;

enum class FrameType : uint16_t {
  Hello = 1,     // worker -> parent, once: what it is
  Job = 2,       // parent -> worker
  Progress = 3,  // worker -> parent: what it is about to do, so that a death can be placed
  Outcome = 4,   // worker -> parent: the one answer to a job
  Bye = 5,       // parent -> worker: end
};

struct Frame {
  FrameType type = FrameType::Job;
  Json json;
  std::vector<std::string> blobs;
};

struct FrameLimits {
  uint32_t json_bytes = 64u << 20;
  uint32_t blobs = 256;
  uint64_t total_bytes = uint64_t{1} << 30;
};

// Header, 16 bytes, little endian: magic u32, version u16, type u16, json_bytes u32, blob_count
// u32; then blob_count lengths (u64), the JSON, the blobs. REQUIRES: the frame is within the limits
// (checked).
std::string encode_frame(const Frame& frame);

// Takes bytes as they come and gives whole frames. After an error it stays in error: the stream has
// no way to resume.
class FrameReader {
 public:
  explicit FrameReader(FrameLimits limits = {}) : limits_(limits) {}
  void feed(std::string_view bytes);
  // nullopt: more bytes are needed. Error: BadInput naming the header field or the JSON's fault.
  Result<std::optional<Frame>> next();
  size_t buffered_bytes() const { return buffer_.size() - begin_; }

 private:
  FrameLimits limits_;
  std::string buffer_;
  size_t begin_ = 0;  // of the first byte not yet consumed
  std::optional<Error> broken_;
};

}  // namespace ptxb
