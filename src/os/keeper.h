// Owns the two processes between ours and a program: the keeper, which ends every descendant, and
// the child before exec. Runs between fork and exec of a threaded program: only system calls, no
// allocation, no locks, no standard library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ptxb::os {

// Everything is prepared by the parent before fork. Pointers stay valid because the keeper owns a
// copy of the memory.
struct KeeperOrders {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  const char* folder = nullptr;  // nullptr: stay
  int lifeline = -1;             // read end; its closing means: kill everything
  int report = -1;               // write end, for KeeperReport of the keeper
  int exec_report = -1;  // write end, closed by a successful exec; a KeeperReport Failed otherwise
  // sources[i] becomes descriptor targets[i] of the program; targets rise; the first three are 0,
  // 1, 2.
  const int* sources = nullptr;
  const int* targets = nullptr;
  size_t descriptor_count = 0;
  struct Limit {
    int resource = 0;
    rlim_t value = 0;
  };
  const Limit* limits = nullptr;
  size_t limit_count = 0;
  const int* cgroup_procs = nullptr;
  size_t cgroup_count = 0;
  const void* filter = nullptr;  // sock_filter array
  size_t filter_bytes = 0;
};

// `report` gets Started and, at the end, Ended; `exec_report` gets Failed or nothing.
struct KeeperReport {
  enum class Kind : int32_t { Started, Failed, Ended } kind = Kind::Started;
  // Which call failed, in the child or the keeper.
  enum class Step : int32_t {
    None,
    Fork,
    Folder,
    Descriptors,
    Limits,
    Cgroup,
    Filter,
    Exec
  } step = Step::None;
  int32_t error = 0;        // errno of Failed
  int32_t pid = 0;          // of the child
  int32_t wait_status = 0;  // of Ended
  int32_t killed = 0;       // Ended because the lifeline closed
  double cpu_s = 0;         // of Ended: child and all reaped descendants
};

// The life of the keeper process; called right after fork in the new process, with all signals
// blocked.
[[noreturn]] void keep(const KeeperOrders& orders);

}  // namespace ptxb::os
