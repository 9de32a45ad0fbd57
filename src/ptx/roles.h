// Owns the match of an instruction's operands against the patterns of opcodes.def: arity, and what
// each one is (read, written). Knows operand kinds, not registers' types or widths.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptx/module.h"

namespace ptxb::ptx {

// One role an operand, in order; nullopt: no pattern of the opcode fits. Call has a shape of its
// own (module.h): empty.
std::optional<std::vector<Role>> operand_roles(const Instruction& instruction);

// "destination, source, source or ...": for messages.
std::string describe_operands(Opcode opcode);
std::string_view name(Role role);

}  // namespace ptxb::ptx
