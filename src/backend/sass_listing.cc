// Owns reading nvdisasm's listing and joining it with counts. Never runs a tool.
// SPDX-License-Identifier: Apache-2.0
#include "backend/sass_listing.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "arch/families.h"
#include "base/text.h"

namespace ptxb {

namespace {

std::string_view first_word(std::string_view opcode) { return opcode.substr(0, opcode.find('.')); }

// "/*0080*/   @!P0 HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0 ;"
std::optional<SassInstruction> parse_line(std::string_view line) {
  line = trim(line);
  if (!line.starts_with("/*")) return std::nullopt;
  const size_t close = line.find("*/");
  if (close == std::string_view::npos || close < 6) return std::nullopt;
  const auto offset = parse_uint("0x" + std::string(line.substr(2, close - 2)));
  if (!offset || *offset > UINT32_MAX) return std::nullopt;
  SassInstruction instruction;
  instruction.offset_bytes = static_cast<uint32_t>(*offset);
  std::string_view rest = trim(line.substr(close + 2));
  if (const size_t end = rest.find(';'); end != std::string_view::npos)
    rest = trim(rest.substr(0, end));
  if (rest.starts_with("@")) {
    const size_t space = rest.find(' ');
    instruction.guard = std::string(rest.substr(0, space));
    rest = space == std::string_view::npos ? std::string_view() : trim(rest.substr(space));
  }
  const size_t space = rest.find(' ');
  instruction.opcode = std::string(rest.substr(0, space));
  if (space != std::string_view::npos) instruction.operands = std::string(trim(rest.substr(space)));
  if (instruction.opcode.empty() || instruction.opcode.starts_with("/*"))
    return std::nullopt;  // an encoding line
  return instruction;
}

// "64x256x16" as three numbers.
std::optional<std::array<double, 3>> spelled_shape(std::string_view part) {
  const std::vector<std::string_view> pieces = split(part, 'x');
  if (pieces.size() != 3) return std::nullopt;
  std::array<double, 3> shape{};
  for (size_t i = 0; i < 3; ++i) {
    const auto value = parse_uint(pieces[i]);
    if (!value || *value == 0 || *value > 65536) return std::nullopt;
    shape[i] = static_cast<double>(*value);
  }
  return shape;
}

// HMMA and its kin write m, n and k without separators: 16816, 1688, 884, 16832, 168128.
std::optional<std::array<double, 3>> packed_shape(std::string_view part) {
  for (std::string_view m_n : {"168", "88"}) {
    if (!part.starts_with(m_n)) continue;
    const auto k = parse_uint(part.substr(m_n.size()));
    if (k && *k >= 4 && *k <= 256)
      return std::array<double, 3>{m_n == "168" ? 16.0 : 8.0, 8.0, static_cast<double>(*k)};
  }
  return std::nullopt;
}

}  // namespace

std::vector<SassFunction> parse_sass(std::string_view listing) {
  std::vector<SassFunction> functions;
  bool inside = false;
  for (std::string_view line : split_lines(listing)) {
    // A section's label opens a function: ".text.<name>:".
    if (line.starts_with(".text.") && line.ends_with(":")) {
      functions.push_back({std::string(line.substr(6, line.size() - 7)), {}});
      inside = true;
      continue;
    }
    if (trim(line).starts_with(".section")) {
      inside = inside && line.find(".text.") != std::string_view::npos;
      continue;
    }
    if (!inside) continue;
    if (auto instruction = parse_line(line))
      functions.back().instructions.push_back(*std::move(instruction));
  }
  return functions;
}

bool does_nothing(const SassInstruction& instruction) {
  const std::string_view word = first_word(instruction.opcode);
  if (!word.ends_with("GMMA")) return false;
  return instruction.operands.starts_with("RZ,") &&
         instruction.operands.find("gdesc[URZ]") != std::string::npos;
}

double flops_a_warp(std::string_view opcode) {
  const std::string_view word = first_word(opcode);
  const bool warpgroup = word.ends_with("GMMA");
  const bool warp =
      word == "HMMA" || word == "IMMA" || word == "DMMA" || word == "QMMA" || word == "BMMA";
  if (!warpgroup && !warp) return 0;
  for (std::string_view part : split(opcode, '.')) {
    const auto shape = warpgroup ? spelled_shape(part) : packed_shape(part);
    // A warpgroup instruction is counted once in each of its four warps.
    if (shape) return 2 * (*shape)[0] * (*shape)[1] * (*shape)[2] / (warpgroup ? 4 : 1);
  }
  return 0;
}

std::string operand_type_of_sass(std::string_view opcode) {
  if (flops_a_warp(opcode) == 0) return "";
  // The operands' type comes after the accumulator's: the last one said counts.
  std::string type =
      first_word(opcode).ends_with("GMMA") || first_word(opcode) == "HMMA" ? ".f16" : "";
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"BF16", ".bf16"}, {"TF32", ".tf32"}, {"E4M3", ".e4m3"},
      {"E5M2", ".e5m2"}, {"S8", ".s8"},     {"U8", ".u8"}};
  for (std::string_view part : split(opcode, '.')) {
    for (const auto& [sass, ptx] : kTypes) {
      if (part == sass) type = ptx;
    }
  }
  return type;
}

