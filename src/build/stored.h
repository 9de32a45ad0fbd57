// Owns the form in which a build lies in the cache: a folder with candidate.so, candidate.ptx,
// candidate.cubin and build.json. A folder whose files do not have the digests written in
// build.json counts as absent. Private to build/.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "build/compile.h"

namespace ptxb::build {

using Built = std::variant<Artifact, BuildFailure>;

// Writes into `folder` (made when missing). `host_library` are the bytes of candidate.so.
Result<void> store(const Built& built, const std::string& host_library, const Path& folder);
// nullopt: absent, damaged, or written by another version. Artifact::folder and host_library point
// into `folder`.
std::optional<Built> load_stored(const Path& folder);

}  // namespace ptxb::build
