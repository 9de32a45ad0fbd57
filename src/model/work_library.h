// Owns the names of libraries that would do a task's work in the candidate's place. Never looks at a file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ptxb {

// Of a library's file ("libcublas.so.13", also with folders before it) or of one of its functions ("cublasGemmEx").
bool is_work_library(std::string_view name);

}  // namespace ptxb
