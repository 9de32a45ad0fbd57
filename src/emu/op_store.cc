// Owns store handlers for all windows, types and vectors (PTX ISA 9.7.9.11). Never decodes.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <type_traits>

#include "emu/load_store.h"

namespace ptxb::emu {

using ptx::Type;

namespace {

#if defined(__x86_64__)
template <class Place>
PTXB_WIDE [[gnu::always_inline]] inline void store_quads(Warp& w, const Insn* i,
                                                         const Place& place) {
  for (uint32_t g = 0; g < 32; g += 8) {
    __m256 a = _mm256_load_ps(lanes<float>(w, i->d) + g),
           b = _mm256_load_ps(lanes<float>(w, i->b) + g);
    __m256 c = _mm256_load_ps(lanes<float>(w, i->c) + g),
           d = _mm256_load_ps(lanes<float>(w, i->x) + g);
    __m256 t0 = _mm256_unpacklo_ps(a, b), t1 = _mm256_unpackhi_ps(a, b);
    __m256 t2 = _mm256_unpacklo_ps(c, d), t3 = _mm256_unpackhi_ps(c, d);
    __m256 r[4] = {_mm256_shuffle_ps(t0, t2, 0x44), _mm256_shuffle_ps(t0, t2, 0xee),
                   _mm256_shuffle_ps(t1, t3, 0x44), _mm256_shuffle_ps(t1, t3, 0xee)};
    for (uint32_t l = 0; l < 4; ++l)
      _mm_storeu_ps(reinterpret_cast<float*>(place.at(g + l)), _mm256_castps256_ps128(r[l]));
    for (uint32_t l = 0; l < 4; ++l)
      _mm_storeu_ps(reinterpret_cast<float*>(place.at(g + 4 + l)), _mm256_extractf128_ps(r[l], 1));
  }
}
#endif

template <class R, class S, int N, class Place>
PTXB_INLINE void store_lanes(Warp& w, const Insn* i, const Place& place) {
  if (w.mask == kAll) {
    for (uint32_t l = 0; l < 32; ++l) {
      for (int k = 0; k < N; ++k) {
        R value = static_cast<R>(lanes<S>(w, slot(i, k))[l]);
        std::memcpy(place.at(l) + sizeof(R) * static_cast<size_t>(k), &value, sizeof value);
      }
    }
    return;
  }
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = first_lane(rest);
    for (int k = 0; k < N; ++k) {
      R value = static_cast<R>(lanes<S>(w, slot(i, k))[l]);
      std::memcpy(place.at(l) + sizeof(R) * static_cast<size_t>(k), &value, sizeof value);
    }
  }
}

template <Window window, class R, class S, int N>
[[gnu::noinline]] const Insn* store_slow(Warp& w, const Insn* i) {
  Far far;
  if (!resolve_all(w, i, window, sizeof(R) * N, Access::Write, far.host)) return nullptr;
  store_lanes<R, S, N>(w, i, far);
  return i + 1;
}
template <Window window, class R, class S, int N>
const Insn* store_portable(Warp& w, const Insn* i) {
  Near near;
  if (!near_addresses<window>(w, i, sizeof(R) * N, near)) return store_slow<window, R, S, N>(w, i);
  store_lanes<R, S, N>(w, i, near);
  return i + 1;
}
template <Window window, class R, class S, int N>
PTXB_WIDE const Insn* store_wide(Warp& w, const Insn* i) {
  Near near;
  if (!near_addresses<window>(w, i, sizeof(R) * N, near)) return store_slow<window, R, S, N>(w, i);
#if defined(__x86_64__)
  if constexpr (N == 4 && sizeof(R) == 4 && sizeof(S) == 4) {
    if (w.mask == kAll) {
      store_quads(w, i, near);
      return i + 1;
    }
  }
#endif
  store_lanes<R, S, N>(w, i, near);
  return i + 1;
}

const Insn* store_general(Warp& w, const Insn* i) {
  const auto& g = *static_cast<const GeneralAccess*>(i->more);
  Far far;
  if (!resolve_all(w, i, g.window, g.bytes * g.count, Access::Write, far.host)) return nullptr;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1) {
    uint32_t l = first_lane(rest);
    for (uint32_t k = 0; k < g.count; ++k) {
      uint64_t value = g.width == 8 ? lanes<U64>(w, slot(i, static_cast<int>(k)))[l]
                                    : lanes<U32>(w, slot(i, static_cast<int>(k)))[l];
      std::memcpy(far.at(l) + size_t{k} * g.bytes, &value, g.bytes);
    }
  }
  return i + 1;
}

template <Window window, class R, class S>
Handlers store_of(uint32_t count) {
  if (count == 1) return {store_portable<window, R, S, 1>, store_wide<window, R, S, 1>};
  if (count == 2) return {store_portable<window, R, S, 2>, store_wide<window, R, S, 2>};
  return {store_portable<window, R, S, 4>, store_wide<window, R, S, 4>};
}
template <Window window>
Handler hot(const GeneralAccess& g) {
  if (g.bytes == 8) return store_of<window, uint64_t, uint64_t>(g.count);
  if (g.width == 8) return store_general;
  if (g.bytes == 4) return store_of<window, uint32_t, uint32_t>(g.count);
  if (g.bytes == 2) return store_of<window, uint16_t, uint32_t>(g.count);
  return store_of<window, uint8_t, uint32_t>(g.count);
}

}  // namespace

Handler store_handler(const GeneralAccess& access) {
  switch (access.window) {
    case Window::Shared:
      return hot<Window::Shared>(access);
    case Window::Global:
      return hot<Window::Global>(access);
    case Window::Generic:
      return hot<Window::Generic>(access);
    default:
      return store_general;
  }
}

const Insn* store_b128(Warp& w, const Insn* i) {
  Far far;
  if (!resolve_all(w, i, static_cast<Window>(i->n), 16, Access::Write, far.host)) return nullptr;
  for (uint32_t rest = w.mask; rest; rest &= rest - 1)
    std::memcpy(far.at(first_lane(rest)), w.r + i->d + 16 * first_lane(rest), 16);
  return i + 1;
}

}  // namespace ptxb::emu
