// Runs a fuzz target over every file of the folders given: the corpus as a test, without a fuzzer.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>

#include "base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code fault;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i], fault)) {
      if (!entry.is_regular_file()) continue;
      auto bytes = ptxb::read_file(entry.path());
      if (!bytes) {
        std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
        return 1;
      }
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size());
      ++count;
    }
  }
  std::printf("%zu inputs replayed\n", count);
  return count > 0 ? 0 : 1;  // an empty corpus is a mistake
}
