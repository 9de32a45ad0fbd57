// Owns the hypotheses that need only the reference output: a constant factor, and right values at
// wrong places.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "task/diagnose_families.h"

namespace ptxb {

namespace {

struct Place {
  int64_t matrix, row, column;
};

Place place_of(int64_t index, const Layout& layout) {
  return {index / (layout.rows * layout.columns), index / layout.columns % layout.rows,
          index % layout.columns};
}

// The reference at a place, NaN outside: no element agrees with NaN.
double reference_at(const Evidence& evidence, const Layout& layout, Place place) {
  if (place.matrix < 0 || place.matrix >= layout.matrices || place.row < 0 ||
      place.row >= layout.rows || place.column < 0 || place.column >= layout.columns) {
    return NAN;
  }
  return static_cast<double>(evidence.reference.value[static_cast<size_t>(
      (place.matrix * layout.rows + place.row) * layout.columns + place.column)]);
}

std::string offset(const char* word, int64_t by) {
  return by == 0
             ? ""
             : std::string(" ") + word + (by > 0 ? " + " : " - ") + std::to_string(std::abs(by));
}

constexpr int64_t kSteps[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};

// Elements outside the matrix after a move say nothing; half of the samples must be inside.
std::vector<int64_t> inside(const Evidence& evidence, const Layout& layout,
                            const std::vector<int64_t>& samples,
                            const std::function<Place(Place)>& move) {
  std::vector<int64_t> kept;
  for (int64_t index : samples) {
    if (!std::isnan(reference_at(evidence, layout, move(place_of(index, layout)))))
      kept.push_back(index);
  }
  if (kept.size() * 2 < samples.size()) kept.clear();
  return kept;
}

bool moved(const Evidence& evidence, const Layout& layout, const std::vector<int64_t>& samples,
           const std::function<Place(Place)>& move) {
  return explains(evidence, inside(evidence, layout, samples, move), [&](int64_t index) {
    return reference_at(evidence, layout, move(place_of(index, layout)));
  });
}

std::string shifted(const Evidence& evidence, const std::vector<int64_t>& samples,
                    const Layout& layout) {
  for (int64_t step : kSteps) {
    for (int64_t by : {step, -step}) {
      const struct {
        Place by;
        std::string text;
      } moves[] = {{{0, by, 0}, offset(layout.row_word, by)},
                   {{0, 0, by}, offset(layout.column_word, by)},
                   {{by, 0, 0}, offset(layout.matrix_word, by)}};
      for (const auto& candidate : moves) {
        auto move = [&](Place at) {
          return Place{at.matrix + candidate.by.matrix, at.row + candidate.by.row,
                       at.column + candidate.by.column};
        };
        if (moved(evidence, layout, samples, move)) {
          return "as if each held the result of" + candidate.text +
                 " (an index is off, or a tile is stored at the wrong place)";
        }
      }
    }
  }
  return {};
}

std::string exchanged(const Evidence& evidence, const std::vector<int64_t>& samples,
                      const Layout& layout) {
  for (int64_t row_bit : {0, 1, 2, 4, 8, 16, 32, 64, 128}) {
    for (int64_t column_bit : {0, 1, 2, 4, 8, 16, 32, 64, 128}) {
      if (row_bit == 0 && column_bit == 0) continue;
      auto move = [&](Place at) {
        return Place{at.matrix, at.row ^ row_bit, at.column ^ column_bit};
      };
      if (!moved(evidence, layout, samples, move)) continue;
      std::string text = "as if exchanged with the result at ";
      if (row_bit) text += std::string(layout.row_word) + " xor " + std::to_string(row_bit);
      if (row_bit && column_bit) text += ", ";
      if (column_bit)
        text += std::string(layout.column_word) + " xor " + std::to_string(column_bit);
      return text + " (swapped tiles or fragments)";
    }
  }
  return {};
}

}  // namespace

std::string explain_moved(const Evidence& evidence, const std::vector<int64_t>& samples,
                          const Layout& layout) {
  auto transposed = [&](Place at) { return Place{at.matrix, at.column, at.row}; };
  if (layout.rows == layout.columns && moved(evidence, layout, samples, transposed)) {
    return "as if the output were transposed (rows and columns exchanged)";
  }
  auto column_major = [&](Place at) {
    const int64_t flat = at.row * layout.columns + at.column;
    return Place{at.matrix, flat % layout.rows, flat / layout.rows};
  };
  if (layout.columns > 1 && layout.rows > 1 && moved(evidence, layout, samples, column_major)) {
    return layout.matrices == 1 ? "as if stored column-major (transposed); the output is row-major"
                                : "as if each " + std::string(layout.matrix_word) +
                                      " were stored transposed; the output is row-major";
  }
  // An exchange stays inside the output and so must explain every sample: it goes first.
  if (std::string text = exchanged(evidence, samples, layout); !text.empty()) return text;
  return shifted(evidence, samples, layout);
}

std::string explain_scale(const Evidence& evidence, const std::vector<int64_t>& samples,
                          const Layout& layout) {
  double products = 0, squares = 0;
  for (int64_t index : samples) {
    const double exact = static_cast<double>(evidence.reference.value[static_cast<size_t>(index)]);
    products += exact * static_cast<double>(evidence.values[static_cast<size_t>(index)]);
    squares += exact * exact;
  }
  const double factor = squares > 0 ? products / squares : 0;
  auto scaled = [&](int64_t index) {
    return factor * static_cast<double>(evidence.reference.value[static_cast<size_t>(index)]);
  };
  // Near 1 it is no factor but an error in every element; with few samples any factor fits.
  if (samples.size() >= 8 && std::abs(factor - 1) > 0.02 && std::abs(factor) > 1e-3 &&
      explains(evidence, samples, scaled)) {
    char text[160];
    const bool doubled = std::abs(factor - std::round(factor)) < 0.01 && factor > 1.5;
    std::snprintf(text, sizeof text, "as if multiplied by %.4g%s", factor,
                  doubled ? " (summed more than once, or accumulators not cleared)"
                          : " (a missing or extra scale)");
    return text;
  }
  for (int64_t step : {64, 128, 256}) {
    for (Place by : {Place{0, 0, -step}, Place{0, -step, 0}, Place{-1, 0, 0}}) {
      auto source = [&](Place at) {
        return Place{at.matrix + by.matrix, at.row + by.row, at.column + by.column};
      };
      const std::vector<int64_t> kept = inside(evidence, layout, samples, source);
      auto plus = [&](int64_t index) {
        return static_cast<double>(evidence.reference.value[static_cast<size_t>(index)]) +
               reference_at(evidence, layout, source(place_of(index, layout)));
      };
      if (kept.size() >= 4 && explains(evidence, kept, plus)) {
        const std::string from = by.matrix
                                     ? offset(layout.matrix_word, -1)
                                     : offset(by.row ? layout.row_word : layout.column_word, -step);
        return "as if the result of" + from +
               " had been added: accumulators are not cleared between tiles";
      }
    }
  }
  return {};
}

}  // namespace ptxb
