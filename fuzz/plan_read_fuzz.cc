// The plan reader on any bytes: it answers with a plan or an error; what it accepts survives
// validate(), show() and a round trip. SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "model/launch_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxb;
  auto json = parse_json({reinterpret_cast<const char*>(data), size}, "input");
  if (!json) return 0;
  auto plan = plan_from_json(*json, "input");
  if (!plan) return 0;
  (void)validate(*plan);
  (void)show(*plan);
  std::string text = to_json(*plan).dump();
  auto again = parse_json(text, "again");
  if (!again) std::abort();
  auto same = plan_from_json(*again, "again");
  if (!same || to_json(*same).dump() != text) std::abort();
  return 0;
}
