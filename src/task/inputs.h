// Owns the seeded inputs of a task: a pure function of (task, axes, seed, distribution, tensor,
// element), the same on CPU and GPU (task/generator.h has the arithmetic, docs/checking.md the
// distributions). Never reads a clock or a random device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/task.h"
#include "task/generator.h"

namespace ptxb {

// Tensors as bytes, in definition order; a host scalar is its own bytes.
using Buffers = std::vector<std::vector<uint8_t>>;

enum class Distribution {
  Normal,  // N(0,1)
  Spiky,   // N(0,1) + N(0,100) * Bernoulli(1/1024)
  Exact,   // small integers that need the whole bf16 mantissa; every fp32 sum is exact
  Coded,   // each output names the operand elements it used
};
std::string_view name(Distribution distribution);  // "normal", "spiky", "exact", "coded"
std::optional<Distribution> parse_distribution(std::string_view text);

struct InputSpec {
  uint64_t seed = 0;
  Distribution distribution = Distribution::Normal;
};

// Those that a check of this task uses, in the order of the cheapest way to catch a fault.
std::vector<Distribution> distributions(const Task& task);

// Unsupported: a distribution this task has no meaning for; a safetensors input (issue 5).
Result<Buffers> make_inputs(const Task& task, InputSpec spec, int threads);

// What make_inputs fills input `index` with, for a device-side generator (generator.h's generate).
Result<GeneratorSpec> generator_spec(const Task& task, size_t index, InputSpec spec);

// Outputs as they are before a run: every byte kPoisonByte. bf16 0xffff and f32 0xffffffff are NaNs
// that no conversion and no arithmetic instruction produces (PTX makes 0x7fff and 0x7fffffff), so
// an element that still has it was never written.
inline constexpr uint8_t kPoisonByte = 0xff;
Buffers poisoned_outputs(const Task& task);

}  // namespace ptxb
