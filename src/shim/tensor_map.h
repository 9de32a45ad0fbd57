// Owns the documented argument rules of cuTensorMapEncodeTiled (CUDA driver API 13.0). Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/launch_plan.h"

namespace ptxb::shim {

// "" when the driver would accept the map, else the first broken rule in words.
std::string tensor_map_fault(const PlanTensorMap& map);
// The 128 bytes that stand for map `index` until a replayer encodes it.
std::array<uint8_t, kTensorMapBytes> tensor_map_image(uint32_t index);

}  // namespace ptxb::shim
