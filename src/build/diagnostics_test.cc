// The literal words of nvcc 13.0, ptxas 13.0, g++ 12 and GNU ld 2.40.
// SPDX-License-Identifier: Apache-2.0
#include "build/diagnostics.h"

#include <gtest/gtest.h>

namespace ptxb::build {
namespace {

using Severity = Diagnostic::Severity;

struct Case {
  const char* text;
  Severity severity;
  const char* tool;
  const char* file;
  int line;
  const char* code;
  const char* message;
};

TEST(Diagnostics, EachToolsMessagesAreRead) {
  const Case kCases[] = {
      {"candidate.cu(2): error: identifier \"undeclared\" is undefined", Severity::Error, "nvcc",
       "candidate.cu", 2, "", "identifier \"undeclared\" is undefined"},
      {"/build/candidate.cu(12): warning #177-D: variable \"u\" was declared but never referenced",
       Severity::Warning, "nvcc", "candidate.cu", 12, "177-D",
       "variable \"u\" was declared but never referenced"},
      {"e.cu(2): Error: Formal parameter space overflowed (40008 bytes required, max 32764 bytes "
       "allowed) in function _Z3big1BPf",
       Severity::Error, "nvcc", "e.cu", 2, "",
       "Formal parameter space overflowed (40008 bytes required, max 32764 bytes allowed) in "
       "function _Z3big1BPf"},
      {"candidate.cu(1): catastrophic error: cannot open source file \"x.h\"", Severity::Error,
       "nvcc", "candidate.cu", 1, "", "cannot open source file \"x.h\""},
      {"candidate.cu:1:10: fatal error: nofile.h: No such file or directory", Severity::Error,
       "host", "candidate.cu", 1, "", "nofile.h: No such file or directory"},
      {"candidate.cu:1:2: warning: #warning hello there [-Wcpp]", Severity::Warning, "host",
       "candidate.cu", 1, "", "#warning hello there [-Wcpp]"},
      {"candidate.cu:7: note: declared here", Severity::Note, "host", "candidate.cu", 7, "",
       "declared here"},
      {"ptxas candidate.ptx, line 30; error   : Unknown modifier '.bar'", Severity::Error, "ptxas",
       "candidate.ptx", 30, "", "Unknown modifier '.bar'"},
      {"ptxas candidate.ptx, line 5; warning : Unsupported .version 9.9; current version is '9.0'",
       Severity::Warning, "ptxas", "candidate.ptx", 5, "",
       "Unsupported .version 9.9; current version is '9.0'"},
      {"ptxas info    : (C7519) warpgroup.arrive is injected in around line 80 by compiler to "
       "allow use of registers in GMMA in "
       "function 'k'",
       Severity::Advice, "ptxas", "", 80, "C7519",
       "warpgroup.arrive is injected in around line 80 by compiler to allow use of registers in "
       "GMMA in function 'k'"},
      {"ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
       "serialized due to insufficient "
       "register resources for the wgmma pipeline in the function 'k'",
       Severity::Advice, "ptxas", "", 0, "C7510",
       "Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
       "insufficient register resources for the "
       "wgmma pipeline in the function 'k'"},
      {"ptxas error   : Entry function '_Z3bigPf' uses too much shared data (0x3a980 bytes, "
       "0x38c00 max)",
       Severity::Error, "ptxas", "", 0, "",
       "Entry function '_Z3bigPf' uses too much shared data (0x3a980 bytes, 0x38c00 max)"},
      {"ptxas fatal   : Unresolved extern function 'f'", Severity::Error, "ptxas", "", 0, "",
       "Unresolved extern function 'f'"},
      {"nvcc fatal   : Unsupported gpu architecture 'compute_1'", Severity::Error, "nvcc", "", 0,
       "", "Unsupported gpu architecture 'compute_1'"},
      {"nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)", Severity::Error,
       "nvcc", "", 0, "", "'cicc' died due to signal 11 (Invalid memory reference)"},
      {"tmpxft_1.cudafe1.cpp:(.text+0x10): undefined reference to `host()'", Severity::Error,
       "host", "", 0, "", "tmpxft_1.cudafe1.cpp:(.text+0x10): undefined reference to `host()'"},
  };
  for (const Case& one : kCases) {
    auto found = parse_diagnostics(one.text);
    ASSERT_EQ(found.size(), 1u) << one.text;
    EXPECT_EQ(found[0].severity, one.severity) << one.text;
    EXPECT_EQ(found[0].tool, one.tool) << one.text;
    EXPECT_EQ(found[0].file, one.file) << one.text;
    EXPECT_EQ(found[0].line, one.line) << one.text;
    EXPECT_EQ(found[0].code, one.code) << one.text;
    EXPECT_EQ(found[0].message, one.message) << one.text;
  }
}

TEST(Diagnostics, LinesThatSayNothingAreLeftOut) {
  for (const char* text :
       {"", "  int x = undeclared;", "          ^",
        "2 errors detected in the compilation of \"f.cu\".", "compilation terminated.",
        "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"",
        "ptxas fatal   : Ptx assembly aborted due to errors", "ptxas info    : 0 bytes gmem",
        "ptxas info    : Used 30 registers, used 0 barriers",
        "collect2: error: ld returned 1 exit status", "a(b): c", "f.cu(x): error: y",
        "f.cu(99999999999999): error: too long a number", "ptxas", "ptxas , line ; error : "}) {
    EXPECT_TRUE(parse_diagnostics(text).empty()) << text;
  }
}

TEST(Diagnostics, ErrorsComeFirstOnceEachAndWithinBounds) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += "f.cu(" + std::to_string(i + 1) + "): warning #1-D: w\n";
  text += "f.cu(7): error: e\nf.cu(7): error: e\r\n";
  auto found = parse_diagnostics(text);
  ASSERT_EQ(found.size(), kMaxDiagnostics);
  EXPECT_EQ(found[0].message, "e");
  EXPECT_EQ(found[1].message, "w");
  EXPECT_EQ(found[1].line, 1);
}

TEST(Diagnostics, OutsideTextIsMadeSafe) {
  auto found = parse_diagnostics("f.cu(1): error: \x1b[31mred\x07 " + std::string(5000, 'x'));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message.find('\x1b'), std::string::npos);
  EXPECT_LE(found[0].message.size(), kMaxMessageBytes + 3);
  // Ten million bytes without a line end cost nothing.
  EXPECT_TRUE(parse_diagnostics(std::string(10'000'000, 'x')).empty());
}

