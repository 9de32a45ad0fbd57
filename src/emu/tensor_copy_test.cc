// SPDX-License-Identifier: Apache-2.0
#include "emu/tensor_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace ptxb::emu {
namespace {

PlanTensorMap matrix(uint32_t dtype, uint64_t columns, uint64_t rows, uint32_t box_columns,
                     uint32_t box_rows, uint32_t swizzle) {
  PlanTensorMap map;
  map.dtype = dtype;
  map.rank = 2;
  map.address = 0x1000;
  map.dims = {columns, rows, 0, 0, 0};
  map.strides_bytes = {columns * 2, 0, 0, 0};
  map.box = {box_columns, box_rows, 0, 0, 0};
  map.element_strides = {1, 1, 1, 1, 1};
  map.swizzle = swizzle;
  return map;
}
constexpr uint32_t kBf16 = 9;

TEST(TensorShape, KeepsBoxesOfTheDriversDescription) {
  auto shape = tensor_shape(matrix(kBf16, 128, 100, 64, 32, 3));
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->row_bytes, 128u);
  EXPECT_EQ(shape->rows, 32u);
  EXPECT_EQ(shape->box_bytes(), 4096u);
  EXPECT_EQ(shape->repeat_bytes, 1024u);
}

TEST(TensorShape, RefusesWhatTheDriverRefuses) {
  EXPECT_FALSE(tensor_shape(
      matrix(kBf16, 128, 100, 128, 32, 3)));  // 256 bytes do not fit a 128-byte swizzle
  EXPECT_FALSE(tensor_shape(matrix(kBf16, 128, 100, 4, 32, 0)));  // rows of 8 bytes
  EXPECT_FALSE(tensor_shape(matrix(kBf16, 128, 100, 64, 257, 0)));
  EXPECT_FALSE(tensor_shape(matrix(13, 128, 100, 64, 32, 0)));
  EXPECT_FALSE(tensor_shape(matrix(kBf16, 128, 100, 64, 32, 4)));  // atoms: sm_100
  PlanTensorMap interleaved = matrix(kBf16, 128, 100, 64, 32, 0);
  interleaved.interleave = 1;
  auto refused = tensor_shape(interleaved);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("interleave"), std::string::npos);
}

std::vector<TensorRow> rows_of(const TensorShape& shape, std::array<int32_t, 5> start) {
  std::vector<TensorRow> rows;
  each_row(shape, start, [&](const TensorRow& row) {
    rows.push_back(row);
    return true;
  });
  return rows;
}

TEST(TensorRows, AreCutAtTheTensorsEdges) {
  auto shape = tensor_shape(matrix(kBf16, 96, 3, 64, 4, 0));
  ASSERT_TRUE(shape);
  auto right = rows_of(*shape, {64, 1});
  ASSERT_EQ(right.size(), 4u);
  EXPECT_EQ(right[0].first, 0u);
  EXPECT_EQ(right[0].count, 32u);
  EXPECT_EQ(right[0].address, 0x1000u + 192 + 128);
  EXPECT_EQ(right[1].count, 32u);
  EXPECT_EQ(right[2].count, 0u);  // row 3 does not exist
  auto left = rows_of(*shape, {-8, -1});
  EXPECT_EQ(left[0].count, 0u);
  EXPECT_EQ(left[1].first, 8u);
  EXPECT_EQ(left[1].count, 56u);
  EXPECT_EQ(left[1].address, 0x1000u);
  EXPECT_EQ(rows_of(*shape, {96, 0})[0].count, 0u);
}

TEST(TensorRows, TakeEveryNthElementOfOuterDimensions) {
  PlanTensorMap map = matrix(kBf16, 64, 10, 64, 5, 0);
  map.element_strides = {1, 2, 1, 1, 1};
  auto shape = tensor_shape(map);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->rows, 3u);  // ceil(5 / 2)
  auto rows = rows_of(*shape, {0, 1});
  EXPECT_EQ(rows[2].address, 0x1000u + 5 * 128);
}

TEST(TensorRows, WalkFiveDimensionsInnermostFirst) {
  PlanTensorMap map;
  map.dtype = 7;  // f32
  map.rank = 5;
  map.address = 0x2000;
  map.dims = {4, 2, 2, 2, 2};
  map.strides_bytes = {16, 32, 64, 128};
  map.box = {4, 2, 2, 2, 2};
  map.element_strides = {1, 1, 1, 1, 1};
  auto shape = tensor_shape(map);
  ASSERT_TRUE(shape);
  auto rows = rows_of(*shape, {});
  ASSERT_EQ(rows.size(), 16u);
  for (uint32_t k = 0; k < 16; ++k) {
    EXPECT_EQ(rows[k].shared_offset, 16 * k);
    EXPECT_EQ(rows[k].address, 0x2000u + 16 * k);
  }
}

// Which chunk of 16 bytes of row r lies at chunk position c of the 128-byte line.
std::vector<int> chunks_of_row(uint32_t swizzle, uint32_t columns, uint32_t row) {
  auto shape = tensor_shape(matrix(kBf16, columns, 8, columns, 8, swizzle));
  EXPECT_TRUE(shape);
  std::vector<uint8_t> window(8 * columns * 2, 0xee);
  for (uint32_t r = 0; r < 8; ++r) {
    std::vector<uint8_t> source(columns * 2);
    for (size_t k = 0; k < source.size(); ++k) source[k] = static_cast<uint8_t>(16 * r + k / 16);
    put_row(*shape, window.data(), 0, {r * columns * 2, 0, columns, 0}, source.data());
  }
  std::vector<int> chunks;
  for (uint32_t c = 0; c < columns * 2 / 16; ++c)
    chunks.push_back(window[row * columns * 2 + 16 * c]);
  return chunks;
}

