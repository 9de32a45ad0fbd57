// Owns looking at other processes through /proc: who descends from whom, and what they use
// together. Never signals anybody.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/file.h"

namespace ptxb::os {

// All living descendants of `root`, itself left out. A tree that changes meanwhile is seen
// approximately.
std::vector<pid_t> descendants(pid_t root, uint64_t enough = 0);  // 0: all

struct TreeUse {
  uint64_t processes = 0;
  uint64_t resident_bytes =
      0;  // anonymous and shared memory; pages shared after a fork count for each process
};
// Stops looking once more than enough_processes are found (0: never).
TreeUse tree_use(pid_t root, uint64_t enough_processes = 0);

// Threads of all processes of one user, as RLIMIT_NPROC counts them.
uint64_t user_tasks(uid_t user);

// Sum of the sizes on disk of the files below `folder`; stops counting once over `enough_bytes` or
// at 100,000 entries (which counts as enough: a folder with so many is a flood by itself).
uint64_t folder_bytes(const Path& folder, uint64_t enough_bytes);

}  // namespace ptxb::os