TEST(Diagnostics, KernelUseIsRead) {
  const char* kText =
      "ptxas info    : 4 bytes gmem, 64 bytes cmem[3]\n"
      "ptxas info    : Compiling entry function '_Z5spillILi3EEvPf' for 'sm_90a'\n"
      "ptxas info    : Function properties for _Z5spillILi3EEvPf\n"
      "    1240 bytes stack frame, 1428 bytes spill stores, 1440 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 1240 bytes cumulative stack size, 8192 "
      "bytes smem, 360 bytes cmem[0], 8 bytes cmem[2]\n"
      "ptxas info    : Compile time = 247.516 ms\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 30 registers, used 0 barriers\n"
      "ptxas info    : Function properties for _Z3fooPf\n"
      "    16 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n";
  auto found = parse_kernel_use(kText);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "_Z5spillILi3EEvPf");
  EXPECT_EQ(found[0].registers, 32u);
  EXPECT_EQ(found[0].barriers, 1u);
  EXPECT_EQ(found[0].stack_bytes, 1240u);
  EXPECT_EQ(found[0].spill_store_bytes, 1428u);
  EXPECT_EQ(found[0].spill_load_bytes, 1440u);
  EXPECT_EQ(found[0].static_shared_bytes, 8192u);
  EXPECT_EQ(found[0].const_bytes, 368u);
  EXPECT_EQ(found[1].name, "k");
  EXPECT_EQ(found[1].registers, 30u);
  EXPECT_EQ(found[1].stack_bytes, 0u) << "the device function after it is no kernel";
  EXPECT_TRUE(parse_kernel_use("ptxas info    : Compiling entry function 'k\n").empty());
}

TEST(Diagnostics, OveruseIsReadAsNumbers) {
  auto found = parse_overuse(
      "ptxas error   : Entry function '_Z3bigPf' uses too much shared data (0x3a980 bytes, 0x38c00 "
      "max)\n"
      "ptxas error   : Entry function 'f' uses too much parameter space (0x1120 bytes, 0x1100 "
      "max).\n"
      "ptxas error   : Entry function 'g' uses too much shared data (0x10 bytes, 0x38c00 max)\n"
      "f.cu(1): error: Entry function 'h' uses too much shared data (0x3a980 bytes, 0x38c00 "
      "max)\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kernel, "_Z3bigPf");
  EXPECT_EQ(found[0].resource, "shared data");
  EXPECT_EQ(found[0].used_bytes, 240000u);
  EXPECT_EQ(found[0].limit_bytes, 232448u);
  EXPECT_EQ(found[1].resource, "parameter space");
}

}  // namespace
}  // namespace ptxb::build
