// Replays tensor instructions whose results were captured on an H200: the exact mode must give the
// same bits.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "emu/arith/hardware_cases.h"
#include "emu/arith/mma.h"
#include "emu/arith/wgmma.h"

namespace ptxb::emu::arith {
namespace {

using hardware::Accumulator;
using hardware::Element;

MmaType type_of(Element e) {
  switch (e) {
    case Element::F16:
      return MmaType::F16;
    case Element::BF16:
      return MmaType::BF16;
    case Element::TF32:
      return MmaType::TF32;
    case Element::E4M3:
      return MmaType::E4M3;
    case Element::E5M2:
      return MmaType::E5M2;
    case Element::S8:
      return MmaType::S8;
    case Element::U8:
      return MmaType::U8;
    case Element::S4:
      return MmaType::S4;
    case Element::U4:
      return MmaType::U4;
    default:
      return MmaType::B1;
  }
}
MmaAccumulator accumulator_of(Accumulator a) {
  return a == Accumulator::F32   ? MmaAccumulator::F32
         : a == Accumulator::F16 ? MmaAccumulator::F16
                                 : MmaAccumulator::S32;
}

struct Case {
  int index;
  const char* ptx;
  const char* immediates;
  int d_registers;
  Element a, b;
  Accumulator accumulator;
  uint64_t hash;
};

MmaForm form_of(const Case& c) {
  std::string_view ptx = c.ptx;
  MmaForm form;
  form.m = ptx.substr(0, 3) == "m8n" ? 8 : 16;
  size_t k = ptx.find('k') + 1;
  form.k = 0;
  while (ptx[k] != '.') form.k = static_cast<uint16_t>(form.k * 10 + (ptx[k++] - '0'));
  form.a = type_of(c.a);
  form.b = type_of(c.b);
  form.c = form.d = accumulator_of(c.accumulator);
  form.satfinite = ptx.find("satfinite") != ptx.npos;
  if (ptx.find("xor") != ptx.npos) form.bit_op = MmaBitOp::XorPopc;
  if (ptx.find("and") != ptx.npos) form.bit_op = MmaBitOp::AndPopc;
  return form;
}

class HardwareMma : public testing::TestWithParam<Case> {};

TEST_P(HardwareMma, ExactModeGivesTheCapturedBits) {
  const Case& c = GetParam();
  MmaFunction function = mma_function(form_of(c), Numerics::Exact);
  ASSERT_NE(function, nullptr) << c.ptx;
  uint64_t hash = hardware::kHashStart;
  hardware::MmaOperandRegisters r;
  uint32_t d[4][32];
  const uint32_t* pa[4] = {r.a[0], r.a[1], r.a[2], r.a[3]};
  const uint32_t* pb[2] = {r.b[0], r.b[1]};
  const uint32_t* pc[4] = {r.c[0], r.c[1], r.c[2], r.c[3]};
  uint32_t* pd[4] = {d[0], d[1], d[2], d[3]};
  for (int run = 0; run < hardware::kMmaRuns; ++run) {
    hardware::fill_mma(r, c.index, run, c.a, c.b, c.accumulator);
    function({pa, pb, pc, pd});
    hash = hardware::hash_words(hash, d[0], 32 * c.d_registers);
  }
  EXPECT_EQ(hash, c.hash) << c.ptx << std::hex << " 0x" << hash;
}

const Case kMmaCases[] = {
#define MMA_CASE(index, ptx, ra, rb, rc, a, b, accumulator, hash) \
  {index, ptx, "", rc, Element::a, Element::b, Accumulator::accumulator, hash},
#define WGMMA_CASE(index, ptx, immediates, rd, a, b, accumulator, hash)
#define LAYOUT_CASE(index, hash)
#include "emu/arith/hardware_cases.def"
#undef MMA_CASE
#undef WGMMA_CASE
};
INSTANTIATE_TEST_SUITE_P(Captured, HardwareMma, testing::ValuesIn(kMmaCases));

class HardwareWgmma : public testing::TestWithParam<Case> {};

TEST_P(HardwareWgmma, ExactModeGivesTheCapturedBits) {
  const Case& c = GetParam();
  WgmmaForm form{.n = 16, .a = type_of(c.a), .b = type_of(c.b), .d = accumulator_of(c.accumulator)};
  form.satfinite = std::string_view(c.ptx).find("satfinite") != std::string_view::npos;
  form.negate_a = std::string_view(c.immediates).substr(0, 3) == ",-1";
  form.negate_b = std::string_view(c.immediates).substr(0, 5) == ",1,-1";
  WgmmaKernel kernel = wgmma_kernel(form, Numerics::Exact);
  ASSERT_NE(kernel.multiply, nullptr) << c.ptx;
  auto rows = std::make_unique<WgmmaRows>();
  auto panel = std::make_unique<WgmmaPanel>();
  auto w = std::make_unique<hardware::WgmmaOperands>();
  const WgmmaDescriptor a{0, 128, 256, 0, Swizzle::None}, b{2048, 128, 256, 0, Swizzle::None};
  uint64_t hash = hardware::kHashStart;
  for (int run = 0; run < hardware::kWgmmaRuns; ++run) {
    hardware::fill_wgmma(*w, c.index, run, c.a, c.b, c.accumulator);
    const uint8_t* shared = reinterpret_cast<const uint8_t*>(w->image);
    kernel.load_b(*panel, form, shared, b);
    for (int warp = 0; warp < 4; ++warp) {
      uint32_t* d[8];
      for (int i = 0; i < 8; ++i) d[i] = w->d[8 * warp + i];
      kernel.load_a(*rows, form, shared, a, warp);
      kernel.multiply(*rows, *panel, form, d, hardware::keeps_d(run) ? ScaleD::Keep : ScaleD::Zero);
      hash = hardware::hash_words(hash, d[0], 32 * c.d_registers);
    }
  }
  EXPECT_EQ(hash, c.hash) << c.ptx << std::hex << " 0x" << hash;
}

const Case kWgmmaCases[] = {
#define MMA_CASE(index, ptx, ra, rb, rc, a, b, accumulator, hash)
#define WGMMA_CASE(index, ptx, immediates, rd, a, b, accumulator, hash) \
  {index, ptx, immediates, rd, Element::a, Element::b, Accumulator::accumulator, hash},
#include "emu/arith/hardware_cases.def"
#undef WGMMA_CASE
#undef LAYOUT_CASE
};
INSTANTIATE_TEST_SUITE_P(Captured, HardwareWgmma, testing::ValuesIn(kWgmmaCases));

struct LayoutCase {
  int index;
  uint64_t hash;
};
class HardwareLayout : public testing::TestWithParam<LayoutCase> {};

TEST_P(HardwareLayout, DescriptorsReadTheCapturedElements) {
  const LayoutCase& c = GetParam();
  WgmmaForm form{.n = 32};
  form.a_major = (c.index & 1) != 0 ? Major::MN : Major::K;
  form.b_major = (c.index & 2) != 0 ? Major::MN : Major::K;
  WgmmaKernel kernel = wgmma_kernel(form, Numerics::Fast);
  auto rows = std::make_unique<WgmmaRows>();
  auto panel = std::make_unique<WgmmaPanel>();
  std::vector<uint16_t> image = hardware::layout_image();
  std::vector<uint8_t> shared(size_t{1} << 18);
  std::memcpy(shared.data() + hardware::kLayoutWindow, image.data(), hardware::kLayoutBytes);
  uint64_t hash = hardware::kHashStart;
  for (int run = 0; run < hardware::kLayoutRuns; ++run) {
    hardware::LayoutOperands o = hardware::layout_operands(c.index, run);
    WgmmaDescriptor a = decode_wgmma_descriptor(encode(o.a, hardware::kLayoutWindow));
    WgmmaDescriptor b = decode_wgmma_descriptor(encode(o.b, hardware::kLayoutWindow));
    kernel.load_b(*panel, form, shared.data(), b);
    for (int warp = 0; warp < 4; ++warp) {
      uint32_t d[16][32];
      uint32_t* pd[16];
      for (int i = 0; i < 16; ++i) pd[i] = d[i];
      kernel.load_a(*rows, form, shared.data(), a, warp);
      kernel.multiply(*rows, *panel, form, pd, ScaleD::Zero);
      hash = hardware::hash_words(hash, d[0], 512);
    }
  }
  EXPECT_EQ(hash, c.hash) << c.index << std::hex << " 0x" << hash;
}

const LayoutCase kLayoutCases[] = {
#define WGMMA_CASE(index, ptx, immediates, rd, a, b, accumulator, hash)
#define LAYOUT_CASE(index, hash) {index, hash},
#include "emu/arith/hardware_cases.def"
#undef MMA_CASE
#undef WGMMA_CASE
#undef LAYOUT_CASE
};
INSTANTIATE_TEST_SUITE_P(Captured, HardwareLayout, testing::ValuesIn(kLayoutCases));

}  // namespace
}  // namespace ptxb::emu::arith
