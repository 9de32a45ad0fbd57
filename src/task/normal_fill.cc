// SPDX-License-Identifier: Apache-2.0
#include "task/normal_fill.h"

#include <initializer_list>

#include "base/minifloat.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ptxb {

void fill_normal_bf16_portable(const GeneratorSpec& spec, int64_t begin, int64_t count,
                               uint16_t* out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = generated_bf16(float_to_bits(generate(spec, begin + i)));
}

#if defined(__x86_64__)

namespace {

// Four blocks at a time, one word in the low half of each 64-bit lane; the high halves hold rubbish
// that _mm256_mul_epu32 ignores, so no masking is needed between rounds.
struct FourBlocks {
  __m256i w0, w1, w2, w3;
};

__attribute__((target("avx2"))) inline FourBlocks four_blocks(const GeneratorSpec& spec,
                                                              int64_t index) {
  const __m256i base = _mm256_set1_epi64x(index);
  const __m256i at = _mm256_add_epi64(base, _mm256_setr_epi64x(0, 1, 2, 3));
  FourBlocks b{at, _mm256_srli_epi64(at, 32), _mm256_set1_epi64x(spec.tensor),
               _mm256_setzero_si256()};
  const __m256i multiplier0 = _mm256_set1_epi64x(0xD2511F53),
                multiplier1 = _mm256_set1_epi64x(0xCD9E8D57);
  uint32_t key0 = static_cast<uint32_t>(spec.key), key1 = static_cast<uint32_t>(spec.key >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m256i product0 = _mm256_mul_epu32(b.w0, multiplier0),
                  product1 = _mm256_mul_epu32(b.w2, multiplier1);
    b.w0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product1, 32), b.w1),
                            _mm256_set1_epi64x(key0));
    b.w1 = product1;
    b.w2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product0, 32), b.w3),
                            _mm256_set1_epi64x(key1));
    b.w3 = product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return b;
}

// normal_1024ths of four blocks in the low halves. The outer two of a word's three fields are
// summed in place: four times 1023 fits into the 12 bits that each has.
__attribute__((target("avx2"))) inline __m256i four_sums(const FourBlocks& b) {
  const __m256i outer = _mm256_set1_epi64x(0x3ff003ff), inner = _mm256_set1_epi64x(0x3ff);
  __m256i ends = _mm256_and_si256(b.w0, outer),
          middle = _mm256_and_si256(_mm256_srli_epi64(b.w0, 10), inner);
  for (const __m256i word : {b.w1, b.w2, b.w3}) {
    ends = _mm256_add_epi64(ends, _mm256_and_si256(word, outer));
    middle = _mm256_add_epi64(middle, _mm256_and_si256(_mm256_srli_epi64(word, 10), inner));
  }
  __m256i sum = _mm256_add_epi64(_mm256_srli_epi64(ends, 20),
                                 _mm256_and_si256(ends, _mm256_set1_epi64x(0xfffff)));
  return _mm256_sub_epi32(_mm256_add_epi64(sum, middle), _mm256_set1_epi64x(6138));
}

__attribute__((target("avx2"))) void fill_avx2(const GeneratorSpec& spec, int64_t begin,
                                               int64_t count, uint16_t* out) {
  const bool spiky = spec.pattern == Pattern::Spiky;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const FourBlocks low = four_blocks(spec, begin + i), high = four_blocks(spec, begin + i + 4);
    // Lanes 0..7 of `sums` are elements 0 1 4 5 2 3 6 7: the shuffle works in 128-bit halves.
    __m256i sums = _mm256_castps_si256(_mm256_shuffle_ps(
        _mm256_castsi256_ps(four_sums(low)), _mm256_castsi256_ps(four_sums(high)), 0x88));
    sums = _mm256_permute4x64_epi64(sums, 0xd8);
    const __m256 values = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(1.0f / 1024.0f));
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
    const __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), packed);
    if (!spiky) continue;
    const __m256i any_low =
        _mm256_or_si256(_mm256_or_si256(low.w0, low.w1), _mm256_or_si256(low.w2, low.w3));
    const __m256i any_high =
        _mm256_or_si256(_mm256_or_si256(high.w0, high.w1), _mm256_or_si256(high.w2, high.w3));
    const __m256i top = _mm256_set1_epi64x(0xc0000000), zero = _mm256_setzero_si256();
    const int candidates =
        _mm256_movemask_pd(
            _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(any_low, top), zero))) |
        _mm256_movemask_pd(
            _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(any_high, top), zero)))
            << 4;
    for (int lane = 0; lane < 8; ++lane) {
      if ((candidates >> lane) & 1)
        fill_normal_bf16_portable(spec, begin + i + lane, 1, out + i + lane);
    }
  }
  fill_normal_bf16_portable(spec, begin + i, count - i, out + i);
}

}  // namespace

void fill_normal_bf16(const GeneratorSpec& spec, int64_t begin, int64_t count, uint16_t* out) {
  if (__builtin_cpu_supports("avx2")) return fill_avx2(spec, begin, count, out);
  fill_normal_bf16_portable(spec, begin, count, out);
}

#else

void fill_normal_bf16(const GeneratorSpec& spec, int64_t begin, int64_t count, uint16_t* out) {
  fill_normal_bf16_portable(spec, begin, count, out);
}

#endif

}  // namespace ptxb
