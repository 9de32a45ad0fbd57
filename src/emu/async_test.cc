// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "emu/test_plan.h"

namespace ptxb::emu {
namespace {

bool mentions(const Report& report, const std::string& words) {
  for (const Finding& finding : report.findings)
    if (finding.message.find(words) != std::string::npos) return true;
  return report.cause.find(words) != std::string::npos;
}
std::string told(const Report& report) {
  return report.findings.empty() ? "no findings" : report.findings[0].message;
}

const char* const kShared = ".shared .align 8 .b64 bar[4];\n.shared .align 1024 .b8 tile[4096];\n";

// Parameter p0: output buffer; %rd0 its address, %r0 the thread.
std::string with_output(const std::string& body, const std::string& more_params = "") {
  return ptx_kernel(
      ".param .u64 p0" + more_params,
      "ld.param.u64 %rd0, [p0];\nmov.u32 %r0, %tid.x;\nmov.u32 %r63, bar;\nmov.u32 %r62, tile;\n" +
          body,
      kShared);
}

// --- mbarrier
// -------------------------------------------------------------------------------------------------------

TEST(Mbarrier, CountsArrivalsAndFlipsThePhase) {
  TestPlan plan(with_output(R"(
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra DONE;
    mbarrier.init.shared::cta.b64 [bar], 2;
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 1;   // the phase before the first counts as complete
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar], 0;
    mbarrier.arrive.shared::cta.b64 %rd1, [bar];
    mbarrier.arrive.shared::cta.b64 %rd2, [bar];
    mbarrier.test_wait.parity.shared::cta.b64 %p3, [bar], 0;
    mbarrier.test_wait.shared::cta.b64 %p4, [bar], %rd2;
    mbarrier.arrive.shared::cta.b64 %rd3, [bar];
    mbarrier.test_wait.shared::cta.b64 %p5, [bar], %rd3;
    mbarrier.pending_count.b64 %r1, %rd1;
    mbarrier.pending_count.b64 %r2, %rd2;
    selp.u32 %r3, 1, 0, %p1;
    selp.u32 %r4, 1, 0, %p2;
    selp.u32 %r5, 1, 0, %p3;
    selp.u32 %r6, 1, 0, %p4;
    selp.u32 %r7, 1, 0, %p5;
    st.global.v4.u32 [%rd0], {%r1, %r2, %r3, %r4};
    st.global.u32 [%rd0+16], %r5;
    st.global.u32 [%rd0+20], %r6;
    st.global.u32 [%rd0+24], %r7;
    DONE: ret;)"));
  plan.arg(plan.output("out", 28));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
  EXPECT_EQ(plan.read<uint32_t>(0), (std::vector<uint32_t>{2, 1, 1, 0, 1, 1, 0}));
}

TEST(Mbarrier, TryWaitWaitsForOtherWarps) {
  TestPlan plan(with_output(R"(
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra READY;
    mbarrier.init.shared.b64 [bar], 64;
    READY:
    bar.sync 0;
    setp.lt.u32 %p1, %r0, 32;
    @%p1 bra WAIT;
    st.shared.u32 [tile], 77;
    WAIT:
    mbarrier.arrive.shared.b64 _, [bar];
    AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0, 1000;
    @!%p2 bra AGAIN;
    ld.shared.u32 %r1, [tile];
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;)"));
  plan.launch().block = {64, 1, 1};
  plan.arg(plan.output("out", 256));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
  EXPECT_EQ(plan.read<uint32_t>(0), std::vector<uint32_t>(64, 77));
  for (const OpcodeCount& count : report->counts)
    if (count.opcode.rfind("mbarrier.try_wait", 0) == 0) {
      EXPECT_EQ(count.warps, 2u);
    }
  EXPECT_TRUE(report->counts_exact);
}

TEST(Mbarrier, DropsLowerTheNextPhasesCount) {
  TestPlan plan(with_output(R"(
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra DONE;
    mbarrier.init.shared.b64 [bar], 3;
    mbarrier.arrive_drop.shared.b64 _, [bar];
    mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 1;
    mbarrier.arrive.shared.b64 %rd1, [bar];
    mbarrier.arrive.shared.b64 %rd1, [bar];
    mbarrier.pending_count.b64 %r1, %rd1;
    mbarrier.inval.shared.b64 [bar];
    ld.shared.u64 %rd2, [bar];
    st.global.u32 [%rd0], %r1;
    st.global.u64 [%rd0+8], %rd2;
    DONE: ret;)"));
  plan.arg(plan.output("out", 16));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
  EXPECT_EQ(plan.read<uint32_t>(0)[0], 2u);
  EXPECT_EQ(plan.read<uint32_t>(0)[2], 0u);
}

TEST(Mbarrier, NamesMisuse) {
  struct Case {
    const char* body;
    const char* words;
  } cases[] = {
      {"mbarrier.arrive.shared.b64 _, [bar];", "not initialised"},
      {"mbarrier.init.shared.b64 [bar], 0;", "count of 0"},
      {"mbarrier.init.shared.b64 [bar], 1048576;", "count of 1048576"},
      {"mbarrier.init.shared.b64 [bar+4], 1;", "not a multiple of 8"},
      {"mbarrier.init.shared.b64 [bar], 1;\nst.shared.u32 [bar], 5;\nmbarrier.arrive.shared.b64 _, "
       "[bar];",
       "overwritten"},
      {"mbarrier.init.shared.b64 [bar], 2;\nmbarrier.arrive.shared.b64 _, [bar], 3;",
       "more than the phase still expects"},
      {"mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 1;",
       ".noComplete"},
      {"mbarrier.init.shared.b64 [bar], 1;\nmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], "
       "1048576;",
       "transaction count"},
      {"mbarrier.init.b64 [%rd0], 1;", "not in shared memory"},
  };
  for (const Case& each : cases) {
    TestPlan plan(
        with_output("setp.ne.u32 %p0, %r0, 0;\n@%p0 ret;\n" + std::string(each.body) + "\nret;"));
    plan.arg(plan.output("out", 16));
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->status, RunStatus::Fault) << each.body;
    EXPECT_TRUE(mentions(*report, each.words)) << each.body << ": " << told(*report);
  }
}

TEST(Mbarrier, DeadlockNamesPhaseCountsAndTransactions) {
  TestPlan plan(with_output(R"(
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra READY;
    mbarrier.init.shared.b64 [bar+8], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar+8], 48;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar+8], 32;
    READY:
    bar.sync 0;
    AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar+8], 0;
    @!%p2 bra AGAIN;
    ret;)"));
  plan.arg(plan.output("out", 16));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Deadlock);
  EXPECT_TRUE(mentions(*report, "phase 0: 0 of 1 arrivals missing, tx 16 bytes outstanding"))
      << told(*report);
  EXPECT_TRUE(mentions(*report, "last arrival by warp 0")) << told(*report);
}

