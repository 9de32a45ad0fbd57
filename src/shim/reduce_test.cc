// The reduction on hand-made recordings: order over streams and events, graphs, lifetimes, and what
// a forged file gets.
// SPDX-License-Identifier: Apache-2.0
#include "shim/reduce.h"

#include <gtest/gtest.h>

#include <cstring>

#include "shim/order.h"
#include "shim/tensor_map.h"

namespace ptxb::shim {
namespace {

constexpr uint64_t kTensorBytes = 4096;
constexpr uint64_t kTensor[3] = {placed_address(0x2111'0000'0000, kTensorBytes),
                                 placed_address(0x2222'0000'0000, kTensorBytes),
                                 placed_address(0x2333'0000'0000, kTensorBytes)};
constexpr uint32_t kCaller = 0, kLegacy = 1, kBlocking = 2, kSide = 3;

KernelLaunch launch(uint64_t pointer, uint32_t number = 0) {
  KernelLaunch out;
  out.kernel = "k";
  out.params.resize(16);
  std::memcpy(out.params.data(), &pointer, 8);
  std::memcpy(out.params.data() + 8, &number, 4);
  return out;
}

Step work(uint32_t stream, PlanAction action = launch(0)) {
  Step step;
  step.stream = stream;
  step.action = std::move(action);
  return step;
}
Step step(Step::Kind kind, uint32_t stream, uint32_t event = 0) {
  Step out;
  out.kind = kind;
  out.stream = stream;
  out.event = event;
  return out;
}
Step record(uint32_t event, uint32_t stream) {
  return step(Step::Kind::RecordEvent, stream, event);
}
Step wait(uint32_t stream, uint32_t event) { return step(Step::Kind::WaitEvent, stream, event); }
Step memory(Step::Kind kind, uint32_t allocation) {
  Step out;
  out.kind = kind;
  out.allocation = allocation;
  return out;
}

Request request() {
  Request out;
  KernelInfo kernel;
  kernel.name = "k";
  kernel.params = {{0, 8}, {8, 4}, {12, 4}};
  out.kernels = {kernel};
  Argument tensor;
  tensor.name = "C";
  tensor.output = true;
  tensor.shape = {1024};
  tensor.size_bytes = kTensorBytes;
  tensor.addresses = {kTensor[0], kTensor[1], kTensor[2]};
  out.arguments = {tensor};
  return out;
}

Recording recording(std::vector<Step> a, std::vector<Step> b, std::vector<Step> c) {
  Recording out;
  out.streams = {StreamKind::Caller, StreamKind::Legacy, StreamKind::Blocking,
                 StreamKind::NonBlocking};
  out.events = 8;
  for (uint32_t i = 0; i < 4; ++i) {
    out.allocations.push_back({placed_address(0x2444'0000'0000 + i * 2 * kMappingBytes, 256), 256});
  }
  out.calls = {std::move(a), std::move(b), std::move(c)};
  return out;
}

struct OrderCase {
  const char* what;
  std::vector<Step> steps;
  bool ends, starts;                         // all work is ordered before the end, after the start
  std::vector<std::vector<uint32_t>> after;  // of each operation
};

TEST(Order, StreamsEventsAndHostWaits) {
  const OrderCase kCases[] = {
      {"one stream", {work(kCaller), work(kCaller)}, true, true, {{}, {}}},
      {"legacy stream", {work(kLegacy), work(kCaller)}, true, true, {{}, {}}},
      {"side stream alone", {work(kSide)}, false, false, {{}}},
      {"forked, not joined", {record(0, kCaller), wait(kSide, 0), work(kSide)}, false, true, {{}}},
      {"joined, not forked", {work(kSide), record(0, kSide), wait(kCaller, 0)}, true, false, {{}}},
      {"fork and join",
       {work(kCaller), record(0, kCaller), wait(kSide, 0), work(kSide), record(1, kSide),
        wait(kCaller, 1), work(kCaller)},
       true,
       true,
       {{}, {0}, {1}}},
      {"blocking stream through the legacy one",
       {work(kLegacy), work(kBlocking), work(kLegacy)},
       true,
       true,
       {{}, {0}, {1}}},
      {"blocking stream alone", {work(kBlocking)}, false, false, {{}}},
      {"host waits for the side stream",
       {work(kSide), step(Step::Kind::SyncStream, kSide), work(kCaller)},
       true,
       false,
       {{}, {0}}},
      {"host waits at both ends",
       {step(Step::Kind::SyncStream, kCaller), work(kSide), step(Step::Kind::SyncDevice, 0)},
       true,
       true,
       {{}}},
      {"host waits for an event",
       {record(0, kCaller), work(kCaller), step(Step::Kind::SyncEvent, 0, 0), work(kSide)},
       false,
       true,
       {{}, {}}},
      {"cudaFree waits for all work",
       {record(0, kCaller), wait(kSide, 0), work(kSide), memory(Step::Kind::Free, 0)},
       true,
       true,
       {{}}},
      {"event recorded before the work",
       {record(0, kSide), work(kSide), wait(kCaller, 0)},
       false,
       false,
       {{}}},
      {"event of an earlier call",
       {wait(kSide, 5), work(kSide), record(0, kSide), wait(kCaller, 0)},
       true,
       false,
       {{}}},
  };
  for (const OrderCase& one : kCases) {
    auto ordered = order(recording({}, {}, {}), one.steps);
    ASSERT_TRUE(ordered) << one.what;
    EXPECT_EQ(!ordered->after_end, one.ends) << one.what;
    EXPECT_EQ(!ordered->before_start, one.starts) << one.what;
    std::vector<std::vector<uint32_t>> after;
    for (const OrderedWork& w : ordered->work) after.push_back(w.after);
    EXPECT_EQ(after, one.after) << one.what;
  }
}

TEST(Order, GraphBranchesRunSideBySide) {
  Step graph = step(Step::Kind::Graph, kCaller);
  PlanAction action = launch(0);
  graph.nodes = {{action, {}}, {action, {0}}, {action, {0}}, {std::nullopt, {1, 2}}, {action, {3}}};
  auto ordered = order(recording({}, {}, {}), {work(kCaller), graph, work(kCaller)});
  ASSERT_TRUE(ordered);
  ASSERT_EQ(ordered->work.size(), 6u);
  EXPECT_NE(ordered->work[2].stream, ordered->work[3].stream);
  EXPECT_EQ(ordered->work[3].after, std::vector<uint32_t>{1});
  EXPECT_EQ(ordered->work[4].stream == 0 ? ordered->work[4].after.size() : 1, 1u);
  EXPECT_FALSE(ordered->after_end);
  EXPECT_FALSE(ordered->before_start);
}

TEST(Order, ManyConcurrentStreamsAreALimitNotAHang) {
  Recording many = recording({}, {}, {});
  std::vector<Step> steps;
  for (uint32_t i = 0; i < 200; ++i) {
    many.streams.push_back(StreamKind::NonBlocking);
    steps.push_back(work(4 + i));
  }
  steps.push_back(step(Step::Kind::SyncDevice, 0));
  auto ordered = order(many, steps);
  ASSERT_FALSE(ordered);
  EXPECT_EQ(ordered.error().code, ErrorCode::Limit);
}

std::vector<Step> simple(int call, uint32_t number = 0) {
  return {work(kCaller, launch(kTensor[call], number))};
}

Result<std::variant<LaunchPlan, NoPlan>> reduced(const Recording& r) {
  return reduce(request(), r);
}

TEST(Reduce, EqualCallsNeedNoSetup) {
  auto out = reduced(recording(simple(0), simple(1), simple(2)));
  ASSERT_TRUE(out) << out.error().message;
  auto* plan = std::get_if<LaunchPlan>(&*out);
  ASSERT_TRUE(plan) << std::get<NoPlan>(*out).cause;
  EXPECT_TRUE(plan->setup.empty());
  ASSERT_EQ(plan->steady.size(), 1u);
  ASSERT_EQ(plan->buffers.size(), 1u);
  EXPECT_EQ(plan->buffers[0].address, kTensor[1]);
}

TEST(Reduce, FirstCallThatDiffersIsTheSetupOnThePlansBuffers) {
  auto out = reduced(recording(
      {work(kCaller, launch(kTensor[0])), work(kCaller, Memset{kTensor[0], 0, 0, 1, 16, 1})},
      simple(1), simple(2)));
  ASSERT_TRUE(out);
  auto& plan = std::get<LaunchPlan>(*out);
  ASSERT_EQ(plan.setup.size(), 2u);
  EXPECT_EQ(std::get<Memset>(plan.setup[1].action).address, kTensor[1]);
  EXPECT_EQ(std::get<KernelLaunch>(plan.setup[0].action).params, launch(kTensor[1]).params);
}

TEST(Reduce, PersistentScratchStaysWhereItIs) {
  Recording r = recording({}, {}, {});
  uint64_t scratch = r.allocations[0].address;
  r.calls = {{memory(Step::Kind::Allocate, 0), work(kCaller, Memset{scratch, 0, 0, 4, 4, 1}),
              work(kCaller, launch(scratch))},
             {work(kCaller, launch(scratch))},
             {work(kCaller, launch(scratch))}};
  auto out = reduced(r);
  ASSERT_TRUE(out);
  auto& plan = std::get<LaunchPlan>(*out);
  EXPECT_EQ(plan.setup.size(), 2u);
  ASSERT_EQ(plan.buffers.size(), 2u);
  EXPECT_EQ(plan.buffers[1].address, scratch);
  EXPECT_EQ(plan.buffers[1].role, BufferRole::Scratch);
}

struct RefusedCase {
  const char* what;
  Verdict verdict;
  const char* cause;
  Recording recording;
};

std::vector<RefusedCase> refused_cases() {
  std::vector<RefusedCase> out;
  auto add = [&out](const char* what, Verdict verdict, const char* cause, Recording r) {
    out.push_back({what, verdict, cause, std::move(r)});
  };
  add("nothing", Verdict::LaunchError, "launched nothing", recording({}, {}, {}));
  add("memset only", Verdict::LaunchError, "launched nothing",
      recording({}, {work(kCaller, Memset{kTensor[1], 0, 0, 1, 4, 1})}, {}));
  add("a counter", Verdict::LaunchUnsupported, "parameter 1 is 0x2 in call 2 and 0x3 in call 3",
      recording(simple(0, 1), simple(1, 2), simple(2, 3)));
  add("a kept pointer", Verdict::LaunchUnsupported,
      "tensor C of call 1 (a pointer kept from an earlier call)",
      recording(simple(0), simple(0), simple(0)));
  add("alternating pointers", Verdict::LaunchUnsupported,
      "tensor C of call 1 in call 2 and tensor C of call 2 in call 3",
      recording(simple(0), simple(0), simple(1)));
  add("more work", Verdict::LaunchUnsupported, "call 2 makes 1 operations and call 3 makes 2",
      recording(simple(0), simple(1),
                {work(kCaller, launch(kTensor[2])), work(kCaller, launch(kTensor[2]))}));
  add("other order", Verdict::LaunchUnsupported, "is ordered differently",
      recording({}, {work(kCaller, launch(kTensor[1])), work(kCaller, launch(kTensor[1]))},
                {work(kCaller, launch(kTensor[2])), record(0, kCaller), wait(kSide, 0),
                 work(kSide, launch(kTensor[2])), record(1, kSide), wait(kCaller, 1)}));
  add("unjoined side stream", Verdict::LaunchError,
      "before the end of the caller's stream: operation 0 (launch of k)",
      recording({}, {work(kSide, launch(kTensor[1]))}, {}));
  {
    Recording r = recording({}, {}, {});
    uint64_t scratch = r.allocations[0].address;
    r.calls[1] = {memory(Step::Kind::Allocate, 0), memory(Step::Kind::Free, 0),
                  work(kCaller, launch(scratch + 16))};
    add("use after free", Verdict::LaunchError, "scratch of 256 bytes that was freed before",
        std::move(r));
  }
  {
    Recording r = recording({}, {}, {});
    r.calls[1] = {memory(Step::Kind::Allocate, 0), work(kCaller, launch(r.allocations[0].address))};
    r.calls[2] = {memory(Step::Kind::Allocate, 1),
                  work(kCaller, launch(r.allocations[1].address + 8))};
    add("another place in scratch", Verdict::LaunchUnsupported, "scratch allocation 0 in call 2",
        std::move(r));
  }
  return out;
}

TEST(Reduce, UnexplainedOrUnorderedWorkIsRefusedInWords) {
  for (const RefusedCase& one : refused_cases()) {
    auto out = reduced(one.recording);
    ASSERT_TRUE(out) << one.what << ": " << out.error().message;
    auto* none = std::get_if<NoPlan>(&*out);
    ASSERT_TRUE(none) << one.what;
    EXPECT_EQ(name(none->verdict), name(one.verdict)) << one.what;
    EXPECT_NE(none->cause.find(one.cause), std::string::npos) << one.what << ": " << none->cause;
  }
}

TEST(Reduce, ScratchOfEachCallIsMatchedByOrderAndSize) {
  Recording r = recording({}, {}, {});
  for (uint32_t call = 0; call < 3; ++call) {
    r.calls[call] = {memory(Step::Kind::Allocate, call),
                     work(kCaller, launch(r.allocations[call].address)),
                     memory(Step::Kind::Free, call)};
  }
  auto out = reduced(r);
  ASSERT_TRUE(out);
  ASSERT_TRUE(std::holds_alternative<LaunchPlan>(*out)) << std::get<NoPlan>(*out).cause;
  EXPECT_TRUE(std::get<LaunchPlan>(*out).setup.empty());
  r.allocations[2].address += 0x2555'0000'0000 - 0x2444'0000'0000;
  r.allocations[2].address = placed_address(mapping_begin(r.allocations[2].address, 256), 512);
  r.allocations[2].size_bytes = 512;
  std::memcpy(std::get<KernelLaunch>(*r.calls[2][1].action).params.data(),
              &r.allocations[2].address, 8);
  auto other = reduced(r);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_TRUE(std::holds_alternative<NoPlan>(*other));
}

TEST(Reduce, TensorMapsAreComparedByWhatTheyDescribe) {
  Recording r = recording({}, {}, {});
  for (int call = 0; call < 3; ++call) {
    PlanTensorMap map;
    map.rank = 1;
    map.address = kTensor[call];
    map.dims[0] = 64;
    map.box[0] = 16;
    map.element_strides[0] = 1;
    r.tensor_maps.push_back(map);
    auto image = tensor_map_image(static_cast<uint32_t>(call));
    KernelLaunch with_map = launch(0);
    with_map.params.assign(image.begin(), image.end());
    r.calls[static_cast<size_t>(call)] = {work(kCaller, with_map)};
  }
  auto out = reduced(r);
  ASSERT_TRUE(out);
  auto* plan = std::get_if<LaunchPlan>(&*out);
  ASSERT_TRUE(plan) << std::get<NoPlan>(*out).cause;
  ASSERT_EQ(plan->tensor_maps.size(), 1u);
  EXPECT_EQ(plan->tensor_maps[0].address, kTensor[1]);
  EXPECT_EQ(tensor_map_index(std::get<KernelLaunch>(plan->steady[0].action).params, 0), 0u);
  r.tensor_maps[2].box[0] = 32;
  auto other = reduced(r);
  ASSERT_TRUE(other);
  ASSERT_TRUE(std::holds_alternative<NoPlan>(*other));
  EXPECT_NE(std::get<NoPlan>(*other).cause.find("another shape or mode in call 3"),
            std::string::npos);
}

TEST(Reduce, ForgedPlacesAreBadInput) {
  Recording overlap = recording(simple(0), simple(1), simple(2));
  overlap.allocations.push_back({kTensor[1], kTensorBytes});
  EXPECT_FALSE(reduced(overlap));
  Recording outside = recording(simple(0), simple(1), simple(2));
  outside.allocations.push_back({4096, 256});
  EXPECT_FALSE(reduced(outside));
  Recording no_streams = recording(simple(0), simple(1), simple(2));
  no_streams.streams.clear();
  for (auto& call : no_streams.calls) call.clear();
  EXPECT_FALSE(reduced(no_streams));
}

}  // namespace
}  // namespace ptxb::shim
