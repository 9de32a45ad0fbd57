// Owns the device side of the seeded inputs: task/generator.h's arithmetic over a whole tensor.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/calls.h"
#include "task/generator.h"

namespace ptxb::cuda {

extern "C" __global__ void ptxb_fill(const GeneratorSpec spec, int64_t count, Element element,
                                     void* out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float value = generate(spec, i);
    if (element == Element::BF16) {
      static_cast<uint16_t*>(out)[i] = generated_bf16(__float_as_uint(value));
    } else {
      static_cast<float*>(out)[i] = value;
    }
  }
}

}  // namespace ptxb::cuda
