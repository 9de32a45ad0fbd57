// Owns the names of the handlers that the decoder itself places: guards, branches, joins,
// counters, returns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/code.h"

namespace ptxb::emu {

Handler count_handler();           // x: counter, imm: instructions
Handler guard_handler();           // a: predicate, b: xor mask, n: instructions guarded, x: counter
Handler branch_handler();          // target
Handler branch_if_handler();       // a, b as guard; imm: join
Handler skip_if_handler();         // as branch_if; not an instruction of the program
Handler branch_indexed_handler();  // a: index slot, more: BranchTargets, imm: join
Handler join_handler();
Handler converge_all_handler();
Handler converge_mask_handler();  // a: member mask slot
Handler sync_warp_handler();      // a: member mask slot; lanes may come from different places
Handler exit_handler();
Handler return_handler();
Handler narrow_handler();  // d (u32) = low half of a (u64)
Handler widen_handler();   // d (u64) = zero-extended a (u32)
Handler nothing_handler();
Handler clock_handler(int width_bytes);  // x: ptx::Special

}  // namespace ptxb::emu
