// Owns check mode's view of asynchronous work: mbarrier edges, bulk copies, wgmma in flight. Never moves data.
// SPDX-License-Identifier: Apache-2.0
#include "emu/async.h"

namespace ptxb::emu {

void check_mbarrier_init(Warp&, const Insn*, uint32_t, const MbarrierPlace&) {}
void check_mbarrier_arrive(Warp&, const MbarrierPlace&) {}
void check_mbarrier_wait(Warp&, const MbarrierPlace&) {}
void check_mbarrier_phase(const MbarrierPlace&) {}
void check_bulk_write(Warp&, const Insn*, uint32_t, Cta&, uint32_t, uint32_t) {}
void check_bulk_read(Warp&, const Insn*, uint32_t, uint32_t, uint32_t) {}
void check_bulk_global(Warp&, const Insn*, uint32_t, uint64_t, uint32_t, Access) {}
void check_bulk_commit(Warp&) {}
void check_bulk_wait(Warp&, uint32_t, bool) {}
void check_wgmma(Warp&, const Insn*, const uint64_t*, uint64_t, const arith::WgmmaForm&) {}
void check_wgmma_fence(Warp&, const Insn*) {}
void check_wgmma_commit(Warp&, const Insn*) {}
void check_wgmma_wait(Warp&, const Insn*, uint32_t) {}

}  // namespace ptxb::emu