TEST(Mbarrier, APeekThatFailsGoesOn) {
  // The thread that would complete the phase peeks first: try_wait may return false.
  TestPlan plan(with_output(R"(
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra DONE;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    mbarrier.arrive.shared.b64 _, [bar];
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    selp.u32 %r1, 1, 0, %p1;
    selp.u32 %r2, 1, 0, %p2;
    st.global.v2.u32 [%rd0], {%r1, %r2};
    DONE: ret;)"));
  plan.arg(plan.output("out", 8));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
  EXPECT_EQ(plan.read<uint32_t>(0), (std::vector<uint32_t>{0, 1}));
}

TEST(Mbarrier, ArrivesAtAnotherBlockOfTheCluster) {
  TestPlan plan(with_output(R"(
    mov.u32 %r1, %cluster_ctarank;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    READY:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 bra DONE;
    xor.b32 %r2, %r1, 1;
    mapa.shared::cluster.u32 %r3, %r62, %r2;
    mapa.shared::cluster.u32 %r4, %r63, %r2;
    add.u32 %r5, %r1, 100;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %r5, [%r4];
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4;
    AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
    @!%p2 bra AGAIN;
    ld.shared.u32 %r6, [tile];
    mul.wide.u32 %rd1, %r1, 4;
    add.u64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r6;
    DONE:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;)"));
  plan.launch().grid = {2, 1, 1};
  plan.launch().cluster = {2, 1, 1};
  plan.arg(plan.output("out", 8));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
  EXPECT_EQ(plan.read<uint32_t>(0), (std::vector<uint32_t>{101, 100}));
}

// --- Bulk copies
// ----------------------------------------------------------------------------------------------------

const char* const kBulkTrip = R"(
    ld.param.u64 %rd1, [p1];
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra DONE;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, [bar];
    AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
    @!%p1 bra AGAIN;
    )";

TEST(BulkCopy, GoesThroughSharedMemoryAndBack) {
  for (Mode mode : {Mode::Fast, Mode::Fuzz}) {
    TestPlan plan(with_output(std::string(kBulkTrip) + R"(
      cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 64;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0;
      DONE: ret;)",
                              ", .param .u64 p1"));
    std::vector<uint32_t> in(16);
    for (uint32_t k = 0; k < 16; ++k) in[k] = k * k;
    uint64_t out = plan.output("out", 64), from = plan.buffer("in", in);
    plan.arg(out).arg(from);
    plan.options().mode = mode;
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
    EXPECT_EQ(plan.read<uint32_t>(0), in);
    double bytes = 0;
    for (const OpcodeCount& count : report->counts)
      bytes += count.family == "bulk_copy" ? count.bytes : 0;
    EXPECT_EQ(bytes, 128);
  }
}

