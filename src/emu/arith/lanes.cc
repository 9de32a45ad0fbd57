// Owns the choice of a lane function: AVX2 where one exists and the CPU has it, else a loop over
// the scalar function. Never masks lanes.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/lanes.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

#include "emu/arith/approx.h"
#include "emu/arith/convert.h"
#include "emu/arith/lanes_avx2.h"
#include "emu/arith/simd.h"
#if PTXB_ARITH_AVX2
#include <cpuid.h>
#endif

namespace ptxb::emu::arith {
namespace {

bool cpu_has_avx2() {
#if PTXB_ARITH_AVX2
  unsigned a = 0, b = 0, c = 0, d = 0;
  bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
  return has_f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

std::atomic<bool>& path_state() {
  static std::atomic<bool> native{cpu_has_avx2()};
  return native;
}

// Controls as small integers, so that every combination is one template instance.
constexpr int kFloatCodes = 16;
constexpr FloatControl float_control(int code) {
  return {.round = static_cast<Round>(code >> 2), .ftz = (code & 2) != 0, .sat = (code & 1) != 0};
}
int float_code(FloatControl control) {
  return (static_cast<int>(control.round) << 2) | (control.ftz ? 2 : 0) | (control.sat ? 1 : 0);
}

constexpr int kHalfCodes = 16;
constexpr FloatControl half_control(int code) {
  return {.ftz = (code & 1) != 0,
          .sat = (code & 2) != 0,
          .relu = (code & 4) != 0,
          .oob = (code & 8) != 0};
}
int half_code(FloatControl control) {
  return (control.ftz ? 1 : 0) | (control.sat ? 2 : 0) | (control.relu ? 4 : 0) |
         (control.oob ? 8 : 0);
}

constexpr int kMinMaxCodes = 8;
constexpr MinMaxControl min_max_control(int code) {
  return {.ftz = (code & 1) != 0, .nan = (code & 2) != 0, .xorsign_abs = (code & 4) != 0};
}
int min_max_code(MinMaxControl control) {
  return (control.ftz ? 1 : 0) | (control.nan ? 2 : 0) | (control.xorsign_abs ? 4 : 0);
}

template <auto scalar, int code>
void float_binary(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; ++i) d[i] = scalar(a[i], b[i], float_control(code));
}
template <auto scalar, int code>
void float_ternary(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c) {
  for (int i = 0; i < kLanes; ++i) d[i] = scalar(a[i], b[i], c[i], float_control(code));
}
template <auto scalar, int code>
void min_max(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; ++i) d[i] = scalar(a[i], b[i], min_max_control(code));
}
template <auto scalar, Half format, int code>
void half_binary(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; ++i) d[i] = scalar(format, a[i], b[i], half_control(code));
}
template <auto scalar, Half format, int code>
void half_ternary(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c) {
  for (int i = 0; i < kLanes; ++i) d[i] = scalar(format, a[i], b[i], c[i], half_control(code));
}
template <auto scalar, Half format, int code>
void half_min_max(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; ++i) d[i] = scalar(format, a[i], b[i], min_max_control(code));
}
template <int code>  // FloatCompare * 2 + ftz
uint32_t compare_lanes(const uint32_t* a, const uint32_t* b) {
  uint32_t mask = 0;
  for (int i = 0; i < kLanes; ++i) {
    bool result =
        compare_f32(static_cast<FloatCompare>(code / 2), a[i], b[i], {.ftz = code % 2 != 0});
    mask |= uint32_t{result} << i;
  }
  return mask;
}
template <auto scalar, int code>
void approx_unary(uint32_t* d, const uint32_t* a) {
  for (int i = 0; i < kLanes; ++i) d[i] = scalar(a[i], FloatControl{.ftz = code != 0});
}

