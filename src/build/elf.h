// Owns reading the dynamic symbol table of a 64-bit little-endian shared library that untrusted code produced.
// Every offset is checked; never maps, loads or runs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ptxb::build {

struct DynamicSymbols {
  struct Symbol {
    std::string name;
    bool weak = false;
    bool function = false;
    bool versioned = false;  // undefined ones: found in a library when it was linked
  };
  std::vector<Symbol> exported;  // defined, visible to others
  std::vector<Symbol> undefined;
  std::vector<std::string> needed;  // DT_NEEDED
  bool defines(std::string_view name) const;
};

// Error BadInput naming what is wrong with the file.
Result<DynamicSymbols> read_dynamic_symbols(std::string_view bytes, std::string_view name);

}  // namespace ptxb::build
