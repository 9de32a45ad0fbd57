// Owns the shapes of lane-wise handlers: 32 lanes at once, all of them or those of a mask, in a
// portable and an AVX2 version chosen when the program is decoded. Both give the same bits (no
// -ffast-math, no contraction).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "emu/arith/lanes.h"
#include "emu/warp.h"

#if defined(__x86_64__)
#define PTXB_WIDE __attribute__((target("avx2,fma,bmi,bmi2,popcnt")))
#else
#define PTXB_WIDE
#endif
#if defined(__clang__)
#define PTXB_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTXB_LANES _Pragma("GCC ivdep")
#endif
#define PTXB_INLINE [[gnu::always_inline]] inline

namespace ptxb::emu {

// True where the AVX2 handlers may run.
bool wide_lanes();
// For tests: programs decoded from now on use the portable handlers (and arith its own) or the
// CPU's best again.
void select_lanes(arith::LanePath path);
struct Handlers {
  Handler portable, wide;
  operator Handler() const { return wide_lanes() ? wide : portable; }  // NOLINT: implicit by design
};

// d[l] = t[l] for the lanes of `mask`.
template <class T>
PTXB_INLINE void blend(T* d, const T* t, uint32_t mask) {
  PTXB_LANES for (uint32_t l = 0; l < 32; ++l) {
    T keep = static_cast<T>(T{0} - static_cast<T>((mask >> l) & 1u));
    d[l] = static_cast<T>((t[l] & keep) | (d[l] & static_cast<T>(~keep)));
  }
}

// 32 bytes of 0 or 0xff -> mask.
PTXB_INLINE uint32_t byte_mask(const uint8_t* bytes) {
#if defined(__SSE2__)
  auto low = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
  auto high = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + 16));
  return static_cast<uint32_t>(_mm_movemask_epi8(low)) |
         static_cast<uint32_t>(_mm_movemask_epi8(high)) << 16;
#else
  uint32_t mask = 0;
  for (uint32_t l = 0; l < 32; ++l) mask |= static_cast<uint32_t>(bytes[l] >> 7) << l;
  return mask;
#endif
}

PTXB_INLINE void set_predicate(Warp& w, uint32_t slot, uint32_t value) {
  U32& p = predicate(w, slot);
  p = (p & ~w.mask) | (value & w.mask);
}

// Makes an operation of a function or of a lambda without captures.
template <auto function>
struct Of {
  template <class... A>
  PTXB_INLINE static auto of(A... a) {
    return function(a...);
  }
};

template <class Op, class D, class A>
PTXB_INLINE void unary_body(Warp& w, const Insn* i) {
  D* d = lanes<D>(w, i->d);
  const A* a = lanes<A>(w, i->a);
  if (w.mask == kAll) {
    PTXB_LANES for (int l = 0; l < 32; ++l) d[l] = Op::of(a[l]);
  } else {
    alignas(64) D t[32];
    PTXB_LANES for (int l = 0; l < 32; ++l) t[l] = Op::of(a[l]);
    blend(d, t, w.mask);
  }
}
template <class Op, class D, class A, class B>
PTXB_INLINE void binary_body(Warp& w, const Insn* i) {
  D* d = lanes<D>(w, i->d);
  const A* a = lanes<A>(w, i->a);
  const B* b = lanes<B>(w, i->b);
  if (w.mask == kAll) {
    PTXB_LANES for (int l = 0; l < 32; ++l) d[l] = Op::of(a[l], b[l]);
  } else {
    alignas(64) D t[32];
    PTXB_LANES for (int l = 0; l < 32; ++l) t[l] = Op::of(a[l], b[l]);
    blend(d, t, w.mask);
  }
}
template <class Op, class D, class A, class B, class C>
PTXB_INLINE void ternary_body(Warp& w, const Insn* i) {
  D* d = lanes<D>(w, i->d);
  const A* a = lanes<A>(w, i->a);
  const B* b = lanes<B>(w, i->b);
  const C* c = lanes<C>(w, i->c);
  if (w.mask == kAll) {
    PTXB_LANES for (int l = 0; l < 32; ++l) d[l] = Op::of(a[l], b[l], c[l]);
  } else {
    alignas(64) D t[32];
    PTXB_LANES for (int l = 0; l < 32; ++l) t[l] = Op::of(a[l], b[l], c[l]);
    blend(d, t, w.mask);
  }
}
// Predicate = Op(a, b); Op::of returns bool.
template <class Op, class A>
PTXB_INLINE uint32_t compare_body(Warp& w, const Insn* i) {
  const A* a = lanes<A>(w, i->a);
  const A* b = lanes<A>(w, i->b);
  alignas(64) uint8_t t[32];
  PTXB_LANES for (int l = 0; l < 32; ++l) t[l] = Op::of(a[l], b[l]) ? 0xff : 0;
  return byte_mask(t);
}

// unary<Op, D, A>(), binary<...>() and so on name the pair of handlers.
template <class Op, class D, class A>
const Insn* unary_portable(Warp& w, const Insn* i) {
  unary_body<Op, D, A>(w, i);
  return i + 1;
}
template <class Op, class D, class A>
PTXB_WIDE const Insn* unary_wide(Warp& w, const Insn* i) {
  unary_body<Op, D, A>(w, i);
  return i + 1;
}
template <class Op, class D, class A = D>
Handlers unary() {
  return {unary_portable<Op, D, A>, unary_wide<Op, D, A>};
}
template <class Op, class D, class A, class B>
const Insn* binary_portable(Warp& w, const Insn* i) {
  binary_body<Op, D, A, B>(w, i);
  return i + 1;
}
template <class Op, class D, class A, class B>
PTXB_WIDE const Insn* binary_wide(Warp& w, const Insn* i) {
  binary_body<Op, D, A, B>(w, i);
  return i + 1;
}
template <class Op, class D, class A = D, class B = A>
Handlers binary() {
  return {binary_portable<Op, D, A, B>, binary_wide<Op, D, A, B>};
}
template <class Op, class D, class A, class B, class C>
const Insn* ternary_portable(Warp& w, const Insn* i) {
  ternary_body<Op, D, A, B, C>(w, i);
  return i + 1;
}
template <class Op, class D, class A, class B, class C>
PTXB_WIDE const Insn* ternary_wide(Warp& w, const Insn* i) {
  ternary_body<Op, D, A, B, C>(w, i);
  return i + 1;
}
template <class Op, class D, class A = D, class B = A, class C = A>
Handlers ternary() {
  return {ternary_portable<Op, D, A, B, C>, ternary_wide<Op, D, A, B, C>};
}
template <class Op, class A>
const Insn* compare_portable(Warp& w, const Insn* i) {
  set_predicate(w, i->d, compare_body<Op, A>(w, i));
  return i + 1;
}
template <class Op, class A>
PTXB_WIDE const Insn* compare_wide(Warp& w, const Insn* i) {
  set_predicate(w, i->d, compare_body<Op, A>(w, i));
  return i + 1;
}
template <class Op, class A>
Handlers compare() {
  return {compare_portable<Op, A>, compare_wide<Op, A>};
}

}  // namespace ptxb::emu
