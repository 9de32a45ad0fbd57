// Owns the integer model of IEEE arithmetic (see soft_float.h).
// Never uses the host's floating point.
// SPDX-License-Identifier: Apache-2.0
#include "emu/arith/soft_float.h"

#include <bit>

namespace ptxb::emu::arith {
namespace {

constexpr int kTop = 124;  // position of the highest bit of a normalised addend: one carry bit and
                           // the sign stay free

int highest_bit(Wide value) {
  uint64_t high = static_cast<uint64_t>(value >> 64);
  if (high != 0) return 127 - std::countl_zero(high);
  return 63 - std::countl_zero(static_cast<uint64_t>(value));
}

Wide shift_right_jam(Wide value, int amount) {
  if (amount <= 0) return value;
  if (amount > 127) return value != 0 ? 1 : 0;
  Wide lost = value & ((Wide{1} << amount) - 1);
  return (value >> amount) | (lost != 0 ? 1 : 0);
}

Soft normalised(Soft a, int top) {
  int shift = top - highest_bit(a.mantissa);
  a.mantissa = shift >= 0 ? a.mantissa << shift : shift_right_jam(a.mantissa, -shift);
  a.exponent -= shift;
  return a;
}

Soft zero(bool negative) { return {SoftKind::Zero, negative, 0, 0}; }
Soft infinite(bool negative) { return {SoftKind::Infinite, negative, 0, 0}; }
Soft not_a_number() { return {SoftKind::NaN, false, 0, 0}; }

Soft add_finite(Soft a, Soft b, Round round) {
  a = normalised(a, kTop);
  b = normalised(b, kTop);
  if (a.exponent < b.exponent || (a.exponent == b.exponent && a.mantissa < b.mantissa)) {
    Soft larger = b;
    b = a;
    a = larger;
  }
  Wide aligned = shift_right_jam(b.mantissa, a.exponent - b.exponent);
  if (a.negative == b.negative) {
    a.mantissa += aligned;
    return a;
  }
  a.mantissa -= aligned;
  if (a.mantissa == 0) return zero(round == Round::Down);
  return a;
}

}  // namespace

Soft unpack(Format format, uint64_t bits) {
  Soft result;
  result.negative = (bits & format.sign_bit()) != 0;
  uint64_t fraction = bits & ((uint64_t{1} << format.fraction_bits) - 1);
  int exponent = static_cast<int>((bits & format.infinity()) >> format.fraction_bits);
  if (format.finite_limit == 0 && exponent == (1 << format.exponent_bits) - 1) {
    result.kind = fraction != 0 ? SoftKind::NaN : SoftKind::Infinite;
    return result;
  }
  if (format.finite_limit != 0 && (bits & (format.sign_bit() - 1)) > format.finite_limit) {
    result.kind = SoftKind::NaN;
    return result;
  }
  if (exponent == 0 && fraction == 0) return result;
  result.kind = SoftKind::Finite;
  result.mantissa = exponent == 0 ? fraction : fraction | (uint64_t{1} << format.fraction_bits);
  result.exponent = (exponent == 0 ? 1 : exponent) - format.bias() - format.fraction_bits;
  return result;
}

Soft soft_integer(bool negative, uint64_t magnitude) {
  if (magnitude == 0) return zero(false);
  return {SoftKind::Finite, negative, 0, magnitude};
}

Wide round_shift(Wide mantissa, int bits_lost, bool negative, Round round) {
  if (bits_lost <= 0) return mantissa << -bits_lost;
  Wide kept = bits_lost > 127 ? 0 : mantissa >> bits_lost;
  Wide remainder = mantissa;
  Wide half = 2;
  if (bits_lost > 127) {
    remainder = mantissa != 0 ? 1 : 0;
  } else {
    remainder = mantissa & ((Wide{1} << bits_lost) - 1);
    half = Wide{1} << (bits_lost - 1);
  }
  bool up = false;
  switch (round) {
    case Round::NearestEven:
      up = remainder > half || (remainder == half && (kept & 1) != 0);
      break;
    case Round::NearestAway:
      up = remainder >= half;
      break;
    case Round::TowardZero:
      break;
    case Round::Down:
      up = negative && remainder != 0;
      break;
    case Round::Up:
      up = !negative && remainder != 0;
      break;
  }
  return kept + (up ? 1 : 0);
}

uint64_t pack(Format format, const Soft& value, Round round, Overflow overflow) {
  uint64_t sign = value.negative ? format.sign_bit() : 0;
  switch (value.kind) {
    case SoftKind::NaN:
      return format.sign_bit() - 1;
    case SoftKind::Zero:
      return sign;
    case SoftKind::Infinite:
      return sign | (overflow == Overflow::Saturate ? format.largest() : format.infinity());
    case SoftKind::Finite:
      break;
  }
  int exponent = value.exponent + highest_bit(value.mantissa);
  uint64_t encoded = ~uint64_t{0};
  if (exponent <= format.bias() + 1) {
    int lowest = 1 - format.bias();
    int quantum = (exponent < lowest ? lowest : exponent) - format.fraction_bits;
    Wide kept = round_shift(value.mantissa, quantum - value.exponent, value.negative, round);
    uint64_t field = static_cast<uint64_t>(quantum + format.fraction_bits - lowest);
    encoded = (field << format.fraction_bits) + static_cast<uint64_t>(kept);
  }
  if (encoded > format.largest()) {
    bool away = round == Round::NearestEven || round == Round::NearestAway ||
                (round == Round::Up && !value.negative) || (round == Round::Down && value.negative);
    encoded = away && overflow == Overflow::Ieee ? format.infinity() : format.largest();
  }
  return sign | encoded;
}

Soft soft_negate(Soft a) {
  a.negative = !a.negative;
  return a;
}

Soft soft_add(const Soft& a, const Soft& b, Round round) {
  if (a.kind == SoftKind::NaN || b.kind == SoftKind::NaN) return not_a_number();
  if (a.kind == SoftKind::Infinite || b.kind == SoftKind::Infinite) {
    if (a.kind == b.kind && a.negative != b.negative) return not_a_number();
    return infinite(a.kind == SoftKind::Infinite ? a.negative : b.negative);
  }
  if (a.kind == SoftKind::Zero && b.kind == SoftKind::Zero) {
    return zero(a.negative == b.negative ? a.negative : round == Round::Down);
  }
  if (a.kind == SoftKind::Zero) return b;
  if (b.kind == SoftKind::Zero) return a;
  return add_finite(a, b, round);
}

Soft soft_mul(const Soft& a, const Soft& b) {
  bool negative = a.negative != b.negative;
  if (a.kind == SoftKind::NaN || b.kind == SoftKind::NaN) return not_a_number();
  if (a.kind == SoftKind::Infinite || b.kind == SoftKind::Infinite) {
    if (a.kind == SoftKind::Zero || b.kind == SoftKind::Zero) return not_a_number();
    return infinite(negative);
  }
  if (a.kind == SoftKind::Zero || b.kind == SoftKind::Zero) return zero(negative);
  return {SoftKind::Finite, negative, a.exponent + b.exponent, a.mantissa * b.mantissa};
}

Soft soft_fma(const Soft& a, const Soft& b, const Soft& c, Round round) {
  return soft_add(soft_mul(a, b), c, round);
}

Soft soft_div(const Soft& a, const Soft& b) {
  bool negative = a.negative != b.negative;
  if (a.kind == SoftKind::NaN || b.kind == SoftKind::NaN) return not_a_number();
  if (a.kind == SoftKind::Infinite)
    return b.kind == SoftKind::Infinite ? not_a_number() : infinite(negative);
  if (b.kind == SoftKind::Infinite) return zero(negative);
  if (b.kind == SoftKind::Zero)
    return a.kind == SoftKind::Zero ? not_a_number() : infinite(negative);
  if (a.kind == SoftKind::Zero) return zero(negative);
  Soft dividend = normalised(a, 126);
  Soft divisor = normalised(b, 60);  // the quotient has 66 or 67 bits
  Wide quotient = dividend.mantissa / divisor.mantissa;
  Wide remainder = dividend.mantissa % divisor.mantissa;
  return {SoftKind::Finite, negative, dividend.exponent - divisor.exponent,
          quotient | (remainder != 0 ? 1 : 0)};
}

Soft soft_sqrt(const Soft& a) {
  if (a.kind == SoftKind::NaN) return not_a_number();
  if (a.kind == SoftKind::Zero) return a;
  if (a.negative) return not_a_number();
  if (a.kind == SoftKind::Infinite) return a;
  Soft even = normalised(a, 125);
  if ((even.exponent & 1) != 0) even = normalised(a, 124);
  Wide root = 0;
  Wide rest = even.mantissa;
  for (int bit = 62; bit >= 0; --bit) {  // digit by digit: root^2 <= mantissa < (root + 1)^2
    Wide trial = ((root << 1) | (Wide{1} << bit)) << bit;
    if (trial <= rest) {
      rest -= trial;
      root |= Wide{1} << bit;
    }
  }
  return {SoftKind::Finite, false, even.exponent / 2, root | (rest != 0 ? 1 : 0)};
}

Soft soft_round_to_integral(const Soft& a, Round round) {
  if (a.kind != SoftKind::Finite || a.exponent >= 0) return a;
  Wide kept = round_shift(a.mantissa, -a.exponent, a.negative, round);
  if (kept == 0) return zero(a.negative);
  return {SoftKind::Finite, a.negative, 0, kept};
}

SoftInteger soft_to_integer(const Soft& a, Round round) {
  if (a.kind == SoftKind::Zero || a.kind == SoftKind::NaN) return {};
  if (a.kind == SoftKind::Infinite) return {~uint64_t{0}, true};
  if (a.exponent > 0 && a.exponent + highest_bit(a.mantissa) > 63) return {~uint64_t{0}, true};
  Wide kept = round_shift(a.mantissa, -a.exponent, a.negative, round);
  if ((kept >> 64) != 0) return {~uint64_t{0}, true};
  return {static_cast<uint64_t>(kept), false};
}

}  // namespace ptxb::emu::arith
