// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/minifloat.h"
#include "base/parallel.h"
#include "base/text.h"

namespace ptxb {
namespace {

TEST(Json, RoundTripsKeepingOrderAndIntegers) {
  auto json = parse_json(R"({"z":1,"a":[true,null,-2.5,"x"],"big":18446744073709551615})", "t");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->dump(), R"({"z":1,"a":[true,null,-2.5,"x"],"big":18446744073709551615})");
  EXPECT_TRUE(json->find("z")->is_integer());
  EXPECT_EQ(json->find("big")->as_uint(), ~uint64_t{0});
  EXPECT_EQ(json->find("absent"), nullptr);
}

TEST(Json, FaultsNameTheFileAndThePlace) {
  for (const char* bad : {"", "{", "{\"a\":1,}", "[1 2]", "nul", "{\"a\":1,\"a\":2}", "\"\xff\""}) {
    auto json = parse_json(bad, "some.json");
    ASSERT_FALSE(json) << bad;
    EXPECT_EQ(json.error().code, ErrorCode::BadInput);
    EXPECT_NE(json.error().message.find("some.json"), std::string::npos);
  }
  EXPECT_FALSE(parse_json(std::string(100000, '['), "deep"));
}

TEST(Json, NotANumberIsWrittenAsNull) { EXPECT_EQ(Json(NAN).dump(), "null"); }

TEST(Text, NumbersMustBeWhole) {
  EXPECT_EQ(parse_int("-12"), -12);
  EXPECT_FALSE(parse_int("12x"));
  EXPECT_FALSE(parse_int(""));
  EXPECT_EQ(parse_uint("0x1F"), 31u);
  EXPECT_FALSE(parse_uint("99999999999999999999"));
}

TEST(Text, NearestFindsATypo) {
  EXPECT_EQ(nearest("gemm_n7168_k512", {"gemm_n7168_k5120", "mha_with_lse_d128"}), "gemm_n7168_k5120");
  EXPECT_EQ(nearest("zzzz", {"gemm_n7168_k5120"}), "");
}

TEST(Text, PrintableHidesControlBytes) { EXPECT_EQ(printable("a\x1b[31m", 100), "a\\x1b[31m"); }

TEST(File, WritesWholeFilesAndReadsThemBack) {
  auto folder = TempFolder::make("ptxb-test-");
  ASSERT_TRUE(folder);
  Path path = folder->path() / "deep/er/file";
  ASSERT_TRUE(write_file(path, "hello"));
  EXPECT_EQ(*read_file(path), "hello");
  EXPECT_EQ(read_file(path, 3).error().code, ErrorCode::Limit);
  EXPECT_EQ(read_file(folder->path() / "none").error().code, ErrorCode::NotFound);
  EXPECT_EQ(read_file(folder->path()).error().code, ErrorCode::Io);
}

TEST(File, UntrustedPlacesGivePlainFilesOnly) {
  auto folder = TempFolder::make("base_test-");
  ASSERT_TRUE(folder);
  Path plain = folder->path() / "plain", link = folder->path() / "link", fifo = folder->path() / "fifo";
  ASSERT_TRUE(write_file(plain, "hello"));
  ASSERT_EQ(::symlink(plain.c_str(), link.c_str()), 0);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(*read_plain_file(plain, 5), "hello");
  EXPECT_EQ(read_plain_file(plain, 4).error().code, ErrorCode::Limit);
  for (const Path& path : {link, fifo, folder->path()}) EXPECT_EQ(read_plain_file(path, 5).error().code, ErrorCode::Io);
  EXPECT_EQ(read_plain_file(folder->path() / "none", 5).error().code, ErrorCode::NotFound);
}

TEST(Hash, KnownVector) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Minifloat, EveryPatternSurvivesARoundTrip) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    auto bits = static_cast<uint16_t>(b);
    float h = f16_to_float(bits), w = bf16_to_float(bits);
    if (std::isnan(h)) EXPECT_EQ(float_to_f16(h), 0x7fff);
    else EXPECT_EQ(float_to_f16(h), bits);
    if (std::isnan(w)) EXPECT_EQ(float_to_bf16(w), 0x7fff);
    else EXPECT_EQ(float_to_bf16(w), bits);
  }
  for (uint32_t b = 0; b < 0x100; ++b) {
    auto bits = static_cast<uint8_t>(b);
    if (!std::isnan(e4m3_to_float(bits))) {
      EXPECT_EQ(float_to_e4m3_satfinite(e4m3_to_float(bits)), bits);
    }
    if (std::isfinite(e5m2_to_float(bits))) {
      EXPECT_EQ(float_to_e5m2_satfinite(e5m2_to_float(bits)), bits);
    }
  }
}

TEST(Minifloat, RoundsTiesToEvenAndSaturates) {
  EXPECT_EQ(float_to_bf16(bits_to_float(0x3f808000)), 0x3f80);
  EXPECT_EQ(float_to_bf16(bits_to_float(0x3f818000)), 0x3f82);
  EXPECT_EQ(float_to_f16(65520.f), 0x7c00);
  EXPECT_EQ(float_to_f16(65519.f), 0x7bff);
  EXPECT_EQ(float_to_f16(std::ldexp(1.f, -25)), 0);
  EXPECT_EQ(float_to_f16(std::ldexp(1.5f, -25)), 1);
  EXPECT_EQ(float_to_e4m3_satfinite(1e9f), 0x7e);
  EXPECT_EQ(float_to_e4m3_satfinite(-1e9f), 0xfe);
  EXPECT_EQ(float_to_e4m3_satfinite(std::ldexp(1.f, -10)), 0);
  EXPECT_EQ(float_to_e5m2_satfinite(INFINITY), 0x7b);
}

TEST(Parallel, EveryIndexRunsOnce) {
  std::vector<std::atomic<int>> seen(1000);
  parallel_for(seen.size(), 4, [&](size_t i, int) { seen[i]++; });
  for (auto& s : seen) EXPECT_EQ(s.load(), 1);
}

}  // namespace
}  // namespace ptxb
