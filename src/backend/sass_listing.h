// Owns the join of executed counts with a disassembly (text of nvdisasm -c): which machine
// instruction ran how often, and whether it is one that works or only looks like one. Never runs a
// tool.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/worker_jobs.h"
#include "model/launch_plan.h"
#include "model/outcome.h"

namespace ptxb {

struct SassInstruction {
  uint32_t offset_bytes = 0;
  std::string guard;     // "@!P0", "@UP1", ""
  std::string opcode;    // "HGMMA.64x256x16.F32.BF16"
  std::string operands;  // "R24, gdesc[UR12], R24, gsb0"
};
struct SassFunction {
  std::string name;
  std::vector<SassInstruction> instructions;
};

// Functions in the listing's order. Lines that are no instruction are skipped.
std::vector<SassFunction> parse_sass(std::string_view listing);

// An instruction that carries a family's name and does no work: a bare wgmma.commit_group becomes
// `HGMMA... RZ, gdesc[URZ], RZ, !UPT` (seen from ptxas 13.0 for sm_90a).
bool does_nothing(const SassInstruction& instruction);

// FLOPs of one warp's share of a matrix instruction, from the shape in its opcode; 0 for others and
// unknown shapes.
double flops_a_warp(std::string_view opcode);
// ".bf16", ".f16", ".tf32", ".e4m3" ...: the operand type of a matrix instruction in PTX's
// spelling, "" for others. SASS leaves f16 unsaid.
std::string operand_type_of_sass(std::string_view opcode);
// What one lane of a cp.async (LDGSTS) moves; 0 for others.
double bytes_a_thread(std::string_view opcode);
// Sets the bytes of tensor-map copies (UTMALDG, UTMASTG, UTMAREDG). Which map an instruction used
// is not in the listing: each counts as the smallest box among the plan's maps of its rank over
// inputs or scratch (loads) or outputs or scratch (stores).
void estimate_tma_bytes(const LaunchPlan& plan, std::vector<OpcodeCount>& counts);
// The family of arch/families.h by its SASS names, "" for none and for instructions that do
// nothing.
std::string family_of_sass(const SassInstruction& instruction);

// Counts summed by kernel and opcode; an instruction that does nothing keeps its operands in its
// name, and a matrix instruction gets its operand type in PTX's spelling: "HGMMA.64x256x16.F32.BF16
// (.bf16)". `unmatched` gets the counted addresses that the listing does not have: more than zero
// means another cubin ran.
std::vector<OpcodeCount> count_opcodes(const std::vector<SassFunction>& functions,
                                       const std::vector<SassCount>& counts, uint64_t& unmatched);

// The listing with "warps threads" before each instruction of the counted functions.
std::string annotate_sass(const std::vector<SassFunction>& functions,
                          const std::vector<SassCount>& counts);

}  // namespace ptxb
