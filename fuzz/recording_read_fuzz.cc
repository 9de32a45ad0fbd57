// The recording reader and the reduction on any bytes: a hostile recording gives a plan, a refusal
// or an error. SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "shim/reduce.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxb;
  auto json = parse_json({reinterpret_cast<const char*>(data), size}, "input");
  if (!json) return 0;
  auto recording = shim::recording_from_json(*json, "input");
  if (!recording || recording->ending != shim::Ending::Complete) return 0;
  shim::Request request;
  shim::Argument tensor;
  tensor.name = "Y";
  tensor.output = true;
  tensor.shape = {1024};
  tensor.size_bytes = 4096;
  for (uint64_t begin : {0x2111'a4c0'0000, 0x2222'b5e0'0000, 0x2333'c780'0000}) {
    tensor.addresses.push_back(placed_address(begin, tensor.size_bytes));
  }
  request.arguments = {tensor};
  (void)shim::reduce(request, *recording);
  return 0;
}
