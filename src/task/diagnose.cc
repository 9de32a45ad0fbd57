// SPDX-License-Identifier: Apache-2.0
#include "task/diagnose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "task/diagnose_families.h"
#include "task/error_model.h"

namespace ptxb {

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string range(const char* word, const char* words, int64_t first, int64_t last) {
  if (first == last) return std::string(word) + " " + std::to_string(first);
  return std::string(words) + " " + std::to_string(first) + ".." + std::to_string(last);
}

// "rows 96..127", "rows r with r mod 16 in 8..15", or "" when the marked ones have no simple form
// or are all there are.
std::string pattern(const char* word, const char* words, const std::vector<int64_t>& counts) {
  const int64_t n = static_cast<int64_t>(counts.size());
  std::vector<int64_t> marked;
  for (int64_t i = 0; i < n; ++i) {
    if (counts[static_cast<size_t>(i)] > 0) marked.push_back(i);
  }
  if (marked.empty() || static_cast<int64_t>(marked.size()) == n) return {};
  if (marked.back() - marked.front() + 1 == static_cast<int64_t>(marked.size())) {
    return range(word, words, marked.front(), marked.back());
  }
  for (int64_t period = 2; period <= 128 && period * 2 <= n; period *= 2) {
    std::vector<int64_t> residues(static_cast<size_t>(period)),
        members(static_cast<size_t>(period));
    for (int64_t i = 0; i < n; ++i) ++members[static_cast<size_t>(i % period)];
    for (int64_t i : marked) ++residues[static_cast<size_t>(i % period)];
    int64_t first = -1, last = -1, used = 0;
    bool whole = true;
    for (int64_t r = 0; r < period; ++r) {
      const int64_t hits = residues[static_cast<size_t>(r)];
      if (hits == 0) continue;
      if (first < 0) first = r;
      last = r;
      ++used;
      whole = whole && hits == members[static_cast<size_t>(r)];
    }
    if (whole && used < period && last - first + 1 == used) {
      std::string residue = first == last
                                ? "= " + std::to_string(first)
                                : "in " + std::to_string(first) + ".." + std::to_string(last);
      return std::string(words) + " with " + word + " mod " + std::to_string(period) + " " +
             residue;
    }
  }
  return {};
}

struct Map {
  std::span<const uint8_t> bad;
  Layout layout;
  std::vector<int64_t> by_matrix, by_row, by_column;
  int64_t total = 0;

  Map(std::span<const uint8_t> flags, const Layout& form)
      : bad(flags),
        layout(form),
        by_matrix(static_cast<size_t>(form.matrices)),
        by_row(static_cast<size_t>(form.rows)),
        by_column(static_cast<size_t>(form.columns)) {
    size_t at = 0;
    for (size_t matrix = 0; matrix < by_matrix.size(); ++matrix) {
      for (size_t row = 0; row < by_row.size(); ++row) {
        for (size_t column = 0; column < by_column.size(); ++column, ++at) {
          if (!bad[at]) continue;
          ++by_matrix[matrix];
          ++by_row[row];
          ++by_column[column];
          ++total;
        }
      }
    }
  }
  static int64_t marked(const std::vector<int64_t>& counts) {
    return std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; });
  }
};

// "2 of 56 tiles of 128x128 (the first at row 0, column 256)" when the bad elements are whole
// tiles.
std::string tiles(const Map& map) {
  constexpr std::array<std::array<int64_t, 2>, 13> kTiles = {{{256, 128},
                                                              {128, 256},
                                                              {128, 128},
                                                              {128, 64},
                                                              {64, 128},
                                                              {64, 64},
                                                              {64, 32},
                                                              {32, 32},
                                                              {64, 16},
                                                              {16, 16},
                                                              {64, 8},
                                                              {16, 8},
                                                              {8, 8}}};
  const Layout& layout = map.layout;
  for (const auto& [height, width] : kTiles) {
    if (height > layout.rows || width > layout.columns) continue;
    const int64_t down = (layout.rows + height - 1) / height,
                  across = (layout.columns + width - 1) / width;
    std::vector<int64_t> hits(static_cast<size_t>(layout.matrices * down * across));
    size_t at = 0;
    for (int64_t matrix = 0; matrix < layout.matrices; ++matrix) {
      for (int64_t row = 0; row < layout.rows; ++row) {
        for (int64_t column = 0; column < layout.columns; ++column, ++at) {
          if (map.bad[at])
            ++hits[static_cast<size_t>((matrix * down + row / height) * across + column / width)];
        }
      }
    }
    int64_t hit = 0, in_full = 0, first = -1;
    for (size_t tile = 0; tile < hits.size(); ++tile) {
      if (hits[tile] == 0) continue;
      ++hit;
      if (first < 0) first = static_cast<int64_t>(tile);
      const int64_t row = static_cast<int64_t>(tile) / across % down * height,
                    column = static_cast<int64_t>(tile) % across * width;
      const int64_t area =
          std::min(height, layout.rows - row) * std::min(width, layout.columns - column);
      if (hits[tile] * 10 >= area * 8) in_full += hits[tile];
    }
    if (hit * 10 > static_cast<int64_t>(hits.size()) * 9 || in_full * 20 < map.total * 19) continue;
    return std::to_string(hit) + " of " + std::to_string(hits.size()) + " tiles of " +
           std::to_string(height) + "x" + std::to_string(width) + " (the first at " +
           layout.row_word + " " + std::to_string(first / across % down * height) + ", " +
           layout.column_word + " " + std::to_string(first % across * width) + ")";
  }
  return {};
}

