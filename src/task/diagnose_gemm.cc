// Owns the hypotheses about a wrong GEMM: terms of K missing or counted twice, operand layout,
// swizzle, narrower operands.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/minifloat.h"
#include "task/diagnose_families.h"

namespace ptxb {

namespace {

using Index = std::function<int64_t(int64_t row, int64_t k)>;

struct Gemm {
  int64_t m, n, k;
  const uint16_t *a, *b;

  explicit Gemm(const Evidence& evidence)
      : m(evidence.task.axes.at("M")),
        n(evidence.task.axes.at("N")),
        k(evidence.task.axes.at("K")),
        a(reinterpret_cast<const uint16_t*>(evidence.inputs[0].data())),
        b(reinterpret_cast<const uint16_t*>(evidence.inputs[1].data())) {}
  double product(int64_t row, int64_t column, int64_t at) const {
    return static_cast<double>(bf16_to_float(a[row * k + at])) *
           static_cast<double>(bf16_to_float(b[column * k + at]));
  }
  // The dot product with operands read at other flat places.
  double dot(int64_t row, int64_t column, const Index& place_a, const Index& place_b) const {
    double sum = 0;
    for (int64_t at = 0; at < k; ++at) {
      sum += static_cast<double>(bf16_to_float(a[place_a(row, at)])) *
             static_cast<double>(bf16_to_float(b[place_b(column, at)]));
    }
    return sum;
  }
};

std::string terms(int64_t first, int64_t last) {
  return "k = " + std::to_string(first) + ".." + std::to_string(last);
}

// Prefix sums at every multiple of 8 and at each of the first and last 16 places.
struct Prefixes {
  std::vector<int64_t> places;
  std::vector<std::vector<double>> sums;  // one row for each sample
};

Prefixes prefixes(const Gemm& gemm, const std::vector<int64_t>& samples) {
  Prefixes out;
  for (int64_t at = 0; at <= gemm.k; ++at) {
    if (at % 8 == 0 || at <= 16 || at + 16 >= gemm.k) out.places.push_back(at);
  }
  for (int64_t index : samples) {
    std::vector<double>& row = out.sums.emplace_back();
    double sum = 0;
    size_t next = 0;
    for (int64_t at = 0; at <= gemm.k; ++at) {
      if (next < out.places.size() && out.places[next] == at) {
        row.push_back(sum);
        ++next;
      }
      if (at < gemm.k) sum += gemm.product(index / gemm.n, index % gemm.n, at);
    }
  }
  return out;
}

// Whether total * weight_total + (sum up to `high` - sum up to `low`) * weight_part explains the
// samples.
bool fits(const Evidence& evidence, const std::vector<int64_t>& samples, const Prefixes& sums,
          size_t low, size_t high, double weight_total, double weight_part) {
  size_t misses = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::vector<double>& row = sums.sums[i];
    if (!agrees(evidence, samples[i],
                weight_total * row.back() + weight_part * (row[high] - row[low])) &&
        ++misses * 10 > samples.size()) {
      return false;
    }
  }
  return !samples.empty();
}

// The sum of `parts` slices of K, each rounded to bf16 before they are added.
bool rounded_parts(const Evidence& evidence, const Gemm& gemm, const std::vector<int64_t>& samples,
                   const Prefixes& sums, int64_t parts) {
  size_t misses = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    double total = 0, before = 0;
    for (int64_t part = 1; part <= parts; ++part) {
      const auto place = std::find(sums.places.begin(), sums.places.end(), gemm.k * part / parts);
      if (place == sums.places.end()) return false;
      const double after = sums.sums[i][static_cast<size_t>(place - sums.places.begin())];
      total +=
          static_cast<double>(bf16_to_float(float_to_bf16(static_cast<float>(after - before))));
      before = after;
    }
    if (!agrees(evidence, samples[i], total) && ++misses * 10 > samples.size()) return false;
  }
  return !samples.empty();
}

