// Owns the exact instruction counts of a run: from counters of blocks to mnemonics, FLOPs and
// bytes. Never executes.
// SPDX-License-Identifier: Apache-2.0
#include "arch/families.h"
#include "emu/launch.h"
#include "ptx/parse.h"

namespace ptxb::emu {
namespace {

using ptx::Opcode;

// 2*M*N*K of one matrix instruction as one warp issues it.
double flops_of(const ptx::Instruction& in) {
  bool warp = in.opcode == Opcode::Mma || in.opcode == Opcode::WmmaMma ||
              in.opcode == Opcode::MmaSp || in.opcode == Opcode::MmaSpOrderedMetadata;
  bool warpgroup = in.opcode == Opcode::WgmmaMmaAsync || in.opcode == Opcode::WgmmaMmaAsyncSp;
  if (!warp && !warpgroup) return 0;
  for (ptx::Modifier m : in.modifiers) {
    auto shape = ptx::matrix_shape(m);
    if (!shape) continue;
    return 2.0 * shape->m * shape->n * shape->k / (warpgroup ? 4 : 1);
  }
  return 0;
}

// Bytes that one lane of cp.async moves. Bulk copies report theirs themselves (their size is data).
double bytes_of(const ptx::Instruction& in) {
  if (in.opcode != Opcode::CpAsync || in.operands.size() < 3) return 0;
  return in.operands[2].kind == ptx::Operand::Kind::Immediate
             ? static_cast<double>(in.operands[2].bits)
             : 0;
}

}  // namespace

void add_counts(CountTable& table, const Launch& launch, const std::vector<Counter>& counters) {
  for (size_t c = 0; c < counters.size(); ++c) {
    if (counters[c].warps == 0) continue;
    const CounterPlace& place = launch.kernel.counters[c];
    for (uint32_t origin : place.origins) {
      const ptx::Instruction& in = place.code->function->body[origin];
      std::string mnemonic = ptx::mnemonic(in);
      OpcodeCount& count = table[{launch.spec.kernel, mnemonic}];
      if (count.opcode.empty()) {
        count.kernel = launch.spec.kernel;
        count.opcode = mnemonic;
        const arch::Family* family = arch::family_of_ptx(mnemonic);
        count.family = family ? family->name : "";
      }
      count.warps += counters[c].warps;
      count.threads += counters[c].lanes;
      count.flops += flops_of(in) * static_cast<double>(counters[c].warps);
      count.bytes += bytes_of(in) * static_cast<double>(counters[c].lanes);
    }
  }
  for (const auto& [place, bytes] : launch.run.bulk_bytes)
    table[{launch.spec.kernel, ptx::mnemonic(place.first->function->body[place.second])}].bytes +=
        bytes;
}

}  // namespace ptxb::emu