// The typical error against the typical magnitude of the reference: a lost mantissa is 0.01 to 0.1,
// wrong operands are above 1.
std::string error_size(const Evidence& evidence) {
  double error = 0, magnitude = 0;
  int64_t count = 0;
  for (size_t i = 0; i < evidence.bad.size(); ++i) {
    if (!evidence.bad[i] || !std::isfinite(evidence.values[i])) continue;
    const double exact = static_cast<double>(evidence.reference.value[i]);
    error += std::pow(static_cast<double>(evidence.values[i]) - exact, 2);
    magnitude += exact * exact;
    ++count;
  }
  if (count == 0 || !(magnitude > 0)) return {};
  const double ratio = std::sqrt(error / magnitude);
  std::string text = "; no known mistake explains it, the error is " + number(ratio) +
                     " of the right values' size";
  if (ratio < 0.15)
    return text +
           " (lost precision: a narrower operand, accumulator or partial sum, or a few missing "
           "terms)";
  return text;
}

bool all_equal(const Evidence& evidence, float& value) {
  for (float x : evidence.values) {
    if (x != evidence.values[0]) return false;  // NaN is unequal to itself
  }
  value = evidence.values[0];
  return evidence.values.size() > 1;
}

std::vector<uint8_t> flags(const Evidence& evidence, bool (*marked)(float)) {
  std::vector<uint8_t> out(evidence.values.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = marked(evidence.values[i]) ? 1 : 0;
  return out;
}

std::string share(int64_t part, size_t whole) {
  return number(100 * static_cast<double>(part) / static_cast<double>(whole)) + "%";
}

}  // namespace

Layout layout_of(const Task& task, size_t output) {
  const std::vector<int64_t> shape = task.shape(task.definition.outputs[output]);
  Layout layout;
  const bool attention = task.definition.op_type == "mha";
  const size_t inner = attention && shape.size() == 3 ? 1 : 2;  // LSE: one column for each position
  if (!shape.empty()) layout.columns = inner == 1 ? 1 : shape.back();
  if (shape.size() >= inner) layout.rows = shape[shape.size() - inner];
  for (size_t i = 0; i + inner < shape.size(); ++i) layout.matrices *= shape[i];
  if (attention) {
    layout.matrix_word = "head", layout.matrix_words = "heads";
    layout.row_word = "query", layout.row_words = "queries";
    layout.column_word = "dimension", layout.column_words = "dimensions";
  }
  return layout;
}

std::string describe_region(std::span<const uint8_t> bad, const Layout& layout) {
  const Map map(bad, layout);
  if (map.total == static_cast<int64_t>(bad.size())) return "all elements";
  const std::string part = share(map.total, bad.size()) + " of the elements";
  if (map.total * 100 >= static_cast<int64_t>(bad.size()) * 97) return part;
  const int64_t matrices = Map::marked(map.by_matrix), rows = Map::marked(map.by_row),
                columns = Map::marked(map.by_column);
  std::vector<std::string> where;
  std::string heads = pattern(layout.matrix_word, layout.matrix_words, map.by_matrix);
  if (heads.empty() && matrices < layout.matrices) {
    heads = std::to_string(matrices) + " of " + std::to_string(layout.matrices) + " " +
            layout.matrix_words;
  }
  if (!heads.empty()) where.push_back(heads);
  // A box of rows and columns is named when it is nearly full of wrong elements.
  if (map.total * 10 >= matrices * rows * columns * 8) {
    if (std::string text = pattern(layout.row_word, layout.row_words, map.by_row); !text.empty())
      where.push_back(text);
    if (std::string text = pattern(layout.column_word, layout.column_words, map.by_column);
        !text.empty())
      where.push_back(text);
    if (!where.empty()) {
      std::string text = part + " (" + where[0];
      for (size_t i = 1; i < where.size(); ++i) text += ", " + where[i];
      return text + ")";
    }
  }
  if (std::string text = tiles(map); !text.empty()) return part + " (" + text + ")";
  std::string row_text = pattern(layout.row_word, layout.row_words, map.by_row),
              column_text = pattern(layout.column_word, layout.column_words, map.by_column);
  std::string text = part + " (scattered";
  for (const std::string& piece : {heads, row_text, column_text}) {
    if (!piece.empty()) text += ", " + piece;
  }
  return text + ")";
}