template <auto scalar, int... code>
constexpr std::array<LaneBinary, sizeof...(code)> float_binaries(
    std::integer_sequence<int, code...>) {
  return {float_binary<scalar, code>...};
}
template <auto scalar>
LaneBinary portable_binary(FloatControl control) {
  static constexpr auto kTable =
      float_binaries<scalar>(std::make_integer_sequence<int, kFloatCodes>());
  return control.round == Round::NearestAway ? nullptr
                                             : kTable[static_cast<size_t>(float_code(control))];
}
template <auto scalar, int... code>
constexpr std::array<LaneTernary, sizeof...(code)> float_ternaries(
    std::integer_sequence<int, code...>) {
  return {float_ternary<scalar, code>...};
}
template <auto scalar, int... code>
constexpr std::array<LaneBinary, sizeof...(code)> min_maxes(std::integer_sequence<int, code...>) {
  return {min_max<scalar, code>...};
}
template <auto scalar>
LaneBinary portable_min_max(MinMaxControl control) {
  static constexpr auto kTable = min_maxes<scalar>(std::make_integer_sequence<int, kMinMaxCodes>());
  return kTable[static_cast<size_t>(min_max_code(control))];
}
template <auto scalar, Half format, int... code>
constexpr std::array<LaneBinary, sizeof...(code)> half_binaries(
    std::integer_sequence<int, code...>) {
  return {half_binary<scalar, format, code>...};
}
template <auto scalar>
LaneBinary portable_half_binary(Half format, FloatControl control) {
  static constexpr auto kF16 =
      half_binaries<scalar, Half::F16>(std::make_integer_sequence<int, 4>());
  static constexpr auto kBF16 =
      half_binaries<scalar, Half::BF16>(std::make_integer_sequence<int, 4>());
  size_t code = static_cast<size_t>(half_code(control));
  if (code >= kF16.size()) return nullptr;
  return format == Half::F16 ? kF16[code] : kBF16[code];
}
template <auto scalar, Half format, int... code>
constexpr std::array<LaneTernary, sizeof...(code)> half_ternaries(
    std::integer_sequence<int, code...>) {
  return {half_ternary<scalar, format, code>...};
}
template <auto scalar, Half format, int... code>
constexpr std::array<LaneBinary, sizeof...(code)> half_min_maxes(
    std::integer_sequence<int, code...>) {
  return {half_min_max<scalar, format, code>...};
}
template <auto scalar>
LaneBinary portable_half_min_max(Half format, MinMaxControl control) {
  constexpr auto kCodes = std::make_integer_sequence<int, kMinMaxCodes>();
  static constexpr auto kF16 = half_min_maxes<scalar, Half::F16>(kCodes);
  static constexpr auto kBF16 = half_min_maxes<scalar, Half::BF16>(kCodes);
  size_t code = static_cast<size_t>(min_max_code(control));
  return format == Half::F16 ? kF16[code] : kBF16[code];
}
template <int... code>
constexpr std::array<LaneCompare, sizeof...(code)> comparisons(
    std::integer_sequence<int, code...>) {
  return {compare_lanes<code>...};
}
template <auto scalar>
LaneUnary portable_approx(FloatControl control) {
  return control.ftz ? approx_unary<scalar, 1> : approx_unary<scalar, 0>;
}

template <Half format>
void pack_lanes(uint32_t* d, const uint32_t* a, const uint32_t* b) {
  for (int i = 0; i < kLanes; ++i) d[i] = pack_half2(format, a[i], b[i]);
}
template <Half format>
void narrow_lanes(uint32_t* d, const uint32_t* a) {
  for (int i = 0; i < kLanes; ++i) d[i] = half_from_f32(format, a[i]);
}
template <Half format>
void widen_lanes(uint32_t* d, const uint32_t* a) {
  for (int i = 0; i < kLanes; ++i) d[i] = half_to_f32(format, static_cast<uint16_t>(a[i]));
}

template <class Function>
Function choose(Function avx2, Function portable) {
  return native_path() && avx2 != nullptr ? avx2 : portable;
}

}  // namespace

bool native_path() { return path_state().load(std::memory_order_relaxed); }

void select_lane_path(LanePath path) {
  path_state().store(path == LanePath::Native && cpu_has_avx2(), std::memory_order_relaxed);
}

LaneBinary lane_add_f32(FloatControl control) {
  return choose(avx2_add_f32(control), portable_binary<add_f32>(control));
}
LaneBinary lane_sub_f32(FloatControl control) {
  return choose(avx2_sub_f32(control), portable_binary<sub_f32>(control));
}
LaneBinary lane_mul_f32(FloatControl control) {
  return choose(avx2_mul_f32(control), portable_binary<mul_f32>(control));
}

