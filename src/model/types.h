// Owns the small shared vocabulary of the nouns: element types, 3-D extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ptxb {

// Element types of tensors, spelled as in FlashInfer-Trace files (float32, bfloat16, float8_e4m3fn, int32, bool ...).
enum class DType { F64, F32, F16, BF16, E4M3, E5M2, I64, I32, I16, I8, U8, Bool };

int64_t size_bytes(DType type);
std::string_view name(DType type);
std::optional<DType> parse_dtype(std::string_view text);

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t volume() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

}  // namespace ptxb
