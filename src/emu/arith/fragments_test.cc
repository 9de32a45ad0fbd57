// Checks the ldmatrix, stmatrix and movmatrix maps with index-coded matrices.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/fragments.h"

#include <cstring>

#include <gtest/gtest.h>

namespace ptxb::emu::arith {
namespace {

// Element (r, c) of the matrix is 16 * r + c.
struct CodedMatrix {
  CodedMatrix() {
    for (int r = 0; r < 8; ++r) {
      for (int c = 0; c < 8; ++c) element[r][c] = static_cast<uint16_t>(16 * r + c);
      rows[r] = reinterpret_cast<const uint8_t*>(element[r]);
    }
  }
  uint16_t element[8][8];
  const uint8_t* rows[8];
};

TEST(Fragments, LdmatrixGivesLaneFourRPlusCTheElementsTwoC) {
  CodedMatrix m;
  uint32_t d[32];
  ldmatrix_b16(d, m.rows, MatrixOrder::Row);
  EXPECT_EQ(d[0], 0x0001'0000u);
  EXPECT_EQ(d[5], 0x0013'0012u);  // row 1, columns 2 and 3
  EXPECT_EQ(d[31], 0x0077'0076u);
  ldmatrix_b16(d, m.rows, MatrixOrder::Transposed);
  EXPECT_EQ(d[0], 0x0010'0000u);
  EXPECT_EQ(d[5], 0x0031'0021u);  // rows 2 and 3, column 1
  EXPECT_EQ(d[31], 0x0077'0067u);
}

TEST(Fragments, StmatrixUndoesLdmatrix) {
  CodedMatrix m;
  for (MatrixOrder order : {MatrixOrder::Row, MatrixOrder::Transposed}) {
    uint32_t registers[32];
    ldmatrix_b16(registers, m.rows, order);
    uint16_t copy[8][8] = {};
    uint8_t* rows[8];
    for (int r = 0; r < 8; ++r) rows[r] = reinterpret_cast<uint8_t*>(copy[r]);
    stmatrix_b16(rows, registers, order);
    EXPECT_EQ(std::memcmp(copy, m.element, sizeof copy), 0);
  }
}

TEST(Fragments, MovmatrixTransposesInPlace) {
  CodedMatrix m;
  uint32_t row[32], transposed[32];
  ldmatrix_b16(row, m.rows, MatrixOrder::Row);
  ldmatrix_b16(transposed, m.rows, MatrixOrder::Transposed);
  movmatrix_b16(row, row);
  EXPECT_EQ(std::memcmp(row, transposed, sizeof row), 0);
}

TEST(Fragments, AddressLanesAndAccumulatorPlaces) {
  EXPECT_EQ(ldmatrix_address_of_lane(19).matrix, 2);
  EXPECT_EQ(ldmatrix_address_of_lane(19).row, 3);
  EXPECT_EQ(ldmatrix_lane_of_row({3, 7}), 31);
  EXPECT_EQ(accumulator_place(9, 3).lane, 5);
  EXPECT_EQ(accumulator_place(9, 3).reg, 3);
}

}  // namespace
}  // namespace ptxb::emu::arith
