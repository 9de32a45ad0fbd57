// Owns the checks of tensor maps and the moving of rows between swizzled boxes and plain bytes.
// SPDX-License-Identifier: Apache-2.0
#include "emu/tensor_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ptxb::emu {
namespace {

// Values of the driver's enumerations (cuda.h).
enum Interleave : uint32_t { kInterleaveNone = 0 };
enum Swizzle : uint32_t {
  kNone = 0,
  k32 = 1,
  k64 = 2,
  k128 = 3,
  k128Atom32 = 4,
  k128Atom32Flip8 = 5,
  k128Atom64 = 6
};

constexpr uint32_t kTypes = 13;
constexpr uint8_t kElementBytes[kTypes] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

std::string at_dim(const char* what, uint32_t k) {
  return "tensor map: " + std::string(what) + " of dimension " + std::to_string(k);
}

// What CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA fills with, whatever the float type (read
// off an H200).
constexpr uint64_t kNanFill = 0x7ff77ff77ff77ff7;

bool is_float(TensorType type) { return type >= TensorType::F16; }

void set_swizzle(TensorShape& shape, uint32_t mode) {
  uint32_t width = 0;
  switch (mode) {
    case k32:
      shape.swizzle = {7, 4, 1}, width = 32, shape.repeat_bytes = 256;
      break;
    case k64:
      shape.swizzle = {7, 4, 3}, width = 64, shape.repeat_bytes = 512;
      break;
    case k128:
      shape.swizzle = {7, 4, 7}, width = 128, shape.repeat_bytes = 1024;
      break;
    default:
      break;
  }
  shape.pitch_bytes = std::max(shape.row_bytes, width);
}

uint32_t swizzle_width(uint32_t mode) {
  return mode == kNone ? UINT32_MAX : mode == k32 ? 32 : mode == k64 ? 64 : 128;
}

}  // namespace

Result<TensorShape> tensor_shape(const PlanTensorMap& map) {
  if (map.rank < 1 || map.rank > 5)
    return bad_input("tensor map: rank " + std::to_string(map.rank));
  if (map.dtype >= kTypes)
    return unsupported("tensor map: data type " + std::to_string(map.dtype) +
                       " (packed sub-byte types)");
  if (map.interleave != kInterleaveNone) return unsupported("tensor map: interleaved layout");
  if (map.swizzle > k128Atom64)
    return bad_input("tensor map: swizzle " + std::to_string(map.swizzle));
  if (map.swizzle > k128)
    return unsupported(
        "tensor map: swizzle with atoms of 32 or 64 bytes (the driver refuses it for sm_90)");
  TensorShape shape;
  shape.type = static_cast<TensorType>(map.dtype);
  shape.rank = map.rank;
  shape.element_bytes = kElementBytes[map.dtype];
  shape.address = map.address;
  if (map.address % 16) return bad_input("tensor map: the address is not a multiple of 16");
  for (uint32_t k = 0; k < map.rank; ++k) {
    if (map.dims[k] == 0 || map.dims[k] > uint64_t{1} << 32) return bad_input(at_dim("size", k));
    if (map.box[k] == 0 || map.box[k] > 256)
      return bad_input(at_dim("box", k) + " is outside 1..256");
    uint32_t step =
        k == 0 ? 1 : map.element_strides[k];  // the innermost one is ignored without interleave
    if (step == 0 || step > 8) return bad_input(at_dim("element stride", k) + " is outside 1..8");
    uint64_t stride = k == 0 ? shape.element_bytes : map.strides_bytes[k - 1];
    if (k && (stride % 16 || stride >= uint64_t{1} << 40)) return bad_input(at_dim("stride", k));
    shape.dims[k] = map.dims[k];
    shape.strides_bytes[k] = stride;
    shape.steps[k] = step;
    shape.box[k] = (map.box[k] + step - 1) / step;
    if (k) shape.rows *= shape.box[k];
  }
  shape.row_bytes = shape.box[0] * shape.element_bytes;
  if (shape.row_bytes % 16)
    return bad_input("tensor map: the box's rows of " + std::to_string(shape.row_bytes) +
                     " bytes are no multiple of 16");
  if (shape.row_bytes > swizzle_width(map.swizzle))
    return bad_input("tensor map: rows of " + std::to_string(shape.row_bytes) +
                     " bytes are wider than the swizzle");
  set_swizzle(shape, map.swizzle);
  if (shape.shared_bytes() > 256u << 10)
    return bad_input("tensor map: the box is larger than shared memory");
  if (map.oob_fill) shape.fill = is_float(shape.type) ? kNanFill : 0;
  return shape;
}

namespace {

void fill_row(const TensorShape& shape, uint8_t* bytes) {
  if (shape.fill == 0) {
    std::memset(bytes, 0, shape.row_bytes);
    return;
  }
  for (uint32_t k = 0; k < shape.box[0]; ++k)
    std::memcpy(bytes + k * shape.element_bytes, &shape.fill, shape.element_bytes);
}

// Loads of the tf32 types round to nearest even, keep subnormals and make NaNs one pattern; the
// .ftz types flush nothing (both read off an H200).
void round_to_tf32(uint8_t* bytes, uint32_t count) {
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t word;
    std::memcpy(&word, bytes + 4 * k, 4);
    if ((word & 0x7fffffff) > 0x7f800000) {
      word = 0x7fffe000;
    } else {
      word = (word + 0xfff + (word >> 13 & 1)) & ~0x1fffu;
    }
    std::memcpy(bytes + 4 * k, &word, 4);
  }
}

constexpr uint32_t kMostRowBytes = 256 * 8;

}  // namespace

void put_row(const TensorShape& shape, uint8_t* window, uint32_t box, const TensorRow& row,
             const uint8_t* source) {
  alignas(16) uint8_t bytes[kMostRowBytes];
  const uint8_t* from = source;
  bool rounds = shape.type == TensorType::TF32 || shape.type == TensorType::TF32Ftz;
  if (row.count != shape.box[0] || rounds) {
    fill_row(shape, bytes);
    if (row.count)
      std::memcpy(bytes + row.first * shape.element_bytes, source, row.count * shape.element_bytes);
    if (rounds) round_to_tf32(bytes + row.first * shape.element_bytes, row.count);
    from = bytes;
  }
  uint32_t offset = box + row.shared_offset;
  if (shape.swizzle.mask == 0) {
    std::memcpy(window + offset, from, shape.row_bytes);
    return;
  }
  for (uint32_t k = 0; k < shape.row_bytes; k += 16)
    std::memcpy(window + shape.swizzle(offset + k), from + k, 16);
}

void get_row(const TensorShape& shape, const uint8_t* window, uint32_t box, const TensorRow& row,
             uint8_t* bytes) {
  uint32_t offset = box + row.shared_offset;
  for (uint32_t k = 0; k < shape.row_bytes; k += 16)
    std::memcpy(bytes + k, window + shape.swizzle(offset + k), 16);
}

}  // namespace ptxb::emu
