// Owns what ptxbench-record and its caller agree on beside the two JSON files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ptxb::shim {

// Beside the recording: "loading", "call N" as they begin, "fault 0x<address>" on a bad access.
// Evidence only, for words.
inline constexpr const char* kProgressEnding = ".progress";
// The first line on standard output, before anything of the candidate is loaded. Unlike the files it
// cannot be taken back: whatever happens after it is the candidate's doing.
inline constexpr const char* kStartedLine = "ptxbench-record started\n";
// Exit code of ptxbench-record's own trouble. Candidates can fake it, but not undo kStartedLine.
inline constexpr int kOwnFailure = 3;

}  // namespace ptxb::shim
