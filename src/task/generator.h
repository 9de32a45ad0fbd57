// Owns the arithmetic of the seeded inputs: Philox4x32-10 and every pattern made from it, as plain
// inline functions. Compiles for the host and, under nvcc, for the device: integer arithmetic and
// exact float scalings only (no libm, nothing that may be contracted or rounded), so that both give
// the same bits. No containers, no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define PTXB_HOST_DEVICE __host__ __device__
#else
#define PTXB_HOST_DEVICE
#endif

namespace ptxb {

struct PhiloxBlock {
  uint32_t w[4];
};

// Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC'11), ten rounds.
PTXB_HOST_DEVICE inline PhiloxBlock philox4x32_10(PhiloxBlock counter, uint32_t key0,
                                                  uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter.w[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter.w[2];
    counter = {{static_cast<uint32_t>(product1 >> 32) ^ counter.w[1] ^ key0,
                static_cast<uint32_t>(product1),
                static_cast<uint32_t>(product0 >> 32) ^ counter.w[3] ^ key1,
                static_cast<uint32_t>(product0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// How one tensor's elements are made. Rows are the index divided by `inner`.
enum class Pattern : uint32_t {
  Normal,               // N(0,1)
  Spiky,                // N(0,1) + N(0,100) * Bernoulli(1/1024)
  GemmExact,            // wide or unit integers, see below; `side` 0: A, 1: B
  GemmCoded,            // A: each element names its (row, column), see code_value
  GemmOneHot,           // B: row n is 1 at column one_hot_column(n), else 0
  AttentionQuery,       // points at one key vector, attention_target
  AttentionKey,         // random signs per group of keys, full mantissas
  AttentionExactValue,  // odd integers, 129..255 in magnitude: the mean of two is an integer below
                        // 256
  AttentionCodedValue,  // each element names its (key, column), see code_value
};

struct GeneratorSpec {
  uint64_t key = 0;     // of (task, axes, seed)
  uint32_t tensor = 0;  // counter word 2
  Pattern pattern = Pattern::Normal;
  int64_t inner = 1;        // length of the fastest axis: K or D
  int64_t rows = 1;         // of one head for attention: S
  uint32_t side = 0;        // GemmExact: which operand
  uint32_t density = 1024;  // GemmExact: a unit is non-zero in density of 1024 cases
  bool causal = false;      // attention: a query's target is not after it
  bool pairs = false;       // attention: keys j and j^x share one vector
  uint32_t key_tensor = 0;  // AttentionQuery: counter word 2 of the keys
};

PTXB_HOST_DEVICE inline PhiloxBlock random_block(const GeneratorSpec& spec, uint32_t tensor,
                                                 int64_t index, uint32_t stream) {
  const uint64_t at = static_cast<uint64_t>(index);
  return philox4x32_10(
      {{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), tensor, stream}},
      static_cast<uint32_t>(spec.key), static_cast<uint32_t>(spec.key >> 32));
}

// A cheap fixed mixing (murmur3's finaliser) for facts that whole rows or columns share.
PTXB_HOST_DEVICE inline uint32_t mixed(const GeneratorSpec& spec, uint64_t value, uint32_t salt) {
  uint64_t x = value ^ spec.key ^ (uint64_t{salt} << 56);
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return static_cast<uint32_t>(x >> 32);
}
PTXB_HOST_DEVICE inline int64_t below(uint32_t random, int64_t count) {
  return static_cast<int64_t>((uint64_t{random} * static_cast<uint64_t>(count)) >> 32);
}

// Irwin-Hall: twelve uniform 10-bit integers have variance 12 * (2^20 - 1) / 12 = 1024^2 - 1, so
// their centred sum over 1024 has standard deviation 1 - 4.8e-7, in 120 of a block's 128 bits.
// Returns the sum times 1024: an integer within 6138.
PTXB_HOST_DEVICE inline int32_t normal_1024ths(const PhiloxBlock& block) {
  uint32_t sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += (block.w[i] & 1023u) + ((block.w[i] >> 10) & 1023u) + ((block.w[i] >> 20) & 1023u);
  return static_cast<int32_t>(sum) - 6138;
}
// The eight bits that normal_1024ths leaves, and the two lowest of a second block: 1 in 1024.
PTXB_HOST_DEVICE inline bool may_spike(const PhiloxBlock& block) {
  return ((block.w[0] | block.w[1] | block.w[2] | block.w[3]) >> 30) == 0;
}
PTXB_HOST_DEVICE inline int32_t spike_1024ths(const GeneratorSpec& spec, int64_t index) {
  const PhiloxBlock second = random_block(spec, spec.tensor, index, 1);
  return (second.w[3] >> 30) == 0 ? 10 * normal_1024ths(second) : 0;
}

// Odd, 129..255 in magnitude: exactly eight significant bits, the whole mantissa of bf16 and twice
// that of e4m3.
PTXB_HOST_DEVICE inline int32_t wide_magnitude(uint32_t random) {
  return 129 + 2 * static_cast<int32_t>(random & 63u);
}
PTXB_HOST_DEVICE inline int32_t with_sign(uint32_t random, int32_t magnitude) {
  return (random & 0x80000000u) ? -magnitude : magnitude;
}

// GEMM, exact: at each k one side is wide, the other a unit (-1, 0, 1); which one is drawn for each
// k. Every partial sum in any order is an integer of at most 255 * K < 2^24 for K <= 65793: exact
// in f32 and in tensor cores that keep 24 bits.
PTXB_HOST_DEVICE inline uint32_t wide_side(const GeneratorSpec& spec, int64_t k) {
  return mixed(spec, static_cast<uint64_t>(k), 1) & 1u;
}
PTXB_HOST_DEVICE inline float gemm_exact(const GeneratorSpec& spec, int64_t index) {
  const PhiloxBlock block = random_block(spec, spec.tensor, index, 0);
  if (wide_side(spec, index % spec.inner) == spec.side)
    return static_cast<float>(with_sign(block.w[0], wide_magnitude(block.w[1])));
  return static_cast<float>((block.w[1] & 1023u) < spec.density ? with_sign(block.w[0], 1) : 0);
}

// A bf16 number that names a row (six bits: the mantissa, odd, so that two rows differ by two steps
// at least) and a column (seven bits: sign and six exponent bits). Rows 64 and columns 128 apart
// are given other codes by the stagger, so that whole tiles do not look alike.
PTXB_HOST_DEVICE inline uint32_t row_code(int64_t row) {
  return static_cast<uint32_t>(row + 37 * (row >> 6)) & 63u;
}
PTXB_HOST_DEVICE inline uint32_t column_code(int64_t column) {
  return static_cast<uint32_t>(column + 11 * (column >> 7)) & 127u;
}
PTXB_HOST_DEVICE inline float code_value(int64_t row, int64_t column) {
  const uint32_t column_bits = column_code(column);
  const float magnitude = static_cast<float>(129 + 2 * row_code(row)) *
                          static_cast<float>(uint64_t{1} << (column_bits & 63u));
  return (column_bits & 64u) ? -magnitude : magnitude;
}
PTXB_HOST_DEVICE inline int64_t one_hot_column(const GeneratorSpec& spec, int64_t row) {
  return below(mixed(spec, static_cast<uint64_t>(row), 2), spec.inner);
}

// Attention, exact and coded: query i matches one group of keys; the other scores lie more than 104
// below it (exp gives 0 in f32). A group is one key, or the pair {j, j^x} where both exist, x a
// power of two drawn for each head.
PTXB_HOST_DEVICE inline int64_t group_of_key(const GeneratorSpec& spec, int64_t head, int64_t key) {
  if (!spec.pairs || spec.rows < 2) return key;
  int64_t bits = 0;
  while ((int64_t{2} << bits) <= spec.rows) ++bits;
  const int64_t partner =
      key ^ (int64_t{1} << below(mixed(spec, static_cast<uint64_t>(head), 3), bits > 0 ? bits : 1));
  return partner < key ? partner : key;
}
// One query in four looks at its own key, one in eight at the last one it may see: where masks and
// tails go wrong.
PTXB_HOST_DEVICE inline int64_t attention_target(const GeneratorSpec& spec, int64_t head,
                                                 int64_t query) {
  const int64_t visible = spec.causal ? query + 1 : spec.rows;
  const uint32_t random = mixed(spec, static_cast<uint64_t>(head * spec.rows + query), 4);
  if ((random & 3u) == 0) return query;
  if ((random & 7u) == 1) return visible - 1;
  return below(mixed(spec, random, 5), visible);
}
// Keys: sign * odd / 128 (1 to 2); queries: the target's signs * odd / 4 (32 to 64). A match scores
// D * 72 on average, another key 0 +- sqrt(D) * 75: at D = 128, 814 and 0 +- 75 after the scale
// 1/sqrt(D).
PTXB_HOST_DEVICE inline PhiloxBlock key_block(const GeneratorSpec& spec, uint32_t tensor,
                                              int64_t head, int64_t key, int64_t column) {
  const int64_t row = head * spec.rows + group_of_key(spec, head, key);
  return random_block(spec, tensor, row * spec.inner + column, 0);
}

// The element before its rounding to the tensor's type (exact in bf16 for all but Normal and
// Spiky).
PTXB_HOST_DEVICE inline float generate(const GeneratorSpec& spec, int64_t index) {
  const int64_t row = index / spec.inner, column = index % spec.inner;
  const int64_t head = row / spec.rows, in_head = row % spec.rows;
  switch (spec.pattern) {
    case Pattern::Normal:
    case Pattern::Spiky: {
      const PhiloxBlock block = random_block(spec, spec.tensor, index, 0);
      int32_t sum = normal_1024ths(block);
      if (spec.pattern == Pattern::Spiky && may_spike(block)) sum += spike_1024ths(spec, index);
      return static_cast<float>(sum) * (1.0f / 1024.0f);
    }
    case Pattern::GemmExact:
      return gemm_exact(spec, index);
    case Pattern::GemmCoded:
      return code_value(row, column);
    case Pattern::GemmOneHot:
      return column == one_hot_column(spec, row) ? 1.0f : 0.0f;
    case Pattern::AttentionKey: {
      const PhiloxBlock block = key_block(spec, spec.tensor, head, in_head, column);
      return static_cast<float>(with_sign(block.w[0], wide_magnitude(block.w[1]))) *
             (1.0f / 128.0f);
    }
    case Pattern::AttentionQuery: {
      const int64_t target = attention_target(spec, head, in_head);
      const uint32_t sign = key_block(spec, spec.key_tensor, head, target, column).w[0];
      const PhiloxBlock own = random_block(spec, spec.tensor, index, 0);
      return static_cast<float>(with_sign(sign, wide_magnitude(own.w[1]))) * 0.25f;
    }
    case Pattern::AttentionExactValue: {
      const PhiloxBlock block = random_block(spec, spec.tensor, index, 0);
      return static_cast<float>(with_sign(block.w[0], wide_magnitude(block.w[1])));
    }
    case Pattern::AttentionCodedValue:
      return code_value(in_head, column);
  }
  return 0;
}

// Round to nearest, ties to even, on the bits; never given a NaN.
PTXB_HOST_DEVICE inline uint16_t generated_bf16(uint32_t float_bits) {
  return static_cast<uint16_t>((float_bits + 0x7fffu + ((float_bits >> 16) & 1u)) >> 16);
}

}  // namespace ptxb
