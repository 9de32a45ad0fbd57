// Owns the one fp64 matrix product that the references are made of. Single-threaded: callers spread
// tiles over threads. Private to the task room.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace ptxb {

// A view of a matrix: element (row, k) is data[row * row_stride + k * k_stride], widened to double
// exactly.
struct Operand {
  enum class Type { Bf16, F32, F64 } type = Type::Bf16;
  const void* data = nullptr;
  int64_t row_stride = 0, k_stride = 1;
};

// Scratch kept between calls of one thread.
struct MatmulScratch {
  std::vector<double> a, b;
};

// c[i * c_stride + j] = sum over k of a(i, k) * b(j, k), accumulated in double. AVX2 and FMA where
// the processor has them.
void multiply_nt(const Operand& a, const Operand& b, int64_t rows, int64_t columns, int64_t length,
                 double* c, int64_t c_stride, MatmulScratch& scratch);

}  // namespace ptxb
