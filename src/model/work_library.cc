// SPDX-License-Identifier: Apache-2.0
#include "model/work_library.h"

#include <algorithm>
#include <array>

namespace ptxb {

bool is_work_library(std::string_view name) {
  constexpr std::array<std::string_view, 12> kPrefixes = {
      "cublas", "cudnn",     "cusparse", "cusolver", "cufft", "curand",
      "nvrtc",  "nvJitLink", "cutensor", "nccl",     "torch", "c10"};
  name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  if (name.starts_with("lib")) name.remove_prefix(3);
  return name.starts_with("nvjitlink") ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace ptxb
