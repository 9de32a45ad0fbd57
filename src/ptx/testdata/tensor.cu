// Source of tensor_sm_90a.ptx and tensor_sm_100a.ptx: inline PTX as kernel authors write it, with block-scoped registers and
// repeated labels (nvcc -ptx -lineinfo). The bodies compute nothing useful.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <stdint.h>

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred P1;\n\t"
      "LAB_WAIT:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t"
      "@P1 bra DONE;\n\t"
      "bra LAB_WAIT;\n\t"
      "DONE:\n\t"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

struct __align__(64) Map {
  unsigned char bytes[128];
};

__global__ void __launch_bounds__(128) warp_level(const __nv_bfloat16* a, float* c) {
  __shared__ __align__(128) __nv_bfloat16 tile[64 * 64];
  const uint32_t base = shared_address(tile);
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(base + threadIdx.x * 16),
               "l"(a + threadIdx.x * 8));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(base), "l"(a), "r"(0));
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  uint32_t f[4], g[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3])
               : "r"(base));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2+64];"
               : "=r"(g[0]), "=r"(g[1])
               : "r"(base));
  float d[4] = {0, 0, 0, 0};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]), "r"(g[0]), "r"(g[1]));
  uint32_t leader;
  asm volatile(
      "{\n .reg .pred p;\n .reg .b32 r;\n elect.sync r|p, 0xFFFFFFFF;\n selp.u32 %0, 1, 0, p;\n}"
      : "=r"(leader));
  asm volatile("bar.sync %0, 128;" ::"r"(1));
  c[threadIdx.x] = d[0] + d[1] + d[2] + d[3] + float(leader);
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    copies(const __grid_constant__ Map map, const float* in, float* out) {
  __shared__ __align__(1024) float tile[1024];
  __shared__ __align__(8) uint64_t full, empty;
  const uint32_t base = shared_address(tile), bar = shared_address(&full);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(1));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;" ::"r"(shared_address(&empty)));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;");
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(8192));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(base),
        "l"(&map), "r"(0), "r"(64), "r"(bar), "h"((uint16_t)3)
        : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(base),
        "l"(in), "r"(4096), "r"(bar)
        : "memory");
  }
  wait(bar, 0);
  asm volatile(
      "{\n .reg .b32 remote;\n mapa.shared::cluster.u32 remote, %0, %1;\n"
      " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(
          shared_address(&empty)),
      "r"(1)
      : "memory");
  wait(bar, 1);
  tile[threadIdx.x] += 1.0f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                   &map),
               "r"(0), "r"(0), "r"(base)
               : "memory");
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 16;" ::"l"(out),
               "r"(base)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
  asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;");
}

#if __CUDA_ARCH_FEAT_SM90_ALL
__global__ void __launch_bounds__(256) warpgroup(uint64_t a, uint64_t b, float* out) {
  float d[4] = {0, 0, 0, 0};
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b), "r"(1));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
#endif

#if __CUDA_ARCH_FEAT_SM100_ALL
__global__ void __launch_bounds__(128) tensor_memory(uint64_t a, uint64_t b, float* out) {
  __shared__ uint32_t allocated;
  __shared__ __align__(8) uint64_t done;
  const uint32_t slot = shared_address(&allocated), bar = shared_address(&done);
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(slot));
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  const uint32_t tmem = allocated;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%5, %5, %5, %5}, p;\n}" ::"r"(tmem),
      "l"(a), "l"(b), "r"(0x8100490), "r"(1), "r"(0));
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar));
  wait(bar, 0);
  asm volatile("tcgen05.fence::after_thread_sync;");
  uint32_t r[4];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(tmem));
  asm volatile("tcgen05.wait::ld.sync.aligned;");
  asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(tmem), "l"(a));
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(tmem));
  out[threadIdx.x] = __uint_as_float(r[0] + r[1] + r[2] + r[3]);
}
#endif
