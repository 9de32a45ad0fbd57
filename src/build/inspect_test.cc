// SPDX-License-Identifier: Apache-2.0
#include "build/inspect.h"

#include <gtest/gtest.h>

#include "build/declarations.h"

namespace ptxb::build {
namespace {

TEST(Inspect, PtxLinesLeadBackToTheSource) {
  const char* kPtx =
      ".version 9.0\n"                                                       // 1
      ".visible .entry k(\n"                                                 // 2
      ")\n{\n"                                                               // 3, 4
      "\t.loc\t1 10 3\n"                                                     // 5
      "\tadd.s32 %r1, %r2, %r3;\n"                                           // 6
      "\t.loc\t2 99 5, function_name $L__info_string0, inlined_at 1 11 3\n"  // 7
      "\tfoo;\n"                                                             // 8
      "}\n"                                                                  // 9
      ".visible .entry l(\n)\n{\n"                                           // 10..12
      "\tret;\n}\n"                                                          // 13
      "\t.file\t1 \"/build/candidate.cu\"\n"
      "\t.file\t2 \"/opt/include/cuda_bf16.hpp\"\n";
  auto at = [&](int line) {
    auto found = source_line(kPtx, line);
    return found ? found->file + ":" + std::to_string(found->line) : std::string("none");
  };
  EXPECT_EQ(at(6), "candidate.cu:10");
  EXPECT_EQ(at(8), "cuda_bf16.hpp:99");
  EXPECT_EQ(at(13), "none") << "another function's line";
  EXPECT_EQ(at(1), "none");
  EXPECT_EQ(at(100000), "none");

  std::vector<Diagnostic> diagnostics(2);
  diagnostics[0] = {Diagnostic::Severity::Error, "ptxas", "candidate.ptx", 6, "", "no such thing"};
  diagnostics[1] = {Diagnostic::Severity::Error, "nvcc", "candidate.cu", 6, "",
                    "from the front end"};
  locate_in_source(kPtx, diagnostics);
  EXPECT_EQ(diagnostics[0].file, "candidate.cu");
  EXPECT_EQ(diagnostics[0].line, 10);
  EXPECT_EQ(diagnostics[0].message, "no such thing (PTX line 6)");
  EXPECT_EQ(diagnostics[1].line, 6);
}

TEST(Inspect, DeclarationsAreReadWhereInstructionsAreUnknown) {
  const char* kPtx =
      "// .entry commented(\n"
      ".version 9.9\n.target sm_900a\n.address_size 64\n"
      ".visible .global .align 16 .b8 counters[64];\n"
      ".const .align 4 .v4 .f32 weights[2] = {1, 2, 3};\n"
      ".global .u64 place = generic(counters);\n"
      "/* .entry other( */\n"
      ".visible .entry k(\n  .param .u64 .ptr .align 16 k_param_0,\n  .param .align 64 .b8 "
      "k_param_1[128],\n"
      "  .param .u8 k_param_2,\n  .param .f64 k_param_3\n)\n.reqntid 128, 2, 1\n.reqnctapercluster "
      "2, 1, 1\n{\n"
      "  .reg .b32 %r<3>;\n  .shared .align 4 .b8 tile[10];\n  tcgen99.mystery.b16 {%r1}, [%r2];\n "
      " { ret; }\n}\n"
      ".entry none\n{\n ret;\n}\n.func helper(.param .b32 a)\n{\n ret;\n}\n";
  Declarations found = read_declarations(kPtx);
  ASSERT_EQ(found.kernels.size(), 2u);
  const KernelInfo& k = found.kernels[0];
  EXPECT_EQ(k.name, "k");
  std::vector<std::pair<uint32_t, uint32_t>> places;
  for (const KernelParam& param : k.params)
    places.emplace_back(param.offset_bytes, param.size_bytes);
  EXPECT_EQ(places,
            (std::vector<std::pair<uint32_t, uint32_t>>{{0, 8}, {64, 128}, {192, 1}, {200, 8}}));
  EXPECT_EQ(k.max_threads, 256u);
  EXPECT_EQ(k.required_cluster.x, 2u);
  EXPECT_EQ(found.kernels[1].name, "none");
  EXPECT_TRUE(found.kernels[1].params.empty());
  std::vector<std::string> symbols;
  for (const SymbolInfo& symbol : found.symbols) {
    symbols.push_back(symbol.name + " " + std::to_string(symbol.size_bytes) +
                      (symbol.constant ? " const" : ""));
  }
  EXPECT_EQ(symbols, (std::vector<std::string>{"counters 64", "weights 32 const", "place 8"}));
  for (const char* odd : {"", ".entry", ".entry k(", ".entry k(.param", ".global", ".global .align",
                          "\"", "/*", "}", ".entry k(]["}) {
    read_declarations(odd);  // must end
  }
}

TEST(Inspect, SharedMemoryIsCountedPerKernel) {
  auto text = [](int bytes) {
    return ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry small()\n{\n .shared "
           ".align 4 .b8 s[16];\n ret;\n}\n"
           ".visible .entry big()\n{\n .shared .align 4 .b8 t[" +
           std::to_string(bytes) + "];\n ret;\n}\n";
  };
  auto over = find_shared_overuse(text(232449), "sm_90a");
  ASSERT_TRUE(over);
  EXPECT_EQ(over->kernel, "big");
  EXPECT_EQ(over->used_bytes, 232449u);
  EXPECT_FALSE(find_shared_overuse(text(232448), "sm_90a"));
  EXPECT_FALSE(find_shared_overuse("no PTX at all", "sm_90a"));
}

}  // namespace
}  // namespace ptxb::build
