// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "arch/chip.h"
#include "arch/families.h"

namespace ptxb::arch {
namespace {

TEST(Families, HousekeepingBelongsToNoFamily) {
  for (const char* mnemonic :
       {"wgmma.fence.sync.aligned", "wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32", "tcgen05.commit.cta_group::1.b64",
        "cp.async.bulk.prefetch.tensor.2d.L2.global", "cp.async.commit_group", "cp.async.bulk.commit_group",
        "prefetch.tensormap", "mbarrier.init.shared.b64", "fma.rn.f32"}) {
    EXPECT_EQ(family_of_ptx(mnemonic), nullptr) << mnemonic;
  }
}

TEST(Families, WorkInstructionsAreFound) {
  EXPECT_STREQ(family_of_ptx("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16")->name, "wgmma");
  EXPECT_STREQ(family_of_ptx("tcgen05.mma.cta_group::1.kind::f16")->name, "tcgen05_mma");
  EXPECT_STREQ(family_of_ptx("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")->name, "mma_sync");
  EXPECT_STREQ(family_of_ptx("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes")->name, "tma");
  EXPECT_STREQ(family_of_ptx("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes")->name, "bulk_copy");
  EXPECT_STREQ(family_of_ptx("cp.async.cg.shared.global")->name, "cp_async");
}

TEST(Chips, EveryArchitectureHasADefault) {
  ASSERT_NE(default_chip("sm_90a"), nullptr);
  ASSERT_NE(default_chip("sm_100a"), nullptr);
  EXPECT_EQ(default_chip("sm_80"), nullptr);
  EXPECT_EQ(compute_of("sm_90a"), "compute_90a");
}

}  // namespace
}  // namespace ptxb::arch
