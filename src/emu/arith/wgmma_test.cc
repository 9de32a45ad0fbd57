// Checks wgmma: operand addresses against the canonical layouts of PTX ISA 9.7.15.5, arithmetic
// against the definition.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/wgmma.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emu/arith/convert.h"
#include "emu/arith/lanes.h"
#include "emu/arith/mma_element.h"
#include "emu/arith/mma_exact.h"
#include "emu/arith/random_bits.h"

namespace ptxb::emu::arith {
namespace {

using T = MmaType;
using Acc = MmaAccumulator;

TEST(WgmmaDescriptor, FieldsDecode) {
  // start 0x1240, LBO 0x80, SBO 0x400, base offset 5, 64-byte swizzle
  uint64_t bits = 0x124ull | (0x8ull << 16) | (0x40ull << 32) | (5ull << 49) | (2ull << 62);
  WgmmaDescriptor d = decode_wgmma_descriptor(bits);
  EXPECT_EQ(d.start, 0x1240u);
  EXPECT_EQ(d.leading_bytes, 0x80u);
  EXPECT_EQ(d.stride_bytes, 0x400u);
  EXPECT_EQ(d.base_offset, 5);
  EXPECT_EQ(d.swizzle, Swizzle::Bytes64);
}

// CuTe's Swizzle<bits, 4, 3> on byte addresses.
uint32_t cute_swizzle(int bits, uint32_t address) {
  uint32_t mask = ((1u << bits) - 1) << 7;
  return address ^ ((address & mask) >> 3);
}

TEST(WgmmaLayout, KMajorFollowsTheCanonicalLayouts) {
  // Swizzle o ((8,m),(T,2k)):((xT,SBO),(1,T or LBO)), in bytes; T elements are 16 bytes, x =
  // swizzle bytes / 16.
  const std::pair<Swizzle, int> modes[] = {
      {Swizzle::None, 0}, {Swizzle::Bytes32, 1}, {Swizzle::Bytes64, 2}, {Swizzle::Bytes128, 3}};
  for (auto [swizzle, bits] : modes) {
    WgmmaDescriptor d{.start = 0x2000,
                      .leading_bytes = 0x900,
                      .stride_bytes = 0x400,
                      .base_offset = 0,
                      .swizzle = swizzle};
    for (int row = 0; row < 64; ++row) {
      for (int c = 0; c < 2; ++c) {
        uint32_t pitch = 16u << bits;
        uint32_t offset = static_cast<uint32_t>(row % 8) * pitch +
                          static_cast<uint32_t>(row / 8) * 0x400 +
                          static_cast<uint32_t>(c) * (bits == 0 ? 0x900 : 16);
        ASSERT_EQ(wgmma_chunk_k_major(d, row, c), cute_swizzle(bits, 0x2000 + offset))
            << row << " " << c;
      }
    }
  }
}

TEST(WgmmaLayout, MnMajorFollowsTheCanonicalLayouts) {
  // Swizzle o ((T,x,m),(8,k)):((1,T,LBO),(xT,SBO)); without swizzle m has stride SBO and k has
  // stride LBO.
  const std::pair<Swizzle, int> modes[] = {
      {Swizzle::Bytes32, 1}, {Swizzle::Bytes64, 2}, {Swizzle::Bytes128, 3}};
  for (auto [swizzle, bits] : modes) {
    int per_atom = 1 << bits;
    WgmmaDescriptor d{.start = 0x4000,
                      .leading_bytes = 0x1000,
                      .stride_bytes = 0x800,
                      .base_offset = 0,
                      .swizzle = swizzle};
    for (int c = 0; c < 32; ++c) {
      for (int k = 0; k < 16; ++k) {
        int offset =
            c % per_atom * 16 + c / per_atom * 0x1000 + k % 8 * 16 * per_atom + k / 8 * 0x800;
        ASSERT_EQ(wgmma_chunk_mn_major(d, c, k),
                  cute_swizzle(bits, 0x4000u + static_cast<uint32_t>(offset)));
      }
    }
  }
  WgmmaDescriptor plain{.start = 0,
                        .leading_bytes = 256,
                        .stride_bytes = 128,
                        .base_offset = 0,
                        .swizzle = Swizzle::None};
  EXPECT_EQ(wgmma_chunk_mn_major(plain, 1, 0),
            128u);  // the ISA's bf16 example: ((8,1,2),(8,2)):((1,8,64),(8,128))
  EXPECT_EQ(wgmma_chunk_mn_major(plain, 0, 8), 256u);
  EXPECT_EQ(wgmma_chunk_mn_major(plain, 0, 3), 48u);
}

TEST(WgmmaLayout, AdvancingKInsideAnAtomKeepsTheSwizzleOfTheAddress) {
  WgmmaDescriptor d{.start = 0x2000 + 32,
                    .leading_bytes = 0,
                    .stride_bytes = 1024,
                    .base_offset = 0,
                    .swizzle = Swizzle::Bytes128};
  EXPECT_EQ(wgmma_chunk_k_major(d, 0, 0), 0x2020u);
  EXPECT_EQ(wgmma_chunk_k_major(d, 3, 0), 0x2000u + 3 * 128 + (32 ^ (3 << 4)));
  EXPECT_EQ(wgmma_chunk_k_major(d, 9, 1), 0x2400u + 128 + (48 ^ (1 << 4)));
}

constexpr uint32_t kSharedBytes = 96 * 1024;
constexpr WgmmaDescriptor kA{0x0000, 16, 1024, 0, Swizzle::Bytes128};
constexpr WgmmaDescriptor kB{0x8000, 16, 1024, 0, Swizzle::Bytes128};
constexpr WgmmaDescriptor kBTransposed{0x8000, 4096, 1024, 0, Swizzle::Bytes128};
constexpr WgmmaDescriptor kATransposed{0x0000, 4096, 1024, 0, Swizzle::Bytes128};

struct Problem {
  explicit Problem(const WgmmaForm& f, uint64_t seed)
      : form(f), shared(kSharedBytes), random(seed) {
    for (size_t i = 0; i < shared.size(); i += 4) {
      uint32_t w = word();
      std::memcpy(&shared[i], &w, 4);
    }
    for (auto& r : d) {
      for (uint32_t& x : r) {
        if (form.d == Acc::F32)
          x = 0x3c000000u + random.below(0x08000000) + (random.below(2) << 31);
        else if (form.d == Acc::F16)
          x = (half() << 16) | half();
        else
          x = static_cast<uint32_t>(random.next());
      }
    }
  }
  uint32_t half() {
    return (random.below(2) << 15) | ((8 + random.below(12)) << 10) | random.below(1024);
  }
  uint32_t word() {
    switch (form.a) {
      case T::F16:
        return (half() << 16) | half();
      case T::BF16:
        return (static_cast<uint32_t>(random.next()) & 0x807f807f) | 0x3f003d80u;
      case T::TF32:
        return (static_cast<uint32_t>(random.next()) & 0x80ffffff) | 0x3e000000u;
      case T::E4M3:
      case T::E5M2:
        return static_cast<uint32_t>(random.next()) & 0xbfbfbfbf;
      default:
        return static_cast<uint32_t>(random.next());
    }
  }
  // Element (mn, k) as its register word and index in it.
  std::pair<uint32_t, int> element(const WgmmaDescriptor& descriptor, Major major, T type, int mn,
                                   int k) const {
    int per_word = elements_per_register(type);
    uint32_t w = 0;
    if (major == Major::K) {
      int per_chunk = 4 * per_word;
      uint32_t address = wgmma_chunk_k_major(descriptor, mn, k / per_chunk) +
                         static_cast<uint32_t>(k % per_chunk / per_word * 4);
      std::memcpy(&w, &shared[address], 4);
      return {w, k % per_word};
    }
    std::memcpy(
        &w,
        &shared[wgmma_chunk_mn_major(descriptor, mn / 8, k) + static_cast<uint32_t>(mn % 8 * 2)],
        2);
    return {w, 0};
  }
  WgmmaForm form;
  std::vector<uint8_t> shared;
  RandomBits random;
  uint32_t d[128][32];
};

std::string describe(const WgmmaForm& form) {
  return "n" + std::to_string(form.n) + " a" + std::to_string(static_cast<int>(form.a)) + " b" +
         std::to_string(static_cast<int>(form.b)) + " d" + std::to_string(static_cast<int>(form.d));
}

void run(const WgmmaKernel& kernel, Problem& p, const WgmmaDescriptor& a, const WgmmaDescriptor& b,
         int warp, ScaleD scale) {
  auto rows = std::make_unique<WgmmaRows>();
  auto panel = std::make_unique<WgmmaPanel>();
  kernel.load_b(*panel, p.form, p.shared.data(), b);
  kernel.load_a(*rows, p.form, p.shared.data(), a, warp);
  uint32_t* d[128];
  for (int i = 0; i < 128; ++i) d[i] = p.d[i];
  kernel.multiply(*rows, *panel, p.form, d, scale);
}

// Every element of D from the matrices as the descriptors lay them out.
void expect_definition(const Problem& before, const Problem& after, const WgmmaDescriptor& a,
                       const WgmmaDescriptor& b, int warp, ScaleD scale, Numerics numerics) {
  const WgmmaForm& form = before.form;
  int depth = wgmma_k(form.a);
  bool fp8 = form.a == T::E4M3 || form.a == T::E5M2;
  ExactModel model{.a = form.a,
                   .b = form.b,
                   .fraction_bits = fp8 ? 13 : 25,
                   .result_fraction_bits = fp8 ? 13 : 23};
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < form.n; ++column) {
      std::vector<float> x, y;
      for (int k = 0; k < depth; ++k) {
        auto [xw, xi] = before.element(a, form.a_major, form.a, 16 * warp + row, k);
        auto [yw, yi] = before.element(b, form.b_major, form.b, column, k);
        x.push_back(element_value(form.a, xw, xi) * (form.negate_a ? -1.0f : 1.0f));
        y.push_back(element_value(form.b, yw, yi) * (form.negate_b ? -1.0f : 1.0f));
      }
      bool half_result = form.d == Acc::F16;
      int lane = 4 * (row % 8) + column % 8 / 2;
      int reg = half_result ? column / 8 * 2 + row / 8 : column / 8 * 4 + row / 8 * 2 + column % 2;
      int shift = half_result ? 16 * (column % 2) : 0;
      uint32_t mask = half_result ? 0xffff : 0xffffffff;
      uint32_t c = scale == ScaleD::Keep ? (before.d[reg][lane] >> shift) & mask : 0;
      uint32_t expected = 0;
      if (numerics == Numerics::Fast) {
        float sum = half_result ? f16_value(static_cast<uint16_t>(c)) : std::bit_cast<float>(c);
        for (size_t k = 0; k < x.size(); ++k) sum = std::fma(x[k], y[k], sum);
        expected = std::bit_cast<uint32_t>(sum);
        if (half_result) expected = half_from_f32(Half::F16, expected);
      } else {
        expected = half_result ? exact_dot_f16(model, depth, x.data(), y.data(), 1,
                                               static_cast<uint16_t>(c))
                               : exact_dot_f32(model, depth, x.data(), y.data(), 1, c);
      }
      ASSERT_EQ((after.d[reg][lane] >> shift) & mask, expected)
          << describe(form) << " " << row << " " << column;
    }
  }
}