TEST(BulkCopy, ReducesIntoGlobalMemory) {
  struct Case {
    const char* operation;
    std::vector<uint32_t> expected;
  } cases[] = {
      {"add.u32", {11, 22, 3, 0xffffffffu}}, {"min.s32", {1, 2, 0, 0xffffffffu}},
      {"max.u32", {10, 20, 3, 0xffffffffu}}, {"inc.u32", {0, 0, 1, 1}},
      {"xor.b32", {11, 22, 3, 0xffffffffu}}, {"dec.u32", {1, 2, 3, 0xffffffffu}},
  };
  for (const Case& each : cases) {
    TestPlan plan(
        with_output(std::string(kBulkTrip) + "cp.reduce.async.bulk.global.shared::cta.bulk_group." +
                        each.operation +
                        " [%rd0], [tile], "
                        "16;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nDONE: ret;",
                    ", .param .u64 p1"));
    std::vector<uint32_t> in(16);
    in[0] = 1, in[1] = 2, in[2] = 3, in[3] = 0xffffffffu;
    uint64_t out = plan.buffer("out", std::vector<uint32_t>{10, 20, 0, 0}),
             from = plan.buffer("in", in);
    plan.arg(out).arg(from);
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
    EXPECT_EQ(plan.read<uint32_t>(0), each.expected) << each.operation;
  }
}

TEST(BulkCopy, NamesBadSizesAddressesAndBounds) {
  struct Case {
    const char* copy;
    const char* words;
  } cases[] = {
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 24, "
       "[bar];",
       "size of 0x18"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+8], [%rd1], 16, "
       "[bar];",
       "destination address"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1+4], 16, "
       "[bar];",
       "source address"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 80, "
       "[bar];",
       "16 bytes past its end"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 64, "
       "[bar+8];",
       "not initialised"},
      {"cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile+4080], 32;", "shared memory"},
  };
  for (const Case& each : cases) {
    TestPlan plan(
        with_output("ld.param.u64 %rd1, [p1];\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 "
                    "ret;\nmbarrier.init.shared::cta.b64 [bar], 1;\n" +
                        std::string(each.copy) + "\nret;",
                    ", .param .u64 p1"));
    uint64_t out = plan.output("out", 64), from = plan.buffer("in", std::vector<uint32_t>(16));
    plan.arg(out).arg(from);
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->status, RunStatus::Fault) << each.copy;
    EXPECT_TRUE(mentions(*report, each.words)) << each.copy << ": " << told(*report);
  }
}