LaneTernary lane_fma_f32(FloatControl control) {
  static constexpr auto kTable =
      float_ternaries<fma_f32>(std::make_integer_sequence<int, kFloatCodes>());
  if (control.round == Round::NearestAway) return nullptr;
  return choose(avx2_fma_f32(control), kTable[static_cast<size_t>(float_code(control))]);
}

LaneBinary lane_min_f32(MinMaxControl control) {
  return choose(avx2_min_f32(control), portable_min_max<min_f32>(control));
}
LaneBinary lane_max_f32(MinMaxControl control) {
  return choose(avx2_max_f32(control), portable_min_max<max_f32>(control));
}

LaneCompare lane_compare_f32(FloatCompare code, FloatControl control) {
  static constexpr auto kTable = comparisons(std::make_integer_sequence<int, 28>());
  return choose(avx2_compare_f32(code, control),
                kTable[static_cast<size_t>(code) * 2 + (control.ftz ? 1 : 0)]);
}

LaneUnary lane_ex2_approx_f32(FloatControl control) {
  return choose(avx2_ex2_approx_f32(control), portable_approx<ex2_approx_f32>(control));
}
LaneUnary lane_lg2_approx_f32(FloatControl control) {
  return portable_approx<lg2_approx_f32>(control);
}
LaneUnary lane_rcp_approx_f32(FloatControl control) {
  return choose(avx2_rcp_approx_f32(control), portable_approx<rcp_approx_f32>(control));
}

LaneBinary lane_add_half2(Half format, FloatControl control) {
  return choose(avx2_add_half2(format, control), portable_half_binary<add_half2>(format, control));
}
LaneBinary lane_sub_half2(Half format, FloatControl control) {
  return choose(avx2_sub_half2(format, control), portable_half_binary<sub_half2>(format, control));
}
LaneBinary lane_mul_half2(Half format, FloatControl control) {
  return choose(avx2_mul_half2(format, control), portable_half_binary<mul_half2>(format, control));
}

LaneTernary lane_fma_half2(Half format, FloatControl control) {
  constexpr auto kCodes = std::make_integer_sequence<int, kHalfCodes>();
  static constexpr auto kF16 = half_ternaries<fma_half2, Half::F16>(kCodes);
  static constexpr auto kBF16 = half_ternaries<fma_half2, Half::BF16>(kCodes);
  size_t code = static_cast<size_t>(half_code(control));
  return choose(avx2_fma_half2(format, control), format == Half::F16 ? kF16[code] : kBF16[code]);
}

LaneBinary lane_min_half2(Half format, MinMaxControl control) {
  return choose(avx2_min_half2(format, control), portable_half_min_max<min_half2>(format, control));
}
LaneBinary lane_max_half2(Half format, MinMaxControl control) {
  return choose(avx2_max_half2(format, control), portable_half_min_max<max_half2>(format, control));
}

LaneBinary lane_pack_half2(Half format) {
  return choose(avx2_pack_half2(format),
                format == Half::F16 ? pack_lanes<Half::F16> : pack_lanes<Half::BF16>);
}
LaneUnary lane_half_from_f32(Half format) {
  return choose(avx2_half_from_f32(format),
                format == Half::F16 ? narrow_lanes<Half::F16> : narrow_lanes<Half::BF16>);
}
LaneUnary lane_half_to_f32(Half format) {
  return choose(avx2_half_to_f32(format),
                format == Half::F16 ? widen_lanes<Half::F16> : widen_lanes<Half::BF16>);
}

void lane_lop3(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c,
               uint8_t table) {
  uint32_t minterm[8];
  for (uint32_t index = 0; index < 8; ++index)
    minterm[index] = ((table >> index) & 1) != 0 ? ~uint32_t{0} : 0;
  for (int i = 0; i < kLanes;
       ++i) {  // multiplexers: c selects within pairs, b between pairs, a between fours
    uint32_t x = a[i], y = b[i], z = c[i];
    uint32_t low = (((minterm[0] & ~z) | (minterm[1] & z)) & ~y) |
                   (((minterm[2] & ~z) | (minterm[3] & z)) & y);
    uint32_t high = (((minterm[4] & ~z) | (minterm[5] & z)) & ~y) |
                    (((minterm[6] & ~z) | (minterm[7] & z)) & y);
    d[i] = (low & ~x) | (high & x);
  }
}

}  // namespace ptxb::emu::arith
