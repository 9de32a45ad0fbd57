// Owns the recorder's two files: the request (what to load and call) and the recording (what the
// host code asked for, raw). A recording was written by a process that ran a candidate: it is
// hostile until recording_from_json and reduce() took it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/launch_plan.h"

namespace ptxb::shim {

inline constexpr int kCalls = 3;

enum class StreamKind { Caller, Legacy, PerThread, Blocking, NonBlocking };

// One node of a launched graph; no action: an empty node. `after` names earlier nodes of the same
// graph.
struct GraphWork {
  std::optional<PlanAction> action;
  std::vector<uint32_t> after;
};

// What the host did, in host order. Ids index Recording::streams and allocations; events are
// numbered by creation.
struct Step {
  enum class Kind {
    Work,         // action on stream
    Graph,        // nodes on stream
    RecordEvent,  // event on stream
    WaitEvent,    // stream waits for event
    SyncStream,
    SyncEvent,
    SyncDevice,  // the host waited
    Allocate,    // allocation came to be
    Free,        // allocation ended, seen by the host
    FreeAsync,   // allocation ended in stream's order
  };
  Kind kind = Kind::Work;
  uint32_t stream = 0, event = 0, allocation = 0;
  std::optional<PlanAction> action;
  std::vector<GraphWork> nodes;
};

struct Allocation {
  uint64_t address = 0, size_bytes = 0;
};

// A call that CUDA itself would have refused; the host got the error code.
struct Refusal {
  int call = 0;     // 0: while loading, else 1..3
  std::string api;  // "cudaLaunchKernel"
  std::string why;  // one sentence
};

enum class Ending {
  Complete,     // three calls returned
  NoEntry,      // the library has no entry of the binding's name, or did not load; detail says why
  Threw,        // the entry threw or raised; detail is its text
  Unsupported,  // a named call or condition that cannot be recorded; detail names it
  Exited,       // exit() was called inside a call; detail says after what
  WorkLibrary,  // a library that would do the work had been loaded; detail is its file
};
std::string_view name(Ending ending);

struct Recording {
  Ending ending = Ending::Complete;
  int call = 0;  // the call in which it ended (1..3), 0 while loading
  std::string detail;
  std::vector<StreamKind> streams;  // 0 is the caller's, 1 the legacy default stream
  uint32_t events = 0;
  std::vector<Allocation> allocations;
  std::vector<PlanSymbol> symbols;
  std::vector<PlanModule> modules;  // loaded at run time; plan module i is modules[i - 1]
  std::vector<PlanTensorMap> tensor_maps;
  std::vector<std::vector<Step>>
      calls;  // kCalls when complete; steps made while loading open calls[0]
  std::vector<Refusal> refusals;
  std::vector<std::string> notes;  // ignored or approximated calls, each once
};

Json to_json(const Recording& recording);
Result<Recording> recording_from_json(const Json& json, std::string_view name);

// One tensor or host scalar of the entry's argument list.
struct Argument {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;  // of a tensor
  bool scalar = false, output = false;
  double value = 0;                 // scalar
  std::vector<uint64_t> addresses;  // tensor: one for each call
  uint64_t size_bytes = 0;          // tensor
};

// Limits of the target chip that host code can ask for (arch/chip.h says what each means).
struct ChipLimits {
  std::string product;
  uint32_t major = 0, minor = 0, multiprocessors = 0;
  uint32_t max_threads_per_block = 0, max_threads_per_multiprocessor = 0,
           max_blocks_per_multiprocessor = 0;
  uint32_t registers_per_multiprocessor = 0, max_registers_per_thread = 0;
  uint32_t shared_per_multiprocessor_bytes = 0, shared_per_block_bytes = 0,
           shared_per_block_optin_bytes = 0;
  uint32_t reserved_shared_bytes = 0, max_cluster_size = 0, max_cluster_size_nonportable = 0;
  uint64_t memory_bytes = 0;
  uint32_t l2_bytes = 0, clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
};

struct Request {
  std::string library;      // path of candidate.so
  std::string tvm_library;  // path of libtvm_ffi.so; tvm-ffi binding only
  Binding binding = Binding::Plain;
  ChipLimits chip;
  std::vector<KernelInfo> kernels;  // of the candidate's own module
  std::vector<PlanSymbol>
      symbols;  // names and sizes of its host-visible variables; addresses unused
  std::vector<Argument> arguments;  // inputs, outputs
  std::vector<int64_t> axes;        // in definition order
  uint64_t scratch_begin = 0;       // first free address for allocations and symbols
};

Json to_json(const Request& request);
Result<Request> request_from_json(const Json& json, std::string_view name);

}  // namespace ptxb::shim
