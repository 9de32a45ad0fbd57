// Owns the two-column tests of the parser: PTX text | canonical dump, and the facts a Module holds.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace ptxb::ptx {
namespace {

constexpr std::string_view kHead = ".version 9.0\n.target sm_100a\n.address_size 64\n";
constexpr std::string_view kRegisters =
    ".reg .b16 %h<6>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .b128 %q<2>;\n"
    ".reg .f32 %f<10>; .reg .f64 %fd<4>; .reg .pred %p<4>;\n";

Module parsed(std::string_view text) {
  auto module = parse(text, "test.ptx");
  EXPECT_TRUE(module) << module.error().message << "\n" << text;
  return module ? *std::move(module) : Module{};
}

Module kernel(std::string_view body) {
  return parsed(std::string(kHead) +
                ".extern .shared .align 16 .b8 dynamic[];\n"
                ".global .align 4 .b32 counters[4];\n"
                ".extern .func (.param .b32 result) external(.param .b64 a, .param .b32 b);\n"
                ".entry kernel(.param .u64 out, .param .align 64 .b8 map[128])\n{\n" +
                std::string(kRegisters) + std::string(body) + "\n}\n");
}

// The spelling of every instruction of one kernel body, "; " between them.
std::string instructions(std::string_view body) {
  const Module module = kernel(body);
  std::string out;
  if (module.functions.empty()) return out;
  const Function& function = module.functions.back();
  for (const Instruction& each : function.body) {
    if (!out.empty()) out += "; ";
    out += spelling(each, function);
  }
  return out;
}

struct Case {
  const char* text;
  const char* dump;  // nullptr: as the text, without the ';'
};

void expect_dumps(std::span<const Case> cases) {
  for (const Case& each : cases) {
    std::string wanted = each.dump ? each.dump : each.text;
    if (!each.dump) wanted.pop_back();
    EXPECT_EQ(instructions(each.text), wanted) << each.text;
  }
}

TEST(Parse, ScalarInstructions) {
  constexpr Case kCases[] = {
      {"add.rn.ftz.f32 %f1, %f2, %f3;", nullptr},
      {"add.s32 %r1, %r2, -5;", nullptr},
      {"add  .u32\n\t%r1 , %r2,%r3 ;", "add.u32 %r1, %r2, %r3"},
      {"add.cc.u32 %r1, %r2, %r3; addc.cc.u32 %r4, %r5, 0;",
       "add.cc.u32 %r1, %r2, %r3; addc.cc.u32 %r4, %r5, 0"},
      {"mad.lo.s32 %r1, %r2, %r3, %r4;", nullptr},
      {"mul.wide.u32 %rd1, %r2, 4;", nullptr},
      {"mov.u32 %r1, %tid.x;", nullptr},
      {"mov.u32 %r1, %tid .y;", "mov.u32 %r1, %tid.y"},
      {"mov.u64 %rd1, %clock64;", nullptr},
      {"mov.b32 %r1, %envreg7;", nullptr},
      {"mov.u32 %r1, WARP_SZ;", "mov.u32 %r1, 32"},
      {"mov.f32 %f1, 0f3F800000;", nullptr},
      {"mov.f32 %f1, 0F3f800000;", "mov.f32 %f1, 0f3F800000"},
      {"mov.f64 %fd1, 0d3FF0000000000000;", nullptr},
      {"mov.f64 %fd1, 1.0;", "mov.f64 %fd1, 0d3FF0000000000000"},
      {"mov.f64 %fd1, -2.5e1;", "mov.f64 %fd1, 0dC039000000000000"},
      {"mov.f32 %f1, -0f00000000;", "mov.f32 %f1, 0f80000000"},
      {"mov.b64 {%r1, %r2}, %rd1;", nullptr},
      {"mov.b64 %rd1, {%r1, %r2};", nullptr},
      {"mov.b128 %q0, {%rd1, %rd2};", nullptr},
      {"mov.u64 %rd1, counters;", nullptr},
      {"mov.u64 %rd1, counters+8;", nullptr},
      {"mov.u64 %rd1, dynamic+4*4;", "mov.u64 %rd1, dynamic+16"},
      {"mov.u64 %rd1, external;", nullptr},
      {"setp.lt.and.f32 %p1|%p2, %f1, %f2, !%p3;", nullptr},
      {"setp.eq.s32 %p1, %r1, 0; @%p1 add.s32 %r1, %r1, 1; @!%p1 exit;",
       "setp.eq.s32 %p1, %r1, 0; @%p1 add.s32 %r1, %r1, 1; @!%p1 exit"},
      {"selp.b32 %r1, 1, 0, %p1;", nullptr},
      {"lop3.b32 %r1, %r2, %r3, %r4, 0x96;", "lop3.b32 %r1, %r2, %r3, %r4, 150"},
      {"lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0xfe, %p2;",
       "lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 254, %p2"},
      {"prmt.b32.f4e %r1, %r2, %r3, %r4;", nullptr},
      {"shf.l.wrap.b32 %r1, %r2, %r3, 7;", nullptr},
      {"bfi.b32 %r1, %r2, %r3, 8, 4;", nullptr},
      {"dp4a.u32.s32 %r1, %r2, %r3, %r4;", nullptr},
      {"cvt.rn.bf16x2.f32 %r1, %f1, %f2;", nullptr},
      {"cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;", nullptr},
      {"cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;", nullptr},
      {"cvta.to.global.u64 %rd1, %rd2;", nullptr},
      {"cvta.shared.u64 %rd1, dynamic;", nullptr},
      {"ex2.approx.ftz.bf16x2 %r1, %r2;", nullptr},
      {"max.NaN.xorsign.abs.bf16x2 %r1, %r2, %r3;", nullptr},
      {"fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4;", nullptr},
      {"nanosleep.u32 100;", nullptr},
  };
  expect_dumps(kCases);
}

// Checked against ptxas 13.0, which takes exactly these.
TEST(Parse, FloatLiteralsHaveTheTypeOfTheirPlace) {
  constexpr Case kCases[] = {
      {"add.f32 %f1, %f2, 1.5;", "add.f32 %f1, %f2, 0f3FC00000"},
      {"mov.f32 %f1, 1e300;", "mov.f32 %f1, 0f7F800000"},
      {"add.f64 %fd1, %fd2, 0f3FC00000;", "add.f64 %fd1, %fd2, 0d3FF8000000000000"},
      {"add.rn.f32.f16 %f1, %h1, 1.5;", "add.rn.f32.f16 %f1, %h1, 0f3FC00000"},
      {"cvt.rn.f32.f64 %f1, 1.5;", "cvt.rn.f32.f64 %f1, 0d3FF8000000000000"},
      {"cvt.rn.bf16x2.f32 %r1, 1.5, -0.0;", "cvt.rn.bf16x2.f32 %r1, 0f3FC00000, 0f80000000"},
      {"set.lt.f32.f64 %f1, %fd1, 0f3FC00000;", "set.lt.f32.f64 %f1, %fd1, 0d3FF8000000000000"},
      {"slct.f64.f32 %fd1, 1.5, %fd2, 0.5;",
       "slct.f64.f32 %fd1, 0d3FF8000000000000, %fd2, 0f3F000000"},
      {"slct.u32.f32 %r1, %r2, %r3, 0.5;", "slct.u32.f32 %r1, %r2, %r3, 0f3F000000"},
      {"st.global.v2.f32 [%rd1], {1.5, 0f00000000};",
       "st.global.v2.f32 [%rd1], {0f3FC00000, 0f00000000}"},
      {"mov.b32 %r1, 0f3FC00000;", nullptr},
      {"mov.b64 %rd1, 1.5;", "mov.b64 %rd1, 0d3FF8000000000000"},
      {"mov.b64 %rd1, {0f3FC00000, 0f00000000};", nullptr},
      {"createpolicy.fractional.L2::evict_last.b64 %rd1, 0.5;",
       "createpolicy.fractional.L2::evict_last.b64 %rd1, 0f3F000000"},
  };
  expect_dumps(kCases);
}

TEST(Parse, MemoryInstructions) {
  constexpr Case kCases[] = {
      {"ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];", nullptr},
      {"ld.param.u64 %rd1, [out];", nullptr},
      {"ld.param.b64 %rd1, [map+8];", nullptr},
      {"ld.shared.b32 %r1, [dynamic+-4];", nullptr},
      {"ld.shared.b32 %r1, [%r2-4];", "ld.shared.b32 %r1, [%r2+-4]"},
      {"ld.shared.b32 %r1, [%r2 + (3+1)*4];", "ld.shared.b32 %r1, [%r2+16]"},
      {"ld.shared.b32 %r1, [%r2+0];", "ld.shared.b32 %r1, [%r2]"},
      {"ld.shared.b32 %r1, [64];", nullptr},
      {"ld.acquire.gpu.global.u32 %r1, [%rd1];", nullptr},
      {"ld.volatile.shared.u32 %r1, [%r2];", nullptr},
      {"ld.global.v2.u32 {_, %r1}, [%rd1];", nullptr},
      {"ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", nullptr},
      {"ld.global.L2::cache_hint.b32 %r1, [%rd1], %rd2;", nullptr},
      {"st.global.cs.v4.b32 [%rd1], {%r1, %r2, %r3, 0};", nullptr},
      {"st.shared.f32 [dynamic], 0f00000000;", nullptr},
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];", nullptr},
      {"st.bulk.weak.shared::cta [%r1], 256, 0;", nullptr},
      {"atom.global.add.u32 %r1, [%rd1], 1;", nullptr},
      {"atom.acq_rel.sys.global.cas.b32 %r1, [%rd1], %r2, %r3;", nullptr},
      {"atom.global.add.noftz.f16x2 _, [%rd1], %r1;", nullptr},
      {"atom.global.v4.f32.add {%f1, %f2, %f3, %f4}, [%rd1], {%f1, %f2, %f3, %f4};",
       "atom.global.v4.add.f32 {%f1, %f2, %f3, %f4}, [%rd1], {%f1, %f2, %f3, %f4}"},
      {"red.relaxed.gpu.global.add.f32 [%rd1], %f1;", nullptr},
      {"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r1], %r2, "
       "[%r3];",
       nullptr},
      {"prefetch.global.L2 [%rd1];", nullptr},
      {"prefetch.tensormap [%rd1];", nullptr},
      {"createpolicy.fractional.L2::evict_last.b64 %rd1, 0f3F800000;", nullptr},
      {"createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %rd1, [%rd2], 16, %r1;",
       nullptr},
      {"multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%r1, %r2, %r3, %r4}, [%rd1];",
       nullptr},
      {"tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd1], 0, %r1;", nullptr},
  };
  expect_dumps(kCases);
}