std::string partial_sums(const Evidence& evidence, const Gemm& gemm,
                         const std::vector<int64_t>& samples) {
  const Prefixes sums = prefixes(gemm, samples);
  const size_t last = sums.places.size() - 1;
  const std::string length = std::to_string(gemm.k);
  for (size_t i = last; i-- > 1;) {
    if (!fits(evidence, samples, sums, 0, i, 0, 1)) continue;
    const int64_t kept = sums.places[i];
    return "as if only the first " + std::to_string(kept) + " of " + length +
           " K terms were summed (the K tail of " + std::to_string(gemm.k - kept) + " is dropped)";
  }
  for (size_t i = 1; i < last; ++i) {
    if (!fits(evidence, samples, sums, i, last, 0, 1)) continue;
    return "as if the first " + std::to_string(sums.places[i]) + " of " + length +
           " K terms were left out";
  }
  for (int64_t parts : {2, 3, 4, 8}) {
    if (!rounded_parts(evidence, gemm, samples, sums, parts)) continue;
    return "as if K were split into " + std::to_string(parts) +
           " parts whose sums are rounded to bf16 before they are added (keep partial sums in f32)";
  }
  for (int64_t width : {256, 128, 64, 32, 16, 8}) {
    for (size_t low = 0, high = 0; low < last; ++low) {
      if (sums.places[low] % width != 0) continue;
      while (high < last && sums.places[high] < sums.places[low] + width) ++high;
      if (sums.places[high] != sums.places[low] + width) break;
      const std::string which = terms(sums.places[low], sums.places[high] - 1);
      if (fits(evidence, samples, sums, low, high, 1, -1))
        return "as if the terms " + which + " were missing (one K tile)";
      if (fits(evidence, samples, sums, low, high, 1, 1))
        return "as if the terms " + which + " were counted twice (one K tile)";
    }
  }
  return {};
}

// 16-byte chunks (8 elements of K) exchanged as in a shared-memory swizzle that one side does not
// undo.
struct Swizzle {
  const char* name;
  int64_t chunks, shift;
};
constexpr Swizzle kSwizzles[] = {{"128-byte", 8, 0}, {"64-byte", 4, 1}, {"32-byte", 2, 2}};

Index swizzled(const Swizzle& swizzle, int64_t k) {
  return [swizzle, k](int64_t row, int64_t at) {
    const int64_t chunk = (at / 8) ^ ((row >> swizzle.shift) % swizzle.chunks);
    const int64_t moved = chunk * 8 + at % 8;
    return row * k + (moved < k ? moved : at);
  };
}

std::string layouts(const Evidence& evidence, const Gemm& gemm,
                    const std::vector<int64_t>& samples) {
  const Index plain = [&](int64_t row, int64_t at) { return row * gemm.k + at; };
  const Index a_columns = [&](int64_t row, int64_t at) { return at * gemm.m + row; };
  const Index b_columns = [&](int64_t row, int64_t at) { return at * gemm.n + row; };
  auto explained = [&](const Index& a, const Index& b) {
    return explains(evidence, samples,
                    [&](int64_t index) { return gemm.dot(index / gemm.n, index % gemm.n, a, b); });
  };
  if (explained(plain, b_columns))
    return "as if B were read as [K, N] (transposed); it is [N, K], row-major";
  if (explained(a_columns, plain))
    return "as if A were read as [K, M] (transposed); it is [M, K], row-major";
  if (explained(a_columns, b_columns))
    return "as if A were read as [K, M] and B as [K, N] (both transposed)";
  for (const Swizzle& swizzle : kSwizzles) {
    const Index mixed = swizzled(swizzle, gemm.k);
    const std::string cause = std::string(" were permuted by the ") + swizzle.name +
                              " swizzle (written with it and read without, or the reverse)";
    if (explained(mixed, plain)) return "as if the 16-byte chunks of A" + cause;
    if (explained(plain, mixed)) return "as if the 16-byte chunks of B" + cause;
    if (explained(mixed, mixed)) return "as if the 16-byte chunks of A and B" + cause;
  }
  return {};
}

