// Owns the element moves of ldmatrix, stmatrix and movmatrix (see fragments.h).
// Never computes addresses.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/fragments.h"

#include <cstring>

namespace ptxb::emu::arith {
namespace {

uint32_t load_half(const uint8_t* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void store_half(uint8_t* bytes, uint32_t value) {
  uint16_t half = static_cast<uint16_t>(value);
  std::memcpy(bytes, &half, sizeof half);
}

}  // namespace

void ldmatrix_b16(uint32_t* d, const uint8_t* const rows[8], MatrixOrder order) {
  for (int lane = 0; lane < 32; ++lane) {
    int major = lane / 4;
    int minor = 2 * (lane % 4);
    if (order == MatrixOrder::Row) {
      std::memcpy(&d[lane], rows[major] + 2 * minor, 4);
    } else {
      d[lane] = load_half(rows[minor] + 2 * major) | (load_half(rows[minor + 1] + 2 * major) << 16);
    }
  }
}

void stmatrix_b16(uint8_t* const rows[8], const uint32_t* a, MatrixOrder order) {
  for (int lane = 0; lane < 32; ++lane) {
    int major = lane / 4;
    int minor = 2 * (lane % 4);
    if (order == MatrixOrder::Row) {
      std::memcpy(rows[major] + 2 * minor, &a[lane], 4);
    } else {
      store_half(rows[minor] + 2 * major, a[lane]);
      store_half(rows[minor + 1] + 2 * major, a[lane] >> 16);
    }
  }
}

void movmatrix_b16(uint32_t* d, const uint32_t* a) {
  uint8_t storage[8][16];
  uint8_t* rows[8];
  const uint8_t* const_rows[8];
  for (int r = 0; r < 8; ++r) const_rows[r] = rows[r] = storage[r];
  stmatrix_b16(rows, a, MatrixOrder::Row);
  ldmatrix_b16(d, const_rows, MatrixOrder::Transposed);
}

}  // namespace ptxb::emu::arith
