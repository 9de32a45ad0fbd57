// Owns the tests of the SASS join: literal listings (as nvdisasm 13 prints them) and counts in,
// counts by opcode out.
// SPDX-License-Identifier: Apache-2.0
#include "backend/sass_listing.h"

#include <gtest/gtest.h>

namespace ptxb {
namespace {

constexpr const char* kListing =
    R"(	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
	.elftype	@"ET_EXEC"

//--------------------- .text.gemm               --------------------------
	.section	.text.gemm,"ax",@progbits
	.sectioninfo	@"SHI_REGISTERS=168"
	.align	128
        .global         gemm
        .type           gemm,@function
.text.gemm:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/              @!P0 BRA `(.L_x_0) ;
        /*0020*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12], R24, UP0 ;
        /*0030*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12], R24, gsb0 ;
        /*0040*/                   UTMALDG.2D [UR8], [UR12] ;
        /*0050*/                   HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0 ;
        /*0060*/               @P0 ELECT P1, URZ, PT ;
        /*0070*/                   EXIT ;

//--------------------- .text.other --------------------------
	.section	.text.other,"ax",@progbits
.text.other:
        /*0000*/                   HMMA.16816.F32.BF16 R4, R8, R10, R4 ;
        /*0010*/                   EXIT ;
	.section	.nv.shared.gemm,"aw",@nobits
        /*0020*/                   .zero 4 ;
)";

TEST(Sass, ListingsBecomeFunctionsAndInstructions) {
  const auto functions = parse_sass(kListing);
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].name, "gemm");
  ASSERT_EQ(functions[0].instructions.size(), 8u);
  EXPECT_EQ(functions[0].instructions[1].guard, "@!P0");
  EXPECT_EQ(functions[0].instructions[1].opcode, "BRA");
  EXPECT_EQ(functions[0].instructions[2].offset_bytes, 0x20u);
  EXPECT_EQ(functions[0].instructions[2].operands, "R24, gdesc[UR12], R24, UP0");
  EXPECT_EQ(functions[1].instructions.size(), 2u);
  EXPECT_TRUE(parse_sass("no listing\n/*zz*/ FOO ;").empty());
}

TEST(Sass, FlopsComeFromTheShape) {
  EXPECT_EQ(flops_a_warp("HGMMA.64x256x16.F32.BF16"), 2.0 * 64 * 256 * 16 / 4);
  EXPECT_EQ(flops_a_warp("QGMMA.64x128x32.F32.E4M3.E4M3"), 2.0 * 64 * 128 * 32 / 4);
  EXPECT_EQ(flops_a_warp("HMMA.16816.F32.BF16"), 2.0 * 16 * 8 * 16);
  EXPECT_EQ(flops_a_warp("HMMA.1688.F32.TF32"), 2.0 * 16 * 8 * 8);
  EXPECT_EQ(flops_a_warp("IMMA.16832.S8.S8"), 2.0 * 16 * 8 * 32);
  EXPECT_EQ(flops_a_warp("DMMA.884"), 2.0 * 8 * 8 * 4);
  for (const char* none : {"FFMA", "HFMA2.MMA", "UTMALDG.2D", "HGMMA.axbxc", "HMMA", ""})
    EXPECT_EQ(flops_a_warp(none), 0) << none;
}

TEST(Sass, AnEmptyGmmaIsNoWork) {
  const auto functions = parse_sass(kListing);
  EXPECT_FALSE(does_nothing(functions[0].instructions[2]));
  EXPECT_TRUE(does_nothing(functions[0].instructions[5]));
  // The first product of a chain starts from zero: RZ as accumulator input is no decoy.
  EXPECT_FALSE(does_nothing({0, "", "HGMMA.64x256x16.F32.BF16", "R24, gdesc[UR4], RZ, !UPT"}));
  EXPECT_EQ(family_of_sass(functions[0].instructions[2]), "wgmma");
  EXPECT_EQ(family_of_sass(functions[0].instructions[5]), "");
  EXPECT_EQ(family_of_sass(functions[0].instructions[4]), "tma");
  EXPECT_EQ(family_of_sass({0, "", "HFMA2.MMA", ""}), "");
  EXPECT_EQ(family_of_sass({0, "", "UTMACMDFLUSH", ""}), "");
}

TEST(Sass, CountsAreJoinedByAddress) {
  const auto functions = parse_sass(kListing);
  uint64_t unmatched = 0;
  const auto counts = count_opcodes(functions,
                                    {{"gemm", 0x20, 40, 40 * 32},
                                     {"gemm", 0x30, 40, 40 * 32},
                                     {"gemm", 0x40, 10, 10},
                                     {"gemm", 0x50, 8, 8 * 32},
                                     {"gemm", 0x10, 7, 0},
                                     {"other", 0x0, 3, 96}},
                                    unmatched);
  EXPECT_EQ(unmatched, 0u);
  ASSERT_EQ(counts.size(), 5u);
  const auto of = [&](const std::string& opcode) {
    for (const OpcodeCount& count : counts) {
      if (count.opcode == opcode) return count;
    }
    return OpcodeCount{};
  };
  EXPECT_EQ(of("HGMMA.64x256x16.F32.BF16 (.bf16)").warps, 80u);
  EXPECT_EQ(of("HGMMA.64x256x16.F32.BF16 (.bf16)").flops,
            20 * 2.0 * 64 * 256 * 16);  // 20 warpgroup instructions
  EXPECT_EQ(of("HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0").family, "");
  EXPECT_EQ(of("HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0").flops, 0);
  EXPECT_EQ(of("UTMALDG.2D").warps, 10u);
  EXPECT_EQ(of("BRA").warps, 0u);  // issued, but never with a true predicate
  EXPECT_EQ(of("HMMA.16816.F32.BF16 (.bf16)").kernel, "other");
}

TEST(Sass, OperandTypesAreSpelledAsInPtx) {
  EXPECT_EQ(operand_type_of_sass("HGMMA.64x256x16.F32.BF16"), ".bf16");
  EXPECT_EQ(operand_type_of_sass("HGMMA.64x256x16.F32"), ".f16");
  EXPECT_EQ(operand_type_of_sass("HMMA.1688.F32.TF32"), ".tf32");
  EXPECT_EQ(operand_type_of_sass("QGMMA.64x128x32.F32.E4M3.E4M3"), ".e4m3");
  EXPECT_EQ(operand_type_of_sass("FFMA"), "");
}

TEST(Sass, CopiesHaveBytes) {
  EXPECT_EQ(bytes_a_thread("LDGSTS.E.BYPASS.128.ZFILL"), 16);
  EXPECT_EQ(bytes_a_thread("LDGSTS.E"), 4);
  EXPECT_EQ(bytes_a_thread("LDG.E.128"), 0);
  LaunchPlan plan;
  plan.buffers = {{"A", BufferRole::Input, 0x1000, 0x1000},
                  {"C", BufferRole::Output, 0x4000, 0x1000}};
  const auto add_map = [&](uint64_t address, uint32_t rows) {
    PlanTensorMap map;
    map.dtype = 9;
    map.rank = 2;
    map.address = address;
    map.box = {64, rows};
    plan.tensor_maps.push_back(map);
  };
  add_map(0x1000, 128);
  add_map(0x1800, 256);
  add_map(0x4000, 8);
  std::vector<OpcodeCount> counts(3);
  counts[0].opcode = "UTMALDG.2D";
  counts[1].opcode = "UTMASTG.2D";
  counts[2].opcode = "UTMALDG.5D.IM2COL";
  for (OpcodeCount& count : counts) count.warps = 10;
  estimate_tma_bytes(plan, counts);
  EXPECT_EQ(counts[0].bytes, 10.0 * 64 * 128 * 2);
  EXPECT_EQ(counts[1].bytes, 10.0 * 64 * 8 * 2);
  EXPECT_EQ(counts[2].bytes, 0);
}

TEST(Sass, AddressesOfAnotherCubinAreNoticed) {
  uint64_t unmatched = 0;
  EXPECT_TRUE(
      count_opcodes(parse_sass(kListing), {{"gemm", 0x1000, 1, 1}, {"unknown", 0, 1, 1}}, unmatched)
          .empty());
  EXPECT_EQ(unmatched, 2u);
}

TEST(Sass, TheAnnotatedListingShowsWhatRan) {
  const std::string text = annotate_sass(parse_sass(kListing), {{"gemm", 0x20, 40, 1280}});
  EXPECT_NE(text.find("40         1280  /*0020*/        HGMMA.64x256x16.F32.BF16 R24"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("EXIT"), std::string::npos);
  EXPECT_EQ(text.find("other:"), std::string::npos);
}

}  // namespace
}  // namespace ptxb