const std::vector<WgmmaForm>& float_forms() {
  static const std::vector<WgmmaForm> kForms = {
      {.n = 64, .a = T::BF16, .b = T::BF16, .d = Acc::F32},
      {.n = 24, .a = T::F16, .b = T::F16, .d = Acc::F32, .negate_a = true},
      {.n = 16, .a = T::F16, .b = T::F16, .d = Acc::F16, .negate_b = true},
      {.n = 8, .a = T::TF32, .b = T::TF32, .d = Acc::F32},
      {.n = 32, .a = T::E4M3, .b = T::E5M2, .d = Acc::F32},
      {.n = 16, .a = T::E5M2, .b = T::E4M3, .d = Acc::F16},
      {.n = 64,
       .a = T::BF16,
       .b = T::BF16,
       .d = Acc::F32,
       .a_major = Major::MN,
       .b_major = Major::MN},
      {.n = 128,
       .a = T::F16,
       .b = T::F16,
       .d = Acc::F32,
       .a_major = Major::K,
       .b_major = Major::MN}};
  return kForms;
}

TEST(Wgmma, FloatFormsMatchTheDefinitionOnBothPathsAndModes) {
  for (Numerics numerics : {Numerics::Fast, Numerics::Exact}) {
    for (const WgmmaForm& form : float_forms()) {
      WgmmaDescriptor a = form.a_major == Major::K ? kA : kATransposed;
      WgmmaDescriptor b = form.b_major == Major::K ? kB : kBTransposed;
      Problem before(form, 61);
      for (int warp : {0, 3}) {
        ScaleD scale = warp == 0 ? ScaleD::Keep : ScaleD::Zero;
        Problem native = before;
        run(wgmma_kernel(form, numerics), native, a, b, warp, scale);
        expect_definition(before, native, a, b, warp, scale, numerics);
        select_lane_path(LanePath::Portable);
        WgmmaKernel slow = wgmma_kernel(form, numerics);
        select_lane_path(LanePath::Native);
        Problem portable = before;
        run(slow, portable, a, b, warp, scale);
        size_t registers = static_cast<size_t>(wgmma_d_registers(form));
        ASSERT_EQ(std::memcmp(native.d, portable.d, sizeof(native.d[0]) * registers), 0)
            << describe(form);
      }
    }
  }
}

