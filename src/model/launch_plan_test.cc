// SPDX-License-Identifier: Apache-2.0
#include "model/launch_plan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "base/file.h"
#include "base/text.h"

namespace ptxb {
namespace {

constexpr uint64_t kA = placed_address(kWindowBegin, 4096),
                   kC = placed_address(kWindowBegin + (8u << 20), 4000);

std::vector<uint8_t> image(uint32_t index) {
  std::vector<uint8_t> bytes(kTensorMapBytes, 0);
  std::memcpy(bytes.data(), kTensorMapMagic.data(), kTensorMapMagic.size());
  std::memcpy(bytes.data() + 16, &index, 4);
  return bytes;
}

LaunchPlan sample() {
  LaunchPlan plan;
  plan.arch = "sm_90a";
  plan.task = "vector_add";
  plan.axes = {{"N", 1000}};
  plan.buffers = {{"A", BufferRole::Input, kA, 4096}, {"C", BufferRole::Output, kC, 4000}};
  plan.symbols = {{0, "table", placed_address(kWindowBegin + (16u << 20), 64), 64}};
  PlanModule module;
  module.name = "candidate";
  module.ptx = ".version 9.0\n";
  KernelInfo kernel;
  kernel.name = "add";
  kernel.params = {{0, 8}, {8, 4}, {64, 128}};
  module.kernels = {kernel};
  plan.modules = {module};
  PlanTensorMap map;
  map.dtype = 7;
  map.rank = 2;
  map.address = kA;
  map.dims = {32, 32};
  map.strides_bytes = {64};
  map.box = {32, 8};
  map.element_strides = {1, 1};
  plan.tensor_maps = {map};
  KernelLaunch launch;
  launch.kernel = "add";
  launch.grid = {4, 1, 1};
  launch.block = {256, 1, 1};
  launch.params.assign(192, 0);
  std::memcpy(launch.params.data(), &kC, 8);
  std::vector<uint8_t> map_image = image(0);
  std::memcpy(launch.params.data() + 64, map_image.data(), map_image.size());
  plan.steady = {{0, {}, Memset{kC, 0, 0xff, 1, 4000, 1}},
                 {1, {0}, CopyDevice{kC, kA, 100, 0, 0, 1}},
                 {0, {1}, launch},
                 {0, {}, WriteBytes{plan.symbols[0].address, {1, 2, 3}}}};
  return plan;
}

TEST(LaunchPlan, SampleIsValid) {
  auto checked = validate(sample());
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(LaunchPlan, JsonRoundTripKeepsEveryField) {
  LaunchPlan plan = sample();
  Json json = to_json(plan);
  auto again = plan_from_json(json, "plan");
  ASSERT_TRUE(again) << again.error().message;
  again->modules[0].ptx = plan.modules[0].ptx;  // bytes lie beside the JSON
  EXPECT_EQ(to_json(*again).dump(), json.dump());
  EXPECT_EQ(sha256(*again), sha256(plan));
}

TEST(LaunchPlan, DigestCoversModuleBytes) {
  LaunchPlan plan = sample(), other = sample();
  other.modules[0].ptx += " ";
  EXPECT_NE(sha256(plan), sha256(other));
}

TEST(LaunchPlan, FolderRoundTripAndTamperedModuleIsRefused) {
  auto folder = TempFolder::make("plan");
  ASSERT_TRUE(folder);
  LaunchPlan plan = sample();
  ASSERT_TRUE(write_plan(plan, folder->path().string()));
  auto again = read_plan(folder->path().string());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->modules[0].ptx, plan.modules[0].ptx);
  EXPECT_EQ(sha256(*again), sha256(plan));
  std::ofstream(folder->path() / "module0.ptx") << "other";
  auto tampered = read_plan(folder->path().string());
  ASSERT_FALSE(tampered);
  EXPECT_NE(tampered.error().message.find("module0.ptx"), std::string::npos)
      << tampered.error().message;
}

TEST(LaunchPlan, ShowNamesBuffersAndKernels) {
  std::string text = show(sample());
  EXPECT_NE(text.find("launch add <<<4, 256>>>(C, 0, tensor_map 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("copy A -> C, 100 B"), std::string::npos) << text;
}

TEST(LaunchPlan, PlacementPutsTheLastByteAtTheEndOfAMapping) {
  EXPECT_EQ(placed_address(kWindowBegin, kMappingBytes), kWindowBegin);
  EXPECT_EQ(placed_address(kWindowBegin, 1), kWindowBegin + kMappingBytes - 256);
  EXPECT_EQ(placed_address(kWindowBegin, 0), kWindowBegin + kMappingBytes - 256);
  for (uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{256}, kMappingBytes, kMappingBytes + 1,
                        3 * kMappingBytes}) {
    EXPECT_EQ(mapping_begin(placed_address(kWindowBegin, size), size), kWindowBegin) << size;
  }
}

struct Change {
  const char* text;  // in the sample's JSON
  const char* instead;
  const char* complaint;  // what the error must say
};

TEST(LaunchPlan, MalformedJsonIsRefusedWithItsField) {
  const Change kChanges[] = {
      {"ptxbench.launch_plan/1", "ptxbench.launch_plan/2", "plan.schema"},
      {"\"arch\":\"sm_90a\"", "\"arch\":90", "plan.arch: expected text"},
      {"\"arch\":\"sm_90a\"", "\"arc\":\"sm_90a\"", "plan.arch: missing"},
      {"\"axes\":{\"N\":1000}", "\"axes\":{\"N\":10.5}", "plan.axes.N"},
      {"\"axes\":{\"N\":1000}", "\"axes\":[]", "plan.axes: expected an object"},
      {"\"role\":\"input\"", "\"role\":\"inptu\"", "plan.buffers[0].role"},
      {"\"size_bytes\":4096", "\"size_bytes\":-1", "plan.buffers[0].size_bytes"},
      {"\"size_bytes\":4096", "\"size_bytes\":4096,\"extra\":1", "unknown key \"extra\""},
      {"\"address\":\"0x2000001ff000\"", "\"address\":35184374181888",
       "plan.buffers[0].address: expected text"},
      {"\"address\":\"0x2000001ff000\"", "\"address\":\"0xzz\"", "plan.buffers[0].address"},
      {"\"op\":\"memset\"", "\"op\":\"menset\"", "plan.steady[0].op"},
      {"\"after\":[0]", "\"after\":[\"0\"]", "plan.steady[1].after[0]"},
      {"\"grid\":[4,1,1]", "\"grid\":[4,1]", "plan.steady[2].grid: expected 3 items"},
      {"\"grid\":[4,1,1]", "\"grid\":[4294967296,1,1]", "plan.steady[2].grid[0]"},
      {"\"bytes\":\"010203\"", "\"bytes\":\"01020\"", "plan.steady[3].bytes"},
      {"\"cooperative\":false", "\"cooperative\":0", "plan.steady[2].cooperative"},
      {"\"rank\":2", "\"rank\":6", "plan.tensor_maps[0].rank"},
      {"\"dims\":[32,32]", "\"dims\":[32]", "plan.tensor_maps[0].dims"},
      {"\"params\":[[0,8],[8,4],[64,128]]", "\"params\":[[0,8],[8,4],[64]]", "params[2]"},
      {"\"params\":[[0,8],[8,4],[64,128]]", "\"params\":[[0,8],[8,4],[64,-2]]", "params[2]"},
  };
  const std::string good = to_json(sample()).dump();
  for (const Change& change : kChanges) {
    std::string text = good;
    size_t at = text.find(change.text);
    ASSERT_NE(at, std::string::npos) << change.text;
    text.replace(at, std::strlen(change.text), change.instead);
    auto json = parse_json(text, "plan");
    ASSERT_TRUE(json) << json.error().message;
    auto plan = plan_from_json(*json, "plan");
    ASSERT_FALSE(plan) << change.instead;
    EXPECT_EQ(plan.error().code, ErrorCode::BadInput);
    EXPECT_NE(plan.error().message.find(change.complaint), std::string::npos)
        << change.instead << " gave: " << plan.error().message;
  }
}

struct Nonsense {
  void (*spoil)(LaunchPlan&);
  const char* complaint;
};

KernelLaunch& launch_of(LaunchPlan& plan) { return std::get<KernelLaunch>(plan.steady[2].action); }

TEST(LaunchPlan, NonsenseIsRefusedWithItsOperation) {
  const Nonsense kCases[] = {
      {[](LaunchPlan& p) { p.buffers[0].address += 256; }, "buffers[0]"},
      {[](LaunchPlan& p) { p.buffers[0].address = 4096; }, "outside the address window"},
      {[](LaunchPlan& p) { p.buffers[0].size_bytes = ~uint64_t{0}; }, "outside the address window"},
      {[](LaunchPlan& p) { p.buffers[1].name = "A"; }, "a name used twice"},
      {[](LaunchPlan& p) { p.buffers[0].role = BufferRole::Scratch; }, "inputs come first"},
      {[](LaunchPlan& p) {
         p.buffers[1].address = kA;
         p.buffers[1].size_bytes = 4096;
       },
       "overlaps"},
      {[](LaunchPlan& p) { p.symbols[0].module = 1; }, "symbols[0]"},
      {[](LaunchPlan& p) { p.modules[0].ptx.clear(); }, "neither PTX nor cubin"},
      {[](LaunchPlan& p) { p.modules[0].kernels.push_back(p.modules[0].kernels[0]); },
       "listed twice"},
      {[](LaunchPlan& p) {
         p.modules[0].kernels[0].params = {{0, 8}, {4, 4}};
       },
       "parameters overlap"},
      {[](LaunchPlan& p) { p.tensor_maps[0].address = kWindowBegin; }, "tensor_maps[0]"},
      {[](LaunchPlan& p) { p.tensor_maps[0].box[1] = 257; }, "tensor_maps[0]"},
      {[](LaunchPlan& p) { p.tensor_maps.clear(); }, "steady[2].params: byte 64"},
      {[](LaunchPlan& p) { launch_of(p).kernel = "sub"; },
       "steady[2]: module 0 has no kernel \"sub\""},
      {[](LaunchPlan& p) { launch_of(p).params.pop_back(); }, "steady[2].params: 191 bytes"},
      {[](LaunchPlan& p) { launch_of(p).grid.x = 0; }, "steady[2].grid"},
      {[](LaunchPlan& p) { launch_of(p).grid.y = 65536; }, "steady[2].grid"},
      {[](LaunchPlan& p) {
         launch_of(p).block = {32, 33, 1};
       },
       "steady[2].block"},
      {[](LaunchPlan& p) {
         launch_of(p).cluster = {3, 1, 1};
       },
       "steady[2].cluster"},
      {[](LaunchPlan& p) {
         launch_of(p).cluster = {2, 0, 1};
       },
       "steady[2].cluster"},
      {[](LaunchPlan& p) { p.steady[1].after = {1}; }, "steady[1].after"},
      {[](LaunchPlan& p) { std::get<Memset>(p.steady[0].action).width_elements = 4001; },
       "steady[0]: 4001 bytes"},
      {[](LaunchPlan& p) { std::get<Memset>(p.steady[0].action).element_bytes = 3; },
       "steady[0].element_bytes"},
      {[](LaunchPlan& p) { std::get<Memset>(p.steady[0].action).value = 256; }, "steady[0].value"},
      {[](LaunchPlan& p) { std::get<Memset>(p.steady[0].action).height = ~uint64_t{0}; },
       "steady[0]"},
      {[](LaunchPlan& p) { std::get<CopyDevice>(p.steady[1].action).source = kC + 3950; },
       "steady[1].source"},
      {[](LaunchPlan& p) { std::get<CopyDevice>(p.steady[1].action).width_bytes = ~uint64_t{0}; },
       "steady[1]"},
      {[](LaunchPlan& p) { std::get<WriteBytes>(p.steady[3].action).bytes.clear(); },
       "steady[3]: empty"},
      {[](LaunchPlan& p) {
         p.setup = p.steady;
         p.setup[2].after = {9};
       },
       "setup[2].after"},
  };
  size_t index = 0;
  for (const Nonsense& one : kCases) {
    LaunchPlan plan = sample();
    one.spoil(plan);
    auto checked = validate(plan);
    ASSERT_FALSE(checked) << "case " << index;
    EXPECT_EQ(checked.error().code, ErrorCode::BadInput);
    EXPECT_NE(checked.error().message.find(one.complaint), std::string::npos)
        << "case " << index << " gave: " << checked.error().message;
    ++index;
  }
}

TEST(DType, NamesRoundTrip) {
  for (DType type : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::E4M3, DType::E5M2,
                     DType::I64, DType::I32, DType::I16, DType::I8, DType::U8, DType::Bool}) {
    EXPECT_EQ(parse_dtype(name(type)), type);
  }
  EXPECT_EQ(size_bytes(DType::BF16), 2);
  EXPECT_FALSE(parse_dtype("bfloat"));
}

}  // namespace
}  // namespace ptxb
