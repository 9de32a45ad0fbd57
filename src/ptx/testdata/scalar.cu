// Source of scalar_sm_90a.ptx and scalar_sm_100a.ptx: what ordinary CUDA C++ turns into (nvcc -ptx -lineinfo).
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdio.h>

struct Pair {
  float a;
  int b;
};

__constant__ float kWeights[4] = {1.0f, -2.5f, 0.0f, 1e-7f};
__device__ int counters[3] = {7, -1, 3};
__device__ double scale = 0.1;
__device__ int* pointer_table[2] = {&counters[1], nullptr};
__device__ const char* text = "hello";

__device__ __noinline__ float twice(float x) { return x * 2.0f; }
__device__ __noinline__ float negative(float x) { return -x; }
typedef float (*Operation)(float);
__device__ Operation operations[2] = {twice, negative};

__device__ __noinline__ Pair make_pair(float a, int b) {
  Pair p;
  p.a = a + 1.0f;
  p.b = b * 3;
  return p;
}

__global__ void __launch_bounds__(128, 2) branches(const int* __restrict__ in, int* out, int n) {
  __shared__ int tile[128];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  int value = tile[127 - threadIdx.x];
  switch (value) {
    case 0: value = n; break;
    case 1: value ^= 0x55; break;
    case 2: value = __popc(value + n); break;
    case 3: value = __clz(n); break;
    case 4: value = n * 17; break;
    case 5: value = n / 3; break;
    case 6: value = __brev(n); break;
    default: value = -value;
  }
  if (i < n) out[i] = value;
}

__global__ void calls(float* out, int which, Pair by_value, unsigned long long* clock) {
  const float x = out[threadIdx.x];
  const Pair p = make_pair(x, by_value.b);
  float y = operations[which & 1](p.a) + kWeights[p.b & 3] + (float)scale;
  if (y != y) printf("%s not a number at %d\n", text, threadIdx.x);
  if (threadIdx.x == 0) *clock = clock64();
  out[threadIdx.x] = y + *pointer_table[0];
}

__global__ void halves(__half2* a, __nv_bfloat162* b, double* d, int n) {
  extern __shared__ unsigned char dynamic[];
  const int i = threadIdx.x;
  __half2 h = __hfma2(a[i], a[i + 1], a[i]);
  h = __hmax2(h, __float2half2_rn(0.0f));
  a[i] = h2exp2(h);
  b[i] = __hadd2(b[i], __floats2bfloat162_rn(sqrtf(float(n)), __expf(float(i))));
  d[i] = fma(d[i], 3.0, d[i + 1]) / d[i + 2];
  const unsigned vote = __ballot_sync(0xffffffffu, i > n);
  int sum = __reduce_add_sync(0xffffffffu, i);
  sum += __shfl_xor_sync(0xffffffffu, sum, 4);
  if (__any_sync(0xffffffffu, sum == 3)) sum += atomicAdd(&counters[0], 1);
  if (__match_any_sync(0xffffffffu, sum)) atomicMax(reinterpret_cast<int*>(dynamic), sum);
  atomicAdd(reinterpret_cast<float*>(d), 1.0f);
  reinterpret_cast<unsigned*>(dynamic)[i] = vote + __funnelshift_l(sum, n, 3);
  float local[8];
  for (int k = 0; k < 8; ++k) local[k] = float(k) * float(vote);
  d[i] += local[n & 7];
}