TEST(Parse, AsynchronousCopies) {
  constexpr Case kCases[] = {
      {"cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;", nullptr},
      {"cp.async.ca.shared.global [%r1], [%rd1], 4, %r2, %rd2;", nullptr},
      {"cp.async.ca.shared.global [%r1], [%rd1], 4, %p1;", nullptr},
      {"cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all;",
       "cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all"},
      {"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];", nullptr},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
       ".L2::cache_hint [%r1], [%rd1], %r2, [%r3], %h1, %rd2;",
       nullptr},
      {"cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 128;", nullptr},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], "
       "[%rd1, {%r2, %r3}], [%r4];",
       nullptr},
      {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], "
       "[%rd1, {%r2, %r3, %r4}], [%r5], {%h1};",
       nullptr},
      {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [map, {%r1, 0}], [%r3];", nullptr},
      {"cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%rd1, {%r1}], "
       "[%r2];",
       nullptr},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%rd1], [%r1], 16;",
       nullptr},
      {"cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r1, %r2}];", nullptr},
      {"cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
       "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0"},
      {"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], "
       "[%r2];",
       nullptr},
      {"clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3, _}, %q0;",
       nullptr},
  };
  expect_dumps(kCases);
}

TEST(Parse, SynchronisationInstructions) {
  constexpr Case kCases[] = {
      {"bar.sync 0;", nullptr},
      {"bar.cta.sync 1, 64;", "bar.sync 1, 64"},
      {"barrier.cta.arrive.aligned 1, 64;", "barrier.arrive.aligned 1, 64"},
      {"barrier.red.popc.aligned.u32 %r1, 0, 128, !%p1;", nullptr},
      {"bar.red.and.pred %p1, 0, %p2;", nullptr},
      {"bar.warp.sync 0xffffffff;", "bar.warp.sync 4294967295"},
      {"barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire;",
       "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire"},
      {"membar.gl; fence.sc.cluster; fence.proxy.async.shared::cta; fence.mbarrier_init.release"
       ".cluster;",
       "membar.gl; fence.sc.cluster; fence.proxy.async.shared::cta; fence.mbarrier_init.release"
       ".cluster"},
      {"fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;", nullptr},
      {"mbarrier.init.shared::cta.b64 [%r1], 1;", nullptr},
      {"mbarrier.arrive.shared.b64 %rd1, [%r1];", nullptr},
      {"mbarrier.arrive.shared.b64 _, [%r1], 2;", nullptr},
      {"mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r1], %r2;", nullptr},
      {"mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;", nullptr},
      {"mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], 0, 1000;", nullptr},
      {"mbarrier.pending_count.b64 %r1, %rd1;", nullptr},
      {"shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;", nullptr},
      {"shfl.sync.idx.b32 %r1, %r2, 0, 31, 0xffffffff;",
       "shfl.sync.idx.b32 %r1, %r2, 0, 31, 4294967295"},
      {"vote.sync.ballot.b32 %r1, !%p1, -1;", nullptr},
      {"match.all.sync.b32 %r1|%p1, %r2, -1;", nullptr},
      {"redux.sync.min.abs.NaN.f32 %f1, %f2, -1;", nullptr},
      {"elect.sync _|%p1, -1;", nullptr},
      {"activemask.b32 %r1;", nullptr},
      {"mapa.shared::cluster.u32 %r1, %r2, 1;", nullptr},
      {"griddepcontrol.wait;", nullptr},
      {"setmaxnreg.inc.sync.aligned.u32 240;", nullptr},
  };
  expect_dumps(kCases);
}

