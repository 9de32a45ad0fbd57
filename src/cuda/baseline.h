// Owns the seam between timing and the vendor libraries: something that can be queued on a stream
// in a candidate's place, in a few variants of which the fastest is found by measurement.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "backend/worker_jobs.h"
#include "cuda/bench.h"

namespace ptxb::cuda {

class Baseline {
 public:
  virtual ~Baseline() = default;
  virtual std::string library() const = 0;  // "cuBLASLt 13.1.0"
  // Variants in the library's own order of preference: 0 is what a plain caller would get.
  virtual uint32_t variants() const = 0;
  virtual std::string describe(uint32_t variant) const = 0;
  virtual double workspace_bytes(uint32_t variant) const = 0;
  // Reads the plan's inputs, writes the plan's outputs: the same addresses as the candidate.
  virtual Result<void> enqueue(uint32_t variant, CUstream stream) = 0;
};

// Null with `missing` saying why when the task or the machine has no such baseline.
Result<std::unique_ptr<Baseline>> make_cublaslt_gemm(Bench& bench, std::string& missing);

}  // namespace ptxb::cuda
