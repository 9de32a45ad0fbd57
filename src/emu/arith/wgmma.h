// Owns wgmma.mma_async's arithmetic: operand addresses in shared memory, unpacking, D = A*B (+ D)
// of one warp's 16 rows. Never orders anything: the caller decides when shared memory is read and
// when D changes. Sources: PTX ISA 9.7.15.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "emu/arith/mma.h"

namespace ptxb::emu::arith {

enum class Major : uint8_t { K, MN };  // MN: imm-trans = 1, 16-bit elements only

// The matrix descriptor of 9.7.15.5.1.2.2. Addresses are shared-window offsets (18 bits).
enum class Swizzle : uint8_t { None, Bytes128, Bytes64, Bytes32 };
struct WgmmaDescriptor {
  uint32_t start = 0;
  uint32_t leading_bytes = 0;
  uint32_t stride_bytes = 0;
  uint8_t base_offset = 0;
  Swizzle swizzle = Swizzle::None;
};
WgmmaDescriptor decode_wgmma_descriptor(uint64_t bits);

// All shapes have 32 bytes of K. Operands are read in 16-byte chunks: K-major, chunk (mn, c) holds
// the c-th half of row mn's K, c < 2; MN-major, chunk (c, k) holds elements mn = 8c .. 8c+7 of
// column k.
uint32_t wgmma_chunk_k_major(const WgmmaDescriptor& descriptor, int mn, int chunk);
uint32_t wgmma_chunk_mn_major(const WgmmaDescriptor& descriptor, int chunk, int k);
// Calls visit(address) for every chunk of an operand of `mn` rows (A: 64, or 16 from row `first`
// on; B: n).
template <class Visit>
void each_wgmma_chunk(const WgmmaDescriptor& descriptor, Major major, int first, int mn,
                      Visit visit) {
  if (major == Major::K) {
    for (int i = first; i < first + mn; ++i) {
      for (int c = 0; c < 2; ++c) visit(wgmma_chunk_k_major(descriptor, i, c));
    }
  } else {
    for (int k = 0; k < 16; ++k) {
      for (int c = first / 8; c < (first + mn) / 8; ++c)
        visit(wgmma_chunk_mn_major(descriptor, c, k));
    }
  }
}

struct WgmmaForm {
  int n = 64;  // 8 .. 256
  MmaType a = MmaType::BF16;
  MmaType b = MmaType::BF16;
  MmaAccumulator d = MmaAccumulator::F32;
  Major a_major = Major::K;
  Major b_major = Major::K;
  bool negate_a = false;  // imm-scale-a = -1
  bool negate_b = false;
  bool satfinite = false;
  bool operator==(const WgmmaForm&) const = default;
};
int wgmma_k(MmaType type);  // 8, 16, 32 or 256
int wgmma_d_registers(
    const WgmmaForm& form);  // a lane: n / 2, f16: n / 4; 0: the form does not exist

// Unpacked operands; the contents belong to the kernel that filled them. Large: keep them per
// worker.
struct alignas(64) WgmmaRows {  // 16 rows of A
  float value[2048];
  int32_t word[2048];
  bool safe;
};
struct alignas(64) WgmmaPanel {  // all of B
  float value[32 * 256];
  int32_t word[32 * 256];
  bool safe;
};

enum class ScaleD : uint8_t { Zero, Keep };  // scale-d false: D = A*B

// shared[address] must be valid for every chunk; check with each_wgmma_chunk first.
struct WgmmaKernel {
  void (*load_b)(WgmmaPanel& panel, const WgmmaForm& form, const uint8_t* shared,
                 const WgmmaDescriptor& descriptor) = nullptr;
  void (*load_a)(WgmmaRows& rows, const WgmmaForm& form, const uint8_t* shared,
                 const WgmmaDescriptor& descriptor,
                 int warp) = nullptr;  // rows 16 * warp .. + 15 of the 64
  void (*load_a_registers)(WgmmaRows& rows, const WgmmaForm& form,
                           const uint32_t* const* a) = nullptr;  // 4 registers
  // d[i]: 32 lanes of the warp's i-th D register.
  void (*multiply)(const WgmmaRows& rows, const WgmmaPanel& panel, const WgmmaForm& form,
                   uint32_t* const* d, ScaleD scale) = nullptr;
};
// multiply == nullptr: the form does not exist. Fast and Exact as in mma.h; Exact of fp8 sums 32
// terms with 13 bits.
WgmmaKernel wgmma_kernel(const WgmmaForm& form, Numerics numerics);

}  // namespace ptxb::emu::arith
