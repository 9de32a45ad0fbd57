// Tests of kernels/'s Hopper kernels as nvcc compiles them: values, silence of check and fuzz,
// mutants that a GPU run alone would call right.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "emu/test_kernels.h"

namespace ptxb::emu {
namespace {

std::string data(const std::string& name) {
  return read_text(std::string(PTXB_SOURCE_DIR) + "/src/emu/testdata/" + name);
}

std::array<uint8_t, 128> image(uint32_t index) {
  std::array<uint8_t, 128> bytes{};
  std::copy(kTensorMapMagic.begin(), kTensorMapMagic.end(), bytes.begin());
  std::memcpy(bytes.data() + 16, &index, 4);
  return bytes;
}

PlanTensorMap bf16_map(uint64_t address, std::vector<uint64_t> dims, std::vector<uint32_t> box) {
  PlanTensorMap map;
  map.dtype = 9;
  map.rank = static_cast<uint32_t>(dims.size());
  map.address = address;
  uint64_t stride = 2;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (k) map.strides_bytes[k - 1] = stride;
    stride *= dims[k];
    map.dims[k] = dims[k];
    map.box[k] = box[k];
    map.element_strides[k] = 1;
  }
  map.swizzle = 3;
  return map;
}

std::vector<uint16_t> noise(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<uint16_t> out(count);
  for (uint16_t& v : out) v = to_bf16(values(random));
  return out;
}

std::string entry_with(const std::string& ptx, const std::string& part) {
  size_t at = ptx.find(part, ptx.find(".entry "));
  size_t begin = ptx.rfind(".entry ", at) + 7;
  return ptx.substr(begin, ptx.find('(', begin) - begin);
}

// kernels/gemm/wgmma_tma.cu (tiles of 128x128) and wgmma_cluster.cu (two blocks, tiles of 256x256).
struct Gemm {
  bool cluster = false;
  uint64_t m = 93, n = 136, k = 1024;
  std::vector<uint16_t> a{}, b{};

