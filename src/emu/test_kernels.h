// Owns the real kernels of this room's tests and benchmarks: PTX text that nvcc wrote, inputs,
// sampled references.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "emu/test_plan.h"

namespace ptxb::emu {

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
inline std::string first_kernel(const std::string& ptx) {
  size_t at = ptx.find(".entry ") + 7;
  return ptx.substr(at, ptx.find('(', at) - at);
}
inline uint16_t to_bf16(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
inline float from_bf16(uint16_t h) {
  uint32_t bits = uint32_t{h} << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

// C[M,N] = A[M,K] B[N,K]^T in bf16.
struct GemmCase {
  enum class Kernel { Simt, MmaSync, Faulty } kernel = Kernel::Simt;
  int m = 0, n = 0, k = 0;
  std::vector<uint16_t> a{}, b{};

  TestPlan plan(const std::string& ptx) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> values(-1, 1);
    a.resize(static_cast<size_t>(m) * static_cast<size_t>(k));
    b.resize(static_cast<size_t>(n) * static_cast<size_t>(k));
    for (auto* list : {&a, &b})
      for (uint16_t& v : *list) v = to_bf16(values(random));
    TestPlan p(ptx, first_kernel(ptx));
    uint64_t at_a = p.buffer("A", a), at_b = p.buffer("B", b);
    p.arg(at_a).arg(at_b).arg(p.output("C", static_cast<size_t>(m) * static_cast<size_t>(n) * 2));
    auto tiles = [](int extent, int tile) {
      return static_cast<uint32_t>((extent + tile - 1) / tile);
    };
    if (kernel == Kernel::Faulty) {
      p.arg(m).arg(n).arg(k);
      p.launch().grid = {tiles(n, 32), tiles(m, 32), 1};
      p.launch().block = {64, 1, 1};
      return p;
    }
    p.arg(int64_t{m}).arg(int64_t{n}).arg(int64_t{k});
    if (kernel == Kernel::Simt) {
      p.launch().grid = {tiles(n, 64), tiles(m, 64), 1};
      p.launch().block = {64, 1, 1};
    } else {
      p.arg(static_cast<int>(tiles(m, 128))).arg(static_cast<int>(tiles(n, 128)));
      p.launch().grid = {tiles(m, 128) * tiles(n, 128), 1, 1};
      p.launch().block = {256, 1, 1};
      p.launch().dynamic_shared_bytes = 3 * 32768;
    }
    return p;
  }
  // Largest error over sampled elements, in units of sqrt(K).
  double worst_error(const std::vector<uint16_t>& c) const {
    std::mt19937 random(11);
    double worst = 0;
    for (int sample = 0; sample < 500; ++sample) {
      size_t i = random() % static_cast<size_t>(m), j = random() % static_cast<size_t>(n),
             depth = static_cast<size_t>(k);
      double sum = 0;
      for (size_t x = 0; x < depth; ++x)
        sum += double{from_bf16(a[i * depth + x])} * from_bf16(b[j * depth + x]);
      double error = std::abs(sum - from_bf16(c[i * static_cast<size_t>(n) + j])) / std::sqrt(k);
      if (!(error <= worst)) worst = error;
    }
    return worst;
  }
};

}  // namespace ptxb::emu
