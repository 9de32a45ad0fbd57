// Owns reading only the declarations of a PTX text (entries with parameters and limits, module
// variables), for text whose instructions our parser does not know: it may still run on a GPU.
// Never reads a body, never refuses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "model/artifact.h"

namespace ptxb::build {

struct Declarations {
  std::vector<KernelInfo> kernels;
  std::vector<SymbolInfo> symbols;
};
// REQUIRES: ptxas accepted the text. Of any other text something harmless is read.
Declarations read_declarations(std::string_view ptx);

}  // namespace ptxb::build
