// Owns the system call filter for untrusted commands: an allow-list, everything else is refused
// with EPERM. Never installs it: that is done just before exec (keeper.cc) or by bubblewrap.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace ptxb::os {

// The compiled BPF program (an array of sock_filter) for this machine's architecture. The only door
// to libseccomp.
Result<std::string> compile_filter();

}  // namespace ptxb::os
