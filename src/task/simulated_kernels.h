// Owns plain-loop imitations of right and wrong kernels for the tests of this room. Test code;
// never linked into a program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "model/task.h"
#include "task/inputs.h"

namespace ptxb {

// A GEMM task of the published form at a small N.
Task gemm_task(int64_t m, int64_t n, int64_t k);
Task attention_task(int64_t batch, int64_t heads, int64_t length, bool causal);

enum class Accumulate {
  Forward,       // one f32 sum, k rising
  Reversed,      // k falling
  Blocked,       // f32 sums of 64 terms, added up
  TensorCore,    // groups of 16 terms and the accumulator, aligned to 25 bits and truncated
                 // (emulator.md 1.3)
  Bf16Partials,  // two halves of K, each rounded to bf16, then added
  Bf16,          // the accumulator itself in bf16
};
enum class Store { Nearest, Truncated };
enum class OperandType { Bf16, E4m3 };

struct GemmKernel {
  Accumulate accumulate = Accumulate::Forward;
  Store store = Store::Nearest;
  OperandType a = OperandType::Bf16, b = OperandType::Bf16;
  int64_t first_k = 0, dropped_tail = 0;
  enum class Layout { Right, BTransposed, OutputTransposed } layout = Layout::Right;
  int64_t swizzle_a_chunks = 0;  // 8: A's 16-byte chunks permuted as by a 128-byte swizzle
};
Buffers run(const GemmKernel& kernel, const Task& task, const Buffers& inputs);

struct AttentionKernel {
  int64_t block = 64;  // keys of one step of the online softmax
  OperandType qk = OperandType::Bf16, v = OperandType::Bf16, p = OperandType::Bf16;
  enum class Weights { Bf16, F32 } weights = Weights::Bf16;
  enum class RowSum { OfF32Weights, OfRoundedWeights } row_sum = RowSum::OfF32Weights;
  enum class Scaling { OfScores, OfBf16Queries } scaling = Scaling::OfScores;
  enum class Rescale { Right, Missing } rescale = Rescale::Right;
  enum class Normalise { Right, Missing } normalise = Normalise::Right;
  Store store = Store::Nearest;
  double score_factor = 1;  // times scale * log2(e)
  int64_t mask_offset = 0;  // causal: query i sees keys up to i + mask_offset
  enum class Mask { AsTask, Never, Always } mask = Mask::AsTask;
  int64_t dropped_keys = 0;  // the last ones
  double lse_factor = 1;     // log2(e): base 2
};
Buffers run(const AttentionKernel& kernel, const Task& task, const Buffers& inputs);

// Outputs filled by element: value(output, flat index).
Buffers filled(const Task& task, const std::function<float(size_t output, int64_t index)>& value);

}  // namespace ptxb