// --- Tensor copies
// --------------------------------------------------------------------------------------------------

// A parameter block: the tensor-map image of map 0, then the output's address.
std::array<uint8_t, 128> image(uint32_t index) {
  std::array<uint8_t, 128> bytes{};
  std::copy(kTensorMapMagic.begin(), kTensorMapMagic.end(), bytes.begin());
  std::memcpy(bytes.data() + 16, &index, 4);
  return bytes;
}
std::string tensor_kernel(const std::string& body) {
  return ptx_kernel(
      ".param .align 64 .b8 map[128], .param .u64 p0",
      "mov.b64 %rd10, map;\ncvta.param.u64 %rd10, %rd10;\nld.param.u64 %rd0, [p0];\nmov.u32 %r0, "
      "%tid.x;\n"
      "setp.ne.u32 %p0, %r0, 0;\n@%p0 bra DONE;\nmbarrier.init.shared::cta.b64 [bar], 1;\n"
      "fence.proxy.async.shared::cta;\n" +
          body + "\nDONE: ret;",
      kShared);
}
PlanTensorMap small_map(uint64_t address) {
  PlanTensorMap map;
  map.dtype = 2;  // u32
  map.rank = 2;
  map.address = address;
  map.dims = {20, 5, 0, 0, 0};
  map.strides_bytes = {80, 0, 0, 0};
  map.box = {8, 4, 0, 0, 0};
  map.element_strides = {1, 1, 1, 1, 1};
  return map;
}

TEST(TensorCopy, LoadsABoxWithZerosOutside) {
  TestPlan plan(tensor_kernel(R"(
    mov.b32 %r1, 16;
    mov.b32 %r2, 3;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd10, {%r1, %r2}], [bar];
    AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
    @!%p1 bra AGAIN;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;)"));
  std::vector<uint32_t> in(100);
  for (uint32_t k = 0; k < 100; ++k) in[k] = 1000 + k;
  uint64_t out = plan.output("out", 128), from = plan.buffer("in", in);
  plan.plan().tensor_maps.push_back(small_map(from));
  plan.arg(image(0)).arg(out);
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
  std::vector<uint32_t> expected(32);
  for (uint32_t r = 0; r < 2; ++r)
    for (uint32_t c = 0; c < 4; ++c) expected[r * 8 + c] = 1000 + (3 + r) * 20 + 16 + c;
  EXPECT_EQ(plan.read<uint32_t>(0), expected);
  for (const OpcodeCount& count : report->counts)
    if (count.family == "tma") {
      EXPECT_EQ(count.bytes, 128);
    }
}

TEST(TensorCopy, StoresOnlyInsideTheTensorAndReduces) {
  for (bool adds : {false, true}) {
    std::string operation =
        adds ? "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
             : "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group";
    TestPlan plan(tensor_kernel(
        "mov.b32 %r1, 16;\nmov.b32 %r2, -1;\nst.shared.u32 [tile+32], 5;\nst.shared.u32 [tile+44], "
        "6;\n"
        "st.shared.u32 [tile+48], 7;\nfence.proxy.async.shared::cta;\n" +
        operation +
        " [%rd10, {%r1, %r2}], [tile];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"));
    uint64_t target = plan.buffer("target", std::vector<uint32_t>(100, 1));
    plan.plan().tensor_maps.push_back(small_map(target));
    plan.arg(image(0)).arg(uint64_t{0});
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
    std::vector<uint32_t> after = plan.read<uint32_t>(0);
    uint32_t old = adds ? 1 : 0;
    EXPECT_EQ(after[15], 1u);
    EXPECT_EQ(after[16], 5 + old);
    EXPECT_EQ(after[19], 6 + old);
    EXPECT_EQ(after[20], 1u);  // column 20 does not exist
    EXPECT_EQ(after[36], old);
  }
}

