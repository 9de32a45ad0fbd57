// Owns digests: SHA-256 for identities that are published, XXH3 for fast comparison of buffers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ptxb {

std::string sha256_hex(std::string_view bytes);  // 64 lower-case hex digits
uint64_t xxh3(std::span<const uint8_t> bytes, uint64_t seed = 0);

}  // namespace ptxb
