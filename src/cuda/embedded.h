// Owns access to the worker's own device kernels, compiled by nvcc when the worker was built.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ptxb::cuda {

// The cubin for "sm_90a" or "sm_100a"; empty for others.
std::string_view embedded_kernels(std::string_view arch);

}  // namespace ptxb::cuda
