// Owns the hypotheses about a wrong attention: mask, scale, base of the exponential, missing keys,
// softmax bookkeeping, heads.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/minifloat.h"
#include "task/diagnose_families.h"

namespace ptxb {

namespace {

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;

// One query of the output with everything that the hypotheses vary.
struct Query {
  int64_t row = 0, position = 0;  // row: over all heads
  std::vector<double> scores;     // of all keys, not scaled
  std::vector<double> values;     // V of its head, key-major
};

struct Attention {
  int64_t length, width;
  bool causal;
  double scale;
  const uint16_t *q, *k, *v;

  explicit Attention(const Evidence& evidence)
      : length(evidence.task.axes.at("S")),
        width(evidence.task.axes.at("D")),
        causal(evidence.task.definition.reference == "native:mha_with_lse_causal"),
        scale(1 / std::sqrt(static_cast<double>(width))),
        q(reinterpret_cast<const uint16_t*>(evidence.inputs[0].data())),
        k(reinterpret_cast<const uint16_t*>(evidence.inputs[1].data())),
        v(reinterpret_cast<const uint16_t*>(evidence.inputs[2].data())) {}
  int64_t visible(const Query& query) const { return causal ? query.position + 1 : length; }

  using Round = double (*)(uint16_t);
  Query load(int64_t row, Round round_q, Round round_k, Round round_v) const {
    Query query;
    query.row = row;
    query.position = row % length;
    const int64_t head = row / length * length;
    query.scores.resize(static_cast<size_t>(length));
    query.values.resize(static_cast<size_t>(length * width));
    for (int64_t j = 0; j < length; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < width; ++d) {
        sum += round_q(q[row * width + d]) * round_k(k[(head + j) * width + d]);
        query.values[static_cast<size_t>(j * width + d)] = round_v(v[(head + j) * width + d]);
      }
      query.scores[static_cast<size_t>(j)] = sum;
    }
    return query;
  }
};

double exactly(uint16_t bits) { return static_cast<double>(bf16_to_float(bits)); }
double as_e4m3(uint16_t bits) {
  return static_cast<double>(e4m3_to_float(float_to_e4m3_satfinite(bf16_to_float(bits))));
}

// What a variant of the softmax gives for one query.
struct Row {
  std::vector<double> out;
  double lse = 0;
  double size = 1;  // how much larger the rounding errors of `out` are than in the right result
};

// Keys [first, last) of `query` with a score scale, without those in [hole, hole_end).
struct Window {
  int64_t first, last;
  double scale;
  int64_t hole = 0, hole_end = 0;
};

Row softmax(const Attention& shape, const Query& query, const Window& window) {
  Row row{.out = std::vector<double>(static_cast<size_t>(shape.width))};
  double most = -std::numeric_limits<double>::infinity(), total = 0;
  auto kept = [&](int64_t j) { return j < window.hole || j >= window.hole_end; };
  for (int64_t j = window.first; j < window.last; ++j) {
    if (kept(j)) most = std::max(most, query.scores[static_cast<size_t>(j)] * window.scale);
  }
  for (int64_t j = window.first; j < window.last; ++j) {
    const double weight =
        kept(j) ? std::exp(query.scores[static_cast<size_t>(j)] * window.scale - most) : 0;
    total += weight;
    if (weight < 1e-12) continue;
    for (int64_t d = 0; d < shape.width; ++d) {
      row.out[static_cast<size_t>(d)] +=
          weight * query.values[static_cast<size_t>(j * shape.width + d)];
    }
  }
  for (double& x : row.out) x = total > 0 ? x / total : 0;
  row.lse = most + std::log(total);
  return row;
}

// Online softmax over blocks of keys, with one of two mistakes.
enum class Mistake { NoRescale, Fp8Weights };
Row online(const Attention& shape, const Query& query, int64_t block, Mistake mistake) {
  Row row{.out = std::vector<double>(static_cast<size_t>(shape.width))};
  double most = -std::numeric_limits<double>::infinity(), total = 0;
  const int64_t visible = shape.visible(query);
  for (int64_t first = 0; first < visible; first += block) {
    const int64_t last = std::min(first + block, visible);
    const double before = most;
    for (int64_t j = first; j < last; ++j)
      most = std::max(most, query.scores[static_cast<size_t>(j)] * shape.scale);
    const double rescale = std::exp(before - most);
    total *= rescale;
    if (mistake == Mistake::Fp8Weights) {
      for (double& x : row.out) x *= rescale;
    }
    for (int64_t j = first; j < last; ++j) {
      double weight = std::exp(query.scores[static_cast<size_t>(j)] * shape.scale - most);
      total += weight;
      if (mistake == Mistake::Fp8Weights) {
        weight =
            static_cast<double>(e4m3_to_float(float_to_e4m3_satfinite(static_cast<float>(weight))));
      }
      for (int64_t d = 0; d < shape.width; ++d) {
        row.out[static_cast<size_t>(d)] +=
            weight * query.values[static_cast<size_t>(j * shape.width + d)];
      }
    }
  }
  for (double& x : row.out) x /= total;
  row.lse = most + std::log(total);
  return row;
}

using Variant = std::function<Row(const Query&)>;

// O: nine in ten of the elements of nine in ten of the sampled queries agree. LSE: nine in ten of
// the queries.
bool fits(const Evidence& evidence, const Attention& shape, const std::vector<Query>& queries,
          const Variant& variant) {
  size_t misses = 0;
  for (const Query& query : queries) {
    const Row row = variant(query);
    bool agreed = false;
    if (evidence.output == 1) {
      agreed = agrees(evidence, query.row, row.lse);
    } else {
      int64_t good = 0;
      for (int64_t d = 0; d < shape.width; ++d) {
        good +=
            agrees(evidence, query.row * shape.width + d, row.out[static_cast<size_t>(d)], row.size)
                ? 1
                : 0;
      }
      agreed = good * 10 >= shape.width * 9;
    }
    if (!agreed && ++misses * 10 > queries.size()) return false;
  }
  return !queries.empty();
}

struct Named {
  std::string text;
  Variant variant;
};

std::vector<Named> mask_variants(const Attention& shape) {
  std::vector<Named> out;
  auto add = [&](std::string text, std::function<int64_t(int64_t position)> visible) {
    out.push_back(
        {std::move(text), [&shape, visible](const Query& query) {
           return softmax(
               shape, query,
               {0, std::clamp<int64_t>(visible(query.position), 0, shape.length), shape.scale});
         }});
  };
  if (!shape.causal) {
    add("as if the causal mask were applied; this task has no mask",
        [](int64_t i) { return i + 1; });
    return out;
  }
  add("as if the causal mask were off by one: query i sees keys up to i + 1",
      [](int64_t i) { return i + 2; });
  add("as if the causal mask were off by one: query i does not see key i",
      [](int64_t i) { return i; });
  for (int64_t tile : {16, 32, 64, 128}) {
    const std::string size = std::to_string(tile);
    add("as if the mask were applied to whole tiles of " + size +
            " keys only (the tile on the diagonal is not masked inside)",
        [tile](int64_t i) { return (i / tile + 1) * tile; });
    add("as if the tile of " + size + " keys on the diagonal were skipped",
        [tile](int64_t i) { return i / tile * tile; });
  }
  // After the others: where few keys matter, seeing one key too many and seeing all give the same
  // samples.
  add("as if there were no causal mask", [&shape](int64_t) { return shape.length; });
  return out;
}

std::vector<Named> scale_variants(const Attention& shape) {
  std::vector<Named> out;
  auto add = [&](const char* text, double scale) {
    out.push_back({text, [&shape, scale](const Query& query) {
                     return softmax(shape, query, {0, shape.visible(query), scale});
                   }});
  };
  add("as if the scores were not scaled by 1/sqrt(D)", 1);
  add("as if the scores were scaled by 1/D instead of 1/sqrt(D)", shape.scale * shape.scale);
  add("as if exp2 were taken without the factor log2(e) (weights 2^x instead of e^x)",
      shape.scale * kLn2);
  add("as if the factor log2(e) were applied with exp, not exp2 (or twice)", shape.scale * kLog2E);
  add("as if the scale 1/sqrt(D) were applied twice", shape.scale * shape.scale);
  out.push_back({"as if all keys had the same weight (the scores are not used: uniform attention)",
                 [&shape](const Query& query) {
                   return softmax(shape, query, {0, shape.visible(query), 0});
                 }});
  return out;
}

std::vector<Named> window_variants(const Attention& shape) {
  std::vector<Named> out;
  for (int64_t count : {1, 8, 16, 32, 64, 128, 256}) {
    if (count >= shape.length) continue;
    const std::string keys = std::to_string(count) + (count == 1 ? " key" : " keys");
    out.push_back({"as if the last " + keys + " of the sequence were left out",
                   [&shape, count](const Query& query) {
                     return softmax(
                         shape, query,
                         {0, std::min(shape.visible(query), shape.length - count), shape.scale});
                   }});
    out.push_back(
        {"as if the first " + keys + " were left out", [&shape, count](const Query& query) {
           return softmax(shape, query,
                          {count, std::max(shape.visible(query), count + 1), shape.scale});
         }});
  }
  for (int64_t block : {64, 128}) {
    for (int64_t first = 0; first + block < shape.length && first < 64 * block; first += block) {
      out.push_back({"as if the keys " + std::to_string(first) + ".." +
                         std::to_string(first + block - 1) + " were left out",
                     [&shape, first, block](const Query& query) {
                       return softmax(shape, query,
                                      {0, shape.visible(query), shape.scale, first, first + block});
                     }});
    }
  }
  return out;
}

std::vector<Named> softmax_variants(const Attention& shape) {
  auto right = [&shape](const Query& query) {
    return softmax(shape, query, {0, shape.visible(query), shape.scale});
  };
  auto largest = [&shape](const Query& query) {
    return *std::max_element(query.scores.begin(), query.scores.begin() + shape.visible(query));
  };
  auto with = [right](std::function<double(const Query&, const Row&)> factor,
                      std::function<double(const Query&, const Row&)> lse) {
    return [=](const Query& query) {
      Row row = right(query);
      const double by = factor(query, row), sum = lse(query, row);
      for (double& x : row.out) x *= by;
      row.size = std::max(by, 1.0);
      row.lse = sum;
      return row;
    };
  };
  auto one = [](const Query&, const Row&) { return 1.0; };
  const double scale = shape.scale;
  std::vector<Named> out = {
      {"as if the result were not divided by the row sum",
       with([=](const Query& q, const Row& row) { return std::exp(row.lse - largest(q) * scale); },
            [](const Query&, const Row&) { return NAN; })},
      {"as if the logarithm were base 2; LSE is a natural logarithm (multiply by ln 2)",
       with(one, [](const Query&, const Row& row) { return row.lse * kLog2E; })},
      {"as if the row maximum were not added back to the logarithm of the row sum",
       with(one, [=](const Query& q, const Row& row) { return row.lse - largest(q) * scale; })},
      {"as if only the row maximum were stored, without the logarithm of the row sum",
       with(one, [=](const Query& q, const Row&) { return largest(q) * scale; })},
      {"as if the row maximum were added unscaled (times sqrt(D))",
       with(one,
            [=](const Query& q, const Row& row) { return row.lse + largest(q) * (1 - scale); })},
      {"as if the row maximum were in base 2 and the logarithm of the row sum natural",
       with(one, [=](const Query& q,
                     const Row& row) { return row.lse + largest(q) * scale * (kLog2E - 1); })},
      {"as if the logarithm of the row sum were base 2 and the row maximum natural",
       with(one,
            [=](const Query& q, const Row& row) {
              return row.lse + (row.lse - largest(q) * scale) * (kLog2E - 1);
            })},
      {"as if the logarithm were not taken (the row sum itself)",
       with(one, [=](const Query& q,
                     const Row& row) { return std::exp(row.lse - largest(q) * scale); })},
  };
  for (int64_t block : {16, 32, 64, 128}) {
    out.push_back(
        {"as if the accumulator were not rescaled when the running maximum grows (key blocks of " +
             std::to_string(block) + ")",
         [&shape, block](const Query& query) {
           return online(shape, query, block, Mistake::NoRescale);
         }});
  }
  return out;
}

std::string precision(const Evidence& evidence, const Attention& shape,
                      const std::vector<Query>& queries) {
  const struct {
    Attention::Round q, k, v;
    const char* text;
  } cases[] = {{exactly, exactly, as_e4m3, "as if V were rounded to fp8 (e4m3)"},
               {as_e4m3, as_e4m3, exactly, "as if Q and K were rounded to fp8 (e4m3)"},
               {as_e4m3, as_e4m3, as_e4m3, "as if Q, K and V were rounded to fp8 (e4m3)"}};
  for (const auto& candidate : cases) {
    std::vector<Query> rounded;
    for (const Query& query : queries)
      rounded.push_back(shape.load(query.row, candidate.q, candidate.k, candidate.v));
    auto variant = [&](const Query& query) {
      return softmax(shape, query, {0, shape.visible(query), shape.scale});
    };
    if (fits(evidence, shape, rounded, variant)) return candidate.text;
  }
  for (int64_t block : {16, 32, 64, 128, 256}) {
    auto variant = [&](const Query& query) {
      return online(shape, query, block, Mistake::Fp8Weights);
    };
    if (evidence.output == 0 && fits(evidence, shape, queries, variant)) {
      return "as if the softmax weights were rounded to fp8 (e4m3) before the product with V";
    }
  }
  return {};
}

// Queries whose output is right: a mistake in the mask or the scale must leave them right.
std::vector<int64_t> good_rows(const Evidence& evidence, int64_t per_row, size_t count) {
  std::vector<int64_t> rows;
  const int64_t total = static_cast<int64_t>(evidence.bad.size()) / per_row;
  for (int64_t i = 0; i < 8 * static_cast<int64_t>(count) && rows.size() < count; ++i) {
    const int64_t row = i * 2654435761 % total;
    const auto first = evidence.bad.begin() + row * per_row;
    if (std::none_of(first, first + per_row, [](uint8_t bad) { return bad != 0; }))
      rows.push_back(row);
  }
  return rows;
}

// [B, S, H, D] written or read for [B, H, S, D]: the element's flat place in the other order.
std::string other_layout(const Evidence& evidence, const Attention& shape,
                         const std::vector<int64_t>& samples) {
  const int64_t heads = evidence.task.axes.at("H"), width = evidence.output == 1 ? 1 : shape.width;
  auto stored = [&](int64_t index) {
    const int64_t d = index % width, flat = index / width;  // flat place (b, s, h) of a BSHD tensor
    const int64_t h = flat % heads, s = flat / heads % shape.length,
                  b = flat / heads / shape.length;
    return static_cast<double>(
        evidence.reference
            .value[static_cast<size_t>(((b * heads + h) * shape.length + s) * width + d)]);
  };
  return explains(evidence, samples, stored)
             ? "as if stored as [B, S, H, D]; the layout is [B, H, S, D]"
             : "";
}

}  // namespace