TEST(Parse, MatrixInstructions) {
  constexpr Case kCases[] = {
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, "
       "%r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};",
       nullptr},
      {"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r1, %r2, %r3, %r4}, {%r1, %r2, "
       "%r3, %r4}, {%r5, %r6}, {%r1, %r2, %r3, %r4};",
       nullptr},
      {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1, %r2, %r3, %r4}, [%r5+32];", nullptr},
      {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", nullptr},
      {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, "
       "%r8}, [%r9], %r10;",
       nullptr},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32.satfinite {%r1}, {%r2}, {%r3}, "
       "{%r4};",
       nullptr},
      {"wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned "
       "1;",
       "wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned "
       "1"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, "
       "1, 1, 0, 1;",
       nullptr},
      {"wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, "
       "%r8}, %rd2, %p1;",
       nullptr},
      {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;", nullptr},
      {"tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, {%r3, %r3, %r3, %r3}, %p1;",
       nullptr},
      {"tcgen05.mma.cta_group::2.kind::f16.collector::a::use [%r1], [%r4], %rd2, %r2, %p1, 3;",
       nullptr},
      {"tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%r1], %rd1, %rd2, %r2, "
       "[%r3], [%r4], %p1;",
       nullptr},
      {"tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3+16];", nullptr},
      {"tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r1], 8, {%r2};", nullptr},
      {"tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
       "[%r1], %h1;",
       nullptr},
      {"tcgen05.wait::ld.sync.aligned; tcgen05.fence::before_thread_sync;",
       "tcgen05.wait::ld.sync.aligned; tcgen05.fence::before_thread_sync"},
  };
  expect_dumps(kCases);
}

