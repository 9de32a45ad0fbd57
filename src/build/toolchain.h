// Owns finding the compilers: one CUDA toolkit (system or wheels), the host compiler, tvm-ffi. The
// only place that knows where they are. Never reads the environment (the caller passes what it
// found there), never installs anything.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace ptxb::build {

enum class SystemToolkit { Use, Ignore };

// Where to look, in this order: forced_home, cuda_home, /usr/local/cuda, nvcc on path, then the
// wheels below venvs.
struct ToolchainQuery {
  std::optional<Path> forced_home;            // PTXBENCH_CUDA_HOME: this one or an error
  std::optional<Path> cuda_home;              // CUDA_HOME
  std::string path = "/usr/bin:/bin";         // PATH
  std::vector<Path> venvs;                    // Python virtual environments: <project>/.venv
  SystemToolkit system = SystemToolkit::Use;  // Ignore: PTXBENCH_HIDE_SYSTEM_CUDA
};

struct Toolchain {
  Path home;  // holds bin/, include/, lib/ or lib64/, nvvm/; no symbolic link
  Path nvcc, ptxas;
  std::optional<Path> nvdisasm, cuobjdump;  // may come from a wheel beside a system toolkit
  Path include;                             // cuda_runtime.h
  Path runtime_library;                     // libcudart.so.N
  Path host_compiler;                       // g++
  std::optional<Path> tvm_ffi;              // folder with include/ and lib/libtvm_ffi.so
  std::string version;                      // "13.0.88"
  std::vector<std::string> archs;  // what nvcc can target, without suffix: "sm_90", "sm_100"
  std::vector<std::string>
      tools;  // for the record: "nvcc 13.0.88", "ptxas 13.0.88", "g++ 12.2.0", "tvm-ffi 0.1.15"
  std::string identity;  // changes whenever any of them changes: part of every cache key
};

// Error NotFound: no toolkit; the message lists where it was looked for and what to install.
// Harness: a toolkit that is there but broken or older than 12.8 (the first with sm_100a).
Result<Toolchain> find_toolchain(const ToolchainQuery& query);

// Whether this toolkit compiles for "sm_90a": the number is known to it, a suffix a or f only from
// sm_90 on.
bool supports(const Toolchain& toolchain, std::string_view arch);

}  // namespace ptxb::build
