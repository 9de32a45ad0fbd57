// Owns the C++ spelling of a task's entry: the generated ptxbench_task.h that a plain candidate is
// compiled against. Never decides what is passed; shim/entry.cc follows the same order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/task.h"

namespace ptxb::shim {

// "void run(const __nv_bfloat16* A, ..., int64_t M, ..., cudaStream_t stream)": inputs in
// definition order (tensors as const pointers, scalars by value), outputs, all axes in definition
// order, the stream last.
std::string entry_signature(const Definition& definition);
// The header's text: includes, `extern "C"` declaration (a differing definition is a compile
// error), and ptxbench_call, the trampoline through which the recorder calls `run` with any
// argument types.
std::string task_header(const Definition& definition);

}  // namespace ptxb::shim
