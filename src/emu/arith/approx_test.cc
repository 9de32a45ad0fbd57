// Checks the approximate functions: documented special cases to the bit, documented error bounds
// against long double.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/approx.h"

#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "emu/arith/convert.h"
#include "emu/arith/random_bits.h"

namespace ptxb::emu::arith {
namespace {

constexpr uint32_t kPlusInf = 0x7f800000, kMinusInf = 0xff800000, kMinusZero = 0x80000000,
                   kNan = 0x7fc00000;

float value(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t bits_of(float v) { return std::bit_cast<uint32_t>(v); }

// Distance from the exact value in units of the result's last place (subnormal results: of 2^-149).
double ulps(uint32_t result, long double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  int unit = std::max(exponent - 24, -149);
  return static_cast<double>(std::fabs(static_cast<long double>(value(result)) - exact) /
                             std::ldexp(1.0L, unit));
}

TEST(Approx, SpecialCasesFollowThePtxTables) {
  EXPECT_EQ(ex2_approx_f32(kMinusInf), 0u);
  EXPECT_EQ(ex2_approx_f32(kMinusZero), 0x3f800000u);
  EXPECT_EQ(ex2_approx_f32(kPlusInf), kPlusInf);
  EXPECT_EQ(ex2_approx_f32(kNan), kNanF32);
  EXPECT_EQ(ex2_approx_f32(bits_of(128.0f)), kPlusInf);
  EXPECT_EQ(ex2_approx_f32(bits_of(-149.0f)), 1u);
  EXPECT_EQ(ex2_approx_f32(bits_of(-149.0f), {.ftz = true}), 0u);
  EXPECT_EQ(lg2_approx_f32(kMinusZero), kMinusInf);
  EXPECT_EQ(lg2_approx_f32(bits_of(-1.0f)), kNanF32);
  EXPECT_EQ(lg2_approx_f32(1, {.ftz = true}), kMinusInf);
  EXPECT_EQ(lg2_approx_f32(1), bits_of(-149.0f));
  EXPECT_EQ(rcp_approx_f32(kMinusInf), kMinusZero);
  EXPECT_EQ(rcp_approx_f32(kMinusZero), kMinusInf);
  EXPECT_EQ(rcp_approx_f32(0x7f000000, {.ftz = true}), 0u);  // 2^-127 is subnormal
  EXPECT_EQ(rsqrt_approx_f32(kMinusZero), kMinusInf);
  EXPECT_EQ(rsqrt_approx_f32(kPlusInf), 0u);
  EXPECT_EQ(rsqrt_approx_f32(bits_of(-1.0f)), kNanF32);
  EXPECT_EQ(rsqrt_approx_f32(0x80000001, {.ftz = true}), kMinusInf);
  EXPECT_EQ(sqrt_approx_f32(kMinusZero), kMinusZero);
  EXPECT_EQ(sqrt_approx_f32(kMinusInf), kNanF32);
  EXPECT_EQ(sin_approx_f32(kMinusZero), kMinusZero);
  EXPECT_EQ(sin_approx_f32(kPlusInf), kNanF32);
  EXPECT_EQ(cos_approx_f32(0), 0x3f800000u);
  EXPECT_EQ(cos_approx_f32(kMinusInf), kNanF32);
  EXPECT_EQ(tanh_approx_f32(kMinusInf), bits_of(-1.0f));
  EXPECT_EQ(tanh_approx_f32(kMinusZero), kMinusZero);
  EXPECT_EQ(tanh_approx_f32(0x00000123), 0x00000123u);
  EXPECT_EQ(div_approx_f32(bits_of(1.0f), 0x7f000000), 0u);  // 2^127
  EXPECT_EQ(div_approx_f32(kPlusInf, 0xff000000), kNanF32);
  EXPECT_EQ(div_approx_f32(bits_of(-6.0f), bits_of(2.0f)), bits_of(-3.0f));
  EXPECT_EQ(div_full_f32(bits_of(1.0f), 0x7f000000), 0x00400000u);
  EXPECT_EQ(div_full_f32(0, 0), kNanF32);
}

TEST(Approx, F64FormsKeepTheUpperWordOnly) {
  EXPECT_EQ(rcp_approx_ftz_f64(std::bit_cast<uint64_t>(4.0)), std::bit_cast<uint64_t>(0.25));
  EXPECT_EQ(rcp_approx_ftz_f64(0x8000000000000000), 0xfff0000000000000ull);
  EXPECT_EQ(rcp_approx_ftz_f64(0x000fffffffffffff), 0x7ff0000000000000ull);
  EXPECT_EQ(rcp_approx_ftz_f64(0x7ff8000000000000), 0x7fffffff00000000ull);
  EXPECT_EQ(rsqrt_approx_ftz_f64(std::bit_cast<uint64_t>(16.0)), std::bit_cast<uint64_t>(0.25));
  EXPECT_EQ(rsqrt_approx_ftz_f64(0x800fffffffffffff), 0xfff0000000000000ull);
  EXPECT_EQ(rsqrt_approx_f64(std::bit_cast<uint64_t>(16.0)), std::bit_cast<uint64_t>(0.25));
  EXPECT_EQ(rcp_approx_ftz_f64(std::bit_cast<uint64_t>(3.0)) & 0xffffffff, 0u);
}

TEST(Approx, Ex2StaysWithinOneUlpOverItsRange) {
  double worst = 0;
  for (uint32_t step = 0; step < 600000; ++step) {
    float x = -150.0f + 279.0f * static_cast<float>(step) / 600000.0f;
    long double exact = std::exp2(static_cast<long double>(x));
    uint32_t result = ex2_approx_f32(bits_of(x));
    if (exact > 3.40282346e38L) {
      ASSERT_GE(result, 0x7f7fffffu);
      continue;
    }
    worst = std::max(worst, ulps(result, exact));
  }
  EXPECT_LT(worst, 1.0);
}

struct Function {
  uint32_t (*of)(uint32_t, FloatControl);
  long double (*exact)(long double);
  float low, high;
};

TEST(Approx, OtherFunctionsStayWithinOneUlp) {
  const Function functions[] = {
      {lg2_approx_f32, [](long double x) { return std::log2(x); }, 1e-30f, 1e30f},
      {rcp_approx_f32, [](long double x) { return 1 / x; }, 1e-30f, 1e30f},
      {rsqrt_approx_f32, [](long double x) { return 1 / std::sqrt(x); }, 1e-30f, 1e30f},
      {sqrt_approx_f32, [](long double x) { return std::sqrt(x); }, 1e-30f, 1e30f},
      {sin_approx_f32, [](long double x) { return std::sin(x); }, 1e-5f, 6.0f},
      {cos_approx_f32, [](long double x) { return std::cos(x); }, 1e-5f, 6.0f},
      {[](uint32_t a, FloatControl) { return tanh_approx_f32(a); },
       [](long double x) { return std::tanh(x); }, 1e-6f, 9.0f}};
  RandomBits random(41);
  for (const Function& f : functions) {
    uint32_t low = bits_of(f.low), span = bits_of(f.high) - low;
    for (int i = 0; i < 20000; ++i) {
      uint32_t a = low + random.below(span);
      ASSERT_LT(ulps(f.of(a, {}), f.exact(static_cast<long double>(value(a)))), 0.51) << value(a);
    }
  }
}

// No neighbour of the result is nearer to the exact value.
bool is_nearest(Half format, uint16_t result, double exact) {
  auto of = [&](int bits) {
    return double{format == Half::F16 ? f16_value(static_cast<uint16_t>(bits))
                                      : bf16_value(static_cast<uint16_t>(bits))};
  };
  int infinity = format == Half::F16 ? 0x7c00 : 0x7f80;
  int magnitude = result & 0x7fff;
  double target = std::fabs(exact);
  if (std::signbit(exact) != ((result & 0x8000) != 0)) return false;
  if (magnitude == infinity) return target > of(infinity - 1);
  double gap = std::fabs(of(magnitude) - target);
  bool below_ok = magnitude == 0 || gap <= std::fabs(of(magnitude - 1) - target);
  return below_ok && (magnitude + 1 == infinity || gap <= std::fabs(of(magnitude + 1) - target));
}

TEST(Approx, HalfFormsAreCorrectlyRoundedForEveryInput) {
  for (Half format : {Half::F16, Half::BF16}) {
    for (uint32_t i = 0; i < 65536; ++i) {
      uint16_t a = static_cast<uint16_t>(i);
      float x = format == Half::F16 ? f16_value(a) : bf16_value(a);
      uint16_t ex2 = ex2_approx_half(format, a), tanh = tanh_approx_half(format, a);
      if (std::isnan(x)) {
        ASSERT_EQ(ex2, 0x7fff);
        ASSERT_EQ(tanh, 0x7fff);
        continue;
      }
      ASSERT_TRUE(is_nearest(format, ex2, std::exp2(double{x}))) << x;
      ASSERT_TRUE(is_nearest(format, tanh, std::tanh(double{x}))) << x;
    }
  }
  EXPECT_EQ(ex2_approx_half(Half::BF16, 0x8001, {.ftz = true}), 0x3f80);
  EXPECT_EQ(ex2_approx_half(Half::BF16, 0xc300, {.ftz = true}), 0x0000);  // 2^-128
  EXPECT_EQ(ex2_approx_half2(Half::F16, 0x3c00'0000), 0x4000'3c00u);
  EXPECT_EQ(tanh_approx_half2(Half::BF16, 0xff80'0000), 0xbf80'0000u);
}

}  // namespace
}  // namespace ptxb::emu::arith
