// Owns the encoding of worker frames. Never touches a descriptor.
// SPDX-License-Identifier: Apache-2.0
#include "backend/worker_protocol.h"

#include <cstring>

namespace ptxb {

namespace {

constexpr size_t kHeaderBytes = 16;

template <class Int>
void put(std::string& out, Int value) {
  for (size_t i = 0; i < sizeof value; ++i) {
    out.push_back(static_cast<char>((static_cast<uint64_t>(value) >> (8 * i)) & 0xff));
  }
}

uint64_t get(const char* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return value;
}

bool known_type(uint64_t type) {
  return type >= 1 && type <= static_cast<uint64_t>(FrameType::Bye);
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  const std::string text = frame.json.dump();
  const FrameLimits limits;
  uint64_t total = text.size();
  for (const std::string& blob : frame.blobs) total += blob.size();
  PTXB_CHECK(text.size() <= limits.json_bytes && frame.blobs.size() <= limits.blobs &&
             total <= limits.total_bytes);
  std::string out;
  out.reserve(kHeaderBytes + 8 * frame.blobs.size() + total);
  put(out, kFrameMagic);
  put(out, kFrameVersion);
  put(out, static_cast<uint16_t>(frame.type));
  put(out, static_cast<uint32_t>(text.size()));
  put(out, static_cast<uint32_t>(frame.blobs.size()));
  for (const std::string& blob : frame.blobs) put(out, uint64_t{blob.size()});
  out += text;
  for (const std::string& blob : frame.blobs) out += blob;
  return out;
}

void FrameReader::feed(std::string_view bytes) {
  if (broken_) return;
  if (begin_ > 0 && begin_ * 2 > buffer_.size()) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<Frame>> FrameReader::next() {
  if (broken_) return *broken_;
  const auto fail = [&](std::string message) -> Result<std::optional<Frame>> {
    broken_ = bad_input("worker frame: " + std::move(message));
    buffer_.clear();
    begin_ = 0;
    return *broken_;
  };
  const size_t available = buffered_bytes();
  if (available < kHeaderBytes) return std::optional<Frame>();
  const char* at = buffer_.data() + begin_;
  if (get(at, 4) != kFrameMagic) return fail("wrong magic");
  if (get(at + 4, 2) != kFrameVersion) {
    return fail("version " + std::to_string(get(at + 4, 2)) + ", this build speaks " +
                std::to_string(kFrameVersion));
  }
  if (!known_type(get(at + 6, 2))) return fail("unknown type " + std::to_string(get(at + 6, 2)));
  const uint64_t json_bytes = get(at + 8, 4), blob_count = get(at + 12, 4);
  if (json_bytes > limits_.json_bytes)
    return fail("JSON of " + std::to_string(json_bytes) + " bytes");
  if (blob_count > limits_.blobs) return fail(std::to_string(blob_count) + " blobs");
  const size_t head = kHeaderBytes + 8 * static_cast<size_t>(blob_count);
  if (available < head) return std::optional<Frame>();
  uint64_t total = json_bytes;
  std::vector<uint64_t> lengths(blob_count);
  for (size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = get(at + kHeaderBytes + 8 * i, 8);
    if (lengths[i] > limits_.total_bytes)
      return fail("a blob of " + std::to_string(lengths[i]) + " bytes");
    total += lengths[i];
  }
  if (total > limits_.total_bytes) return fail(std::to_string(total) + " bytes in all");
  if (available < head + total) return std::optional<Frame>();

  Frame frame;
  frame.type = static_cast<FrameType>(get(at + 6, 2));
  Result<Json> json = parse_json(std::string_view(at + head, json_bytes), "worker frame");
  if (!json) return fail(json.error().message);
  frame.json = *std::move(json);
  const char* blob = at + head + json_bytes;
  for (uint64_t length : lengths) {
    frame.blobs.emplace_back(blob, length);
    blob += length;
  }
  begin_ += head + total;
  return std::optional<Frame>(std::move(frame));
}

}  // namespace ptxb
