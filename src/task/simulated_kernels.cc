// SPDX-License-Identifier: Apache-2.0
#include "task/simulated_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/minifloat.h"
#include "task/load.h"

namespace ptxb {

namespace {

Task bound_task(const std::string& text, const std::string& axes) {
  auto definition = parse_definition(text, "test.json");
  PTXB_CHECK(definition.has_value());
  Dataset dataset;
  dataset.definitions.push_back(*definition);
  auto task = bind_task(dataset, definition->name, axes);
  PTXB_CHECK(task.has_value());
  return *task;
}

float operand(OperandType type, uint16_t bits) {
  const float value = bf16_to_float(bits);
  return type == OperandType::Bf16 ? value : e4m3_to_float(float_to_e4m3_satfinite(value));
}

uint16_t stored(Store store, float value) {
  return store == Store::Nearest ? float_to_bf16(value)
                                 : static_cast<uint16_t>(float_to_bits(value) >> 16);
}

double truncated(double value, int exponent) {
  return std::ldexp(std::trunc(std::ldexp(value, -exponent)), exponent);
}

// One tensor-core step: sixteen products and the accumulator, cut to 25 bits below the largest
// exponent, the sum cut to f32.
float tensor_core_step(const float* a, const float* b, int64_t count, float accumulator) {
  int largest = accumulator == 0.0f ? -200 : std::ilogb(accumulator);
  for (int64_t i = 0; i < count; ++i) {
    if (a[i] != 0.0f && b[i] != 0.0f)
      largest = std::max(largest, std::ilogb(a[i]) + std::ilogb(b[i]));
  }
  double sum = truncated(static_cast<double>(accumulator), largest - 25);
  for (int64_t i = 0; i < count; ++i) {
    sum += truncated(static_cast<double>(a[i]) * static_cast<double>(b[i]), largest - 25);
  }
  if (!(std::abs(sum) > 0)) return 0;
  return static_cast<float>(truncated(sum, std::ilogb(sum) - 23));
}

float dot(Accumulate how, const float* a, const float* b, int64_t count) {
  float sum = 0;
  switch (how) {
    case Accumulate::Forward:
      for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
      return sum;
    case Accumulate::Reversed:
      for (int64_t k = count; k-- > 0;) sum += a[k] * b[k];
      return sum;
    case Accumulate::Blocked:
      for (int64_t k = 0; k < count; k += 64)
        sum += dot(Accumulate::Forward, a + k, b + k, std::min<int64_t>(64, count - k));
      return sum;
    case Accumulate::TensorCore:
      for (int64_t k = 0; k < count; k += 16)
        sum = tensor_core_step(a + k, b + k, std::min<int64_t>(16, count - k), sum);
      return sum;
    case Accumulate::Bf16Partials: {
      const int64_t half = count / 2;
      return bf16_to_float(float_to_bf16(dot(Accumulate::Forward, a, b, half))) +
             bf16_to_float(
                 float_to_bf16(dot(Accumulate::Forward, a + half, b + half, count - half)));
    }
    case Accumulate::Bf16:
      for (int64_t k = 0; k < count; ++k) sum = bf16_to_float(float_to_bf16(sum + a[k] * b[k]));
      return sum;
  }
  return sum;
}

std::vector<float> widened(OperandType type, const std::vector<uint8_t>& bytes) {
  std::vector<float> out(bytes.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    out[i] = operand(type, bits);
  }
  return out;
}

void put16(std::vector<uint8_t>& bytes, int64_t index, uint16_t value) {
  std::memcpy(bytes.data() + 2 * index, &value, 2);
}

}  // namespace

Task gemm_task(int64_t m, int64_t n, int64_t k) {
  const std::string axis = R"({"type": "const", "value": )";
  return bound_task(
      R"({"name": "gemm_small", "op_type": "gemm", "axes": {"M": {"type": "var"}, "N": )" + axis +
          std::to_string(n) + R"(}, "K": )" + axis + std::to_string(k) + R"(}},
    "inputs": {"A": {"shape": ["M", "K"], "dtype": "bfloat16"}, "B": {"shape": ["N", "K"], "dtype": "bfloat16"}},
    "outputs": {"C": {"shape": ["M", "N"], "dtype": "bfloat16"}}, "reference": "native:gemm_nt"})",
      "M=" + std::to_string(m));
}

Task attention_task(int64_t batch, int64_t heads, int64_t length, bool causal) {
  const std::string axis = R"({"type": "const", "value": )";
  const std::string tensor = R"({"shape": ["B", "H", "S", "D"], "dtype": "bfloat16"})";
  return bound_task(R"({"name": "attention_small", "op_type": "mha", "axes": {"B": )" + axis +
                        std::to_string(batch) + R"(}, "H": )" + axis + std::to_string(heads) +
                        R"(}, "S": {"type": "var"}, "D": )" + axis + R"(128}}, "inputs": {"Q": )" +
                        tensor + R"(, "K": )" + tensor + R"(, "V": )" + tensor +
                        R"(}, "outputs": {"O": )" + tensor +
                        R"(, "LSE": {"shape": ["B", "H", "S"], "dtype": "float32"}},
    "reference": "native:mha_with_lse)" +
                        (causal ? "_causal" : "") + R"("})",
                    "S=" + std::to_string(length));
}

