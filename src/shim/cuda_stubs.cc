// Every driver function that no other file defines: calling it ends the recording with its name.
// Weak, so that a real definition wins at link time; the argument lists do not matter, nothing
// returns.
// SPDX-License-Identifier: Apache-2.0
#include "shim/recorder.h"

#define PTXB_NAME(name) \
  extern "C" __attribute__((weak)) int name() { ptxb::shim::Recorder::get().unsupported(#name); }
#include "shim/cuda_names.def"
#undef PTXB_NAME
