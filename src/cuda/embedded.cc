// Owns the embedded cubins: the assembler includes the files that nvcc wrote (PTXB_CUBIN_*, from
// CMake).
// SPDX-License-Identifier: Apache-2.0
#include "cuda/embedded.h"

#define PTXB_INCLUDE_BYTES(symbol, path)                                                           \
  asm(".section .rodata\n.balign 64\n.global " #symbol "_begin\n.global " #symbol "_end\n" #symbol \
      "_begin:\n.incbin \"" path "\"\n" #symbol "_end:\n.byte 0\n.previous\n");                    \
  extern "C" const char symbol##_begin[];                                                          \
  extern "C" const char symbol##_end[]

PTXB_INCLUDE_BYTES(ptxb_kernels_sm_90a, PTXB_CUBIN_SM_90A);
PTXB_INCLUDE_BYTES(ptxb_kernels_sm_100a, PTXB_CUBIN_SM_100A);

namespace ptxb::cuda {

std::string_view embedded_kernels(std::string_view arch) {
  const auto between = [](const char* begin, const char* end) {
    return std::string_view(begin, static_cast<size_t>(end - begin));
  };
  if (arch == "sm_90a") return between(ptxb_kernels_sm_90a_begin, ptxb_kernels_sm_90a_end);
  if (arch == "sm_100a") return between(ptxb_kernels_sm_100a_begin, ptxb_kernels_sm_100a_end);
  return {};
}

}  // namespace ptxb::cuda
