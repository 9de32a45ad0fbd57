// Owns the shape of TMA boxes: which bytes of a tensor lie where in shared memory (PTX ISA 5.5,
// CUDA driver API cuTensorMapEncodeTiled). Pure: knows no warps and no memory of a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/launch_plan.h"

namespace ptxb::emu {

// Shared addresses are permuted by XOR of address bits: `mask` bits from `from` on flip those from
// `to` on.
struct TensorSwizzle {
  uint32_t from = 0, to = 0, mask = 0;
  uint32_t operator()(uint32_t offset) const { return offset ^ ((offset >> from & mask) << to); }
};

// CUtensorMapDataType of the driver.
enum class TensorType : uint8_t {
  UInt8,
  UInt16,
  UInt32,
  SInt32,
  UInt64,
  SInt64,
  F16,
  F32,
  F64,
  BF16,
  F32Ftz,
  TF32,
  TF32Ftz
};

struct TensorShape {
  TensorType type = TensorType::UInt8;
  uint32_t rank = 1, element_bytes = 1;
  uint64_t address = 0;
  std::array<uint64_t, 5> dims{1, 1, 1, 1, 1};
  std::array<uint64_t, 5> strides_bytes{};
  std::array<uint32_t, 5> box{1, 1, 1, 1, 1};    // elements in shared memory
  std::array<uint32_t, 5> steps{1, 1, 1, 1, 1};  // through the tensor, in elements
  uint32_t row_bytes = 0;                        // box[0] elements
  uint32_t pitch_bytes =
      0;  // from row to row in shared memory: the swizzle's width when that is more
  uint32_t rows = 1;
  TensorSwizzle swizzle;
  uint32_t repeat_bytes =
      128;            // bytes after which the swizzle repeats: what aligned boxes are aligned to
  uint64_t fill = 0;  // element of the out-of-bounds pattern
  uint64_t box_bytes() const { return uint64_t{rows} * row_bytes; }       // transaction bytes
  uint64_t shared_bytes() const { return uint64_t{rows} * pitch_bytes; }  // footprint
};
// Errors: Unsupported (named), BadInput (the driver would refuse it).
Result<TensorShape> tensor_shape(const PlanTensorMap& map);

// One row of a box: elements [first, first + count) lie inside the tensor, from `address` on.
struct TensorRow {
  uint32_t shared_offset = 0;  // before the swizzle, from the box's begin
  uint32_t first = 0, count = 0;
  uint64_t address = 0;
};
// Calls visit(TensorRow) for each row of the box at `start`, in shared-memory order; false stops.
template <class Visit>
bool each_row(const TensorShape& shape, const std::array<int32_t, 5>& start, Visit visit) {
  const int64_t x = start[0], width = static_cast<int64_t>(shape.dims[0]), wanted = shape.box[0];
  const int64_t low = x < 0 ? -x : 0, high = width - x < wanted ? width - x : wanted;
  std::array<uint32_t, 5> at{};
  for (uint32_t row = 0; row < shape.rows; ++row) {
    TensorRow r;
    r.shared_offset = row * shape.pitch_bytes;
    bool inside = high > low;
    uint64_t address = shape.address;
    for (uint32_t k = 1; k < shape.rank; ++k) {
      int64_t c = int64_t{start[k]} + int64_t{at[k]} * shape.steps[k];
      inside = inside && c >= 0 && c < static_cast<int64_t>(shape.dims[k]);
      address += static_cast<uint64_t>(c) * shape.strides_bytes[k];
    }
    if (inside) {
      r.first = static_cast<uint32_t>(low);
      r.count = static_cast<uint32_t>(high - low);
      r.address = address + static_cast<uint64_t>(x + low) * shape.element_bytes;
    }
    if (!visit(r)) return false;
    for (uint32_t k = 1; k < shape.rank; ++k) {
      if (++at[k] < shape.box[k]) break;
      at[k] = 0;
    }
  }
  return true;
}

// Shared-memory bytes of a row, put together from and taken apart to 16-byte chunks. `window` is
// the host's byte 0 of the shared window, `box` the box's offset in it (alignment 16).
void put_row(const TensorShape& shape, uint8_t* window, uint32_t box, const TensorRow& row,
             const uint8_t* source);
void get_row(const TensorShape& shape, const uint8_t* window, uint32_t box, const TensorRow& row,
             uint8_t* bytes);

}  // namespace ptxb::emu
