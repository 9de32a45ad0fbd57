// Owns the attention reference: O = softmax(scale * Q K^T) V and LSE (natural logarithm), with or
// without the causal mask, in fp64.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/minifloat.h"
#include "base/parallel.h"
#include "task/error_model.h"
#include "task/matmul.h"
#include "task/reference_families.h"

namespace ptxb {

namespace {

constexpr int64_t kQueries = 64;  // queries of one step: the scores of 16384 keys are then 8 MB

struct Shape {
  int64_t heads, length, width;  // B * H, S, D
  bool causal;
  double scale;
};

struct Scratch {
  MatmulScratch matmul;
  std::vector<double> weights, squares, value_squares, out, incoherent, mean_key;
};

double norm(const uint16_t* row, int64_t width) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d)
    sum += std::pow(static_cast<double>(bf16_to_float(row[d])), 2);
  return std::sqrt(sum);
}

// Scores become normalised weights in place; returns the log-sum-exp.
double softmax_row(double* row, int64_t visible, int64_t keys, double scale) {
  double most = row[0];
  for (int64_t j = 1; j < visible; ++j) most = std::max(most, row[j]);
  double sum = 0;
  for (int64_t j = 0; j < visible; ++j) sum += row[j] = std::exp((row[j] - most) * scale);
  for (int64_t j = 0; j < visible; ++j) row[j] /= sum;
  std::fill(row + visible, row + keys, 0.0);
  return most * scale + std::log(sum);
}

class Head {
 public:
  Head(const Shape& shape, const Buffers& inputs, int64_t head, InputSpec spec, DType type)
      : shape_(shape), spec_(spec), type_(type), base_(head * shape.length) {
    const int64_t offset = base_ * shape.width;
    q_ = reinterpret_cast<const uint16_t*>(inputs[0].data()) + offset;
    k_ = reinterpret_cast<const uint16_t*>(inputs[1].data()) + offset;
    v_ = reinterpret_cast<const uint16_t*>(inputs[2].data()) + offset;
  }

  // Queries [first, first + count) into the two outputs.
  void run(int64_t first, int64_t count, Scratch& own, ReferenceOutput& o, ReferenceOutput& lse) {
    const int64_t width = shape_.width, keys = shape_.causal ? first + count : shape_.length;
    own.weights.resize(static_cast<size_t>(count * keys));
    multiply_nt({Operand::Type::Bf16, q_ + first * width, width, 1},
                {Operand::Type::Bf16, k_, width, 1}, count, keys, width, own.weights.data(), keys,
                own.matmul);
    std::vector<double> sums(static_cast<size_t>(count)), concentration(static_cast<size_t>(count));
    own.squares.resize(own.weights.size());
    for (int64_t i = 0; i < count; ++i) {
      double* row = own.weights.data() + i * keys;
      sums[static_cast<size_t>(i)] =
          softmax_row(row, shape_.causal ? first + i + 1 : keys, keys, shape_.scale);
      double squares = 0;
      for (int64_t j = 0; j < keys; ++j)
        squares += own.squares[static_cast<size_t>(i * keys + j)] = row[j] * row[j];
      concentration[static_cast<size_t>(i)] = std::sqrt(squares);
    }
    weighted_sums(count, keys, own);
    double longest_key = 0;
    for (int64_t j = 0; j < keys; ++j)
      longest_key = std::max(longest_key, norm(k_ + j * width, width));
    for (int64_t i = 0; i < count; ++i) {
      const uint16_t* query = q_ + (first + i) * width;
      const double logit = logit_sensitivity(query, own.mean_key.data() + i * width);
      const size_t row = static_cast<size_t>(base_ + first + i);
      const double sum = sums[static_cast<size_t>(i)];
      lse.value[row] = static_cast<float>(sum);
      lse.bound[row] = static_cast<float>(
          error_model::lse_bound(sum, concentration[static_cast<size_t>(i)], logit,
                                 norm(query, width) * longest_key * shape_.scale));
      for (int64_t d = 0; d < width; ++d) {
        const double value = own.out[static_cast<size_t>(i * width + d)];
        const double incoherent = std::sqrt(own.incoherent[static_cast<size_t>(i * width + d)]);
        const size_t at = row * static_cast<size_t>(width) + static_cast<size_t>(d);
        o.value[at] = static_cast<float>(value);
        o.bound[at] = static_cast<float>(
            exact_inputs(spec_) ? error_model::attention_exact_bound(value, incoherent, type_)
                                : error_model::attention_bound(value, incoherent, logit, type_));
      }
    }
  }

 private:
  // sum p v, sum p^2 v^2, sum p k
  void weighted_sums(int64_t count, int64_t keys, Scratch& own) {
    const int64_t width = shape_.width;
    own.value_squares.resize(static_cast<size_t>(keys * width));
    for (size_t i = 0; i < own.value_squares.size(); ++i) {
      const double v = static_cast<double>(bf16_to_float(v_[i]));  // coded values reach 2^70
      own.value_squares[i] = v * v;
    }
    for (auto* buffer : {&own.out, &own.incoherent, &own.mean_key})
      buffer->resize(static_cast<size_t>(count * width));
    const Operand weights{Operand::Type::F64, own.weights.data(), keys, 1};
    const Operand squares{Operand::Type::F64, own.squares.data(), keys, 1};
    multiply_nt(weights, {Operand::Type::Bf16, v_, 1, width}, count, width, keys, own.out.data(),
                width, own.matmul);
    multiply_nt(squares, {Operand::Type::F64, own.value_squares.data(), 1, width}, count, width,
                keys, own.incoherent.data(), width, own.matmul);
    multiply_nt(weights, {Operand::Type::Bf16, k_, 1, width}, count, width, keys,
                own.mean_key.data(), width, own.matmul);
  }

  double logit_sensitivity(const uint16_t* query, const double* mean_key) const {
    double sum = 0;
    for (int64_t d = 0; d < shape_.width; ++d) {
      const double product = static_cast<double>(bf16_to_float(query[d])) * mean_key[d];
      sum += product * product;
    }
    return shape_.scale * std::sqrt(sum);
  }

  const Shape& shape_;
  InputSpec spec_;
  DType type_;
  int64_t base_;
  const uint16_t *q_, *k_, *v_;
};

}  // namespace

Reference attention_reference(const Task& task, const Buffers& inputs, InputSpec spec,
                              int threads) {
  const int64_t width = task.axes.at("D");
  const Shape shape{task.axes.at("B") * task.axes.at("H"), task.axes.at("S"), width,
                    task.definition.reference == "native:mha_with_lse_causal",
                    1 / std::sqrt(static_cast<double>(width))};
  Reference reference;
  reference.outputs.resize(2);
  for (size_t i = 0; i < 2; ++i) {
    const size_t elements = static_cast<size_t>(shape.heads * shape.length * (i == 0 ? width : 1));
    reference.outputs[i].value.resize(elements);
    reference.outputs[i].bound.resize(elements);
  }
  const int64_t steps = (shape.length + kQueries - 1) / kQueries;
  std::vector<Scratch> scratch(static_cast<size_t>(std::max(threads, 1)));
  parallel_for(static_cast<size_t>(shape.heads * steps), threads, [&](size_t step, int thread) {
    const int64_t head = static_cast<int64_t>(step) / steps,
                  first = (static_cast<int64_t>(step) % steps) * kQueries;
    Head(shape, inputs, head, spec, task.definition.outputs[0].dtype)
        .run(first, std::min(kQueries, shape.length - first), scratch[static_cast<size_t>(thread)],
             reference.outputs[0], reference.outputs[1]);
  });
  return reference;
}

}  // namespace ptxb
