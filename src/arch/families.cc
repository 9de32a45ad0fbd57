// SPDX-License-Identifier: Apache-2.0
#include "arch/families.h"

namespace ptxb::arch {

const std::vector<Family>& families() {
  // PTX prefixes match whole dot-separated words of the mnemonic. SASS names: cuobjdump of sm_90a and sm_100a code.
  static const std::vector<Family> table = {
      {"wgmma", "sm_90a", "warpgroup matrix multiply", true, false, {"wgmma.mma_async"}, {"HGMMA", "QGMMA", "IGMMA", "BGMMA"}},
      {"tcgen05_mma", "sm_100a", "fifth-generation tensor core multiply", true, false, {"tcgen05.mma"},
       {"UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA", "UTCMXQMMA"}},
      {"mma_sync", "", "warp matrix multiply", true, false, {"mma.sync", "wmma.mma"},
       {"HMMA", "IMMA", "DMMA", "QMMA", "BMMA"}},
      {"tma", "", "tensor memory accelerator copies", false, true,
       {"cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor"}, {"UTMALDG", "UTMASTG", "UTMAREDG"}},
      {"bulk_copy", "", "bulk asynchronous copies without a tensor map", false, true,
       {"cp.async.bulk.shared", "cp.async.bulk.global", "cp.reduce.async.bulk"}, {"UBLKCP", "UBLKRED"}},
      {"cp_async", "", "asynchronous copies by threads", false, true, {"cp.async.ca", "cp.async.cg"}, {"LDGSTS"}},
      {"tmem", "sm_100a", "tensor memory loads and stores", false, false, {"tcgen05.ld", "tcgen05.st"}, {"LDTM", "STTM"}},
      {"mbarrier", "", "shared-memory barrier objects", false, false,
       {"mbarrier.arrive", "mbarrier.try_wait", "mbarrier.test_wait"}, {"SYNCS"}},
      {"ldmatrix", "", "matrix fragment loads", false, false, {"ldmatrix"}, {"LDSM"}},
      {"stmatrix", "", "matrix fragment stores", false, false, {"stmatrix"}, {"STSM"}},
      {"setmaxnreg", "", "register reallocation between warpgroups", false, false, {"setmaxnreg"}, {"USETMAXREG"}},
      {"cluster_barrier", "", "cluster-wide barriers", false, false, {"barrier.cluster"}, {"UCGABAR_ARV", "UCGABAR_WAIT"}},
  };
  return table;
}

const Family* find_family(std::string_view name) {
  for (const Family& family : families()) {
    if (name == family.name) return &family;
  }
  return nullptr;
}

const Family* family_of_ptx(std::string_view mnemonic) {
  for (const Family& family : families()) {
    for (const std::string& prefix : family.ptx_prefixes) {
      if (mnemonic.starts_with(prefix) && (mnemonic.size() == prefix.size() || mnemonic[prefix.size()] == '.' ||
                                           mnemonic[prefix.size()] == ':')) {
        return &family;
      }
    }
  }
  return nullptr;
}

}  // namespace ptxb::arch
