// Owns what a build yields: a candidate's text, its host library, PTX and cubin, and the compiler's words as data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/types.h"

namespace ptxb {

enum class Binding { Plain, TvmFfi, Ptx };
std::string_view name(Binding binding);

struct Candidate {
  std::string file_name;    // for messages: "mma_sync.cu"
  std::string source;       // CUDA C++ or PTX text
  std::string launch_toml;  // ptx binding only: text of the launch.toml beside the file
  Binding binding = Binding::Plain;
};

struct Diagnostic {
  enum class Severity { Note, Advice, Warning, Error } severity = Severity::Error;
  std::string tool;  // "nvcc", "cudafe++", "ptxas", "host"
  std::string file;
  int line = 0;      // 1-based, 0 unknown
  std::string code;  // e.g. "C7517", "177-D", ""
  std::string message;
};

struct KernelParam {
  uint32_t offset_bytes = 0, size_bytes = 0;
};

std::string_view name(Diagnostic::Severity severity);

// What ptxas and the PTX say of one kernel.
struct KernelInfo {
  std::string name;  // mangled
  std::vector<KernelParam> params;
  uint32_t registers = 0;
  uint32_t spill_store_bytes = 0, spill_load_bytes = 0;
  uint32_t static_shared_bytes = 0, const_bytes = 0, stack_bytes = 0;
  uint32_t max_threads = 1024;  // of .maxntid / .reqntid
  Dim3 required_cluster{0, 0, 0};  // .reqnctapercluster; 0,0,0: none
};

// A module-scope variable that the host may address (__device__, __constant__).
struct SymbolInfo {
  std::string name;
  uint64_t size_bytes = 0;
  bool constant = false;
};

struct Artifact {
  std::string source_sha256;
  std::string arch;          // "sm_90a"
  Binding binding = Binding::Plain;
  std::string folder;        // holds candidate.so, candidate.ptx, candidate.cubin; owned by the build cache
  std::string launch_toml;   // ptx binding only: how its kernels are launched
  std::string host_library;  // path of candidate.so; empty for the ptx binding
  std::string ptx;           // text, with .loc lines
  std::string cubin;         // bytes
  std::string cubin_sha256;
  std::vector<KernelInfo> kernels;
  std::vector<SymbolInfo> symbols;
  std::vector<Diagnostic> diagnostics;  // warnings and advisories of a successful build
  std::vector<std::string> tools;       // "nvcc 13.0.88", "ptxas ...", "g++ ..."
};

}  // namespace ptxb