TEST(Parse, ConstantExpressions) {
  constexpr Case kCases[] = {
      {"mov.u64 %rd1, 0x10;", "mov.u64 %rd1, 16"},
      {"mov.u64 %rd1, 0b101U;", "mov.u64 %rd1, 5"},
      {"mov.u64 %rd1, 017;", "mov.u64 %rd1, 15"},
      {"mov.u64 %rd1, 0xFFFFFFFFFFFFFFFF;", "mov.u64 %rd1, -1"},
      {"mov.u64 %rd1, -9223372036854775808;", nullptr},
      {"mov.u64 %rd1, 2+3*4-1;", "mov.u64 %rd1, 13"},
      {"mov.u64 %rd1, (2+3)*4;", "mov.u64 %rd1, 20"},
      {"mov.u64 %rd1, 1<<4|3;", "mov.u64 %rd1, 19"},
      {"mov.u64 %rd1, 7 % 4 == 3 && !0;", "mov.u64 %rd1, 1"},
      {"mov.u64 %rd1, -7/2;", "mov.u64 %rd1, -3"},
      {"mov.u64 %rd1, -8>>1;", "mov.u64 %rd1, -4"},
      {"mov.u64 %rd1, -8U>>1;", "mov.u64 %rd1, 9223372036854775804"},
      {"mov.u64 %rd1, (.u64)-1 > 0;", "mov.u64 %rd1, 1"},
      {"mov.u64 %rd1, ~0;", "mov.u64 %rd1, -1"},
      {"mov.u64 %rd1, 1 < 2 ? 10 : 20;", "mov.u64 %rd1, 10"},
      {"mov.u64 %rd1, 1 << 64;", "mov.u64 %rd1, 0"},
      {"mov.u64 %rd1, (-9223372036854775807-1) / -1;", "mov.u64 %rd1, -9223372036854775808"},
  };
  expect_dumps(kCases);
}

