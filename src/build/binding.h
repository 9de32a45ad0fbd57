// Owns reading a candidate's text before it is compiled: is it text at all, and which entry does it
// offer. Never decides what only the compiled library can prove: whether the entry exists is read
// from its symbol table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/artifact.h"

namespace ptxb::build {

// Error BadInput "NAME: the source is empty" | "NAME: byte 12 is NUL: ..." | "... is not UTF-8" |
// "... larger than ...".
Result<void> check_source(std::string_view source, std::string_view name, uint64_t limit_bytes);

// What the text offers outside comments, literals, macros and #if 0. `certain`: not below any other
// #if.
struct EntrySearch {
  struct Entry {
    int count = 0;
    bool certain = false;
    int line = 0;  // 1-based, of the first
  };
  Entry plain;    // definitions of run(...) at file scope or below extern "C"
  Entry tvm_ffi;  // TVM_FFI_DLL_EXPORT_TYPED_FUNC(...)
};
EntrySearch find_entries(std::string_view source);

// By the file's name and text: ".ptx" is Ptx, else what find_entries says; nullopt when both are
// certain (ambiguous). A text without any entry is Plain: the build will say that the entry is
// missing.
std::optional<Binding> detect_binding(std::string_view file_name, std::string_view source);

}  // namespace ptxb::build
