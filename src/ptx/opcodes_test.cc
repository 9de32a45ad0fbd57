// Owns the tests of opcodes.def: the table is consistent, complete for what CUDA's own headers use,
// and spells what it reads.
// SPDX-License-Identifier: Apache-2.0
#include "ptx/opcodes.h"

#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/text.h"
#include "ptx/parse.h"
#include "ptx/roles.h"

namespace ptxb::ptx {
namespace {

// The mnemonic taken apart as the parser does; Invalid when a token is not the operation's.
Instruction taken_apart(std::string_view spelling) {
  Instruction out;
  const OpcodeMatch match = find_opcode(spelling);
  for (size_t at = match.length; at < spelling.size();) {
    const size_t end = std::min(spelling.find('.', at + 1), spelling.size());
    const std::string_view token = spelling.substr(at + 1, end - at - 1);
    const auto type = find_type(token);
    const auto modifier = find_modifier(token);
    if (type && allows(match.opcode, *type)) {
      out.types.push_back(*type);
    } else if (modifier && allows(match.opcode, *modifier)) {
      out.modifiers.push_back(*modifier);
    } else {
      return {};
    }
    at = end;
  }
  out.opcode = match.opcode;
  return out;
}

TEST(Opcodes, EveryVariantIsReadAsItsOwnRowAndSpelledBack) {
  for (const OpcodeInfo& row : all_opcodes()) {
    const auto spellings = variants(row.opcode, 20'000);
    ASSERT_FALSE(spellings.empty()) << row.mnemonic;
    // Every seventh of the long lists is enough: variants of one form differ in single tokens.
    const size_t step = spellings.size() > 500 ? 7 : 1;
    for (size_t i = 0; i < spellings.size(); i += step) {
      const Instruction read = taken_apart(spellings[i]);
      ASSERT_EQ(name(read.opcode), row.mnemonic) << spellings[i];
      ASSERT_EQ(mnemonic(read), spellings[i]);
    }
  }
}

TEST(Opcodes, EveryMnemonicOfTheCudaHeadersIsKnown) {
  const auto text = read_file(Path(PTXB_SOURCE_DIR) / "src/ptx/testdata/mnemonics.txt");
  ASSERT_TRUE(text);
  size_t count = 0;
  for (const std::string_view line : split_lines(*text)) {
    EXPECT_NE(taken_apart(line).opcode, Opcode::Invalid) << line;
    ++count;
  }
  EXPECT_GT(count, 2500u);
}

TEST(Opcodes, RowsAreInEnumeratorOrderAndComplete) {
  size_t expected = 1;
  std::set<std::string_view> mnemonics;
  for (const OpcodeInfo& row : all_opcodes()) {
    EXPECT_EQ(size_t(row.opcode), expected++);
    EXPECT_EQ(&info(row.opcode), &row);
    EXPECT_TRUE(mnemonics.insert(row.mnemonic).second) << row.mnemonic;
    EXPECT_TRUE(row.section.starts_with("9.7.")) << row.mnemonic;
    EXPECT_TRUE(row.target.starts_with("sm_")) << row.mnemonic;
    EXPECT_GE(row.ptx_version, 10) << row.mnemonic;
    EXPECT_EQ(operand_patterns(row.opcode).empty(), row.opcode == Opcode::Call);
  }
  EXPECT_EQ(info(Opcode::Invalid).mnemonic, "");
}

TEST(Opcodes, NoSpellingIsBothTypeAndModifier) {
  for (size_t i = 0; i <= size_t(Modifier::M64N256K256); ++i) {
    const auto modifier = Modifier(i);
    EXPECT_FALSE(find_type(name(modifier))) << name(modifier);
    EXPECT_EQ(find_modifier(name(modifier)), modifier) << name(modifier);
  }
}

TEST(Opcodes, TheLongestBaseWins) {
  const std::pair<const char*, Opcode> cases[] = {
      {"cp.async.cg.shared.global", Opcode::CpAsync},
      {"cp.async.bulk.shared::cluster.global", Opcode::CpAsyncBulk},
      {"cp.async.bulk.tensor.2d.global", Opcode::CpAsyncBulkTensor},
      {"cp.async.bulk.prefetch.tensor.2d.L2.global", Opcode::CpAsyncBulkPrefetchTensor},
      {"cp.async.bulk.commit_group", Opcode::CpAsyncBulkCommitGroup},
      {"cp.async.commit_group", Opcode::CpAsyncCommitGroup},
      {"mma.sync.aligned", Opcode::Mma},
      {"mma.sp.sync", Opcode::MmaSp},
      {"mma.sp::ordered_metadata.sync", Opcode::MmaSpOrderedMetadata},
      {"fence.proxy.async", Opcode::FenceProxy},
      {"fence.sc.gpu", Opcode::Fence},
      {"barrier.cta.sync.aligned", Opcode::BarrierSync},
      {"barrier.cluster.wait", Opcode::BarrierClusterWait},
      {"tcgen05.mma.ws.sp.cta_group::1", Opcode::Tcgen05MmaWsSp},
      {"tcgen05.wait::ld.sync", Opcode::Tcgen05WaitLd},
      {"red.async.relaxed", Opcode::RedAsync},
      {"redux.sync.add.s32", Opcode::Redux},
      {"st.bulk", Opcode::StBulk},
      {"cvt.pack.sat.s16.s32", Opcode::CvtPack},
      {"brx.idx", Opcode::BrxIdx},
      {"bar", Opcode::Invalid},
      {"wgmma", Opcode::Invalid},
      {"addx.u32", Opcode::Invalid},
      {"", Opcode::Invalid},
      {"....", Opcode::Invalid},
  };
  for (const auto& [text, opcode] : cases) EXPECT_EQ(find_opcode(text).opcode, opcode) << text;
}

TEST(Opcodes, TypesKnowTheirSizeAndKind) {
  EXPECT_EQ(size_bytes(Type::B128), 16);
  EXPECT_EQ(size_bytes(Type::Pred), 1);
  EXPECT_EQ(size_bits(Type::E2M1), 4);
  EXPECT_EQ(size_bytes(Type::F32x2), 8);
  EXPECT_TRUE(is_float(Type::BF16x2));
  EXPECT_FALSE(is_float(Type::B32));
  EXPECT_TRUE(is_signed(Type::S16x2));
  EXPECT_FALSE(is_signed(Type::U64));
}

TEST(Opcodes, SpecialRegistersNeedTheirNumber) {
  EXPECT_EQ(find_special("%tid").special, Special::Tid);
  EXPECT_EQ(find_special("%clock64").special, Special::Clock64);
  EXPECT_EQ(find_special("%envreg31").index, 31);
  EXPECT_EQ(find_special("%reserved_smem_offset_1").special, Special::ReservedSmemOffset1);
  for (const char* wrong : {"%envreg", "%envreg32", "%envreg007", "%pm", "%tid1", "%nothing", ""}) {
    EXPECT_EQ(find_special(wrong).special, Special::None) << wrong;
  }
  EXPECT_EQ(component_count(Special::Tid), 4);
  EXPECT_EQ(type_of(Special::Clock64), Type::U64);
}

TEST(Opcodes, ShapesAreNumbers) {
  const auto shape = matrix_shape(Modifier::M64N256K16);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->m, 64);
  EXPECT_EQ(shape->n, 256);
  EXPECT_EQ(shape->k, 16);
  EXPECT_FALSE(matrix_shape(Modifier::Rn));
}

TEST(Opcodes, ModifiersOfOtherOperationsAreNotAllowed) {
  EXPECT_TRUE(allows(Opcode::Add, Modifier::Rn));
  EXPECT_FALSE(allows(Opcode::Add, Modifier::Acquire));
  EXPECT_TRUE(allows(Opcode::Fma, Type::BF16x2));
  EXPECT_FALSE(allows(Opcode::Fma, Type::U32));
  EXPECT_FALSE(allows(Opcode::Invalid, Modifier::Rn));
}

TEST(Roles, SayWhatIsReadAndWritten) {
  Instruction wgmma;
  wgmma.opcode = Opcode::WgmmaMmaAsync;
  wgmma.operands.resize(6);
  wgmma.operands[0].kind = Operand::Kind::Vector;
  wgmma.operands[0].elements.resize(2);
  for (Operand& element : wgmma.operands[0].elements) element.kind = Operand::Kind::Register;
  for (size_t i : {1, 2, 3}) wgmma.operands[i].kind = Operand::Kind::Register;
  for (size_t i : {4, 5}) wgmma.operands[i].kind = Operand::Kind::Immediate;
  const auto roles = operand_roles(wgmma);
  ASSERT_TRUE(roles);
  EXPECT_EQ(*roles, (std::vector<Role>{Role::Accumulator, Role::Source, Role::Source,
                                       Role::Predicate, Role::Immediate, Role::Immediate}));
  wgmma.operands.pop_back();
  wgmma.operands.back().kind = Operand::Kind::Register;
  EXPECT_FALSE(operand_roles(wgmma));
  EXPECT_EQ(describe_operands(Opcode::St), "(destination address, source, source?)");
}

}  // namespace
}  // namespace ptxb::ptx
