// Owns the constants of ex2.approx: 2^a = 2^n * P(a - n) with n the nearest integer, |a - n| <=
// 1/2. Never used outside arith: scalar and AVX2 evaluate the same steps and so give the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ptxb::emu::arith {

// Interpolates (2^f - 1) / f at the Chebyshev nodes of [-1/2, 1/2]; P(0) = 1 exactly. Relative
// error below 2^-26.
inline constexpr float kEx2Coefficients[7] = {0x1p+0f,        0x1.62e43p-1f,  0x1.ebfbep-3f,
                                              0x1.c6af6cp-5f, 0x1.3b2a54p-7f, 0x1.5f089p-10f,
                                              0x1.44138ap-13f};
// Outside, the result is 0 or infinity; inside, 2^n splits into two normal factors.
inline constexpr float kEx2Lowest = -152.0f;
inline constexpr float kEx2Highest = 130.0f;

}  // namespace ptxb::emu::arith
