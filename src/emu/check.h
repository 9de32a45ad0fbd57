// Owns the interface between execution and check mode. With no checker attached none of this is called on the hot path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/warp.h"

namespace ptxb::emu {

// A warp has no lanes left: barriers that counted on it are looked at again.
void warp_done(Warp& w);

}  // namespace ptxb::emu
