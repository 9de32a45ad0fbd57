// Owns the order in which a call's work may run: streams, events, host waits and graphs turned into
// dependencies. Pure; the caller's stream counts as a blocking stream, so the legacy default stream
// is ordered with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shim/recording.h"

namespace ptxb::shim {

struct OrderedWork {
  PlanAction action;
  uint32_t stream = 0;  // plan stream: 0 the caller's (and the legacy default) stream
  std::vector<uint32_t>
      after;  // earlier work that must have ended, beyond the plan stream's own order
  StreamKind kind = StreamKind::Caller;  // of the stream that the host named
  size_t step = 0;                       // index of the host's step, for lifetimes
};

struct OrderedCall {
  std::vector<OrderedWork> work;
  // The first work that could start before the caller's stream got to this call, or end after it
  // went on.
  std::optional<size_t> before_start, after_end;
};

// Error: Limit, when more than kMostConcurrent pieces of work are unordered with each other.
inline constexpr size_t kMostConcurrent = 64;
Result<OrderedCall> order(const Recording& recording, const std::vector<Step>& steps);

}  // namespace ptxb::shim
