// SPDX-License-Identifier: Apache-2.0
#include "build/elf.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/file.h"
#include "build/inspect.h"

namespace ptxb::build {
namespace {

// A real shared library of this machine: the mathematics library that this program itself uses.
std::string library_bytes() {
  Dl_info info{};
  double (*function)(double) = &std::cos;
  if (::dladdr(reinterpret_cast<void*>(function), &info) == 0 || !info.dli_fname) return "";
  void* found = ::dlsym(RTLD_DEFAULT, "cos");
  if (found && ::dladdr(found, &info) == 0) return "";
  auto bytes = read_file(info.dli_fname);
  return bytes ? *bytes : "";
}

TEST(Elf, ReadsARealLibrary) {
  std::string bytes = library_bytes();
  ASSERT_FALSE(bytes.empty());
  auto symbols = read_dynamic_symbols(bytes, "libm");
  ASSERT_TRUE(symbols) << symbols.error().message;
  EXPECT_TRUE(symbols->defines("cos"));
  EXPECT_TRUE(symbols->defines("sqrt"));
  EXPECT_FALSE(symbols->defines("co"));
  EXPECT_FALSE(symbols->defines("run"));
  bool versioned = false;
  for (const DynamicSymbols::Symbol& symbol : symbols->undefined)
    versioned = versioned || symbol.versioned;
  EXPECT_TRUE(versioned);
  EXPECT_FALSE(symbols->needed.empty());
}

TEST(Elf, DamagedFilesAreRefusedOrReadWithinBounds) {
  std::string bytes = library_bytes();
  ASSERT_FALSE(bytes.empty());
  for (size_t length : {size_t{0}, size_t{1}, size_t{4}, size_t{63}, size_t{64}, size_t{1000},
                        bytes.size() - 1, bytes.size() - 64}) {
    auto cut = read_dynamic_symbols(std::string_view(bytes).substr(0, length), "cut");
    EXPECT_FALSE(cut) << length;
  }
  // Any bytes in the header and in the section table: an answer or an error, never a read outside
  // (AddressSanitizer watches).
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    for (int flips = 0; flips < 4; ++flips) {
      bool table = round % 2 == 0;
      size_t at = table
                      ? header.e_shoff + random() % (uint64_t{header.e_shnum} * sizeof(Elf64_Shdr))
                      : random() % sizeof header;
      damaged[at] = static_cast<char>(random());
    }
    (void)read_dynamic_symbols(damaged, "damaged");
  }
  std::string wrong = bytes;
  wrong[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(read_dynamic_symbols(wrong, "x").error().message,
            "x: not a usable shared library: not 64-bit little-endian");
}

TEST(Elf, ASecondSymbolTableIsRefused) {
  std::string bytes = library_bytes();
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  // Any other section that says it is a table of dynamic symbols.
  for (unsigned i = 1; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    char* place = bytes.data() + header.e_shoff + i * sizeof section;
    std::memcpy(&section, place, sizeof section);
    if (section.sh_type != SHT_NOTE) continue;
    section.sh_type = SHT_DYNSYM;
    std::memcpy(place, &section, sizeof section);
    auto refused = read_dynamic_symbols(bytes, "x");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::BadInput);
    return;
  }
  FAIL() << "the library has no note section to rewrite";
}

TEST(Elf, ALibraryWithoutRunHasNoEntry) {
  auto failure = inspect_library(library_bytes(), Binding::Plain, {});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->verdict, Verdict::NoEntry) << failure->cause;
  EXPECT_EQ(inspect_library("text", Binding::Plain, {})->verdict, Verdict::ForbiddenConstruct);
}

}  // namespace
}  // namespace ptxb::build
