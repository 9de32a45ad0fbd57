// Owns PTX text -> Module. PTX is untrusted: no recursion on nesting beyond a fixed depth, budgets
// on every count.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "ptx/module.h"

namespace ptxb::ptx {

// What parsing refuses to exceed: spent is an ordinary answer (ErrorCode::Limit).
struct ParseLimits {
  uint64_t text_bytes = 64u << 20;
  uint32_t instructions = 2'000'000;
  uint32_t registers = 2'000'000;
  uint32_t nesting = 64;
};

// Errors: BadInput "NAME:LINE: what" for malformed text; Unsupported "NAME:LINE: unknown
// instruction ..." naming the spelling.
Result<Module> parse(std::string_view text, std::string_view name, const ParseLimits& limits = {});

// One canonical spelling of a module or function: parse(dump(m)) dumps the same.
std::string dump(const Module& module);
std::string dump(const Function& function);
// "add.rn.f32 %f1, %f2, %f3" as canonical text, and the mnemonic with modifiers alone
// ("add.rn.f32").
std::string spelling(const Instruction& instruction, const Function& function);
std::string mnemonic(const Instruction& instruction);

// Kernel parameter offsets as the driver lays them out (PTX ISA 5.2 .param: natural alignment, in
// order).
struct ParamPlace {
  uint32_t offset_bytes = 0, size_bytes = 0;
};
std::vector<ParamPlace> param_layout(const Function& entry);

}  // namespace ptxb::ptx