// PTX ISA 5.5.6, figures of the swizzle modes.
TEST(TensorSwizzle, MatchesThePtxTables) {
  EXPECT_EQ(chunks_of_row(3, 64, 0),
            (std::vector<int>{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07}));
  EXPECT_EQ(chunks_of_row(3, 64, 1),
            (std::vector<int>{0x11, 0x10, 0x13, 0x12, 0x15, 0x14, 0x17, 0x16}));
  EXPECT_EQ(chunks_of_row(3, 64, 5),
            (std::vector<int>{0x55, 0x54, 0x57, 0x56, 0x51, 0x50, 0x53, 0x52}));
  // 64 bytes: rows 2 and 3 share a 128-byte line, which flips bit 4.
  EXPECT_EQ(chunks_of_row(2, 32, 1), (std::vector<int>{0x10, 0x11, 0x12, 0x13}));
  EXPECT_EQ(chunks_of_row(2, 32, 2), (std::vector<int>{0x21, 0x20, 0x23, 0x22}));
  EXPECT_EQ(chunks_of_row(2, 32, 7), (std::vector<int>{0x73, 0x72, 0x71, 0x70}));
  // 32 bytes: four rows a line.
  EXPECT_EQ(chunks_of_row(1, 16, 3), (std::vector<int>{0x30, 0x31}));
  EXPECT_EQ(chunks_of_row(1, 16, 4), (std::vector<int>{0x41, 0x40}));
}

TEST(TensorSwizzle, GetRowUndoesPutRow) {
  for (uint32_t swizzle : {0u, 1u, 2u, 3u}) {
    uint32_t columns = swizzle == 1 ? 16 : swizzle == 2 ? 32 : 64;
    auto shape = tensor_shape(matrix(kBf16, columns, 8, columns, 8, swizzle));
    ASSERT_TRUE(shape);
    std::vector<uint8_t> window(4096), source(columns * 2), back(columns * 2);
    std::iota(source.begin(), source.end(), uint8_t{1});
    TensorRow row{3 * columns * 2, 0, columns, 0};
    put_row(*shape, window.data(), 128, row, source.data());
    get_row(*shape, window.data(), 128, row, back.data());
    EXPECT_EQ(source, back) << swizzle;
  }
}

// As an H200 gives it.
TEST(TensorSwizzle, NarrowRowsKeepTheSwizzlesPitch) {
  auto shape = tensor_shape(matrix(kBf16, 24, 8, 24, 8, 3));  // rows of 48 bytes in lines of 128
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->box_bytes(), 384u);
  std::vector<uint8_t> window(1024, 0xee), source(48);
  for (size_t k = 0; k < 48; ++k) source[k] = static_cast<uint8_t>(k / 8);
  put_row(*shape, window.data(), 0, {3 * 128, 0, 24, 0}, source.data());
  std::vector<int> groups;
  for (uint32_t g = 0; g < 16; ++g) groups.push_back(window[384 + 8 * g]);
  EXPECT_EQ(groups, (std::vector<int>{0xee, 0xee, 4, 5, 2, 3, 0, 1, 0xee, 0xee, 0xee, 0xee, 0xee,
                                      0xee, 0xee, 0xee}));
}

TEST(TensorTypes, Tf32IsRoundedAsAnH200Does) {
  const uint32_t in[8] = {0x3f801fff, 0x3f801000, 0x3f803000, 0x00401800,
                          0x7f800000, 0x7f7fffff, 0xffc12345, 0x007fffff};
  const uint32_t rounded[8] = {0x3f802000, 0x3f800000, 0x3f804000, 0x00402000,
                               0x7f800000, 0x7f800000, 0x7fffe000, 0x00800000};
  for (uint32_t type : {7u, 10u, 11u, 12u}) {
    PlanTensorMap map = matrix(type, 8, 1, 8, 1, 0);
    map.strides_bytes = {32, 0, 0, 0};
    auto shape = tensor_shape(map);
    ASSERT_TRUE(shape);
    uint32_t out[8] = {};
    put_row(*shape, reinterpret_cast<uint8_t*>(out), 0, {0, 0, 8, 0},
            reinterpret_cast<const uint8_t*>(in));
    for (int k = 0; k < 8; ++k)
      EXPECT_EQ(out[k], type < 11 ? in[k] : rounded[k]) << type << " " << k;
  }
}

TEST(TensorFill, OutsideIsZeroOrNan) {
  PlanTensorMap map = matrix(kBf16, 8, 1, 16, 1, 0);
  for (uint32_t fill : {0u, 1u}) {
    map.oob_fill = fill;
    auto shape = tensor_shape(map);
    ASSERT_TRUE(shape);
    std::vector<uint16_t> window(16, 0x1111), source(8, 0x3f80);
    put_row(*shape, reinterpret_cast<uint8_t*>(window.data()), 0, {0, 4, 8, 0},
            reinterpret_cast<const uint8_t*>(source.data()));
    EXPECT_EQ(window[3], fill ? 0x7ff7 : 0);
    EXPECT_EQ(window[4], 0x3f80);
    EXPECT_EQ(window[11], 0x3f80);
    EXPECT_EQ(window[12], fill ? 0x7ff7 : 0);
  }
}

}  // namespace
}  // namespace ptxb::emu