TEST(Parse, ControlFlow) {
  constexpr Case kCases[] = {
      {"bra.uni END; END: ret;", "bra.uni END; ret"},
      {"LOOP: add.s32 %r1, %r1, 1; bra LOOP;", "add.s32 %r1, %r1, 1; bra LOOP"},
      {"@%p1 bra LAST; LAST:", "@%p1 bra LAST"},
      {"T: .branchtargets A, B; brx.idx %r1, T; A: ret; B: exit;", "brx.idx %r1, T; ret; exit"},
      {"{ .param .b32 r; .param .b64 a; .param .b32 b; call.uni (r), external, (a, b); }",
       "call.uni (r), external, (a, b)"},
      {"{ .param .b64 a; P: .callprototype ()_ (.param .b64 _); call %rd1, (a), P; }",
       "call %rd1, (a), P"},
      {"trap; brkpt; exit;", "trap; brkpt; exit"},
  };
  expect_dumps(kCases);
}

// Inline assembly repeats its names in every block; a flattened function tells them apart.
TEST(Parse, BlocksHaveTheirOwnNamesAndLabels) {
  const Module module = kernel(
      "{ .reg .pred p; AGAIN: setp.eq.u32 p, %r1, 0; @p bra AGAIN; }\n"
      "{ .reg .pred p; .reg .b32 %r<2>; AGAIN: setp.eq.u32 p, %r1, 0; @p bra AGAIN; bra OUT; }\n"
      "mov.u32 %r1, 7;\nOUT: ret;");
  const std::string text = dump(module);
  EXPECT_NE(text.find("AGAIN:\n\tsetp.eq.u32 p, %r1, 0;\n\t@p bra AGAIN;\n"
                      "AGAIN$1:\n\tsetp.eq.u32 p$1, %r$1_1, 0;\n\t@p$1 bra AGAIN$1;\n\tbra OUT;\n"
                      "\tmov.u32 %r1, 7;\nOUT:\n\tret;\n"),
            std::string::npos)
      << text;
}

