// Owns the diagnosis of wrong values: one sentence that says where an output is wrong and, where a
// known mistake explains the sampled elements, which one. Never decides whether an output is right.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "model/task.h"
#include "task/inputs.h"
#include "task/reference.h"

namespace ptxb {

struct Evidence {
  const Task& task;
  const Buffers& inputs;
  InputSpec spec;
  size_t output;                  // index into the definition's outputs
  std::span<const float> values;  // the candidate's
  const ReferenceOutput& reference;
  std::span<const uint8_t> bad;  // 1: wrong
  int64_t unwritten = 0, non_finite = 0;
};

// REQUIRES: at least one bad element.
std::string diagnose(const Evidence& evidence);

// The output as `matrices` matrices of rows x columns, and the words for them.
struct Layout {
  int64_t matrices = 1, rows = 1, columns = 1;
  // Each with its plural.
  const char *matrix_word = "matrix", *matrix_words = "matrices";
  const char *row_word = "row", *row_words = "rows";
  const char *column_word = "column", *column_words = "columns";
};
Layout layout_of(const Task& task, size_t output);

// "all elements", "rows 96..127", "2 of 56 tiles of 128x128 (the first at row 0, column 256)",
// "scattered elements".
std::string describe_region(std::span<const uint8_t> bad, const Layout& layout);

}  // namespace ptxb
