// Owns reading a manifest of kernels with their expected verdicts (kernels/manifest.toml; format in its head).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "model/evaluation.h"

namespace ptxb::app {

struct ManifestEntry {
  std::string file;      // below the manifest's folder
  std::string task, selector;  // selector: "M=93"
  std::string arch;
  Verdict verdict = Verdict::Passed;
  bool values_right = false;
  bool quickstart = false;
  std::string note;
};

// Error BadInput naming the file, the entry and the key.
Result<std::vector<ManifestEntry>> read_manifest(const Path& path);

}  // namespace ptxb::app
