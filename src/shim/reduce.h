// Owns the way from three raw recordings to one plan: lifetimes, order, unexplained differences,
// setup and steady state. Pure: no files, no processes. The recording is hostile; what it says is
// checked against the request.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "model/evaluation.h"
#include "shim/recording.h"

namespace ptxb::shim {

// A plan that cannot be: the candidate's doing (LaunchError) or beyond what can be recorded
// (LaunchUnsupported).
struct NoPlan {
  Verdict verdict = Verdict::LaunchError;
  std::string cause, hint;
};

// REQUIRES: recording.ending is Complete. The plan's buffers, symbols, tensor maps, loaded modules,
// setup and steady are filled in; its arch, digests, names, axes and module 0 are the caller's.
// Buffers keep the addresses of the second call. Error: BadInput, when the recording contradicts
// itself or the request (it was not written by our recorder).
Result<std::variant<LaunchPlan, NoPlan>> reduce(const Request& request, const Recording& recording);

}  // namespace ptxb::shim