double bytes_a_thread(std::string_view opcode) {
  if (first_word(opcode) != "LDGSTS") return 0;
  for (std::string_view part : split(opcode, '.')) {
    if (part == "128") return 16;
    if (part == "64") return 8;
  }
  return 4;
}

namespace {

// Of CUtensorMapDataType (cuda.h); packed 4- and 6-bit types as the whole bytes they take in
// memory.
double element_bytes(uint32_t dtype) {
  constexpr double kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0.5, 0.5, 0.75};
  return dtype < std::size(kBytes) ? kBytes[dtype] : 0;
}

bool lies_in(const LaunchPlan& plan, uint64_t address, BufferRole role) {
  return std::any_of(plan.buffers.begin(), plan.buffers.end(), [&](const PlanBuffer& buffer) {
    return buffer.role == role && address >= buffer.address &&
           address - buffer.address < buffer.size_bytes;
  });
}

}  // namespace

void estimate_tma_bytes(const LaunchPlan& plan, std::vector<OpcodeCount>& counts) {
  for (OpcodeCount& count : counts) {
    const std::string_view word = first_word(count.opcode);
    const bool load = word == "UTMALDG", store = word == "UTMASTG" || word == "UTMAREDG";
    if (!load && !store) continue;
    double smallest = 0;
    for (const PlanTensorMap& map : plan.tensor_maps) {
      const std::string rank = "." + std::to_string(map.rank) + "D";
      const bool fits =
          count.opcode.find(rank) != std::string::npos &&
          (lies_in(plan, map.address, load ? BufferRole::Input : BufferRole::Output) ||
           lies_in(plan, map.address, BufferRole::Scratch));
      if (!fits) continue;
      double box = element_bytes(map.dtype);
      for (uint32_t i = 0; i < map.rank; ++i) box *= map.box[i];
      smallest = smallest == 0 ? box : std::min(smallest, box);
    }
    count.bytes = smallest * static_cast<double>(count.warps);
  }
}

std::string family_of_sass(const SassInstruction& instruction) {
  if (does_nothing(instruction)) return "";
  const std::string_view word = first_word(instruction.opcode);
  for (const arch::Family& family : arch::families()) {
    if (std::find(family.sass_prefixes.begin(), family.sass_prefixes.end(), word) !=
        family.sass_prefixes.end()) {
      return family.name;
    }
  }
  return "";
}

std::vector<OpcodeCount> count_opcodes(const std::vector<SassFunction>& functions,
                                       const std::vector<SassCount>& counts, uint64_t& unmatched) {
  std::map<std::pair<std::string_view, uint32_t>, const SassInstruction*> places;
  for (const SassFunction& function : functions) {
    for (const SassInstruction& instruction : function.instructions) {
      places[{function.name, instruction.offset_bytes}] = &instruction;
    }
  }
  unmatched = 0;
  std::map<std::pair<std::string, std::string>, OpcodeCount> merged;
  for (const SassCount& count : counts) {
    const auto found = places.find({count.function, count.offset_bytes});
    if (found == places.end()) {
      ++unmatched;
      continue;
    }
    const SassInstruction& instruction = *found->second;
    const std::string type = operand_type_of_sass(instruction.opcode);
    std::string opcode = instruction.opcode;
    if (does_nothing(instruction))
      opcode += " " + instruction.operands;
    else if (!type.empty())
      opcode += " (" + type + ")";
    OpcodeCount& out = merged[{count.function, opcode}];
    out.kernel = count.function;
    out.opcode = opcode;
    out.family = family_of_sass(instruction);
    // A warp whose lanes were all predicated off was issued and did nothing.
    const uint64_t working = std::min(count.warps, count.threads);
    out.warps += working;
    out.threads += count.threads;
    out.bytes += bytes_a_thread(instruction.opcode) * static_cast<double>(count.threads);
    if (!does_nothing(instruction)) {
      out.flops +=
          flops_a_warp(instruction.opcode) *
          std::min(static_cast<double>(count.warps), static_cast<double>(count.threads) / 32);
    }
  }
  std::vector<OpcodeCount> all;
  for (auto& [key, count] : merged) all.push_back(std::move(count));
  return all;
}

std::string annotate_sass(const std::vector<SassFunction>& functions,
                          const std::vector<SassCount>& counts) {
  std::map<std::pair<std::string_view, uint32_t>, const SassCount*> places;
  for (const SassCount& count : counts) places[{count.function, count.offset_bytes}] = &count;
  std::string text;
  for (const SassFunction& function : functions) {
    const auto first = places.lower_bound({function.name, 0});
    if (first == places.end() || first->first.first != function.name) continue;  // it did not run
    text += function.name + ":\n       warps      threads\n";
    for (const SassInstruction& instruction : function.instructions) {
      const auto found = places.find({function.name, instruction.offset_bytes});
      const SassCount none;
      const SassCount& count = found != places.end() ? *found->second : none;
      char line[128];
      std::snprintf(line, sizeof line, "%12llu %12llu  /*%04x*/ %6s ",
                    static_cast<unsigned long long>(count.warps),
                    static_cast<unsigned long long>(count.threads), instruction.offset_bytes,
                    instruction.guard.c_str());
      text += line + instruction.opcode + " " + instruction.operands + "\n";
    }
  }
  return text;
}

}  // namespace ptxb
