// Tests of single instructions through the whole emulator, in the portable and the wide handlers:
// same bits.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "emu/lanes.h"
#include "emu/test_plan.h"

namespace ptxb::emu {
namespace {

struct Case {
  const char* body;  // reads %r1 %r2 %r3 (32 bits) or %rd11 %rd12 %rd13 (64), leaves its result in
                     // %r10 or %rd10
  std::vector<uint64_t> operands;  // the same in every lane
  uint64_t expected;
  bool wide_in = false, wide_out = false;
};

uint64_t execute(const Case& c, arith::LanePath path, const char* guard) {
  select_lanes(path);
  std::string body = "ld.param.u64 %rd1, [o];\n";
  for (int k = 0; k < 3; ++k) {
    std::string n = std::to_string(k + 1);
    body += "ld.param.u64 %rd1" + n + ", [a" + n + "];\ncvt.u32.u64 %r" + n + ", %rd1" + n + ";\n";
  }
  body +=
      "mov.u32 %r10, 0xdeadbeef;\nmov.u64 %rd10, 0xdeadbeefdeadbeef;\nmov.u32 %r40, "
      "%tid.x;\nand.b32 %r41, %r40, 1;\nsetp.eq.u32 %p9, %r41, 1;\n";
  body += std::string(guard) + "\n" + c.body + "\nEND:\n";
  body += c.wide_out ? "mov.u64 %rd20, %rd10;\n" : "cvt.u64.u32 %rd20, %r10;\n";
  body +=
      "mul.wide.u32 %rd21, %r40, 8;\nadd.s64 %rd22, %rd1, %rd21;\nst.global.u64 [%rd22], "
      "%rd20;\nret;";
  TestPlan plan(ptx_kernel(".param .u64 o, .param .u64 a1, .param .u64 a2, .param .u64 a3", body));
  plan.arg(plan.output("o", 256));
  for (size_t k = 0; k < 3; ++k) plan.arg(k < c.operands.size() ? c.operands[k] : uint64_t{0});
  auto report = plan.run();
  select_lanes(arith::LanePath::Native);
  if (!report) {
    ADD_FAILURE() << c.body << ": " << report.error().message;
    return 0;
  }
  EXPECT_EQ(report->status, RunStatus::Completed) << c.body << report->cause;
  auto out = plan.read<uint64_t>(0);
  uint64_t untouched = c.wide_out ? 0xdeadbeefdeadbeefu : 0xdeadbeefu;
  bool partial = *guard != 0;
  for (size_t l = 0; l < 32; ++l)
    EXPECT_EQ(out[l], partial && l % 2 == 0 ? untouched : out[1]) << c.body << " lane " << l;
  return out[1];
}

const uint64_t kOne = 0x3f800000, kTwo = 0x40000000, kThree = 0x40400000, kInf = 0x7f800000;

const Case kCases[] = {
    {"add.s32 %r10, %r1, %r2;", {5, 0xffffffff}, 4},
    {"add.sat.s32 %r10, %r1, %r2;", {0x7fffffff, 1}, 0x7fffffff},
    {"sub.u32 %r10, %r1, %r2;", {1, 2}, 0xffffffff},
    {"mul.lo.s32 %r10, %r1, %r2;", {0x10001, 0x10001}, 0x20001},
    {"mul.hi.u32 %r10, %r1, %r2;", {0xffffffff, 0xffffffff}, 0xfffffffe},
    {"mul.hi.s32 %r10, %r1, %r2;", {0xffffffff, 2}, 0xffffffff},
    {"mul.wide.s32 %rd10, %r1, %r2;", {0xffffffff, 7}, 0xfffffffffffffff9u, false, true},
    {"mul.wide.u32 %rd10, %r1, %r2;", {0xffffffff, 7}, 0x6fffffff9u, false, true},
    {"mad.lo.s32 %r10, %r1, %r2, %r3;", {3, 4, 5}, 17},
    {"mad.wide.u32 %rd10, %r1, %r2, %rd13;", {0x80000000, 2, 1}, 0x100000001u, false, true},
    {"add.cc.u32 %r4, %r1, %r2;\naddc.u32 %r10, %r3, 0;", {0xffffffff, 1, 41}, 42},
    {"sub.cc.u32 %r4, %r1, %r2;\nsubc.u32 %r10, %r3, 0;", {0, 1, 41}, 40},
    {"div.s32 %r10, %r1, %r2;", {0xfffffff9, 2}, 0xfffffffd},
    {"rem.s32 %r10, %r1, %r2;", {0xfffffff9, 2}, 0xffffffff},
    {"div.u64 %rd10, %rd11, %rd12;", {0xffffffffffffffffu, 16}, 0x0fffffffffffffffu, true, true},
    {"min.s32 %r10, %r1, %r2;", {0xffffffff, 1}, 0xffffffff},
    {"min.u32 %r10, %r1, %r2;", {0xffffffff, 1}, 1},
    {"max.s64 %rd10, %rd11, %rd12;", {0xffffffffffffffffu, 1}, 1, true, true},
    {"abs.s32 %r10, %r1;", {0xfffffffb}, 5},
    {"neg.s64 %rd10, %rd11;", {5}, 0xfffffffffffffffbu, true, true},
    {"popc.b32 %r10, %r1;", {0xf0f0}, 8},
    {"clz.b64 %r10, %rd11;", {1}, 63, true},
    {"brev.b32 %r10, %r1;", {1}, 0x80000000},
    {"bfe.s32 %r10, %r1, %r2, %r3;", {0xf0, 4, 4}, 0xffffffff},
    {"bfe.u32 %r10, %r1, 4, 4;", {0xf0}, 15},
    {"bfi.b32 %r10, %r1, %r2, 8, 8;", {0xab, 0xffffffff}, 0xffffabff},
    {"bfind.u32 %r10, %r1;", {0x80}, 7},
    {"sad.u32 %r10, %r1, %r2, %r3;", {3, 10, 1}, 8},
    {"shl.b32 %r10, %r1, %r2;", {1, 40}, 0},
    {"shr.s32 %r10, %r1, %r2;", {0x80000000, 40}, 0xffffffff},
    {"shl.b64 %rd10, %rd11, %r2;", {1, 40}, uint64_t{1} << 40, true, true},
    {"shf.l.wrap.b32 %r10, %r1, %r2, 8;", {0xaabbccdd, 0x11223344}, 0x223344aa},
    {"shf.r.clamp.b32 %r10, %r1, %r2, 8;", {0xaabbccdd, 0x11223344}, 0x44aabbcc},
    {"lop3.b32 %r10, %r1, %r2, %r3, 0x96;", {0xff00, 0xf0f0, 0xcccc}, 0xff00 ^ 0xf0f0 ^ 0xcccc},
    {"prmt.b32 %r10, %r1, %r2, 0x5410;", {0x33221100, 0x77665544}, 0x55441100},
    {"not.b32 %r10, %r1;", {0xff}, 0xffffff00},
    {"cnot.b32 %r10, %r1;", {0}, 1},
    {"dp4a.s32.u32 %r10, %r1, %r2, %r3;", {0xff, 2, 10}, 8},
    {"setp.lt.s32 %p1, %r1, %r2;\nselp.b32 %r10, 1, 2, %p1;", {0xffffffff, 0}, 1},
    {"setp.lo.u32 %p1, %r1, %r2;\nselp.b32 %r10, 1, 2, %p1;", {0xffffffff, 0}, 2},
    {"setp.eq.s32 %p4, %r1, %r1;\nsetp.eq.and.s32 %p1|%p2, %r1, %r2, %p4;\nselp.b32 %r4, 1, 0, "
     "%p1;\nselp.b32 %r5, 2, 0, %p2;\nor.b32 %r10, %r4, %r5;",
     {4, 4},
     1},
    {"setp.ltu.f32 %p1, %f1, %f2;\nselp.b32 %r10, 1, 2, %p1;", {}, 2},
    {"set.gt.u32.s32 %r10, %r1, %r2;", {5, 4}, 0xffffffff},
    {"slct.s32.s32 %r10, %r1, %r2, %r3;", {1, 2, 0xffffffff}, 2},
    {"mov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\nmov.b32 %f3, %r3;\nfma.rn.f32 %f4, %f1, %f2, "
     "%f3;\nmov.b32 %r10, %f4;",
     {kTwo, kThree, kOne},
     0x40e00000},
    {"mov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\nadd.f32 %f4, %f1, %f2;\nmov.b32 %r10, %f4;",
     {kInf, 0xff800000},
     0x7fffffff},
    {"mov.b32 %f1, %r1;\nadd.ftz.f32 %f4, %f1, 0f00000000;\nmov.b32 %r10, %f4;", {0x00000001}, 0},
    {"mov.b32 %f1, %r1;\ndiv.rn.f32 %f4, 0f3F800000, %f1;\nmov.b32 %r10, %f4;",
     {kThree},
     0x3eaaaaab},
    {"mov.b32 %f1, %r1;\nsqrt.rn.f32 %f4, %f1;\nmov.b32 %r10, %f4;", {kTwo}, 0x3fb504f3},
    {"mov.b32 %f1, %r1;\nmax.f32 %f4, %f1, 0fFFFFFFFF;\nmov.b32 %r10, %f4;", {kTwo}, kTwo},
    {"mov.b64 %fd1, %rd11;\nmov.b64 %fd2, %rd12;\nfma.rn.f64 %fd3, %fd1, %fd2, %fd2;\nmov.b64 "
     "%rd10, %fd3;",
     {0x4000000000000000u, 0x3ff0000000000000u},
     0x4008000000000000u,
     true,
     true},
    {"fma.rn.bf16x2 %r10, %r1, %r2, %r3;", {0x40003f80, 0x40404040, 0x3f803f80}, 0x40e04080},
    {"add.f16x2 %r10, %r1, %r2;", {0x3c003c00, 0x40003c00}, 0x42004000},
    {"cvt.u16.u32 %rs1, %r1;\nadd.s16 %rs2, %rs1, %rs1;\ncvt.s32.s16 %r10, %rs2;",
     {0x4001},
     0xffff8002},
    {"cvt.u16.u32 %rs1, %r1;\nmul.wide.s16 %r10, %rs1, %rs1;", {0xffff}, 1},
    {"cvt.u16.u32 %rs1, %r1;\nshr.s16 %rs2, %rs1, 4;\ncvt.u32.u16 %r10, %rs2;", {0x8000}, 0xf800},
    {"cvt.rn.f32.s32 %f1, %r1;\nmov.b32 %r10, %f1;", {0xffffffff}, 0xbf800000},
    {"mov.b32 %f1, %r1;\ncvt.rzi.s32.f32 %r10, %f1;", {0xc0200000}, 0xfffffffe},
    {"mov.b32 %f1, %r1;\ncvt.rni.sat.u8.f32 %r10, %f1;", {0x44000000}, 255},
    {"mov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\ncvt.rn.bf16x2.f32 %r10, %f1, %f2;",
     {kOne, kTwo},
     0x3f804000},
    {"mov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\ncvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, "
     "%f2;\ncvt.u32.u16 %r10, %rs1;",
     {kOne, kTwo},
     0x3840},
    {"cvt.s64.s32 %rd10, %r1;", {0x80000000}, 0xffffffff80000000u, false, true},
    {"cvt.u32.u64 %r10, %rd11;", {0x1234567890u}, 0x34567890, true},
    {"cvt.sat.s8.s32 %r10, %r1;", {300}, 127},
    {"mov.b64 %rd10, {%r1, %r2};", {1, 2}, 0x200000001u, false, true},
    {"mov.b64 {%r4, %r10}, %rd11;", {0x200000001u}, 2, true},
    {"mov.b32 {%rs1, %rs2}, %r1;\nmov.b32 %r10, {%rs2, %rs1};", {0x11112222}, 0x22221111},
    {"mov.b64 {%rs1, %rs2, %rs3, %rs4}, %rd11;\ncvt.u32.u16 %r10, %rs3;",
     {0x4444333322221111u},
     0x3333,
     true},
    {"setp.ne.u32 %p1, %r1, 0;\nnot.pred %p2, %p1;\nnot.pred %p4, %p2;\nand.pred %p3, %p1, "
     "%p4;\nselp.u32 %r10, 3, 4, %p3;",
     {1},
     3},
    {"lop3.or.b32 %r10|%p1, %r1, %r2, %r3, 0xfe, %p15;", {0, 0, 4}, 4},
    {"mov.u32 %r10, %laneid;\nsub.u32 %r10, %r10, %r40;", {}, 0},
    {"mov.u32 %r10, %ntid.x;", {}, 32},
};

TEST(Operations, GiveTheBitsOfTheirDefinition) {
  for (const Case& c : kCases) {
    for (auto path : {arith::LanePath::Native, arith::LanePath::Portable}) {
      EXPECT_EQ(execute(c, path, ""), c.expected) << c.body;
      EXPECT_EQ(execute(c, path, "@!%p9 bra END;"), c.expected) << "half a warp: " << c.body;
    }
  }
}

// Per-lane results of a body that leaves them in %r10; %r40 is the lane.
std::vector<uint32_t> lanes_of(const std::string& body) {
  TestPlan plan(ptx_kernel(".param .u64 o",
                           "ld.param.u64 %rd1, [o];\nmov.u32 %r40, %laneid;\nmov.u32 %r10, 0;\n" +
                               body +
                               "\nmul.wide.u32 %rd2, %r40, 4;\nadd.s64 %rd3, %rd1, "
                               "%rd2;\nst.global.u32 [%rd3], %r10;\nret;",
                           ".shared .align 16 .b8 s[1024];\n"));
  plan.arg(plan.output("o", 128));
  auto report = plan.run();
  if (!report) {
    ADD_FAILURE() << report.error().message;
    return std::vector<uint32_t>(32);
  }
  EXPECT_EQ(report->status, RunStatus::Completed) << body << "\n" << report->cause;
  return plan.read<uint32_t>(0);
}

TEST(Warp, ShufflesMoveBetweenLanes) {
  auto down = lanes_of("shfl.sync.down.b32 %r10|%p1, %r40, 4, 31, -1;\n@!%p1 mov.u32 %r10, 99;");
  auto up = lanes_of("shfl.sync.up.b32 %r10|%p1, %r40, 2, 0, -1;\n@!%p1 mov.u32 %r10, 99;");
  auto bfly = lanes_of("shfl.sync.bfly.b32 %r10, %r40, 16, 31, -1;");
  auto idx = lanes_of("shfl.sync.idx.b32 %r10, %r40, 3, 0x181f, -1;");  // segments of eight lanes
  for (uint32_t l = 0; l < 32; ++l) {
    EXPECT_EQ(down[l], l < 28 ? l + 4 : 99);
    EXPECT_EQ(up[l], l >= 2 ? l - 2 : 99);
    EXPECT_EQ(bfly[l], l ^ 16);
    EXPECT_EQ(idx[l], (l & 24) + 3);
  }
}

TEST(Warp, VotesMatchesAndReductions) {
  EXPECT_EQ(lanes_of("setp.lt.u32 %p1, %r40, 5;\nvote.sync.ballot.b32 %r10, %p1, -1;")[9], 31u);
  EXPECT_EQ(
      lanes_of(
          "setp.lt.u32 %p1, %r40, 5;\nvote.sync.any.pred %p2, %p1, -1;\nselp.u32 %r10, 1, 0, %p2;")
          [31],
      1u);
  EXPECT_EQ(
      lanes_of(
          "setp.lt.u32 %p1, %r40, 5;\nvote.sync.all.pred %p2, %p1, -1;\nselp.u32 %r10, 1, 0, %p2;")
          [0],
      0u);
  EXPECT_EQ(lanes_of("shr.u32 %r2, %r40, 3;\nmatch.any.sync.b32 %r10, %r2, -1;")[17], 0x00ff0000u);
  EXPECT_EQ(lanes_of("redux.sync.add.u32 %r10, %r40, -1;")[3], 496u);
  EXPECT_EQ(lanes_of("redux.sync.max.s32 %r10, %r40, -1;")[3], 31u);
  EXPECT_EQ(lanes_of("activemask.b32 %r10;")[0], 0xffffffffu);
  auto elected = lanes_of("elect.sync %r2|%p1, -1;\nselp.u32 %r10, 1, 0, %p1;");
  EXPECT_EQ(std::count(elected.begin(), elected.end(), 1u), 1);
}

TEST(Memory, VectorsAndSubWordsKeepTheirPlaces) {
  auto v4 = lanes_of(
      "mov.u32 %r1, s;\nshl.b32 %r2, %r40, 4;\nadd.u32 %r3, %r1, %r2;\nadd.u32 %r4, %r40, "
      "1;\nadd.u32 %r5, %r40, 2;\n"
      "add.u32 %r6, %r40, 3;\nst.shared.v4.u32 [%r3], {%r40, %r4, %r5, %r6};\nbar.warp.sync -1;\n"
      "xor.b32 %r7, %r2, 16;\nadd.u32 %r8, %r1, %r7;\nld.shared.v4.u32 {%r11, %r12, %r13, %r14}, "
      "[%r8];\n"
      "shl.b32 %r12, %r12, 8;\nshl.b32 %r14, %r14, 16;\nor.b32 %r10, %r11, %r12;\nor.b32 %r10, "
      "%r10, %r14;");
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t o = l ^ 1;
    EXPECT_EQ(v4[l], o | (o + 1) << 8 | (o + 3) << 16);
  }
  auto bytes = lanes_of(
      "mov.u32 %r1, s;\nadd.u32 %r2, %r1, %r40;\nsub.u32 %r3, 0, %r40;\nst.shared.u8 [%r2], "
      "%r3;\nbar.warp.sync -1;\nld.shared.s8 %r10, [%r2];");
  EXPECT_EQ(bytes[5], 0xfffffffbu);
}

TEST(Memory, GenericAddressesReachEveryWindow) {
  auto shared = lanes_of(
      "mov.u64 %rd5, s;\ncvta.shared.u64 %rd6, %rd5;\nmul.wide.u32 %rd7, %r40, 4;\nadd.s64 %rd8, "
      "%rd6, %rd7;\n"
      "st.u32 [%rd8], %r40;\nisspacep.shared %p1, %rd8;\nld.u32 %r10, [%rd8];\n@!%p1 mov.u32 %r10, "
      "77;");
  EXPECT_EQ(shared[13], 13u);
  auto local = lanes_of(
      ".local .align 8 .b8 l[16];\nmov.u64 %rd5, l;\ncvta.local.u64 %rd6, %rd5;\nst.u32 [%rd6+8], "
      "%r40;\nld.local.u32 %r10, [%rd5+8];");
  EXPECT_EQ(local[21], 21u);
}

TEST(Memory, AtomicsSumOverLanes) {
  auto add = lanes_of(
      "mov.u32 %r1, s;\nst.shared.u32 [s], 0;\nbar.sync 0;\natom.shared.add.u32 %r10, [%r1], 2;");
  uint64_t sum = 0;
  for (uint32_t v : add) sum += v;
  EXPECT_EQ(sum, 2u * 496u);
  EXPECT_EQ(lanes_of("st.shared.u32 [s], 100;\nbar.sync 0;\nred.shared.min.u32 [s], "
                     "%r40;\nbar.sync 0;\nld.shared.u32 %r10, [s];")[4],
            0u);
  EXPECT_EQ(lanes_of("st.shared.u32 [s], 5;\nbar.sync 0;\natom.shared.cas.b32 %r10, [s], 5, 6;")[1],
            6u);
  EXPECT_EQ(lanes_of("st.shared.u32 [s], 0;\nbar.sync 0;\nred.shared.inc.u32 [s], 9;\nbar.sync "
                     "0;\nld.shared.u32 %r10, [s];")[0],
            2u);
  EXPECT_EQ(lanes_of("st.shared.f32 [s], 0f00000000;\nbar.sync 0;\nred.shared.add.f32 [s], "
                     "0f3F800000;\nbar.sync 0;\nld.shared.u32 %r10, [s];")[0],
            0x42000000u);
  EXPECT_EQ(lanes_of("st.shared.u32 [s], 0;\nbar.sync 0;\nmov.u32 %r2, "
                     "0x3f803f80;\nred.shared.add.noftz.bf16x2 [s], %r2;\nbar.sync "
                     "0;\nld.shared.u32 %r10, [s];")[0],
            0x42004200u);
}

TEST(Async, CopiesFillWithZeros) {
  TestPlan plan(
      ptx_kernel(".param .u64 i, .param .u64 o",
                 "ld.param.u64 %rd1, [i];\nld.param.u64 %rd2, [o];\nmov.u32 %r1, %tid.x;\nshl.b32 "
                 "%r2, %r1, 4;\nmov.u32 %r3, s;\nadd.u32 %r4, %r3, %r2;\n"
                 "cvt.u64.u32 %rd3, %r2;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, "
                 "%rd3;\nand.b32 %r5, %r1, 1;\nshl.b32 %r6, %r5, 3;\n"
                 "cp.async.ca.shared.global [%r4], [%rd4], 16, "
                 "%r6;\ncp.async.commit_group;\ncp.async.wait_group 0;\nbar.warp.sync -1;\n"
                 "ld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [%r4];\nst.global.v4.u32 [%rd5], "
                 "{%r11, %r12, %r13, %r14};\nret;",
                 ".shared .align 16 .b8 s[512];\n"));
  std::vector<uint32_t> in(128);
  for (uint32_t k = 0; k < 128; ++k) in[k] = k + 1;
  uint64_t i = plan.buffer("i", in);
  plan.arg(i).arg(plan.output("o", 512));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  auto out = plan.read<uint32_t>(1);
  for (uint32_t k = 0; k < 128; ++k)
    EXPECT_EQ(out[k], (k / 4) % 2 == 1 && k % 4 < 2 ? k + 1 : 0) << k;
}

}  // namespace
}  // namespace ptxb::emu
