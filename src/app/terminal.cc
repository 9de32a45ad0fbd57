// SPDX-License-Identifier: Apache-2.0
#include "app/terminal.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace ptxb::app {

Terminal Terminal::make(bool plain, bool quiet) {
  Terminal terminal;
  const char* no_color = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  bool dumb = kind && std::string_view(kind) == "dumb";
  terminal.coloured_ = !plain && !(no_color && *no_color) && !dumb && ::isatty(STDOUT_FILENO);
  terminal.quiet_ = quiet;
  terminal.live_ = ::isatty(STDERR_FILENO) && !dumb;
  return terminal;
}

std::string Terminal::paint(Colour colour, std::string_view text) const {
  if (!coloured_ || colour == Colour::None) return std::string(text);
  const char* code = colour == Colour::Green    ? "32"
                     : colour == Colour::Red    ? "31"
                     : colour == Colour::Yellow ? "33"
                     : colour == Colour::Dim    ? "2"
                                                : "1";
  return std::string("\x1b[") + code + "m" + std::string(text) + "\x1b[0m";
}

void Terminal::print(std::string_view text) const { std::fwrite(text.data(), 1, text.size(), stdout); }

void Terminal::error(const Error& error) const {
  clear_progress();
  std::string line = "ptxbench: error: " + error.message + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Terminal::progress(std::string_view text) const {
  if (quiet_) return;
  if (live_) std::fprintf(stderr, "\r\x1b[K%.*s", static_cast<int>(text.size()), text.data());
  else std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
}

void Terminal::clear_progress() const {
  if (!quiet_ && live_) std::fprintf(stderr, "\r\x1b[K");
}

int exit_code(const Error& error) {
  return error.code == ErrorCode::BadInput || error.code == ErrorCode::NotFound ? 2 : 3;
}

}  // namespace ptxb::app
