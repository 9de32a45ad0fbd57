// Owns the hooks of checked code.
// SPDX-License-Identifier: Apache-2.0
#include "emu/check_hooks.h"

namespace ptxb::emu {

void emit_access_check(Decoder&, Window, uint32_t, int64_t, uint32_t, Access) {}
void emit_matrix_check(Decoder&, uint32_t, int64_t, uint32_t, Access) {}
void emit_fence_check(Decoder&) {}

void emit_warp_sync_check(Decoder&) {}
void emit_async_copy_check(Decoder&, AsyncCopyCheck) {}
void emit_async_commit_check(Decoder&) {}
void emit_async_wait_check(Decoder&, uint32_t) {}

}  // namespace ptxb::emu