std::string explain_attention(const Evidence& evidence) {
  const Attention shape(evidence);
  const std::vector<int64_t> samples = sample_bad(evidence, 64);
  if (std::string text = other_layout(evidence, shape, samples); !text.empty()) return text;
  const int64_t per_row = evidence.output == 1 ? 1 : shape.width;
  std::vector<Query> queries;
  for (int64_t index : samples) {
    const int64_t row = index / per_row;
    auto same = [row](const Query& query) { return query.row == row; };
    if (queries.size() < 12 && std::none_of(queries.begin(), queries.end(), same)) {
      queries.push_back(shape.load(row, exactly, exactly, exactly));
    }
  }
  std::vector<Query> with_good = queries;
  for (int64_t row : good_rows(evidence, per_row, 6))
    with_good.push_back(shape.load(row, exactly, exactly, exactly));
  // A wrong LSE is more often a wrong conversion than a wrong softmax; inputs with one key for each
  // query do not tell them apart.
  std::vector<Named> variants =
      evidence.output == 1 ? softmax_variants(shape) : std::vector<Named>();
  for (auto& list : {mask_variants(shape), scale_variants(shape), softmax_variants(shape),
                     window_variants(shape)}) {
    variants.insert(variants.end(), list.begin(), list.end());
  }
  // First what fits the right queries too, then what may be wrong in a part of the queries only.
  for (const auto* rows : {&with_good, &queries}) {
    for (const Named& named : variants) {
      if (fits(evidence, shape, *rows, named.variant)) return named.text;
    }
  }
  if (std::string text =
          explain_moved(evidence, samples, layout_of(evidence.task, evidence.output));
      !text.empty())
    return text;
  return precision(evidence, shape, queries);
}

}  // namespace ptxb
