// Owns calling a candidate's entry: the plain binding's trampoline, and tvm-ffi's packed
// convention. Runs inside ptxbench-record only, in the sandbox.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "shim/recording.h"

namespace ptxb::shim {

// How a call ended when it came back: "" well, else the text of what it threw or raised.
using Entry = std::function<std::string(int call)>;

// `library` is the candidate's handle of dlopen. Error NotFound: no entry; the message says what is
// missing.
Result<Entry> find_plain_entry(void* library, const Request& request, void* stream);
Result<Entry> find_tvm_entry(void* library, void* tvm_library, const Request& request,
                             void* stream);

}  // namespace ptxb::shim
