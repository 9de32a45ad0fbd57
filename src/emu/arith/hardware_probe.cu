// Runs the instructions of hardware_cases.def on the GPU at hand and prints the hash of what each
// returned. Build and run:
//   nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a -I src src/emu/arith/hardware_probe.cu -o
//   probe && ./probe
// Never part of the normal build; arith_test replays the recorded hashes without a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <vector>

#include "emu/arith/hardware_cases.h"

namespace {

using namespace ptxb::emu::arith::hardware;
extern __shared__ __align__(1024) uint32_t shared_words[];

template <int index>
__device__ void mma(const uint32_t* a, const uint32_t* b, uint32_t* c);

#define MMA_4_2_4(ptx)                                                                       \
  asm volatile("mma.sync.aligned." ptx " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" \
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define MMA_2_1_4(ptx)                                                              \
  asm volatile("mma.sync.aligned." ptx " {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};" \
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                     \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]))
#define MMA_4_2_2(ptx)                                                           \
  asm volatile("mma.sync.aligned." ptx " {%0,%1},{%2,%3,%4,%5},{%6,%7},{%0,%1};" \
               : "+r"(c[0]), "+r"(c[1])                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define MMA_2_1_2(ptx)                                                  \
  asm volatile("mma.sync.aligned." ptx " {%0,%1},{%2,%3},{%4},{%0,%1};" \
               : "+r"(c[0]), "+r"(c[1])                                 \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]))
#define MMA_1_1_2(ptx)                                               \
  asm volatile("mma.sync.aligned." ptx " {%0,%1},{%2},{%3},{%0,%1};" \
               : "+r"(c[0]), "+r"(c[1])                              \
               : "r"(a[0]), "r"(b[0]))

#define MMA_CASE(index, ptx, ra, rb, rc, a_element, b_element, accumulator, hash) \
  template <>                                                                     \
  __device__ void mma<index>(const uint32_t* a, const uint32_t* b, uint32_t* c) { \
    MMA_##ra##_##rb##_##rc(ptx);                                                  \
  }
#define WGMMA_CASE(index, ptx, immediates, rd, a, b, accumulator, hash)
#define LAYOUT_CASE(index, hash)
#include "emu/arith/hardware_cases.def"
#undef MMA_CASE
#undef WGMMA_CASE

template <int index>
__global__ void mma_kernel(const MmaOperandRegisters* in, uint32_t* out) {
  const MmaOperandRegisters& r = in[blockIdx.x];
  uint32_t a[4], b[2], c[4];
  for (int i = 0; i < 4; ++i) a[i] = r.a[i][threadIdx.x];
  for (int i = 0; i < 2; ++i) b[i] = r.b[i][threadIdx.x];
  for (int i = 0; i < 4; ++i) c[i] = r.c[i][threadIdx.x];
  mma<index>(a, b, c);
  for (int i = 0; i < 4; ++i) out[(blockIdx.x * 4 + i) * 32 + threadIdx.x] = c[i];
}

template <int index>
__device__ void wgmma(uint32_t* d, uint64_t a, uint64_t b, uint32_t keep);

#define WGMMA_SEQUENCE(keep, instruction)                                   \
  "{.reg .pred p; setp.ne.b32 p," keep                                      \
  ",0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned." instruction \
  "; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
#define WGMMA_8(ptx, immediates)                                                          \
  asm volatile(WGMMA_SEQUENCE("%10", ptx " {%0,%1,%2,%3,%4,%5,%6,%7},%8,%9,p" immediates) \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]),  \
                 "+r"(d[6]), "+r"(d[7])                                                   \
               : "l"(a), "l"(b), "r"(keep)                                                \
               : "memory")
#define WGMMA_4(ptx, immediates)                                             \
  asm volatile(WGMMA_SEQUENCE("%6", ptx " {%0,%1,%2,%3},%4,%5,p" immediates) \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])              \
               : "l"(a), "l"(b), "r"(keep)                                   \
               : "memory")

#define MMA_CASE(index, ptx, ra, rb, rc, a, b, accumulator, hash)
#define WGMMA_CASE(index, ptx, immediates, rd, a_element, b_element, accumulator, hash) \
  template <>                                                                           \
  __device__ void wgmma<index>(uint32_t * d, uint64_t a, uint64_t b, uint32_t keep) {   \
    WGMMA_##rd(ptx, immediates);                                                        \
  }
#include "emu/arith/hardware_cases.def"
#undef MMA_CASE
#undef WGMMA_CASE

__device__ uint64_t descriptor(uint32_t address, uint32_t leading_bytes, uint32_t stride_bytes) {
  return uint64_t{(address & 0x3ffff) >> 4} | (uint64_t{leading_bytes >> 4} << 16) |
         (uint64_t{stride_bytes >> 4} << 32);
}

template <int index>
__global__ void wgmma_kernel(const WgmmaOperands* in, uint32_t* out) {
  const WgmmaOperands& w = in[blockIdx.x];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < 640; i += 128) shared_words[i] = w.image[i];
  uint32_t d[8];
  for (int i = 0; i < 8; ++i) d[i] = w.d[warp * 8 + i][lane];
  asm volatile("fence.proxy.async;");
  __syncthreads();
  uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(shared_words));
  wgmma<index>(d, descriptor(base, 128, 256), descriptor(base + 2048, 128, 256),
               blockIdx.x % 16 == 15 ? 0 : 1);
  for (int i = 0; i < 8; ++i) out[(blockIdx.x * 32 + warp * 8 + i) * 32 + lane] = d[i];
}

