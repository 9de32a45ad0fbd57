// The recorder's pure parts, linked directly: tensor-map rules, occupancy, device answers, module
// images, entry points.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "shim/device.h"
#include "shim/module_image.h"
#include "shim/occupancy.h"
#include "shim/tensor_map.h"

namespace ptxb::shim {
namespace {

ChipLimits h200() {
  ChipLimits c;
  c.product = "NVIDIA H200";
  c.major = 9;
  c.multiprocessors = 132;
  c.max_threads_per_block = 1024;
  c.max_threads_per_multiprocessor = 2048;
  c.max_blocks_per_multiprocessor = 32;
  c.registers_per_multiprocessor = 65536;
  c.max_registers_per_thread = 255;
  c.shared_per_multiprocessor_bytes = 233472;
  c.shared_per_block_bytes = 49152;
  c.shared_per_block_optin_bytes = 232448;
  c.reserved_shared_bytes = 1024;
  c.max_cluster_size = 8;
  c.max_cluster_size_nonportable = 16;
  c.memory_bytes = uint64_t{141} << 30;
  return c;
}

PlanTensorMap good_map() {
  PlanTensorMap map;
  map.dtype = 9;  // bf16
  map.rank = 2;
  map.address = 0x2000'0000'0000;
  map.dims = {7168, 128};
  map.strides_bytes = {14336};
  map.box = {64, 128};
  map.element_strides = {1, 1};
  map.swizzle = 3;
  return map;
}

TEST(TensorMap, DocumentedRulesAreChecked) {
  EXPECT_EQ(tensor_map_fault(good_map()), "");
  struct {
    void (*spoil)(PlanTensorMap&);
    const char* fault;
  } const kCases[] = {
      {[](PlanTensorMap& m) { m.dtype = 16; }, "tensorDataType"},
      {[](PlanTensorMap& m) { m.rank = 0; }, "tensorRank"},
      {[](PlanTensorMap& m) { m.rank = 6; }, "tensorRank"},
      {[](PlanTensorMap& m) { m.interleave = 1; }, "needs tensorRank >= 3"},
      {[](PlanTensorMap& m) { m.interleave = 3; }, "interleave is no known"},
      {[](PlanTensorMap& m) { m.swizzle = 7; }, "swizzle is no known"},
      {[](PlanTensorMap& m) { m.l2_promotion = 4; }, "l2Promotion"},
      {[](PlanTensorMap& m) { m.oob_fill = 2; }, "oobFill"},
      {[](PlanTensorMap& m) { m.address += 8; }, "globalAddress is not a multiple of 16"},
      {[](PlanTensorMap& m) { m.dims[1] = 0; }, "globalDim[1]"},
      {[](PlanTensorMap& m) { m.dims[0] = (uint64_t{1} << 32) + 1; }, "globalDim[0]"},
      {[](PlanTensorMap& m) { m.strides_bytes[0] = 14344; }, "globalStrides[0] = 14344"},
      {[](PlanTensorMap& m) { m.strides_bytes[0] = uint64_t{1} << 40; }, "below 2^40"},
      {[](PlanTensorMap& m) { m.box[1] = 257; }, "boxDim[1] = 257"},
      {[](PlanTensorMap& m) { m.box[0] = 0; }, "boxDim[0] = 0"},
      {[](PlanTensorMap& m) { m.box[0] = 4; }, "multiple of 16 bytes"},
      {[](PlanTensorMap& m) { m.box[0] = 128; }, "exceeds the swizzle span of 128 bytes"},
      {[](PlanTensorMap& m) { m.swizzle = 1; }, "exceeds the swizzle span of 32 bytes"},
      {[](PlanTensorMap& m) { m.element_strides[1] = 9; }, "elementStrides[1]"},
      {[](PlanTensorMap& m) { m.element_strides[1] = 0; }, "elementStrides[1]"},
      {[](PlanTensorMap& m) {
         m.dtype = 0;
         m.oob_fill = 1;
       },
       "NaN fill"},
      {[](PlanTensorMap& m) {
         m.dtype = 15;
         m.dims[0] = 7168;
       },
       "boxDim[0] of this packed type"},
      {[](PlanTensorMap& m) {
         m.dtype = 14;
         m.address += 16;
       },
       "globalAddress is not a multiple of 32"},
  };
  for (const auto& one : kCases) {
    PlanTensorMap map = good_map();
    one.spoil(map);
    EXPECT_NE(tensor_map_fault(map).find(one.fault), std::string::npos)
        << one.fault << ": " << tensor_map_fault(map);
  }
}

TEST(TensorMap, LegalVariantsPass) {
  void (*const kLegal[])(PlanTensorMap&) = {
      [](PlanTensorMap& m) { m.element_strides[0] = 0; },  // ignored without an interleave
      [](PlanTensorMap& m) {
        m.swizzle = 0;
        m.box[0] = 256;
      },
      [](PlanTensorMap& m) { m.strides_bytes[0] = 0; },
      [](PlanTensorMap& m) { m.oob_fill = 1; },
      [](PlanTensorMap& m) {
        m.dtype = 15;
        m.box[0] = 128;
        m.strides_bytes[0] = 14336;
      },
  };
  for (auto change : kLegal) {
    PlanTensorMap map = good_map();
    change(map);
    EXPECT_EQ(tensor_map_fault(map), "");
  }
}

TEST(Occupancy, FollowsThreadsRegistersAndSharedMemory) {
  struct {
    uint32_t registers, static_shared;
    uint64_t threads, dynamic_shared;
    uint32_t blocks;
  } const kCases[] = {
      {16, 0, 256, 0, 8},      {32, 0, 1024, 0, 2},     {168, 0, 384, 200 << 10, 1},
      {255, 0, 256, 0, 1},     {128, 0, 128, 0, 4},     {40, 0, 32, 0, 32},
      {16, 16384, 128, 0, 13}, {16, 0, 128, 231424, 1}, {16, 0, 128, 232449, 0},
      {255, 0, 1024, 0, 0},    {16, 0, 0, 0, 0},        {16, 0, 2048, 0, 0},
  };
  for (const auto& one : kCases) {
    KernelInfo kernel;
    kernel.registers = one.registers;
    kernel.static_shared_bytes = one.static_shared;
    EXPECT_EQ(blocks_per_multiprocessor(h200(), kernel, one.threads, one.dynamic_shared),
              one.blocks)
        << one.registers << " registers, " << one.threads << " threads, " << one.dynamic_shared
        << " bytes";
  }
}

TEST(Device, AnswersComeFromTheChip) {
  EXPECT_EQ(device_attribute(h200(), 16), 132);
  EXPECT_EQ(device_attribute(h200(), 75), 9);
  EXPECT_EQ(device_attribute(h200(), 97), 232448);
  EXPECT_EQ(device_attribute(h200(), 0), std::nullopt);
  EXPECT_EQ(device_attribute(h200(), 148), std::nullopt);
  abi::DeviceProperties p = device_properties(h200());
  EXPECT_STREQ(p.name, "NVIDIA H200");
  EXPECT_EQ(p.shared_per_block_optin, 232448u);
  EXPECT_STREQ(error_name(9), "cudaErrorInvalidConfiguration");
  EXPECT_STREQ(driver_error_name(1), "CUDA_ERROR_INVALID_VALUE");
  EXPECT_EQ(driver_error_name(9), nullptr);
  EXPECT_EQ(error_name(12345), nullptr);
}

TEST(ModuleImage, PtxKernelsHaveTheirParameters) {
  auto image = read_image(
      ".version 8.0\n.target sm_90a\n.address_size 64\n.global .align 4 .b8 table[64];\n"
      ".visible .entry k(.param .u64 a, .param .u32 b, .param .align 64 .b8 m[128])\n.maxntid 256, "
      "1, 1\n{\n ret;\n}\n");
  ASSERT_TRUE(image) << image.error().message;
  ASSERT_EQ(image->module.kernels.size(), 1u);
  const KernelInfo& kernel = image->module.kernels[0];
  EXPECT_EQ(kernel.name, "k");
  ASSERT_EQ(kernel.params.size(), 3u);
  EXPECT_EQ(kernel.params[2].offset_bytes, 64u);
  EXPECT_EQ(kernel.params[2].size_bytes, 128u);
  EXPECT_EQ(kernel.max_threads, 256u);
  EXPECT_EQ(image->variables.at("table"), 64u);
}

TEST(ModuleImage, MalformedImagesAreErrorsNotCrashes) {
  EXPECT_FALSE(read_image("hello"));
  EXPECT_FALSE(
      read_image(std::string("\x7f"
                             "ELF",
                             4)));
  std::string header(64, '\0');
  std::memcpy(header.data(),
              "\x7f"
              "ELF\x02",
              5);
  header[18] = static_cast<char>(190);
  for (size_t i = 40; i < 64; ++i) header[i] = static_cast<char>(0xff);  // sections far outside
  EXPECT_FALSE(read_image(header));
  uint32_t fat[] = {0xba55ed50, 0, 0, 0};
  auto bytes = image_bytes(fat);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::Unsupported);
}

}  // namespace
}  // namespace ptxb::shim
