// Owns what an address of a recording means: which tensor of which call, which allocation, which
// symbol. Pure; the recorder never hands out an address twice, so every address has one meaning.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shim/recording.h"

namespace ptxb::shim {

struct Place {
  enum class Kind { Argument, Allocation, Symbol } kind = Kind::Argument;
  int call = 0;        // Argument: 1..3
  uint32_t index = 0;  // of the argument, allocation or symbol
  uint64_t base =
      0;  // its first byte; the address may lie a little before or behind (pointer arithmetic)
};

class Places {
 public:
  // Error: BadInput, when the recording's places overlap or lie outside of the window.
  static Result<Places> make(const Request& request, const Recording& recording);
  // nullopt: no pointer that this recording gave out.
  std::optional<Place> find(uint64_t address) const;
  // "tensor A of call 2 + 0x40", "scratch allocation 3", "0x1234".
  std::string describe(uint64_t address) const;

 private:
  struct Mapping {
    uint64_t begin, end;
    Place place;
  };
  const Request* request_ = nullptr;
  const Recording* recording_ = nullptr;
  std::vector<Mapping> mappings_;  // sorted
};

}  // namespace ptxb::shim