std::string precision(const Evidence& evidence, const Gemm& gemm,
                      const std::vector<int64_t>& samples) {
  using Round = float (*)(float);
  const Round keep = [](float x) { return x; };
  const Round e4m3 = [](float x) { return e4m3_to_float(float_to_e4m3_satfinite(x)); };
  const Round e5m2 = [](float x) { return e5m2_to_float(float_to_e5m2_satfinite(x)); };
  const struct {
    Round a, b;
    const char* text;
  } cases[] = {{e4m3, keep, "as if A were rounded to fp8 (e4m3)"},
               {keep, e4m3, "as if B were rounded to fp8 (e4m3)"},
               {e4m3, e4m3, "as if both operands were rounded to fp8 (e4m3)"},
               {e5m2, e5m2, "as if both operands were rounded to fp8 (e5m2)"}};
  for (const auto& candidate : cases) {
    auto rounded = [&](int64_t index) {
      double sum = 0;
      for (int64_t at = 0; at < gemm.k; ++at) {
        sum +=
            static_cast<double>(candidate.a(bf16_to_float(gemm.a[index / gemm.n * gemm.k + at]))) *
            static_cast<double>(candidate.b(bf16_to_float(gemm.b[index % gemm.n * gemm.k + at])));
      }
      return sum;
    };
    if (explains(evidence, samples, rounded)) return candidate.text;
  }
  return {};
}

// Coded inputs: the right result names (row, k). Reads the codes that the wrong elements hold.
std::string coded(const Evidence& evidence, const Gemm& gemm, const std::vector<int64_t>& samples) {
  auto spec = generator_spec(evidence.task, 1, evidence.spec);
  if (!spec || samples.empty()) return {};
  const bool zeros = std::all_of(samples.begin(), samples.end(), [&](int64_t index) {
    return evidence.values[static_cast<size_t>(index)] == 0.0f;
  });
  int64_t least = gemm.k, most = -1;
  std::map<std::array<int64_t, 2>, int64_t> moves;
  for (int64_t index : samples) {
    const int64_t row = index / gemm.n, at = one_hot_column(*spec, index % gemm.n);
    least = std::min(least, at);
    most = std::max(most, at);
    // The nearest row and column whose code is held, within the reach of a tile.
    std::array<int64_t, 2> best = {0, 0};
    int64_t best_distance = -1;
    for (int64_t dr = -64; dr <= 64; ++dr) {
      if (row + dr < 0 || row + dr >= gemm.m) continue;
      for (int64_t dk = -64; dk <= 64; ++dk) {
        if (at + dk < 0 || at + dk >= gemm.k ||
            code_value(row + dr, at + dk) != evidence.values[static_cast<size_t>(index)])
          continue;
        const int64_t distance = std::abs(dr) + std::abs(dk);
        if (best_distance < 0 || distance < best_distance)
          best = {dr, dk}, best_distance = distance;
      }
    }
    if (best_distance > 0) ++moves[best];
  }
  if (zeros) {
    return "as if the products at " + terms(least, most) +
           " were never added (each of these elements has one operand there)";
  }
  for (const auto& [move, count] : moves) {
    if (count * 10 < static_cast<int64_t>(samples.size()) * 9) continue;
    std::string text = "as if A[row";
    if (move[0]) text += (move[0] > 0 ? " + " : " - ") + std::to_string(std::abs(move[0]));
    text += ", k";
    if (move[1]) text += (move[1] > 0 ? " + " : " - ") + std::to_string(std::abs(move[1]));
    return text + "] were used for A[row, k]";
  }
  return {};
}

}  // namespace

std::string explain_gemm(const Evidence& evidence) {
  const Gemm gemm(evidence);
  const std::vector<int64_t> samples = sample_bad(evidence, 48), few = sample_bad(evidence, 16);
  const Layout layout = layout_of(evidence.task, evidence.output);
  if (evidence.spec.distribution == Distribution::Coded) {
    if (std::string text = layouts(evidence, gemm, few); !text.empty()) return text;
    if (std::string text = coded(evidence, gemm, samples); !text.empty()) return text;
    return precision(evidence, gemm, few);
  }
  if (std::string text = partial_sums(evidence, gemm, samples); !text.empty()) return text;
  if (std::string text = explain_moved(evidence, samples, layout); !text.empty()) return text;
  if (std::string text = layouts(evidence, gemm, few); !text.empty()) return text;
  return precision(evidence, gemm, few);
}

}  // namespace ptxb
