// SPDX-License-Identifier: Apache-2.0
#include "shim/tensor_map.h"

#include <cstring>

namespace ptxb::shim {

namespace {

// CUtensorMapDataType.
enum Type : uint32_t {
  kU8,
  kU16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kF32,
  kF64,
  kBF16,
  kF32Ftz,
  kTF32,
  kTF32Ftz,
  kU4Align8,
  kU4Align16,
  kU6Align16,
};
constexpr uint32_t kBits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
// CUtensorMapSwizzle and the bytes of a row that each works on.
enum Swizzle : uint32_t {
  kSwizzleNone,
  kSwizzle32,
  kSwizzle64,
  kSwizzle128,
  kSwizzle128Atom32,
  kSwizzle128Flip,
  kSwizzle128Atom64,
};
constexpr uint32_t kSwizzleSpan[] = {0, 32, 64, 128, 128, 128, 128};
constexpr uint32_t kInterleaveNone = 0, kInterleave32 = 2;

bool is_wide(uint32_t type) { return type == kU4Align16 || type == kU6Align16; }
bool is_float(uint32_t type) { return type >= kF16 && type <= kTF32Ftz; }
std::string at(const char* what, uint32_t index) {
  return std::string(what) + "[" + std::to_string(index) + "]";
}

std::string enum_fault(const PlanTensorMap& map) {
  if (map.dtype > kU6Align16) return "tensorDataType is no known type";
  if (map.rank < 1 || map.rank > 5) return "tensorRank is not from 1 to 5";
  if (map.interleave > kInterleave32) return "interleave is no known layout";
  if (map.swizzle > kSwizzle128Atom64) return "swizzle is no known pattern";
  if (map.l2_promotion > 3) return "l2Promotion is no known size";
  if (map.oob_fill > 1) return "oobFill is no known fill";
  if (map.interleave != kInterleaveNone && map.rank < 3)
    return "an interleaved layout needs tensorRank >= 3";
  return {};
}

std::string memory_fault(const PlanTensorMap& map) {
  bool by_32 = map.interleave == kInterleave32 || is_wide(map.dtype);
  const char* unit = by_32 ? "32" : "16";
  if (map.address % (by_32 ? 32 : 16))
    return std::string("globalAddress is not a multiple of ") + unit + " bytes";
  for (uint32_t i = 0; i < map.rank; ++i) {
    if (map.dims[i] == 0 || map.dims[i] > (uint64_t{1} << 32))
      return at("globalDim", i) + " is not from 1 to 2^32";
  }
  if (is_wide(map.dtype) && map.dims[0] % 128)
    return "globalDim[0] of this packed type is not a multiple of 128";
  if (map.dtype == kU4Align8 && map.dims[0] % 2)
    return "globalDim[0] of this packed type is not a multiple of 2";
  for (uint32_t i = 0; i + 1 < map.rank; ++i) {
    if (map.strides_bytes[i] % (by_32 ? 32 : 16)) {
      return at("globalStrides", i) + " = " + std::to_string(map.strides_bytes[i]) +
             " is not a multiple of " + unit + " bytes";
    }
    if (map.strides_bytes[i] >= (uint64_t{1} << 40))
      return at("globalStrides", i) + " is not below 2^40";
  }
  return {};
}

std::string box_fault(const PlanTensorMap& map) {
  for (uint32_t i = 0; i < map.rank; ++i) {
    if (map.box[i] == 0 || map.box[i] > 256) {
      return at("boxDim", i) + " = " + std::to_string(map.box[i]) + " is not from 1 to 256";
    }
    bool ignored = i == 0 && map.interleave == kInterleaveNone;
    if (!ignored && (map.element_strides[i] == 0 || map.element_strides[i] > 8)) {
      return at("elementStrides", i) + " is not from 1 to 8";
    }
  }
  if (is_wide(map.dtype) && map.box[0] != 128) return "boxDim[0] of this packed type is not 128";
  uint64_t inner_bits = uint64_t{map.box[0]} * kBits[map.dtype];
  if (map.interleave == kInterleaveNone && !is_wide(map.dtype)) {
    if (inner_bits % 128) return "boxDim[0] times the element size is not a multiple of 16 bytes";
    if (map.swizzle != kSwizzleNone && inner_bits > 8 * kSwizzleSpan[map.swizzle]) {
      return "boxDim[0] times the element size (" + std::to_string(inner_bits / 8) +
             " bytes) exceeds the swizzle span of " + std::to_string(kSwizzleSpan[map.swizzle]) +
             " bytes";
    }
  }
  return {};
}

std::string mode_fault(const PlanTensorMap& map) {
  if (map.interleave == kInterleave32 && map.swizzle != kSwizzle32) {
    return "a 32-byte interleave needs the 32-byte swizzle";
  }
  if (map.dtype == kU6Align16 && map.interleave != kInterleaveNone)
    return "this packed type cannot be interleaved";
  bool plain =
      map.swizzle == kSwizzleNone || map.swizzle == kSwizzle128 || map.swizzle == kSwizzle128Atom32;
  if (map.dtype == kU6Align16 && !plain && map.swizzle != kSwizzle128Atom64) {
    return "this packed type cannot have that swizzle";
  }
  if (map.dtype == kU4Align16 && !plain) return "this packed type cannot have that swizzle";
  if (map.oob_fill == 1 && !is_float(map.dtype)) return "the NaN fill needs a floating-point type";
  return {};
}

}  // namespace

std::string tensor_map_fault(const PlanTensorMap& map) {
  for (auto rule : {enum_fault, memory_fault, box_fault, mode_fault}) {
    if (std::string fault = rule(map); !fault.empty()) return fault;
  }
  return {};
}

std::array<uint8_t, kTensorMapBytes> tensor_map_image(uint32_t index) {
  std::array<uint8_t, kTensorMapBytes> image{};
  std::memcpy(image.data(), kTensorMapMagic.data(), kTensorMapMagic.size());
  std::memcpy(image.data() + kTensorMapMagic.size(), &index, sizeof index);
  return image;
}

}  // namespace ptxb::shim
