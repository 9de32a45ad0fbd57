// Owns reading the words of compilers as data. They come from tools over hostile sources: evidence
// for people and models, bounded in number and length, without control bytes. Never a ground for a
// verdict.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/artifact.h"

namespace ptxb::build {

constexpr size_t kMaxDiagnostics = 100;
constexpr size_t kMaxMessageBytes = 1000;

// stdout + stderr of nvcc (cudafe++, host compiler, linker, ptxas), or of ptxas or g++ alone.
// Errors come first when the list is full. Paths inside the build room lose their folder.
std::vector<Diagnostic> parse_diagnostics(std::string_view text);

// What `ptxas -v` says of one entry function.
struct KernelUse {
  std::string name;  // mangled
  uint32_t registers = 0, spill_store_bytes = 0, spill_load_bytes = 0, stack_bytes = 0;
  uint32_t static_shared_bytes = 0, const_bytes = 0, barriers = 0;
};
std::vector<KernelUse> parse_kernel_use(std::string_view text);

// "Entry function 'f' uses too much shared data (0x20000 bytes, 0xc000 max)" and the like, as
// numbers.
struct Overuse {
  std::string kernel, resource;
  uint64_t used_bytes = 0, limit_bytes = 0;
};
std::vector<Overuse> parse_overuse(std::string_view text);

}  // namespace ptxb::build