TEST(TensorCopy, NamesBadMapsAndAlignment) {
  struct Case {
    const char* copy;
    const char* words;
  } cases[] = {
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile+64], "
       "[%rd10, {%r0, %r0}], [bar];",
       "multiple of 128"},
      {"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], "
       "[%rd10, {%r0, %r0, %r0}], [bar];",
       "2 dimensions"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0, "
       "{%r0, %r0}], [bar];",
       "where there is none"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile+4064], "
       "[%rd10, {%r0, %r0}], [bar];",
       "multiple of 128"},
      {"prefetch.tensormap [%rd0];", "tensor map"},
  };
  for (const Case& each : cases) {
    TestPlan plan(tensor_kernel(each.copy));
    uint64_t from = plan.buffer("in", std::vector<uint32_t>(100));
    uint64_t plain = plan.buffer("plain", std::vector<uint32_t>(64));
    plan.plan().tensor_maps.push_back(small_map(from));
    plan.arg(image(0)).arg(plain);
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->status, RunStatus::Fault) << each.copy;
    EXPECT_TRUE(mentions(*report, each.words)) << each.copy << ": " << told(*report);
  }
}

TEST(TensorCopy, MulticastReachesEveryNamedBlock) {
  TestPlan plan(ptx_kernel(".param .align 64 .b8 map[128], .param .u64 p0", R"(
    mov.b64 %rd10, map;
    cvta.param.u64 %rd10, %rd10;
    ld.param.u64 %rd0, [p0];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %cluster_ctarank;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    READY:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 bra DONE;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
    setp.ne.u32 %p1, %r1, 0;
    mov.b32 %r2, 0;
    mov.b16 %rs0, 3;
    @!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd10, {%r2, %r2}], [bar], %rs0;
    AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
    @!%p2 bra AGAIN;
    ld.shared.u32 %r3, [tile+36];
    mul.wide.u32 %rd1, %r1, 4;
    add.u64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r3;
    DONE:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;)",
                           kShared));
  plan.launch().grid = {2, 1, 1};
  plan.launch().cluster = {2, 1, 1};
  std::vector<uint32_t> in(100);
  for (uint32_t k = 0; k < 100; ++k) in[k] = k;
  uint64_t out = plan.output("out", 8), from = plan.buffer("in", in);
  plan.plan().tensor_maps.push_back(small_map(from));
  plan.arg(image(0)).arg(out);
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
  EXPECT_EQ(plan.read<uint32_t>(0), (std::vector<uint32_t>{21, 21}));
}

TEST(TensorCopy, RefusesIm2colByName) {
  TestPlan plan(
      tensor_kernel("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::"
                    "bytes [tile], [%rd10, {%r0, %r0, %r0}], [bar], {%rs0};"));
  plan.arg(image(0)).arg(uint64_t{0});
  auto report = plan.run();
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("im2col"), std::string::npos) << report.error().message;
}

// --- wgmma
// ----------------------------------------------------------------------------------------------------------

