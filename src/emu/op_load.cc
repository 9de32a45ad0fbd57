// Owns load handlers for all windows, types and vectors (PTX ISA 9.7.9.8). Never decodes.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <type_traits>

#include "emu/load_store.h"

namespace ptxb::emu {

using ptx::Type;

namespace {

template <class R>
PTXB_INLINE R get(const uint8_t* p) {
  R value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

#if defined(__x86_64__)
// Eight rows of 16 bytes -> four registers of eight lanes, and back.
template <class Place>
PTXB_WIDE [[gnu::always_inline]] inline void load_quads(Warp& w, const Insn* i,
                                                        const Place& place) {
  for (uint32_t g = 0; g < 32; g += 8) {
    auto row = [&](uint32_t l) __attribute__((always_inline, target("avx2,fma,bmi,bmi2,popcnt"))) {
      return _mm_loadu_ps(reinterpret_cast<const float*>(place.at(g + l)));
    };
    __m256 r0 = _mm256_insertf128_ps(_mm256_castps128_ps256(row(0)), row(4), 1);
    __m256 r1 = _mm256_insertf128_ps(_mm256_castps128_ps256(row(1)), row(5), 1);
    __m256 r2 = _mm256_insertf128_ps(_mm256_castps128_ps256(row(2)), row(6), 1);
    __m256 r3 = _mm256_insertf128_ps(_mm256_castps128_ps256(row(3)), row(7), 1);
    __m256 t0 = _mm256_unpacklo_ps(r0, r1), t1 = _mm256_unpackhi_ps(r0, r1);
    __m256 t2 = _mm256_unpacklo_ps(r2, r3), t3 = _mm256_unpackhi_ps(r2, r3);
    _mm256_store_ps(lanes<float>(w, i->d) + g, _mm256_shuffle_ps(t0, t2, 0x44));
    _mm256_store_ps(lanes<float>(w, i->b) + g, _mm256_shuffle_ps(t0, t2, 0xee));
    _mm256_store_ps(lanes<float>(w, i->c) + g, _mm256_shuffle_ps(t1, t3, 0x44));
    _mm256_store_ps(lanes<float>(w, i->x) + g, _mm256_shuffle_ps(t1, t3, 0xee));
  }
}
#endif

template <class R, class D, int N, class Place>
PTXB_INLINE void load_lanes(Warp& w, const Insn* i, const Place& place) {
  using Wide = std::conditional_t<std::is_signed_v<R>, int64_t, uint64_t>;
  for (int k = 0; k < N; ++k) {
    D* d = lanes<D>(w, slot(i, k));
    if (w.mask == kAll) {
      for (uint32_t l = 0; l < 32; ++l)
        d[l] = static_cast<D>(
            static_cast<Wide>(get<R>(place.at(l) + sizeof(R) * static_cast<size_t>(k))));
    } else {
      alignas(64) D t[32];
      for (uint32_t l = 0; l < 32; ++l)
        t[l] = static_cast<D>(
            static_cast<Wide>(get<R>(place.at(l) + sizeof(R) * static_cast<size_t>(k))));
      blend(d, t, w.mask);
    }
  }
}

template <Window window, class R, class D, int N>
[[gnu::noinline]] const Insn* load_slow(Warp& w, const Insn* i) {
  Far far;
  if (!resolve_all(w, i, window, sizeof(R) * N, Access::Read, far.host)) return nullptr;
  load_lanes<R, D, N>(w, i, far);
  return i + 1;
}
template <Window window, class R, class D, int N>
const Insn* load_portable(Warp& w, const Insn* i) {
  Near near;
  if (!near_addresses<window>(w, i, sizeof(R) * N, near)) return load_slow<window, R, D, N>(w, i);
  load_lanes<R, D, N>(w, i, near);
  return i + 1;
}
template <Window window, class R, class D, int N>
PTXB_WIDE const Insn* load_wide(Warp& w, const Insn* i) {
  Near near;
  if (!near_addresses<window>(w, i, sizeof(R) * N, near)) return load_slow<window, R, D, N>(w, i);
#if defined(__x86_64__)
  if constexpr (N == 4 && sizeof(R) == 4 && sizeof(D) == 4) {
    if (w.mask == kAll) {
      load_quads(w, i, near);
      return i + 1;
    }
  }
#endif
  load_lanes<R, D, N>(w, i, near);
  return i + 1;
}

// Everything that is not hot: element by element, shapes known at run time.
const Insn* load_general(Warp& w, const Insn* i) {
  const auto& g = *static_cast<const GeneralAccess*>(i->more);
  Far far;
  if (!resolve_all(w, i, g.window, g.bytes * g.count, Access::Read, far.host)) return nullptr;
  for (uint32_t k = 0; k < g.count; ++k) {
    for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
      uint32_t l = first_lane(rest);
      uint64_t value = 0;
      std::memcpy(&value, far.at(l) + size_t{k} * g.bytes, g.bytes);
      if (g.is_signed && g.bytes < 8 && (value >> (g.bytes * 8 - 1) & 1))
        value |= ~uint64_t{0} << (g.bytes * 8);
      if (g.width == 8)
        lanes<U64>(w, slot(i, static_cast<int>(k)))[l] = value;
      else
        lanes<U32>(w, slot(i, static_cast<int>(k)))[l] = static_cast<uint32_t>(value);
    }
  }
  return i + 1;
}

template <Window window, class R, class D>
Handlers load_of(uint32_t count) {
  if (count == 1) return {load_portable<window, R, D, 1>, load_wide<window, R, D, 1>};
  if (count == 2) return {load_portable<window, R, D, 2>, load_wide<window, R, D, 2>};
  return {load_portable<window, R, D, 4>, load_wide<window, R, D, 4>};
}
template <Window window>
Handler hot(const GeneralAccess& g) {
  if (g.bytes == 8) return load_of<window, uint64_t, uint64_t>(g.count);
  if (g.width == 8) return load_general;
  if (g.bytes == 4) return load_of<window, uint32_t, uint32_t>(g.count);
  if (g.bytes == 2)
    return g.is_signed ? load_of<window, int16_t, uint32_t>(g.count)
                       : load_of<window, uint16_t, uint32_t>(g.count);
  return g.is_signed ? load_of<window, int8_t, uint32_t>(g.count)
                     : load_of<window, uint8_t, uint32_t>(g.count);
}

}  // namespace

Handler load_handler(const GeneralAccess& access) {
  switch (access.window) {
    case Window::Shared:
      return hot<Window::Shared>(access);
    case Window::Global:
      return hot<Window::Global>(access);
    case Window::Generic:
      return hot<Window::Generic>(access);
    default:
      return load_general;
  }
}

const Insn* load_b128(Warp& w, const Insn* i) {
  Far far;
  if (!resolve_all(w, i, static_cast<Window>(i->n), 16, Access::Read, far.host)) return nullptr;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1)
    std::memcpy(w.r + i->d + 16 * first_lane(rest), far.at(first_lane(rest)), 16);
  return i + 1;
}

}  // namespace ptxb::emu
