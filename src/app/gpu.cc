// Finds the GPU and its worker program; without them says why.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "app/locate.h"
#include "app/session.h"

namespace ptxb::app {

GpuBackend open_gpu(const Options&) {
  std::error_code fault;
  if (!std::filesystem::exists("/dev/nvidiactl", fault)) return {nullptr, "no GPU here: /dev/nvidiactl does not exist"};
  if (!std::filesystem::exists(program_folder() / "ptxbench-worker", fault)) {
    return {nullptr, "no GPU worker beside " + program_folder().string() + ": it is built where CUDA headers are found"};
  }
  return {nullptr, "the GPU backend is not linked into this build"};
}

}  // namespace ptxb::app