TEST(Parse, CanonicalModule) {
  const std::string text = dump(parsed(
      ".version 8.7 // comment\n.target sm_90a, debug\n.address_size 64\n"
      ".weak .func (.param .b32 r) f(.param .b32 a);\n"
      "/* a\n comment */ .const .u16 words[] = {1, -1, 0x7fff};\n"
      ".visible .global .align 8 .u64 table[2] = {f, generic(words)+4};\n"
      ".global .v2 .f32 pair = {1.0, 0f40000000};\n"
      ".global .b8 bytes[3][2] = {{1}, {2, 3}};\n"
      ".global .b32 zeros[2] = {0, 0};\n"
      ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; "
      ".loc 1 7 3\n st.param.b32 [r], %x; ret; }\n"
      ".visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 4 .b8 by_value[8])\n"
      ".maxntid 128\n.minnctapersm 2 .maxnreg 64\n{ .pragma \"nounroll\"; .shared .f32 t[4]; ret; "
      "}\n"
      ".file 1 \"a.cu\", 12, 34\n"
      ".section .debug_str { $L__info: .b8 95, 0 }\n"));
  EXPECT_EQ(text, R"(.version 8.7
.target sm_90a
.address_size 64
.file 1 "a.cu"
.func (.param .align 4 .b32 r) f(.param .align 4 .b32 a);
.const .align 2 .u16 words[3] = {1, 65535, 32767};
.global .align 8 .u64 table[2] = {f, generic(words)+4};
.global .align 8 .f32 pair[2] = {0f3F800000, 0f40000000};
.global .align 1 .b8 bytes[6] = {1, 0, 2, 3, 0, 0};
.global .align 4 .b32 zeros[2];
.func (.param .align 4 .b32 r) f(.param .align 4 .b32 a)
{
	.reg .b32 %x;
	ld.param.b32 %x, [a];
.loc 1 7 0
	st.param.b32 [r], %x;
	ret;
}
.entry k(.param .align 8 .u64 p, .param .align 4 .b8 by_value[8])
.maxntid 128, 1, 1
.minnctapersm 2
.maxnreg 64
{
	.shared .align 4 .f32 t[4];
	ret;
}
)");
}

