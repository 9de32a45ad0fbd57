// Owns reading what cuModuleLoadData is given: PTX text or a cubin, its kernels' parameters and its
// variables. The image comes from the candidate: hostile. Nothing is executed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "model/launch_plan.h"

namespace ptxb::shim {

struct ModuleImage {
  PlanModule module;                          // ptx or cubin set; kernels with their parameters
  std::map<std::string, uint64_t> variables;  // name, bytes
};

// Copies an image from memory: its size is its own claim (ELF section table, or the terminating
// zero of text). Errors: Unsupported for fat binaries and unknown forms, BadInput for malformed
// ones, Limit when longer than 64 MiB.
Result<std::string> image_bytes(const void* image);
Result<ModuleImage> read_image(const std::string& bytes);
// Kernels and variables of a cubin (ELF64, section .nv.info.<kernel>, attribute KPARAM_INFO).
Result<ModuleImage> read_cubin(const std::string& bytes);

}  // namespace ptxb::shim
