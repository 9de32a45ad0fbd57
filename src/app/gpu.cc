// Finds the GPU and its worker program; without them says why.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "app/locate.h"
#include "app/session.h"
#include "backend/cuda_backend.h"

namespace ptxb::app {

GpuBackend open_gpu(const Options&) {
  std::error_code fault;
  if (!std::filesystem::exists("/dev/nvidiactl", fault)) return {nullptr, "no GPU here: /dev/nvidiactl does not exist"};
  CudaSettings settings;
  settings.worker = (program_folder() / "ptxbench-worker").string();
  if (!std::filesystem::exists(settings.worker, fault)) {
    return {nullptr, "no GPU worker beside " + program_folder().string() + ": it is built where CUDA headers are found"};
  }
  if (auto toolchain = build::find_toolchain(toolchain_query()); toolchain && toolchain->nvdisasm) {
    settings.nvdisasm = toolchain->nvdisasm->string();
  }
  auto backend = CudaBackend::open(settings);
  if (!backend) return {nullptr, backend.error().message};
  return {*std::move(backend), ""};
}

}  // namespace ptxb::app
