// Owns the functions that PTX may call without a definition: vprintf and __assertfail. Everything
// else is refused by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/decode.h"

namespace ptxb::emu {

// The call being decoded is of `function`, which the module only declares.
bool decode_device_function(Decoder& d, const ptx::Function& function);

}  // namespace ptxb::emu