  TestPlan plan(const std::string& ptx, Mode mode = Mode::Fast, uint64_t seed = 0) {
    a = noise(m * k, 1);
    b = noise(n * k, 2);
    TestPlan p(ptx, entry_with(ptx, cluster ? "gemm_wgmma_cluster" : "ILi128E"));
    uint64_t at_a = p.buffer("A", a), at_b = p.buffer("B", b), at_c = p.output("C", m * n * 2);
    p.plan().tensor_maps = {bf16_map(at_a, {k, m}, {64, 128}), bf16_map(at_b, {k, n}, {64, 128}),
                            bf16_map(at_c, {n, m}, {64, 64})};
    uint64_t tile_m = cluster ? 256 : 128, tile_n = cluster ? 256 : 128;
    for (uint32_t map = 0; map < 3; ++map) p.arg(image(map));
    p.arg(static_cast<int>((m + tile_m - 1) / tile_m))
        .arg(static_cast<int>((n + tile_n - 1) / tile_n))
        .arg(static_cast<int>((k + 63) / 64));
    p.launch().grid = {cluster ? 2u : 1u, 1, 1};
    p.launch().block = {384, 1, 1};
    p.launch().dynamic_shared_bytes = cluster ? 230464 : 230496;
    p.options().mode = mode;
    p.options().seed = seed;
    return p;
  }
  double worst_error(const std::vector<uint16_t>& c) const {
    double worst = 0;
    for (uint64_t r = 0; r < m; r += 7) {
      for (uint64_t s = 0; s < n; ++s) {
        double sum = 0;
        for (uint64_t x = 0; x < k; ++x)
          sum += double{from_bf16(a[r * k + x])} * double{from_bf16(b[s * k + x])};
        double error = std::fabs(sum - double{from_bf16(c[r * n + s])}) / (1 + std::fabs(sum));
        worst = error <= worst ? worst : error;  // NaN: kept
      }
    }
    return worst;
  }
};

const char* file_of(bool cluster) {
  return cluster ? "gemm_wgmma_cluster.ptx" : "gemm_wgmma_tma.ptx";
}

std::string without(std::string ptx, const std::string& what, const std::string& instead = "") {
  size_t changed = 0;
  for (size_t at = ptx.find(what); at != std::string::npos;
       at = ptx.find(what, at + instead.size()), ++changed)
    ptx.replace(at, what.size(), instead);
  EXPECT_GT(changed, 0u) << what;
  return ptx;
}

TEST(HopperKernels, GemmsAreRightAndSilentInEveryMode) {
  for (bool cluster : {false, true}) {
    std::string ptx = data(file_of(cluster));
    for (Mode mode : {Mode::Fast, Mode::Exact, Mode::Check, Mode::Fuzz}) {
      for (uint64_t seed : {2u, 3u}) {
        if (mode != Mode::Fuzz && seed != 2) continue;
        Gemm gemm{cluster, 93, cluster ? 256u : 136u, 448};
        TestPlan plan = gemm.plan(ptx, mode, seed);
        auto report = plan.run();
        ASSERT_TRUE(report) << report.error().message;
        ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
        EXPECT_TRUE(report->findings.empty()) << report->findings[0].message;
        EXPECT_LT(gemm.worst_error(plan.read<uint16_t>(2)), 0.01);
        EXPECT_TRUE(report->counts_exact);
      }
    }
  }
}

TEST(HopperKernels, GemmsCountTheirFlopsAndTheirCopies) {
  Gemm gemm{false, 128, 128, 128};
  TestPlan plan = gemm.plan(data(file_of(false)));
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  double flops = 0, bytes = 0;
  for (const OpcodeCount& c : report->counts) {
    if (c.family == "wgmma") flops += c.flops;
    if (c.family == "tma") bytes += c.bytes;
  }
  EXPECT_EQ(flops, 2.0 * 128 * 128 * 128);
  EXPECT_EQ(bytes, 3.0 * 128 * 128 * 2);
}

TEST(HopperKernels, ANeutralisedWgmmaLeavesNoResult) {
  Gemm gemm{false, 93, 128, 128};
  TestPlan plan = gemm.plan(data(file_of(false)));
  plan.options().neutralised_family = "wgmma";
  auto report = plan.run();
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
  EXPECT_GT(gemm.worst_error(plan.read<uint16_t>(2)), 0.5);
}

struct Mutant {
  bool cluster;
  const char* what;
  const char* instead;
  FindingKind kind;
  FindingGrade grade;
  const char* words;
};
// What nvcc's text says; each changes all places.
const Mutant kMutants[] = {
    {false, "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;",
     FindingKind::AsyncHazard, FindingGrade::Wrong, "while wgmma of warp"},
    {true, "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;",
     FindingKind::AsyncHazard, FindingGrade::Wrong, "while wgmma of warp"},
    {false, "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;",
     FindingKind::AsyncHazard, FindingGrade::Repaired, "accumulator"},
    {false, "wgmma.fence.sync.aligned;", "", FindingKind::AsyncHazard, FindingGrade::Repaired,
     "wgmma.fence"},
    {false, "fence.proxy.async.shared::cta;", "", FindingKind::MissingFence, FindingGrade::Wrong,
     "no fence.proxy.async between"},
    {true, "cp.async.bulk.wait_group.read 1;", "cp.async.bulk.wait_group.read 2;",
     FindingKind::AsyncHazard, FindingGrade::Wrong, "a bulk store of warp"},
    {false, "bar.sync %r", "// bar.sync %r", FindingKind::Race, FindingGrade::Wrong,
     "with no barrier between"},
};

TEST(HopperKernels, CheckNamesTheMissingEdge) {
  for (const Mutant& mutant : kMutants) {
    std::string ptx = without(data(file_of(mutant.cluster)), mutant.what, mutant.instead);
    Gemm gemm{mutant.cluster, 93, mutant.cluster ? 256u : 128u, 1024};
    TestPlan plan = gemm.plan(ptx, Mode::Check);
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    bool found = false;
    std::string all;
    for (const Finding& finding : report->findings) {
      found = found || (finding.kind == mutant.kind && finding.grade == mutant.grade &&
                        finding.message.find(mutant.words) != std::string::npos);
      all += finding.message + "\n";
    }
    EXPECT_TRUE(found) << mutant.what << " -> " << mutant.instead << ": " << all;
  }
}

TEST(HopperKernels, DeadlocksNameBarrierAndTransactions) {
  struct {
    const char *what, *instead, *words;
  } cases[] = {
      {"mbarrier.arrive.shared::cta.b64 _, [", "// [", "8 of 8 arrivals missing"},
      {"%r313, 32768;", "%r313, 32784;", "0 of 1 arrivals missing, tx 16 bytes outstanding"},
  };
  for (const auto& each : cases) {
    Gemm gemm{false, 93, 128, 1024};
    TestPlan plan = gemm.plan(without(data(file_of(false)), each.what, each.instead));
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->status, RunStatus::Deadlock) << each.what;
    EXPECT_NE(report->cause.find(each.words), std::string::npos) << report->cause;
  }
}

