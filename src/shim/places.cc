// SPDX-License-Identifier: Apache-2.0
#include "shim/places.h"

#include <algorithm>

#include "model/strict_json.h"

namespace ptxb::shim {

Result<Places> Places::make(const Request& request, const Recording& recording) {
  Places out;
  out.request_ = &request;
  out.recording_ = &recording;
  bool outside = false;
  auto add = [&](Place place, uint64_t address, uint64_t size_bytes) {
    constexpr uint64_t kLongest = kWindowEnd - kWindowBegin;
    if (address < kWindowBegin + kMappingBytes || address >= kWindowEnd || size_bytes > kLongest ||
        kWindowEnd - address < size_bytes + 2 * kMappingBytes) {
      outside = true;
      return;
    }
    place.base = address;
    uint64_t begin = mapping_begin(address, size_bytes);
    outside = outside || placed_address(begin, size_bytes) != address || begin % kMappingBytes;
    // The guard behind belongs to the mapping: pointers just past the end are ordinary.
    out.mappings_.push_back({begin, begin + mapping_bytes(size_bytes) + kMappingBytes, place});
  };
  for (uint32_t i = 0; i < request.arguments.size(); ++i) {
    const Argument& a = request.arguments[i];
    for (size_t call = 0; call < a.addresses.size(); ++call) {
      add({Place::Kind::Argument, static_cast<int>(call) + 1, i, 0}, a.addresses[call],
          a.size_bytes);
    }
  }
  for (uint32_t i = 0; i < recording.allocations.size(); ++i) {
    add({Place::Kind::Allocation, 0, i, 0}, recording.allocations[i].address,
        recording.allocations[i].size_bytes);
  }
  for (uint32_t i = 0; i < recording.symbols.size(); ++i) {
    add({Place::Kind::Symbol, 0, i, 0}, recording.symbols[i].address,
        recording.symbols[i].size_bytes);
  }
  if (outside)
    return bad_input(
        "recording: an address lies outside of the window or is not placed as the recorder places");
  std::sort(out.mappings_.begin(), out.mappings_.end(),
            [](const Mapping& a, const Mapping& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < out.mappings_.size(); ++i) {
    if (out.mappings_[i].begin < out.mappings_[i - 1].end)
      return bad_input("recording: two places overlap");
  }
  return out;
}

std::optional<Place> Places::find(uint64_t address) const {
  auto after =
      std::upper_bound(mappings_.begin(), mappings_.end(), address,
                       [](uint64_t a, const Mapping& mapping) { return a < mapping.begin; });
  if (after == mappings_.begin()) return std::nullopt;
  const Mapping& mapping = *std::prev(after);
  if (address >= mapping.end) return std::nullopt;
  return mapping.place;
}

std::string Places::describe(uint64_t address) const {
  std::optional<Place> place = find(address);
  if (!place) return hex_address(address);
  std::string out;
  switch (place->kind) {
    case Place::Kind::Argument:
      out = "tensor " + request_->arguments[place->index].name + " of call " +
            std::to_string(place->call);
      break;
    case Place::Kind::Allocation:
      out = "scratch allocation " + std::to_string(place->index);
      break;
    case Place::Kind::Symbol:
      out = "symbol " + recording_->symbols[place->index].name;
      break;
  }
  if (address > place->base) out += " + " + hex_address(address - place->base);
  if (address < place->base) out += " - " + hex_address(place->base - address);
  return out;
}

}  // namespace ptxb::shim
