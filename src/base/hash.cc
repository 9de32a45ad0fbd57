// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <openssl/sha.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/text.h"

namespace ptxb {

std::string sha256_hex(std::string_view bytes) {
  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return to_hex(digest);
}

uint64_t xxh3(std::span<const uint8_t> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace ptxb
