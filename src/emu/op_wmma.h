// Owns the name of the wmma family's decoder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emu/decode.h"

namespace ptxb::emu {

bool decode_wmma(Decoder& d);

}  // namespace ptxb::emu