// One m64n8k16 of A (K-major, no swizzle) from shared memory: A[r][k] = r where k == 0, else 0;
// B[n][k] = n + 1 where k == 0. D[r][n] = r * (n + 1).
std::string wgmma_kernel(const std::string& before_multiply, const std::string& after) {
  return ptx_kernel(".param .u64 p0", R"(
    ld.param.u64 %rd0, [p0];
    mov.u32 %r0, %tid.x;
    mov.u32 %r62, tile;
    // Core matrices of 8 rows x 16 bytes: row r of A at (r/8)*256 + (r%8)*16, its second half 128 bytes on.
    shr.u32 %r1, %r0, 3;
    and.b32 %r2, %r0, 7;
    shl.b32 %r1, %r1, 8;
    shl.b32 %r2, %r2, 4;
    add.u32 %r1, %r1, %r2;
    add.u32 %r3, %r62, %r1;
    setp.ge.u32 %p0, %r0, 64;
    @%p0 bra ROWS;
    cvt.rn.f32.u32 %f0, %r0;
    cvt.rn.bf16.f32 %rs0, %f0;
    st.shared.b16 [%r3], %rs0;
    setp.ge.u32 %p1, %r0, 8;
    @%p1 bra ROWS;
    add.f32 %f1, %f0, 0f3F800000;
    cvt.rn.bf16.f32 %rs1, %f1;
    st.shared.b16 [%r3+2048], %rs1;
    ROWS:
    fence.proxy.async.shared::cta;
    bar.sync 0;
    and.b32 %r4, %r62, 0x3ffff;
    shr.u32 %r4, %r4, 4;
    cvt.u64.u32 %rd1, %r4;
    or.b64 %rd1, %rd1, 0x0000001000080000;  // leading 128, stride 256 bytes
    add.u64 %rd2, %rd1, 128;
    mov.f32 %f2, 0f42C80000;
    mov.f32 %f3, 0f42C80000;
    mov.f32 %f4, 0f42C80000;
    mov.f32 %f5, 0f42C80000;
)" + before_multiply + R"(
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f2, %f3, %f4, %f5}, %rd1, %rd2, %p2, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
)" + after + R"(
    mul.wide.u32 %rd3, %r0, 16;
    add.u64 %rd4, %rd0, %rd3;
    st.global.v4.f32 [%rd4], {%f2, %f3, %f4, %f5};
    ret;)",
                    kShared);
}

TEST(Wgmma, MultipliesSharedTilesAndScalesD) {
  for (int keep : {0, 1}) {
    TestPlan plan(wgmma_kernel("setp.eq.u32 %p2, 1, " + std::to_string(keep) + ";\n", ""));
    plan.launch().block = {128, 1, 1};
    plan.arg(plan.output("out", 128 * 16));
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->status, RunStatus::Completed) << told(*report);
    std::vector<float> d = plan.read<float>(0);
    for (uint32_t t = 0; t < 128; ++t) {
      for (uint32_t k = 0; k < 4; ++k) {
        uint32_t row = t / 32 * 16 + t % 32 / 4 + k / 2 * 8, column = t % 4 * 2 + k % 2;
        ASSERT_EQ(d[t * 4 + k], static_cast<float>(row * (column + 1) + (keep ? 100 : 0)))
            << t << " " << k;
      }
    }
    for (const OpcodeCount& count : report->counts)
      if (count.family == "wgmma") {
        EXPECT_EQ(count.flops, 2.0 * 64 * 8 * 16);
      }
  }
}

TEST(Wgmma, NeutralisedLeavesTheAccumulator) {
  TestPlan plan(wgmma_kernel("setp.eq.u32 %p2, 1, 1;\n", ""));
  plan.launch().block = {128, 1, 1};
  plan.options().neutralised_family = "wgmma";
  plan.arg(plan.output("out", 128 * 16));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(plan.read<float>(0), std::vector<float>(512, 100.0f));
}

TEST(Wgmma, NamesDescriptorsOutsideSharedMemory) {
  TestPlan plan(wgmma_kernel("setp.eq.u32 %p2, 1, 1;\nadd.u64 %rd2, %rd2, 4096;\n", ""));
  plan.launch().block = {128, 1, 1};
  plan.arg(plan.output("out", 128 * 16));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, RunStatus::Fault);
  EXPECT_TRUE(mentions(*report, "reads operand B")) << told(*report);
}

TEST(Wgmma, NeedsAWholeWarpgroup) {
  TestPlan plan(wgmma_kernel("setp.eq.u32 %p2, 1, 1;\n", ""));
  plan.launch().block = {96, 1, 1};
  plan.arg(plan.output("out", 128 * 16));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status, RunStatus::Fault);
  EXPECT_TRUE(mentions(*report, "whole warpgroup")) << told(*report);
}

}  // namespace
}  // namespace ptxb::emu
