// Owns the CPU backend: plans run in the emulator, outputs compared with the CPU reference. Never reports a time as speed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backend/backend.h"

namespace ptxb {

struct EmuSettings {
  int threads = 1;
  double flops_limit = 2e10;  // about 20 GFLOP: seconds on two cores (design of the emulator, section 3.1)
};

std::unique_ptr<Backend> make_emu_backend(const EmuSettings& settings);

}  // namespace ptxb
