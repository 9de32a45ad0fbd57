// Owns the JSON of a plan's parts, which the recorder's own files use too. Readers report into
// ObjectReader's Faults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/launch_plan.h"
#include "model/strict_json.h"

namespace ptxb {

Json kernel_json(const KernelInfo& kernel);
KernelInfo read_kernel(ObjectReader& in);
Json tensor_map_json(const PlanTensorMap& map);
PlanTensorMap read_tensor_map(ObjectReader& in);
// Members "op" and the action's own fields are added to `out`; read_action leaves calling done() to
// its caller.
void write_action(const PlanAction& action, Json& out);
PlanAction read_action(ObjectReader& in);

}  // namespace ptxb