TEST(Parse, ModuleFacts) {
  const Module module = parsed(
      ".version 9.0\n.target sm_90a\n"
      ".extern .shared .align 128 .b8 dynamic[];\n"
      ".entry k(.param .b8 a, .param .b64 b, .param .align 16 .b8 c[20], .param .b32 d)\n"
      ".reqntid 64, 2\n.reqnctapercluster 2, 1, 1\n.explicitcluster\n.maxclusterrank 8\n"
      "{\n  .reg .pred p;\n  @!p bra L;\n  .loc 2 33 4, function_name $L__i+5, inlined_at 1 9 2\n"
      "  trap;\nL: M:\n}\n");
  EXPECT_EQ(module.version_major, 9);
  EXPECT_EQ(module.version_minor, 0);
  EXPECT_EQ(module.target, "sm_90a");
  ASSERT_TRUE(module.variable("dynamic"));
  EXPECT_TRUE(module.variable("dynamic")->is_extern_array);
  EXPECT_EQ(module.variable("dynamic")->size_bytes, 0u);
  EXPECT_EQ(module.variable("none"), nullptr);
  const Function* k = module.find("k");
  ASSERT_TRUE(k);
  EXPECT_TRUE(k->is_entry);
  EXPECT_EQ(k->required_threads, (Dim3{64, 2, 1}));
  EXPECT_EQ(k->max_threads, (Dim3{0, 0, 0}));
  EXPECT_EQ(k->required_cluster, (Dim3{2, 1, 1}));
  EXPECT_EQ(k->max_cluster_rank, 8u);
  EXPECT_TRUE(k->explicit_cluster);
  const auto places = param_layout(*k);
  ASSERT_EQ(places.size(), 4u);
  const uint32_t offsets[] = {0, 8, 16, 36};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(places[i].offset_bytes, offsets[i]);
  EXPECT_EQ(places[2].size_bytes, 20u);
  ASSERT_EQ(k->body.size(), 2u);
  const Instruction& branch = k->body[0];
  ASSERT_TRUE(branch.guard);
  EXPECT_TRUE(branch.guard->negated);
  EXPECT_EQ(branch.line, 11);
  EXPECT_EQ(branch.operands[0].label, 2u);
  EXPECT_EQ(k->body[1].source.file, 2u);
  EXPECT_EQ(k->body[1].source.line, 33u);
  EXPECT_EQ(k->body[1].line, 13);
  EXPECT_EQ(k->labels.size(), 2u);
}

TEST(Parse, ADefinitionReplacesItsDeclaration) {
  const Module module = parsed(
      ".version 9.0\n.target sm_90a\n.extern .func f;\n.extern .global .b32 x;\n"
      ".func g { call f; ret; }\n.func f { ret; }\n.global .b32 x = 4;\n.extern .func f;\n"
      ".func h;\n.alias h, f;\n");
  ASSERT_EQ(module.functions.size(), 3u);
  EXPECT_FALSE(module.find("f")->is_declaration);
  EXPECT_EQ(module.find("h"), module.find("f"));
  EXPECT_EQ(module.variable("x")->initial, (std::vector<uint8_t>{4, 0, 0, 0}));
  EXPECT_FALSE(module.variable("x")->is_extern);
}

TEST(Parse, MaskedAddressBytesAreOneRelocation) {
  const Module module = parsed(
      ".version 9.0\n.target sm_90a\n.global .b32 x;\n.global .align 8 .b8 y[12] = {1, 2, 3, 4,\n"
      "0xFF(x+4), 0xFF00(x+4), 0xFF0000(x+4), 0xFF000000(x+4), 0xFF00000000(x+4),\n"
      "0xFF0000000000(x+4), 0xFF000000000000(x+4), 0xFF00000000000000(x+4)};\n");
  const Variable* y = module.variable("y");
  ASSERT_TRUE(y);
  ASSERT_EQ(y->relocations.size(), 1u);
  EXPECT_EQ(y->relocations[0].offset, 4u);
  EXPECT_EQ(y->relocations[0].symbol, "x");
  EXPECT_EQ(y->relocations[0].addend, 4);
  EXPECT_EQ(dump(parsed(dump(module))), dump(module));
}

TEST(Parse, ARangeMayEndInADigit) {
  EXPECT_EQ(instructions(".reg .b32 t1<3>; .reg .b32 t<2>; mov.b32 t12, t1; mov.b32 t10, t0;"),
            "mov.b32 t12, t1; mov.b32 t10, t0");
}

TEST(Parse, VectorRegistersBecomeTheirMembers) {
  EXPECT_EQ(instructions(".reg .v2 .f32 v; ld.global.v2.f32 v, [%rd1]; add.f32 %f1, v.x, v.y;"),
            "ld.global.v2.f32 {v_x, v_y}, [%rd1]; add.f32 %f1, v_x, v_y");
}

}  // namespace
}  // namespace ptxb::ptx
