// Owns calling nvdisasm on a cubin for the GPU backend, which must work where the compiler's room
// is not built.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace ptxb {

// The first nvdisasm on PATH, under CUDA_HOME and /usr/local/cuda, or in NVIDIA's wheels under
// .venv; "" when none is there.
std::string find_nvdisasm();

// Text of `nvdisasm -c`. Error: Unsupported when the tool is missing, Harness when it fails, Limit
// after 60 s.
Result<std::string> disassemble(const std::string& cubin, const std::string& nvdisasm);

}  // namespace ptxb
