// Owns what reaches the terminal: colours (only on a terminal), progress lines on standard error. Control bytes are never passed on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ptxb::app {

enum class Colour { None, Green, Red, Yellow, Dim, Bold };

class Terminal {
 public:
  // Colours on standard output only when it is a terminal, NO_COLOR is not set and `plain` was not asked for.
  static Terminal make(bool plain, bool quiet);
  std::string paint(Colour colour, std::string_view text) const;
  void print(std::string_view text) const;             // standard output
  void error(const Error& error) const;                // "ptxbench: error: ..." on standard error
  void progress(std::string_view text) const;          // one line on standard error, overwritten on a terminal
  void clear_progress() const;
  bool coloured() const { return coloured_; }

 private:
  bool coloured_ = false, quiet_ = false, live_ = false;
};

// Exit code of an Error: 2 for what the user gave, 3 for the rest.
int exit_code(const Error& error);

}  // namespace ptxb::app
