// Owns the answers to questions about the device: attributes, properties, limits, function
// attributes. Chip profile only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shim/recorder.h"

namespace ptxb::shim {

inline constexpr int kCudaVersion = 13000;

// cudaDeviceAttr and CUdevice_attribute share their numbers; nullopt: no such attribute.
std::optional<int> device_attribute(const ChipLimits& chip, int attribute);
abi::DeviceProperties device_properties(const ChipLimits& chip);
// cudaLimit and CUlimit share their numbers.
std::optional<size_t> device_limit(const ChipLimits& chip, int limit);
abi::FuncAttributes function_attributes(const ChipLimits& chip, const Kernel& kernel);
std::optional<int> function_attribute(const ChipLimits& chip, const Kernel& kernel, int attribute);
// Error code of the set; changes `kernel`.
Code set_function_attribute(Recorder& recorder, std::string_view api, Kernel& kernel, int attribute,
                            int value);
// Largest cluster that the kernel may be launched with, and how many of a size are resident on the
// chip.
int max_cluster_size(const ChipLimits& chip, const Kernel& kernel);
int active_clusters(const ChipLimits& chip, const Kernel& kernel, const LaunchShape& shape);
const char* error_name(int code);  // runtime spelling; nullptr: no such code
const char* driver_error_name(int code);
const char* error_text(int code);

}  // namespace ptxb::shim
