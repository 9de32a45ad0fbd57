// Owns findings as SARIF 2.1.0 (OASIS), which editors and code hosts show beside the source line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "model/outcome.h"

namespace ptxb::app {

Json to_sarif(const std::vector<Finding>& findings, const std::string& source_path);

}  // namespace ptxb::app
