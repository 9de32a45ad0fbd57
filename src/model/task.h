// Owns the nouns of a task: definition (named axes, tensors), workload (axis values, inputs), and the two bound together.
// Layout on disk: FlashInfer-Trace (docs/formats.md). Loading lives in task/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/types.h"

namespace ptxb {

struct Axis {
  std::string name;
  std::optional<int64_t> value;  // nullopt: variable, bound by a workload
  std::string description;
};

struct TensorSpec {
  std::string name;
  std::vector<std::string> shape;  // axis names, row-major, slowest first; empty and scalar: a host scalar
  bool scalar = false;
  DType dtype = DType::F32;
  std::string description;
};

// Which PTX instruction families a candidate is asked to use on one architecture (arch/families.h spells them).
struct TargetPolicy {
  std::string arch;                   // "sm_90a"
  std::vector<std::string> required;  // e.g. {"wgmma", "tma"}: each must be executed
  double minimum_share = 0.9;         // of the task's matrix FLOPs through the matrix family
};

// Rule A (compatible) and the constants of rule B (docs/checking.md).
struct Tolerance {
  double rtol = 1e-2, atol = 1e-2, required_matched_ratio = 1.0;
};

struct Definition {
  std::string name;
  std::string description;
  std::string op_type;  // "gemm", "mha"
  std::vector<std::string> tags;
  std::vector<Axis> axes;  // in file order
  std::vector<TensorSpec> inputs, outputs;
  std::string reference;  // "native:gemm_nt", or Python source
  Tolerance tolerance;
  std::vector<TargetPolicy> targets;
  std::map<std::string, std::string> baselines;           // arch -> library routine
  std::map<std::string, int64_t> emulator_axes;           // small values of the variable axes for the emulator
  std::vector<std::map<std::string, int64_t>> neighbours;  // other legal shapes: ragged, tails
};

struct WorkloadInput {
  enum class Kind { Random, Scalar, Safetensors } kind = Kind::Random;
  double value = 0;              // Scalar
  std::string path, tensor_key;  // Safetensors, relative to the dataset root
};

struct Workload {
  std::string definition;
  std::string uuid;
  std::map<std::string, int64_t> axes;
  std::map<std::string, WorkloadInput> inputs;
};

// A definition with every axis bound.
struct Task {
  Definition definition;
  Workload workload;
  std::map<std::string, int64_t> axes;  // constant and variable

  std::vector<int64_t> shape(const TensorSpec& tensor) const;   // REQUIRES: every axis bound
  int64_t elements(const TensorSpec& tensor) const;             // 1 for a scalar
  int64_t size_bytes(const TensorSpec& tensor) const;
};

}  // namespace ptxb
