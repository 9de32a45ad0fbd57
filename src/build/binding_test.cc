// SPDX-License-Identifier: Apache-2.0
#include "build/binding.h"

#include <gtest/gtest.h>

namespace ptxb::build {
namespace {

struct Case {
  const char* name;
  const char* source;
  int plain, tvm_ffi;
  int first_line;  // of the first entry of either kind
};

TEST(Binding, EntriesAreFoundAsACompilerSeesThem) {
  const Case kCases[] = {
      {"plain", "extern \"C\" void run(int a) { }", 1, 0, 1},
      {"line", "\n\n/*\n*/ extern \"C\" void run(\n int a)\n{ }", 1, 0, 4},
      {"block", "extern \"C\" {\nvoid run(int a) { }\n}", 1, 0, 2},
      {"linkage from the header", "#include \"ptxbench_task.h\"\nvoid run(int a) { }", 1, 0, 2},
      {"attributes",
       "extern \"C\" __attribute__((visibility(\"default\"))) int run(int a) noexcept { return 0; "
       "}",
       1, 0, 1},
      {"declaration only", "extern \"C\" void run(int a);", 0, 0, 0},
      {"call", "void f() { run(1); }", 0, 0, 0},
      {"method", "struct S { void run(int) { } };", 0, 0, 0},
      {"in a namespace", "namespace n { void run(int) { } }", 0, 0, 0},
      {"C linkage in a namespace", "namespace n { extern \"C\" void run(int) { } }", 1, 0, 1},
      {"other name", "extern \"C\" void rerun(int) { }\nextern \"C\" void run_it(int) { }", 0, 0,
       0},
      {"line comment", "// extern \"C\" void run(int) { }", 0, 0, 0},
      {"spliced comment", "// comment \\\nextern \"C\" void run(int) { }", 0, 0, 0},
      {"block comment", "/* extern \"C\" void run(int) { } */", 0, 0, 0},
      {"string", "const char* s = \"extern void run(int) { }\";", 0, 0, 0},
      {"escaped quote", "const char* s = \"\\\" void run(int) { \"; void run(int) { }", 1, 0, 1},
      {"raw string", "const char* s = R\"x(\n\" void run(int) { )x\";\nvoid run(int) { }", 1, 0, 3},
      {"character", "char c = '\"'; void run(int) { }", 1, 0, 1},
      {"digit separator", "int a = 1'000; void run(int) { }", 1, 0, 1},
      {"macro body", "#define E void run(int) { }\n", 0, 0, 0},
      {"continued macro body", "#define E \\\n void run(int) { }\n", 0, 0, 0},
      {"disabled", "#if 0\nvoid run(int) { }\n#endif\n", 0, 0, 0},
      {"disabled, nested", "#if 0\n#if 1\n#endif\nvoid run(int) { }\n#endif\nint x;", 0, 0, 0},
      {"else of a disabled block", "#if 0\nvoid run(int) { }\n#else\nvoid run(long) { }\n#endif\n",
       1, 0, 4},
      {"apostrophe in a disabled block", "#if 0\ndon't\n#endif\nvoid run(int) { }", 1, 0, 4},
      {"tvm-ffi", "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, entry);", 0, 1, 1},
      {"tvm-ffi in a comment", "// TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, entry);", 0, 0, 0},
      {"both", "void run(int) { }\nTVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);", 1, 1, 1},
      {"kernel and run",
       "__global__ void k(int* a) { if (a) { a[0] = 1; } }\nextern \"C\" void run(int* a) { k<<<1, "
       "1>>>(a); }",
       1, 0, 2},
      {"template before", "template <int N> struct A { int f() { return N; } };\nvoid run(int) { }",
       1, 0, 2},
      {"initialiser before", "int a[] = {1, 2};\nvoid run(int) { }", 1, 0, 2},
      {"unclosed everything", "void run(int) { \" /* ( {", 1, 0, 1},
      {"stray closers", "} } ) ; void run(int) { }", 1, 0, 1},
      {"empty", "", 0, 0, 0},
  };
  for (const Case& one : kCases) {
    EntrySearch found = find_entries(one.source);
    EXPECT_EQ(found.plain.count, one.plain) << one.name;
    EXPECT_EQ(found.tvm_ffi.count, one.tvm_ffi) << one.name;
    int line = found.plain.count ? found.plain.line : found.tvm_ffi.line;
    EXPECT_EQ(line, one.first_line) << one.name;
  }
}

TEST(Binding, OnlyCertainEntriesAreAmbiguous) {
  const char* kPlain = "void run(int) { }\n";
  const char* kTvm = "TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, entry);\n";
  auto below = [](const std::string& text) { return "#ifdef OTHER\n" + text + "#endif\n"; };
  EXPECT_EQ(detect_binding("a.cu", kPlain), Binding::Plain);
  EXPECT_EQ(detect_binding("a.cu", kTvm), Binding::TvmFfi);
  EXPECT_EQ(detect_binding("a.cu", std::string(kPlain) + kTvm), std::nullopt);
  EXPECT_EQ(detect_binding("a.cu", kPlain + below(kTvm)), Binding::Plain);
  EXPECT_EQ(detect_binding("a.cu", kTvm + below(kPlain)), Binding::TvmFfi);
  EXPECT_EQ(detect_binding("a.cu", below(kTvm)), Binding::TvmFfi);
  EXPECT_EQ(detect_binding("a.cu", "int a;"), Binding::Plain);
  EXPECT_EQ(detect_binding("a.ptx", kPlain), Binding::Ptx);
}

TEST(Binding, SourcesThatAreNoTextAreRefused) {
  EXPECT_TRUE(check_source("int a; // \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "a.cu", 100));
  const std::string kBad[] = {"",
                              " \n\t ",
                              std::string("a\0b", 3),
                              "\x80",
                              "\xc0\xaf",
                              "\xc3",
                              "\xe0\x80\x80",
                              "\xed\xa0\x80",
                              "\xf4\x90\x80\x80",
                              "\xf5\x80\x80\x80",
                              "\xe2\x82",
                              std::string(101, 'a')};
  for (const std::string& source : kBad) {
    auto refused = check_source(source, "a.cu", 100);
    ASSERT_FALSE(refused) << source;
    EXPECT_EQ(refused.error().code, ErrorCode::BadInput);
    EXPECT_TRUE(refused.error().message.starts_with("a.cu: ")) << refused.error().message;
  }
  EXPECT_EQ(check_source(std::string("ab\0", 3), "a.cu", 100).error().message,
            "a.cu: byte 2 is NUL: this is no source text");
}

}  // namespace
}  // namespace ptxb::build