TEST(Wgmma, WildOperandsTakeTheScalarModelWithTheSameBits) {
  for (const WgmmaForm& form : float_forms()) {
    Problem before(form, 62);
    RandomBits random(63);
    for (size_t i = 0; i < before.shared.size(); i += 64)
      before.shared[i + random.below(64)] = static_cast<uint8_t>(random.next());
    for (auto& r : before.d) r[random.below(32)] = random.f32();
    WgmmaDescriptor a = form.a_major == Major::K ? kA : kATransposed;
    WgmmaDescriptor b = form.b_major == Major::K ? kB : kBTransposed;
    for (Numerics numerics : {Numerics::Fast, Numerics::Exact}) {
      Problem native = before, portable = before;
      run(wgmma_kernel(form, numerics), native, a, b, 1, ScaleD::Keep);
      select_lane_path(LanePath::Portable);
      WgmmaKernel slow = wgmma_kernel(form, numerics);
      select_lane_path(LanePath::Native);
      run(slow, portable, a, b, 1, ScaleD::Keep);
      size_t registers = static_cast<size_t>(wgmma_d_registers(form));
      ASSERT_EQ(std::memcmp(native.d, portable.d, sizeof(native.d[0]) * registers), 0)
          << describe(form);
    }
  }
}

TEST(Wgmma, RegisterOperandEqualsTheSameRowsInSharedMemory) {
  for (LanePath path : {LanePath::Native, LanePath::Portable}) {
    for (const WgmmaForm& form : float_forms()) {
      if (form.a_major == Major::MN) continue;
      select_lane_path(path);
      WgmmaKernel kernel = wgmma_kernel(form, Numerics::Fast);
      select_lane_path(LanePath::Native);
      Problem p(form, 64);
      uint32_t fragment[4][32];
      const uint32_t* a[4];
      for (int r = 0; r < 4; ++r) {
        a[r] = fragment[r];
        for (int lane = 0; lane < 32; ++lane) {
          uint32_t address = wgmma_chunk_k_major(kA, 32 + lane / 4 + 8 * (r % 2), r / 2) +
                             static_cast<uint32_t>(lane % 4 * 4);
          std::memcpy(&fragment[r][lane], &p.shared[address], 4);
        }
      }
      Problem from_shared = p;
      run(kernel, from_shared, kA, p.form.b_major == Major::K ? kB : kBTransposed, 2, ScaleD::Keep);
      auto rows = std::make_unique<WgmmaRows>();
      auto panel = std::make_unique<WgmmaPanel>();
      kernel.load_b(*panel, form, p.shared.data(), p.form.b_major == Major::K ? kB : kBTransposed);
      kernel.load_a_registers(*rows, form, a);
      uint32_t* d[128];
      for (int i = 0; i < 128; ++i) d[i] = p.d[i];
      kernel.multiply(*rows, *panel, form, d, ScaleD::Keep);
      ASSERT_EQ(std::memcmp(p.d, from_shared.d, sizeof p.d), 0) << describe(form);
    }
  }
}

