// Owns small text operations used everywhere; never allocates views that outlive their input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxb {

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
std::vector<std::string_view> split_lines(std::string_view text);  // without '\n' and '\r'
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// The whole text must be the number; 0x accepted for unsigned. nullopt otherwise or on overflow.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<uint64_t> parse_uint(std::string_view text);
std::optional<double> parse_double(std::string_view text);
std::string to_hex(std::span<const uint8_t> bytes);
std::optional<std::vector<uint8_t>> from_hex(std::string_view text);
// Control bytes become \xNN, longer than limit_bytes is cut with "...": safe to print on a terminal.
std::string printable(std::string_view text, size_t limit_bytes);
// Edit distance's nearest of `names`, or "" when none is close: for "did you mean".
std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace ptxb
