// Owns the tests on real compiler output: nvcc 13.0 PTX of both front ends (testdata/*.cu says from
// what) parses, keeps its facts and round-trips.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "ptx/parse.h"
#include "ptx/roles.h"

namespace ptxb::ptx {
namespace {

Module fixture(const std::string& file) {
  const auto text = read_file(Path(PTXB_SOURCE_DIR) / "src/ptx/testdata" / file);
  EXPECT_TRUE(text) << file;
  if (!text) return {};
  auto module = parse(*text, file);
  EXPECT_TRUE(module) << module.error().message;
  return module ? *std::move(module) : Module{};
}

std::map<std::string, int> mnemonic_counts(const Module& module) {
  std::map<std::string, int> counts;
  for (const Function& function : module.functions) {
    for (const Instruction& each : function.body) ++counts[mnemonic(each)];
  }
  return counts;
}

const Function* entry_like(const Module& module, std::string_view part) {
  for (const Function& each : module.functions) {
    if (each.name.find(part) != std::string::npos) return &each;
  }
  return nullptr;
}

TEST(Fixture, CompilerOutputRoundTrips) {
  for (const char* file :
       {"scalar_sm_90a.ptx", "scalar_sm_100a.ptx", "tensor_sm_90a.ptx", "tensor_sm_100a.ptx"}) {
    const Module module = fixture(file);
    const std::string once = dump(module);
    const auto again = parse(once, "dump");
    ASSERT_TRUE(again) << file << ": " << again.error().message;
    EXPECT_EQ(dump(*again), once) << file;
    for (const Function& function : module.functions) {
      for (const Instruction& each : function.body) {
        EXPECT_TRUE(operand_roles(each)) << spelling(each, function);
        EXPECT_GT(each.line, 0);
      }
    }
  }
}

TEST(Fixture, BothFrontEndsSayTheSame) {
  for (const char* file : {"scalar_sm_90a.ptx", "scalar_sm_100a.ptx"}) {
    const Module module = fixture(file);
    EXPECT_EQ(module.version_major, 9) << file;
    const Function* branches = entry_like(module, "branches");
    ASSERT_TRUE(branches) << file;
    EXPECT_EQ(branches->max_threads, (Dim3{128, 1, 1})) << file;
    EXPECT_EQ(branches->min_blocks, 2u) << file;
    EXPECT_EQ(branches->params.size(), 3u) << file;
    const Function* calls = entry_like(module, "5calls");
    ASSERT_TRUE(calls) << file;
    const auto places = param_layout(*calls);
    ASSERT_EQ(places.size(), 4u) << file;
    EXPECT_EQ(places[2].offset_bytes, 12u) << file;
    EXPECT_EQ(places[2].size_bytes, 8u) << file;
    EXPECT_EQ(places[3].offset_bytes, 24u) << file;
    const Variable* table = module.variable("pointer_table");
    ASSERT_TRUE(table) << file;
    ASSERT_EQ(table->relocations.size(), 1u) << file;
    EXPECT_EQ(table->relocations[0].symbol, "counters") << file;
    EXPECT_EQ(table->relocations[0].addend, 4) << file;
    EXPECT_TRUE(table->relocations[0].generic) << file;
    ASSERT_TRUE(module.find("vprintf")) << file;
    EXPECT_TRUE(module.find("vprintf")->is_declaration) << file;
  }
}

TEST(Fixture, LinesLeadBackToTheSource) {
  for (const char* file : {"scalar_sm_90a.ptx", "scalar_sm_100a.ptx"}) {
    const Module module = fixture(file);
    const Function* branches = entry_like(module, "branches");
    ASSERT_TRUE(branches) << file;
    const auto barrier =
        std::find_if(branches->body.begin(), branches->body.end(), [](const Instruction& each) {
          return each.opcode == Opcode::BarSync || each.opcode == Opcode::BarrierSync;
        });
    ASSERT_NE(barrier, branches->body.end()) << file;
    EXPECT_EQ(module.file(barrier->source.file), "scalar.cu") << file;
    EXPECT_EQ(barrier->source.line, 34u) << file;
  }
}

TEST(Fixture, InlineAssemblyArrivesWhole) {
  const auto hopper = mnemonic_counts(fixture("tensor_sm_90a.ptx"));
  const auto blackwell = mnemonic_counts(fixture("tensor_sm_100a.ptx"));
  for (const char* both :
       {"cp.async.cg.shared.global.L2::128B", "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "elect.sync",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster",
        "mbarrier.arrive.release.cluster.shared::cluster.b64"}) {
    EXPECT_EQ(hopper.count(both), 1u) << both;
    EXPECT_EQ(blackwell.count(both), 1u) << both;
  }
  EXPECT_EQ(hopper.at("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"), 1);
  EXPECT_EQ(blackwell.at("tcgen05.mma.cta_group::1.kind::f16"), 1);
  EXPECT_EQ(hopper.at("mbarrier.try_wait.parity.shared::cta.b64"), 2);
}

}  // namespace
}  // namespace ptxb::ptx
