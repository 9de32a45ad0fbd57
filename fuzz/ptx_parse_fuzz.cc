// The PTX parser on any bytes: it answers with a Module or an Error; what parses is dumped, parsed
// and dumped the same. SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ptx/parse.h"
#include "ptx/roles.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxb;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ptx::ParseLimits limits;  // small ones, so that inputs reach them
  limits.text_bytes = 1u << 20;
  limits.instructions = 20'000;
  limits.registers = 20'000;
  limits.nesting = 32;
  const auto module = ptx::parse(text, "fuzz", limits);
  if (!module) {
    if (!module.error().message.starts_with("fuzz:")) std::abort();
    return 0;
  }
  for (const ptx::Function& function : module->functions) {
    (void)ptx::param_layout(function);
    for (const ptx::Instruction& each : function.body) {
      if (!ptx::operand_roles(each)) std::abort();
    }
  }
  const std::string once = ptx::dump(*module);
  const auto again = ptx::parse(once, "dump");
  if (!again || ptx::dump(*again) != once) std::abort();
  return 0;
}
