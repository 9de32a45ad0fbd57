// Owns how much work a task is: matrix FLOPs and compulsory bytes, pure arithmetic of the axes.
// Never measures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/task.h"

namespace ptxb {

struct Work {
  double matrix_flops =
      0;  // GEMM 2MNK; attention forward 4BHS^2D, half of it when causal (the published counts)
  double bytes = 0;  // every input read once, every output written once
};

Work work_of(const Task& task);

}  // namespace ptxb
