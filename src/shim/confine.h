// Owns the last lock of ptxbench-record: from here on this process starts threads only, no processes and no programs.
// Beside the sandbox, not instead of it. Linux on x86-64; elsewhere it does nothing and says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace ptxb::shim {

// fork, vfork, clone without CLONE_THREAD and execve give EPERM from now on; clone3 gives ENOSYS, so that libc uses clone.
// Error: Unsupported where the system has no seccomp filters.
Result<void> deny_processes();

}  // namespace ptxb::shim
