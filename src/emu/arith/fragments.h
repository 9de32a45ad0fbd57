// Owns the lane maps of ldmatrix, stmatrix and movmatrix: which lane and register holds which
// matrix element. Never touches memory: addresses and rows are given as data. Source: PTX ISA
// 9.7.14.5.15-17.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ptxb::emu::arith {

// ldmatrix/stmatrix .m8n8.x{1,2,4}.b16: lane 8*i + r supplies the address of row r of matrix i (16
// bytes a row).
struct MatrixRow {
  int matrix;
  int row;
};
inline MatrixRow ldmatrix_address_of_lane(int lane) { return {lane / 8, lane % 8}; }
inline int ldmatrix_lane_of_row(MatrixRow row) { return 8 * row.matrix + row.row; }

enum class MatrixOrder : uint8_t { Row, Transposed };  // .trans

// rows[r] points to the 16 bytes of row r of one 8x8 matrix of b16; d is its register (32 lanes).
// Row: lane 4r+c holds elements (r, 2c) low and (r, 2c+1) high. Transposed: (2c, r) low and (2c+1,
// r) high.
void ldmatrix_b16(uint32_t* d, const uint8_t* const rows[8], MatrixOrder order);
// The inverse: writes the 16 bytes of each row.
void stmatrix_b16(uint8_t* const rows[8], const uint32_t* a, MatrixOrder order);
// movmatrix.sync.aligned.m8n8.trans.b16. d may be a.
void movmatrix_b16(uint32_t* d, const uint32_t* a);

// Where an element of D of m16n8 (f32/s32 accumulators) lives: register 0..3, lane = 4 * (row % 8)
// + column / 2.
struct FragmentPlace {
  int lane;
  int reg;
};
inline FragmentPlace accumulator_place(int row, int column) {
  return {4 * (row % 8) + column / 2, 2 * (row / 8) + column % 2};
}

}  // namespace ptxb::emu::arith