// kernels/attention/wgmma_forward.cu, one head of 128 rows and columns.
TestPlan attention(const std::string& ptx, std::vector<uint16_t>& q, std::vector<uint16_t>& k,
                   std::vector<uint16_t>& v, uint64_t rows) {
  q = noise(rows * 128, 3), k = noise(rows * 128, 4), v = noise(rows * 128, 5);
  TestPlan p(ptx, entry_with(ptx, "attention_wgmma"));
  uint64_t at[4] = {p.buffer("Q", q), p.buffer("K", k), p.buffer("V", v),
                    p.output("O", rows * 256)};
  uint64_t lse = p.output("LSE", rows * 4);
  for (uint32_t map = 0; map < 4; ++map) {
    p.plan().tensor_maps.push_back(
        bf16_map(at[map], {128, rows, 1}, {64, map == 3 ? 64u : 128u, 1}));
    p.arg(image(map));
  }
  p.arg(lse).arg(static_cast<int>(rows));
  p.launch().grid = {static_cast<uint32_t>((rows + 127) / 128), 1, 1};
  p.launch().block = {384, 1, 1};
  p.launch().dynamic_shared_bytes = 164936;
  return p;
}

TEST(HopperKernels, AttentionIsRightAndSilent) {
  std::string ptx = data("attention_wgmma.ptx");
  constexpr uint64_t kRows = 200;
  for (Mode mode : {Mode::Fast, Mode::Exact, Mode::Check, Mode::Fuzz}) {
    std::vector<uint16_t> q, k, v;
    TestPlan plan = attention(ptx, q, k, v, kRows);
    plan.options().mode = mode;
    auto report = plan.run();
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->status, RunStatus::Completed) << report->cause;
    EXPECT_TRUE(report->findings.empty()) << report->findings[0].message;
    std::vector<uint16_t> o = plan.read<uint16_t>(3);
    for (uint64_t r = 0; r < kRows; r += 33) {
      std::vector<double> p(kRows);
      double sum = 0;
      for (uint64_t c = 0; c < kRows; ++c) {
        double dot = 0;
        for (uint64_t d = 0; d < 128; ++d)
          dot += double{from_bf16(q[r * 128 + d])} * double{from_bf16(k[c * 128 + d])};
        sum += p[c] = std::exp(dot / std::sqrt(128.0));
      }
      for (uint64_t d = 0; d < 128; ++d) {
        double expected = 0;
        for (uint64_t c = 0; c < kRows; ++c)
          expected += p[c] / sum * double{from_bf16(v[c * 128 + d])};
        ASSERT_NEAR(double{from_bf16(o[r * 128 + d])}, expected, 0.005) << r << " " << d;
      }
    }
  }
}

}  // namespace
}  // namespace ptxb::emu