template <int trans_a, int trans_b>
__global__ void layout_kernel(const uint32_t* image, const uint64_t* descriptors, uint32_t* out) {
  for (uint32_t i = threadIdx.x; i < kLayoutBytes / 4; i += 128) shared_words[i] = image[i];
  asm volatile("fence.proxy.async;");
  __syncthreads();
  uint64_t a = descriptors[blockIdx.x * 2], b = descriptors[blockIdx.x * 2 + 1];
  uint32_t d[16];
  asm volatile(
      WGMMA_SEQUENCE(
          "0",
          "m64n32k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},"
          "%16,%17,p,1,1,%18,%19")
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]), "=r"(d[6]),
        "=r"(d[7]), "=r"(d[8]), "=r"(d[9]), "=r"(d[10]), "=r"(d[11]), "=r"(d[12]), "=r"(d[13]),
        "=r"(d[14]), "=r"(d[15])
      : "l"(a), "l"(b), "n"(trans_a), "n"(trans_b)
      : "memory");
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 16; ++i) out[(blockIdx.x * 64 + warp * 16 + i) * 32 + lane] = d[i];
}

// Device copies of `in`, a launch, the results.
template <class In, class Launch>
std::vector<uint32_t> on_device(const std::vector<In>& in, size_t results, Launch launch) {
  In* device_in = nullptr;
  uint32_t* device_out = nullptr;
  std::vector<uint32_t> out(results);
  cudaMalloc(&device_in, in.size() * sizeof(In));
  cudaMalloc(&device_out, results * 4);
  cudaMemcpy(device_in, in.data(), in.size() * sizeof(In), cudaMemcpyHostToDevice);
  launch(device_in, device_out);
  cudaError_t error = cudaMemcpy(out.data(), device_out, results * 4, cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) std::printf("error: %s\n", cudaGetErrorString(error));
  cudaFree(device_in);
  cudaFree(device_out);
  return out;
}

template <int index>
void probe_mma(int registers, Element a, Element b, Accumulator accumulator) {
  std::vector<MmaOperandRegisters> in(kMmaRuns);
  for (int run = 0; run < kMmaRuns; ++run) fill_mma(in[run], index, run, a, b, accumulator);
  std::vector<uint32_t> out = on_device(
      in, size_t{kMmaRuns} * 128,
      [](MmaOperandRegisters* i, uint32_t* o) { mma_kernel<index><<<kMmaRuns, 32>>>(i, o); });
  uint64_t hash = kHashStart;
  for (int run = 0; run < kMmaRuns; ++run) hash = hash_words(hash, &out[run * 128], 32 * registers);
  std::printf("MMA_CASE(%d) 0x%016llxu\n", index, static_cast<unsigned long long>(hash));
}

template <int index>
void probe_wgmma(int registers, Element a, Element b, Accumulator accumulator) {
  std::vector<WgmmaOperands> in(kWgmmaRuns);
  for (int run = 0; run < kWgmmaRuns; ++run) fill_wgmma(in[run], index, run, a, b, accumulator);
  std::vector<uint32_t> out = on_device(
      in, size_t{kWgmmaRuns} * 1024,
      [](WgmmaOperands* i, uint32_t* o) { wgmma_kernel<index><<<kWgmmaRuns, 128, 8192>>>(i, o); });
  uint64_t hash = kHashStart;
  for (int run = 0; run < kWgmmaRuns; ++run) {
    for (int warp = 0; warp < 4; ++warp)
      hash = hash_words(hash, &out[run * 1024 + warp * 256], 32 * registers);
  }
  std::printf("WGMMA_CASE(%d) 0x%016llxu\n", index, static_cast<unsigned long long>(hash));
}

template <int index>
void probe_layout() {
  std::vector<uint16_t> halves = layout_image();
  std::vector<uint32_t> image(kLayoutBytes / 4);
  std::memcpy(image.data(), halves.data(), kLayoutBytes);
  std::vector<uint64_t> descriptors;
  for (int run = 0; run < kLayoutRuns; ++run) {
    LayoutOperands o = layout_operands(index, run);
    descriptors.push_back(encode(o.a, kLayoutWindow));
    descriptors.push_back(encode(o.b, kLayoutWindow));
  }
  uint32_t* device_image = nullptr;
  cudaMalloc(&device_image, kLayoutBytes);
  cudaMemcpy(device_image, image.data(), kLayoutBytes, cudaMemcpyHostToDevice);
  auto kernel = layout_kernel<index & 1, index / 2>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kLayoutBytes);
  std::vector<uint32_t> out =
      on_device(descriptors, size_t{kLayoutRuns} * 2048, [&](uint64_t* d, uint32_t* o) {
        kernel<<<kLayoutRuns, 128, kLayoutBytes>>>(device_image, d, o);
      });
  cudaFree(device_image);
  std::printf("LAYOUT_CASE(%d) 0x%016llxu\n", index,
              static_cast<unsigned long long>(
                  hash_words(kHashStart, out.data(), static_cast<int>(out.size()))));
}

}  // namespace

int main() {
#undef LAYOUT_CASE
#define MMA_CASE(index, ptx, ra, rb, rc, a, b, accumulator, hash) \
  probe_mma<index>(rc, Element::a, Element::b, Accumulator::accumulator);
#define WGMMA_CASE(index, ptx, immediates, rd, a, b, accumulator, hash) \
  probe_wgmma<index>(rd, Element::a, Element::b, Accumulator::accumulator);
#define LAYOUT_CASE(index, hash) probe_layout<index>();
#include "emu/arith/hardware_cases.def"
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
