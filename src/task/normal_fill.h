// Owns the fast fill of bf16 tensors with Pattern::Normal and Pattern::Spiky: the same bits as
// generate(), several at a time. Private to the task room.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "task/generator.h"

namespace ptxb {

// Elements [begin, begin + count) of the tensor into out[0, count). AVX2 where the processor has
// it.
void fill_normal_bf16(const GeneratorSpec& spec, int64_t begin, int64_t count, uint16_t* out);
// The plain loop: what fill_normal_bf16 must equal.
void fill_normal_bf16_portable(const GeneratorSpec& spec, int64_t begin, int64_t count,
                               uint16_t* out);

}  // namespace ptxb
