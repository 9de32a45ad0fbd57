// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"

#include "base/file.h"

namespace ptxb::app {

Result<void> write_json(const std::string& where, const Json& json, const Terminal& terminal) {
  std::string text = json.dump(2) + "\n";
  if (where == "-") {
    terminal.print(text);
    return {};
  }
  return write_file(where, text);
}

}  // namespace ptxb::app
