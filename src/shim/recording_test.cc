// SPDX-License-Identifier: Apache-2.0
#include "shim/recording.h"

#include <gtest/gtest.h>

#include <cstring>

#include "shim/task_header.h"

namespace ptxb::shim {
namespace {

constexpr uint64_t kPlace = placed_address(0x2444'0000'0000, 256);

Recording sample() {
  Recording r;
  r.detail = "fine";
  r.call = 3;
  r.streams = {StreamKind::Caller, StreamKind::Legacy, StreamKind::NonBlocking};
  r.events = 1;
  r.allocations = {{kPlace, 256}};
  r.symbols = {{0, "table", placed_address(0x2555'0000'0000, 64), 64}};
  PlanModule module;
  module.name = "loaded1";
  module.cubin = std::string(
      "\x7f"
      "ELF\0",
      5);
  r.modules = {module};
  PlanTensorMap map;
  map.rank = 1;
  map.dims[0] = 64;
  map.box[0] = map.element_strides[0] = 1;
  r.tensor_maps = {map};
  Step work;
  work.action = Memset{kPlace, 0, 1, 1, 16, 1};
  Step graph;
  graph.kind = Step::Kind::Graph;
  graph.nodes = {{Memset{kPlace, 0, 2, 1, 16, 1}, {}}, {std::nullopt, {0}}};
  Step event;
  event.kind = Step::Kind::RecordEvent;
  event.stream = 2;
  Step allocate;
  allocate.kind = Step::Kind::Allocate;
  r.calls = {{allocate, work}, {work, event}, {graph}};
  r.refusals = {{2, "cudaLaunchKernel", "the grid is empty"}};
  r.notes = {"ignored"};
  return r;
}

TEST(Recording, JsonRoundTrip) {
  std::string text = to_json(sample()).dump();
  auto json = parse_json(text, "recording");
  ASSERT_TRUE(json);
  auto again = recording_from_json(*json, "recording");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again).dump(), text);
}

TEST(Recording, HostileFilesAreRefusedWithTheirField) {
  struct {
    const char *text, *instead, *complaint;
  } const kCases[] = {
      {"\"ending\":\"complete\"", "\"ending\":\"passed\"", "recording.ending"},
      {"\"call\":3", "\"call\":4", "recording.call"},
      {"\"streams\":[\"caller\"", "\"streams\":[\"mine\"", "recording.streams"},
      {"\"events\":1", "\"events\":0", "there is none"},
      {"\"allocation\":0", "\"allocation\":1", "calls[0][0].allocation"},
      {"\"stream\":2", "\"stream\":3", "calls[1][1].stream"},
      {"\"after\":[0]", "\"after\":[1]", "not an earlier node"},
      {"\"element_bytes\":1", "\"element_bytes\":9", "element_bytes"},
      {"\"notes\":[\"ignored\"]", "\"notes\":[1]", "recording.notes"},
      {"\"refusals\":[", "\"refusals\":[[],", "refusals[0]: expected an object"},
      {"\"cubin\":\"7f", "\"cubin\":\"7g", "modules[0].cubin"},
      {"\"step\":\"allocate\"", "\"step\":\"steal\"", "calls[0][0].step"},
  };
  const std::string good = to_json(sample()).dump();
  for (const auto& one : kCases) {
    std::string text = good;
    size_t at = text.find(one.text);
    ASSERT_NE(at, std::string::npos) << one.text;
    text.replace(at, std::strlen(one.text), one.instead);
    auto json = parse_json(text, "recording");
    ASSERT_TRUE(json);
    auto read = recording_from_json(*json, "recording");
    ASSERT_FALSE(read) << one.instead;
    EXPECT_NE(read.error().message.find(one.complaint), std::string::npos)
        << one.instead << ": " << read.error().message;
  }
}

TEST(Recording, CompleteMeansThreeCalls) {
  Recording r = sample();
  r.calls.pop_back();
  EXPECT_FALSE(recording_from_json(to_json(r), "recording"));
  r.ending = Ending::Unsupported;
  EXPECT_TRUE(recording_from_json(to_json(r), "recording"));
}

TEST(Request, JsonRoundTrip) {
  Request r;
  r.library = "/candidate.so";
  r.binding = Binding::TvmFfi;
  r.chip.product = "NVIDIA H200";
  r.chip.memory_bytes = 1 << 20;
  r.chip.multiprocessors = 132;
  Argument tensor;
  tensor.name = "A";
  tensor.dtype = DType::BF16;
  tensor.shape = {2, 3};
  tensor.size_bytes = 12;
  tensor.addresses = {kPlace, kPlace + 1, kPlace + 2};
  Argument scalar;
  scalar.name = "sm_scale";
  scalar.scalar = true;
  scalar.value = 0.125;
  r.arguments = {tensor, scalar};
  r.axes = {2, -3};
  r.scratch_begin = kPlace;
  std::string text = to_json(r).dump();
  auto json = parse_json(text, "request");
  ASSERT_TRUE(json);
  auto again = request_from_json(*json, "request");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again).dump(), text);
}

Definition gemm() {
  Definition d;
  d.name = "gemm";
  d.axes = {{"M", std::nullopt, ""}, {"N", 128, ""}, {"K", 64, ""}};
  d.inputs = {{"A", {"M", "K"}, false, DType::BF16, ""}, {"B", {"N", "K"}, false, DType::BF16, ""}};
  d.outputs = {{"C", {"M", "N"}, false, DType::BF16, ""}};
  return d;
}

TEST(TaskHeader, SignatureFollowsTheDefinition) {
  EXPECT_EQ(entry_signature(gemm()),
            "void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int64_t M, "
            "int64_t N, int64_t K, "
            "cudaStream_t stream)");
}

TEST(TaskHeader, ScalarsGoByValueAndNamesBecomeDistinctIdentifiers) {
  Definition d;
  d.axes = {{"B", 4, ""}, {"len indptr", 2, ""}};
  d.inputs = {{"B", {"B"}, false, DType::E4M3, ""},
              {"sm_scale", {}, true, DType::F32, ""},
              {"in", {"B"}, false, DType::I32, ""}};
  d.outputs = {{"2nd", {"B"}, false, DType::F16, ""}};
  EXPECT_EQ(entry_signature(d),
            "void run(const __nv_fp8_e4m3* B, float sm_scale, const int32_t* in_in, __half* p_2nd, "
            "int64_t B_axis, "
            "int64_t len_indptr, cudaStream_t stream)");
}

TEST(TaskHeader, DeclaresTheEntryAndTheTrampoline) {
  std::string text = task_header(gemm());
  EXPECT_NE(text.find("#include <cuda_bf16.h>"), std::string::npos);
  EXPECT_NE(
      text.find(
          "extern \"C\" __attribute__((visibility(\"default\"))) void run(const __nv_bfloat16* A"),
      std::string::npos);
  EXPECT_NE(text.find("void ptxbench_call(void** args)"), std::string::npos);
  EXPECT_NE(text.find("*(cudaStream_t*)args[6]"), std::string::npos) << text;
}

}  // namespace
}  // namespace ptxb::shim
