// Owns the hand-made plans and tasks that GPU tests and the GPU report replay. Test support; never
// part of the product.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "model/launch_plan.h"
#include "model/task.h"

namespace ptxb::cuda {

Task gemm_task(int64_t m, int64_t n, int64_t k);
Task attention_task(int64_t batch, int64_t heads, int64_t length, int64_t width, bool causal);

// Folder of the running program, where ptxbench-worker and testdata/ lie.
std::string program_folder();

// A parameter block as nvcc lays it out: each value at its own alignment.
class Params {
 public:
  template <class T>
  Params& add(const T& value, size_t alignment = alignof(T)) {
    static_assert(std::is_trivially_copyable_v<T>);
    const size_t at = (bytes_.size() + alignment - 1) / alignment * alignment;
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    slots_.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(sizeof value)});
    return *this;
  }
  Params& add_map(uint32_t index);  // the recorder's image of plan.tensor_maps[index]
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  const std::vector<KernelParam>& slots() const { return slots_; }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<KernelParam> slots_;
};

class PlanMaker {
 public:
  // The module testdata/<stem>.cubin and .ptx become module 0. Aborts when they are missing: tests
  // cannot go on.
  PlanMaker(const Task& task, const std::string& stem);
  uint64_t input(size_t index) const { return inputs_[index]; }
  uint64_t output(size_t index) const { return outputs_[index]; }
  uint64_t scratch(uint64_t size_bytes);
  // A symbol's window address.
  uint64_t symbol(const std::string& name, uint64_t size_bytes);
  uint32_t tensor_map(uint64_t address, uint64_t rows, uint64_t columns, uint32_t box_rows,
                      uint32_t box_columns, uint32_t swizzle);
  // The full name of the one entry whose name contains `part`.
  std::string entry(const std::string& part) const;
  KernelLaunch launch(const std::string& kernel, Dim3 grid, Dim3 block, const Params& params,
                      uint32_t shared_bytes = 0);
  // C = A B^T by `kernel` of testdata/kernels.cu, 16x16 threads.
  KernelLaunch tiled(const std::string& kernel);
  LaunchPlan take() { return std::move(plan_); }
  LaunchPlan& plan() { return plan_; }
  const Task& task() const { return task_; }

 private:
  uint64_t place(uint64_t size_bytes);

  Task task_;
  LaunchPlan plan_;
  uint64_t next_ = kWindowBegin + (uint64_t{1} << 30);
  std::vector<uint64_t> inputs_, outputs_;
};

// One launch of a kernel of testdata/kernels.cu with the GEMM's six parameters.
LaunchPlan simple_plan(const Task& task, const std::string& kernel);
// The real kernels of kernels/gemm.
LaunchPlan simt_plan(const Task& task);
LaunchPlan mma_sync_plan(const Task& task);
LaunchPlan wgmma_plan(const Task& task, int multiprocessors);

}  // namespace ptxb::cuda
