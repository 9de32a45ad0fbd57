// Owns the tests of what the parser refuses: every kind of malformed, unknown or excessive text is
// an Error with its line.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "ptx/parse.h"

namespace ptxb::ptx {
namespace {

constexpr auto kBad = ErrorCode::BadInput;
constexpr auto kUnsupported = ErrorCode::Unsupported;
constexpr auto kLimit = ErrorCode::Limit;

struct Case {
  const char* text;
  ErrorCode code;
  const char* message;  // a part of it
};

void expect_refused(std::string_view before, const Case& each, std::string_view after) {
  const std::string text = std::string(before) + each.text + std::string(after);
  const auto module = parse(text, "t.ptx");
  ASSERT_FALSE(module) << text;
  EXPECT_EQ(module.error().code, each.code) << module.error().message;
  EXPECT_NE(module.error().message.find(each.message), std::string::npos)
      << each.text << "\n  said: " << module.error().message;
  EXPECT_TRUE(module.error().message.starts_with("t.ptx:")) << module.error().message;
}

TEST(Refuse, ModuleLevel) {
  constexpr Case kCases[] = {
      {"", kBad, "t.ptx:1: expected .version, found the end of the text"},
      {".target sm_90a", kBad, "expected .version"},
      {".version nine\n.target sm_90a", kBad, "expected a version"},
      {".version 9\n.target sm_90a", kBad, "expected a version"},
      {".version 9.0\n.address_size 64", kBad, "t.ptx:2: expected .target"},
      {".version 9.0\n.target compute_90", kUnsupported, "target 'compute_90'"},
      {".version 9.0\n.target sm_90a, weird", kUnsupported, "target option 'weird'"},
      {".version 9.0\n.target sm_90a\n.address_size 32", kUnsupported, "t.ptx:3: address size"},
      {".version 9.0\n.target sm_90a\nfoo", kBad, "t.ptx:3: expected a directive, found 'foo'"},
      {".version 9.0\n.target sm_90a\n.bogus .b32 x;", kUnsupported, "directive .bogus"},
      {".version 9.0\n.target sm_90a\n/* open", kBad, "unterminated comment"},
      {".version 9.0\n.target sm_90a\n.file 1 \"open\n", kBad, "a string that does not end"},
      {".version 9.0\n.target sm_90a\n.section .debug_str { .b8 1", kBad,
       "a section that does not"},
      {".version 9.0\n.target sm_90a\n\x01", kBad, "a character PTX does not use: '\\x01'"},
      {".version 9.0\n.target sm_90a\n.alias a, b;", kBad, "alias of undeclared function 'b'"},
  };
  for (const Case& each : kCases) expect_refused("", each, "");
}

TEST(Refuse, Declarations) {
  constexpr Case kCases[] = {
      {".global .b32 x; .global .b32 x;", kBad, "name declared twice: 'x'"},
      {".global .b32 x[];", kBad, "array 'x' without a size"},
      {".global .b32 x[2][];", kBad, "an empty dimension"},
      {".global .b32 x[1099511627776][4];", kLimit, "more than 2^40 bytes"},
      {".global .b32 x[][1099511627776][1099511627776] = {{{1}}};", kLimit, "more than 2^40 bytes"},
      {".global .b8 x[1000000000] = {1};", kLimit, "64 MiB"},
      {".global .b32 x[1] = {1, 2};", kBad, "more initial values"},
      {".global .b32 x = y;", kBad, "undeclared symbol 'y'"},
      {".global .b32 y; .global .b32 x = y;", kUnsupported, "not 64-bit"},
      {".global .b32 y; .global .b8 x[8] = {0xFF(y)};", kUnsupported, "masked address"},
      {".global .f32 x = 1;", kBad, "an integer initialises a float"},
      {".global .u32 x = 1.5;", kBad, "a float initialises an integer"},
      {".shared .b32 x = 1;", kBad, "an initialiser outside"},
      {".global .align 3 .b32 x;", kBad, "no power of two"},
      {".global .texref x;", kUnsupported, "texture and surface type .texref"},
      {".global .foo x;", kUnsupported, "type .foo"},
      {".global .pred x;", kBad, "a predicate in memory"},
      {".global .attribute(.odd) .b32 x;", kUnsupported, "attribute"},
      {".param .b32 x;", kBad, ".param outside a function"},
      {".entry k(.param .b8 p[40000]) { ret; }", kBad, "32764 bytes of kernel parameters"},
      {".entry k(.param .b32 p, .param .b32 p) { ret; }", kBad, "name declared twice: 'p'"},
      {".entry k(.reg .b32 p) { ret; }", kBad, "register parameter"},
      {".entry k { ret; } .entry k { ret; }", kBad, "name declared twice: 'k'"},
      {".entry k .bogus { ret; }", kUnsupported, "function directive .bogus"},
      {".entry k { .reg .b32 %r<99999999999>; }", kLimit, "more than 2000000 registers"},
      {".entry k { .reg .b32 a, a; }", kBad, "name declared twice: 'a'"},
      {".entry k { .reg .b32 %r<4>; .reg .b32 %r2; }", kBad, "name declared twice: '%r2'"},
      {".entry k { .reg .b32 %r<4>; .reg .f32 %r<2>; }", kBad, "range declared twice"},
      {".entry k { .reg .foo a; }", kUnsupported, "type .foo"},
      {".entry k { .reg .e2m1 a; }", kBad, "declares nothing"},
      {".entry k { ret; ", kBad, "expected a statement, found the end of the text"},
      {".entry k(.param .b32 p { ret; }", kBad, "expected ')'"},
  };
  for (const Case& each : kCases) {
    expect_refused(".version 9.0\n.target sm_90a\n", each, "");
  }
}

TEST(Refuse, Statements) {
  constexpr Case kCases[] = {
      {"frobnicate.u32 %r1, %r2;", kUnsupported, "t.ptx:6: unknown instruction 'frobnicate.u32'"},
      {"add.u33 %r1, %r2, %r3;", kUnsupported, "unknown modifier '.u33' in 'add.u33'"},
      {"add.acquire.u32 %r1, %r2, %r3;", kUnsupported,
       "modifier not of this instruction: '.acquire'"},
      {"add.b32 %r1, %r2, %r3;", kUnsupported, "modifier not of this instruction: '.b32'"},
      {"bar 0;", kUnsupported, "unknown instruction 'bar'"},
      {"wgmma.fence.sync.aligned.fancy;", kUnsupported, "unknown modifier '.fancy'"},
      {"tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%rd1, {%f1, %f1}];", kUnsupported,
       "texture, surface and video instructions are not supported: 'tex.2d.v4.f32.f32'"},
      {"vadd.s32.s32.s32 %r1, %r2, %r3;", kUnsupported, "video instructions"},
      {"add.u32 %r1, %r2;", kBad, "operands of 'add.u32' are not (destination, source, source)"},
      {"add.u32 %r1, %r2, %r3, %r1;", kBad, "operands of 'add.u32'"},
      {"add.u32 1, %r2, %r3;", kBad, "operands of 'add.u32'"},
      {"add.u32 %r1, [%r2], %r3;", kBad, "operands of 'add.u32'"},
      {"ld.global.u32 %r1, %rd1;", kBad, "operands of 'ld.global.u32'"},
      {"st.global.u32 %rd1, %r1;", kBad, "operands of 'st.global.u32'"},
      {"ret 1;", kBad, "operands of 'ret'"},
      {"cp.async.wait_group %r1;", kBad, "operands of 'cp.async.wait_group'"},
      {"selp.b32 %r1, %r2, %r3, %r1;", kBad, "operand 4 of 'selp.b32' is no predicate"},
      {"add.u32 %r1, %r2, %r99;", kBad, "undeclared register '%r99'"},
      {"add.u32 %r1, %r2, x;", kBad, "undeclared name 'x'"},
      {"@%r1 ret;", kBad, "a guard that is no predicate"},
      {"@!%p9 ret;", kBad, "undeclared register '%p9'"},
      {"bra NOWHERE;", kBad, "undefined label 'NOWHERE'"},
      {"bra INNER; { INNER: ret; }", kBad, "undefined label 'INNER'"},
      {"L: ret; L: ret;", kBad, "label defined twice: 'L'"},
      {"brx.idx %r1, T;", kBad, "undeclared table of targets 'T'"},
      {"T: .branchtargets GONE; brx.idx %r1, T;", kBad, "undefined label 'GONE'"},
      {"call missing;", kBad, "undeclared function 'missing'"},
      {"call f, (%r1, %r2);", kBad, "call of 'f' with 2 arguments and 0 results, it has 1 and 0"},
      {"call %rd1, (%r1);", kBad, "an indirect call without targets or prototype"},
      {"mov.u32 %r1, %tid;", kUnsupported, "a whole vector register: '%tid'"},
      {"mov.u32 %r1, %tid.q;", kBad, "expected a member like .x"},
      {"mov.u32 %r1, %laneid.x;", kBad, "expected ';'"},
      {"mov.u32 %r1, 09;", kBad, "a malformed number: '09'"},
      {"mov.u32 %r1, 0x;", kBad, "a malformed number"},
      {"mov.u32 %r1, 12ab;", kBad, "a malformed number"},
      {"mov.u32 %r1, 0b12;", kBad, "a malformed number"},
      {"mov.u64 %rd1, 18446744073709551616;", kBad, "more than 64 bits"},
      {"mov.f32 %f1, 0f123;", kBad, "exactly 8 hexadecimal digits"},
      {"mov.f32 %f1, 0f123456789;", kBad, "exactly 8 hexadecimal digits"},
      {"mov.f64 %f1, 0d0;", kBad, "exactly 16 hexadecimal digits"},
      {"mov.f64 %f1, 1e999;", kBad, "a float out of range"},
      {"mov.f64 %f1, 1.5.2;", kBad, "expected ';'"},
      {"mov.b32 %r1, 1.5;", kBad, "a float literal that 'mov.b32' does not take"},
      {"add.u32 %r1, %r2, 0f3F800000;", kBad, "a float literal that 'add.u32' does not take"},
      {"mov.b64 %rd1, {1.5, 2.5};", kBad, "a float literal that 'mov.b64' does not take"},
      {"bar.sync 1.5;", kBad, "a float literal that 'bar.sync' does not take"},
      {"mov.u32 %r1, 1/0;", kBad, "a division by zero"},
      {"mov.u32 %r1, 1.5+1;", kUnsupported, "arithmetic on float constants"},
      {"mov.u32 %r1, {{%r1, %r2}, %r3};", kBad, "a vector inside a vector"},
      {"mov.u32 %r1, {};", kBad, "expected a constant"},
      {"mov.u32 %r1|1, %r2;", kBad, "a pair of something other than registers"},
      {"mov.u32 %r1, !%r2;", kBad, "'!' before something that is no predicate"},
      {"ld.shared.u32 %r1, [%r2;", kBad, "expected ']'"},
      {"ld.shared.u32 %r1, [%r2+%r3];", kBad, "expected a constant"},
      {"ld.shared.u32 %r1, [{%r2}];", kBad, "a vector inside a vector"},
      {"ld.shared.u32 %r1, [1.5];", kBad, "a float as an address"},
      {"ld.global.u32 %r1, [%rd1].unified;", kUnsupported, "an address with .unified"},
      {"ld.shared.u32 %r1, s[1];", kUnsupported, "an indexed array operand: 's'"},
      {"add.u32 %r1, %r2, %r3", kBad, "expected ';', found '}'"},
      {";", kBad, "expected a statement, found ';'"},
      {".bogus 1;", kUnsupported, "directive .bogus"},
      {".loc 1 2;", kBad, "expected a column"},
      {".pragma nounroll;", kBad, "expected a pragma string"},
      {". u32", kBad, "a dot that starts no directive"},
  };
  for (const Case& each : kCases) {
    expect_refused(
        ".version 9.0\n.target sm_90a\n.func f(.reg .b32 a);\n.shared .b32 s[4];\n"
        ".entry k { .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .f32 %f<2>; .reg .pred %p<2>;\n",
        each, "\n}\n");
  }
}

std::string repeated(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Refuse, DepthAndSizeAreBudgets) {
  const std::string head = ".version 9.0\n.target sm_90a\n.entry k { .reg .b32 %r<2>;\n";
  const std::pair<std::string, const char*> cases[] = {
      {head + repeated("{", 5000), "blocks nested more than 64 deep"},
      {head + "mov.u32 %r1, " + repeated("(", 5000), "a constant expression nested too deeply"},
      {head + "mov.u32 %r1, " + repeated("1?", 5000), "a constant expression nested too deeply"},
      {head + "mov.b32 %r1, {" + repeated("1,", 5000) + "1};}", "more than 256 elements"},
      {head + repeated(".reg .v8 .b32 a;{", 70), "blocks nested more than 64 deep"},
  };
  for (const auto& [text, message] : cases) {
    const auto module = parse(text, "t.ptx");
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().code, kLimit) << module.error().message;
    EXPECT_NE(module.error().message.find(message), std::string::npos) << module.error().message;
  }
  // A long run of signs is no nesting.
  EXPECT_TRUE(parse(head + "mov.u32 %r1, " + repeated("-", 5000) + "1; }", "t.ptx"));
  ParseLimits small;
  small.instructions = 3;
  EXPECT_EQ(parse(head + "ret;ret;ret;ret;}", "t.ptx", small).error().code, kLimit);
  small = {};
  small.text_bytes = 10;
  EXPECT_EQ(parse(head + "}", "t.ptx", small).error().code, kLimit);
}

// 20,000 blocks with the same names, a far label from each: anything quadratic would take minutes.
TEST(Refuse, RepeatedNamesStayLinear) {
  std::string text = ".version 9.0\n.target sm_90a\n.entry k { .reg .b32 %r<2>;\n";
  text += repeated(
      "{ .reg .pred p; .reg .b32 %t<3>; A: setp.eq.u32 p, %t1, %r1; @p bra A; @!p bra END; }\n",
      20'000);
  text += "END: ret; }\n";
  const auto module = parse(text, "t.ptx");
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(module->functions[0].registers.size(), 80'002u);
  EXPECT_EQ(module->functions[0].body[2].operands[0].label, 60'000u);
}

TEST(Refuse, EveryPrefixOfAKernelEndsInAnError) {
  const std::string text =
      ".version 9.0\n.target sm_90a\n.const .f32 w[2] = {1.0, 0f40000000};\n"
      ".entry k(.param .u64 p) .maxntid 32 { .reg .pred q; .reg .b64 %d<2>; { L: ld.param.u64 %d1, "
      "[p+0]; @!q bra L; } // end\n ret; }";
  ASSERT_TRUE(parse(text, "t.ptx"));
  for (size_t length = 0; length < text.size(); ++length) {
    const auto module = parse(std::string_view(text).substr(0, length), "t.ptx");
    EXPECT_TRUE(!module || module->functions.empty()) << length;
  }
}

}  // namespace
}  // namespace ptxb::ptx