Buffers run(const GemmKernel& kernel, const Task& task, const Buffers& inputs) {
  const int64_t m = task.axes.at("M"), n = task.axes.at("N"), k = task.axes.at("K");
  std::vector<float> a = widened(kernel.a, inputs[0]), b = widened(kernel.b, inputs[1]);
  if (kernel.layout == GemmKernel::Layout::BTransposed) {
    std::vector<float> moved(b.size());
    for (int64_t i = 0; i < n * k; ++i)
      moved[static_cast<size_t>(i)] = b[static_cast<size_t>(i % k * n + i / k)];
    b = moved;
  }
  if (kernel.swizzle_a_chunks > 0) {
    std::vector<float> moved(a.size());
    for (int64_t i = 0; i < m * k; ++i) {
      const int64_t row = i / k, at = i % k, chunk = (at / 8) ^ (row % kernel.swizzle_a_chunks);
      moved[static_cast<size_t>(i)] = a[static_cast<size_t>(row * k + chunk * 8 + at % 8)];
    }
    a = moved;
  }
  Buffers out = poisoned_outputs(task);
  const int64_t count = k - kernel.dropped_tail - kernel.first_k;
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      const float sum = dot(kernel.accumulate, a.data() + row * k + kernel.first_k,
                            b.data() + column * k + kernel.first_k, count);
      const bool transposed = kernel.layout == GemmKernel::Layout::OutputTransposed;
      put16(out[0], transposed ? column * m + row : row * n + column, stored(kernel.store, sum));
    }
  }
  return out;
}

Buffers run(const AttentionKernel& kernel, const Task& task, const Buffers& inputs) {
  const int64_t heads = task.axes.at("B") * task.axes.at("H"), length = task.axes.at("S"),
                width = task.axes.at("D");
  const bool task_causal = task.definition.reference == "native:mha_with_lse_causal";
  const bool causal = kernel.mask == AttentionKernel::Mask::AsTask
                          ? task_causal
                          : kernel.mask == AttentionKernel::Mask::Always;
  std::vector<float> q = widened(kernel.qk, inputs[0]), k = widened(kernel.qk, inputs[1]),
                     v = widened(kernel.v, inputs[2]);
  float factor = static_cast<float>(kernel.score_factor * 1.4426950408889634 /
                                    std::sqrt(static_cast<double>(width)));
  if (kernel.scaling == AttentionKernel::Scaling::OfBf16Queries) {
    for (float& x : q) x = bf16_to_float(float_to_bf16(x * factor));
    factor = 1;
  }
  Buffers out = poisoned_outputs(task);
  std::vector<float> accumulator(static_cast<size_t>(width)),
      score(static_cast<size_t>(kernel.block));
  for (int64_t row = 0; row < heads * length; ++row) {
    const int64_t head = row / length * length, query = row % length;
    int64_t visible = causal ? query + 1 + kernel.mask_offset : length;
    visible = std::clamp<int64_t>(std::min(visible, length - kernel.dropped_keys), 1, length);
    float most = -std::numeric_limits<float>::infinity(), total = 0;
    std::fill(accumulator.begin(), accumulator.end(), 0.0f);
    for (int64_t first = 0; first < visible; first += kernel.block) {
      const int64_t last = std::min(first + kernel.block, visible);
      float now = most;
      for (int64_t j = first; j < last; ++j) {
        score[static_cast<size_t>(j - first)] =
            dot(Accumulate::Forward, q.data() + row * width, k.data() + (head + j) * width, width) *
            factor;
        now = std::max(now, score[static_cast<size_t>(j - first)]);
      }
      const float alpha = std::exp2(most - now);
      total *= alpha;
      if (kernel.rescale == AttentionKernel::Rescale::Right) {
        for (float& x : accumulator) x *= alpha;
      }
      most = now;
      for (int64_t j = first; j < last; ++j) {
        const float exact = std::exp2(score[static_cast<size_t>(j - first)] - most);
        float weight = kernel.weights == AttentionKernel::Weights::F32
                           ? exact
                           : bf16_to_float(float_to_bf16(exact));
        if (kernel.p == OperandType::E4m3) weight = e4m3_to_float(float_to_e4m3_satfinite(exact));
        total += kernel.row_sum == AttentionKernel::RowSum::OfF32Weights ? exact : weight;
        const float* value = v.data() + (head + j) * width;
        for (int64_t d = 0; d < width; ++d)
          accumulator[static_cast<size_t>(d)] += weight * value[d];
      }
    }
    const float by = kernel.normalise == AttentionKernel::Normalise::Right ? 1 / total : 1;
    for (int64_t d = 0; d < width; ++d) {
      put16(out[0], row * width + d,
            stored(kernel.store, accumulator[static_cast<size_t>(d)] * by));
    }
    const float lse =
        static_cast<float>(kernel.lse_factor) * (most * 0.69314718f + std::log(total));
    std::memcpy(out[1].data() + 4 * row, &lse, 4);
  }
  return out;
}

Buffers filled(const Task& task, const std::function<float(size_t output, int64_t index)>& value) {
  Buffers out = poisoned_outputs(task);
  for (size_t i = 0; i < out.size(); ++i) {
    const TensorSpec& tensor = task.definition.outputs[i];
    for (int64_t at = 0; at < task.elements(tensor); ++at) {
      const float x = value(i, at);
      if (tensor.dtype == DType::BF16) {
        put16(out[i], at, float_to_bf16(x));
      } else {
        std::memcpy(out[i].data() + 4 * at, &x, 4);
      }
    }
  }
  return out;
}

}  // namespace ptxb
