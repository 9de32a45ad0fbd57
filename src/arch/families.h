// Owns the target-instruction families of each architecture: which PTX and SASS instructions count as using a feature.
// Housekeeping (fence, commit, wait, alloc, prefetch) belongs to no family: it never satisfies a requirement.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxb::arch {

struct Family {
  const char* name;   // "wgmma"
  const char* arch;   // "sm_90a", "" for any
  const char* what;   // one line for people
  bool matrix;        // its FLOPs count as the task's matrix work
  bool copy;          // its bytes count as the task's traffic
  std::vector<std::string> ptx_prefixes;   // of the mnemonic: "wgmma.mma_async"
  std::vector<std::string> sass_prefixes;  // of the opcode: "HGMMA"
};

const std::vector<Family>& families();
const Family* find_family(std::string_view name);
// The family of a PTX mnemonic ("wgmma.mma_async.sync.aligned...") or nullptr.
const Family* family_of_ptx(std::string_view mnemonic);

}  // namespace ptxb::arch