std::string diagnose(const Evidence& evidence) {
  const Layout layout = layout_of(evidence.task, evidence.output);
  const std::string& output = evidence.task.definition.outputs[evidence.output].name;
  if (evidence.unwritten == static_cast<int64_t>(evidence.values.size())) {
    return output +
           " was never written: every element still has the poison that was there before the run";
  }
  if (evidence.unwritten > 0) {
    // The poison is a NaN: with no other non-finite values around, the NaNs are the unwritten
    // elements.
    std::vector<uint8_t> missing = flags(evidence, [](float x) { return std::isnan(x); });
    return describe_region(missing, layout) + " of " + output + " were never written";
  }
  if (evidence.non_finite > 0) {
    std::vector<uint8_t> broken = flags(evidence, [](float x) { return !std::isfinite(x); });
    const bool nan = std::any_of(evidence.values.begin(), evidence.values.end(),
                                 [](float x) { return std::isnan(x); });
    return describe_region(broken, layout) + " of " + output + " are " +
           (nan ? "NaN" : "infinite") + "; the right values are finite";
  }
  float constant = 0;
  if (all_equal(evidence, constant)) {
    return "every element of " + output + " is " + number(static_cast<double>(constant)) +
           (constant == 0.0f ? ": nothing was accumulated, or the result was not stored"
                             : ": a constant, not a result");
  }
  const std::string region = describe_region(evidence.bad, layout) + " of " + output + " are wrong";
  const std::vector<int64_t> samples = sample_bad(evidence, 64);
  const std::string& reference = evidence.task.definition.reference;
  std::string why;
  if (reference.compare(0, 19, "native:mha_with_lse") == 0) why = explain_attention(evidence);
  if (why.empty()) why = explain_scale(evidence, samples, layout);
  if (why.empty() && reference == "native:gemm_nt") why = explain_gemm(evidence);
  if (why.empty()) why = explain_moved(evidence, samples, layout);
  if (!why.empty()) return region + " " + why;
  return region + error_size(evidence);
}

std::vector<int64_t> sample_bad(const Evidence& evidence, int64_t count) {
  std::vector<int64_t> all, out;
  for (size_t i = 0; i < evidence.bad.size(); ++i) {
    if (evidence.bad[i] && std::isfinite(evidence.values[i]))
      all.push_back(static_cast<int64_t>(i));
  }
  const int64_t total = static_cast<int64_t>(all.size()), wanted = std::min(count, total);
  // Steps by the golden ratio: spread over the whole output without a period of its own.
  for (int64_t i = 0; i < wanted; ++i) {
    const int64_t at =
        wanted == total
            ? i
            : static_cast<int64_t>(std::fmod(static_cast<double>(i) * 0.6180339887, 1.0) *
                                   static_cast<double>(total));
    out.push_back(all[static_cast<size_t>(at)]);
  }
  return out;
}

bool agrees(const Evidence& evidence, int64_t index, double hypothesis, double size) {
  const size_t at = static_cast<size_t>(index);
  const DType type = evidence.task.definition.outputs[evidence.output].dtype;
  const double exact = static_cast<double>(evidence.reference.value[at]),
               bound = static_cast<double>(evidence.reference.bound[at]);
  const double allowed = size * std::max(bound - error_model::output_step(exact, type), 0.0) +
                         1.01 * error_model::output_step(hypothesis, type);
  return std::abs(static_cast<double>(evidence.values[at]) - hypothesis) <= allowed;
}

bool explains(const Evidence& evidence, const std::vector<int64_t>& samples,
              const std::function<double(int64_t)>& hypothesis) {
  if (samples.empty()) return false;
  size_t misses = 0;
  for (int64_t index : samples) {
    if (!agrees(evidence, index, hypothesis(index)) && ++misses * 10 > samples.size()) return false;
  }
  return true;
}

}  // namespace ptxb
