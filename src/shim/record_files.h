// Owns what ptxbench-record and its caller agree on beside the two JSON files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ptxb::shim {

// Beside the recording: "loading", "call N" as they begin, "fault 0x<address>" on a bad access.
// Evidence only, for words.
inline constexpr const char* kProgressEnding = ".progress";
// Exit code of ptxbench-record's own trouble. Candidates can fake it, but not undo the progress
// file's "loading".
inline constexpr int kOwnFailure = 3;

}  // namespace ptxb::shim
