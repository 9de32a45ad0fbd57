// Owns short-lived control groups (v1 or v2) that bound a process tree's memory and process count.
// Never changes limits of a group it did not make, never enables controllers, never moves other
// processes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/subprocess.h"

namespace ptxb::os {

// Where groups can be made on this machine.
struct CgroupSite {
  enum class Version { V1, V2 };
  Version version = Version::V2;
  Path folder;
  bool memory = false, pids = false;
};

struct CgroupSearch {
  std::vector<CgroupSite> sites;             // together they give what there is; empty: nothing
  std::string memory_missing, pids_missing;  // why, in words; empty when found
};
// Each site was proven by making and removing a group.
CgroupSearch find_cgroups();

// One group per site; removed by the destructor, when the processes in it are gone.
class Cgroup {
 public:
  // 0: no limit.
  static Result<Cgroup> make(const std::vector<CgroupSite>& sites, uint64_t memory_bytes,
                             uint64_t processes);
  Cgroup(Cgroup&&) noexcept = default;
  Cgroup& operator=(Cgroup&&) = delete;
  ~Cgroup();
  // Open cgroup.procs files for Confinement::cgroup_procs.
  std::vector<int> procs() const;
  bool ran_out_of_memory() const;     // the kernel killed a member
  bool ran_out_of_processes() const;  // a fork was refused

 private:
  struct Group {
    CgroupSite site;
    Path folder;
    Descriptor procs;
  };
  Cgroup() = default;
  std::vector<Group> groups_;
};

}  // namespace ptxb::os