TEST(Wgmma, IntegersAndBitsAreExact) {
  for (T a : {T::S8, T::U8, T::B1}) {
    for (T b : {T::S8, T::U8, T::B1}) {
      if ((a == T::B1) != (b == T::B1)) continue;
      for (bool satfinite : {false, true}) {
        WgmmaForm form{.n = 32, .a = a, .b = b, .d = Acc::S32, .satfinite = satfinite};
        if (a == T::B1 && satfinite) continue;
        WgmmaKernel kernel = wgmma_kernel(form, Numerics::Fast);
        ASSERT_NE(kernel.multiply, nullptr);
        Problem before(form, 65);
        before.d[0][0] = 0x7fffffff;
        Problem after = before;
        run(kernel, after, kA, kB, 0, ScaleD::Keep);
        for (int row = 0; row < 16; ++row) {
          for (int column = 0; column < form.n; ++column) {
            int lane = 4 * (row % 8) + column % 8 / 2,
                reg = column / 8 * 4 + row / 8 * 2 + column % 2;
            int64_t sum = static_cast<int32_t>(before.d[reg][lane]);
            for (int k = 0; k < wgmma_k(a); ++k) {
              auto [xw, xi] = before.element(kA, Major::K, a, row, k);
              auto [yw, yi] = before.element(kB, Major::K, b, column, k);
              if (a == T::B1)
                sum += (xw >> xi) & (yw >> yi) & 1;
              else
                sum += element_integer(a, xw, xi) * element_integer(b, yw, yi);
            }
            if (satfinite) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
            ASSERT_EQ(after.d[reg][lane], static_cast<uint32_t>(sum)) << row << " " << column;
          }
        }
      }
    }
  }
}

TEST(Wgmma, UnknownFormsAreRefused) {
  EXPECT_EQ(wgmma_kernel({.n = 12}, Numerics::Fast).multiply, nullptr);
  EXPECT_EQ(wgmma_kernel({.n = 264}, Numerics::Fast).multiply, nullptr);
  EXPECT_EQ(wgmma_kernel({.n = 64, .d = Acc::F16}, Numerics::Fast).multiply, nullptr);
  EXPECT_EQ(
      wgmma_kernel({.n = 64, .a = T::TF32, .b = T::TF32, .b_major = Major::MN}, Numerics::Fast)
          .multiply,
      nullptr);
  EXPECT_EQ(wgmma_kernel({.n = 40, .a = T::S8, .b = T::S8, .d = Acc::S32}, Numerics::Fast).multiply,
            nullptr);
  EXPECT_EQ(wgmma_d_registers({.n = 256}), 128);
  EXPECT_EQ(wgmma_k(T::TF32), 8);
  EXPECT_EQ(wgmma_k(T::E4M3), 32);
}

}  // namespace
}  // namespace ptxb::emu::arith
