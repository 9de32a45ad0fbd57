// Owns the state behind both shim libraries: handles, device memory map, streams, graphs, and the
// notes being taken. Lives in libcuda.so.1; libcudart.so.13 and ptxbench-record reach it here.
// Never talks to a GPU, never reads device data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shim/abi.h"
#include "shim/recording.h"

namespace ptxb::shim {

using abi::Code;
using Guard = std::unique_lock<std::recursive_mutex>;

struct Graph;

// Behind CUfunction, CUkernel, cudaFunction_t and cudaKernel_t: CUDA lets host code cast between
// them.
struct Kernel {
  uint32_t module = 0;
  KernelInfo info;
  bool known = false;  // its parameters are known
  bool nonportable_cluster = false;
  Dim3 cluster_attribute{0, 0, 0};
  int max_dynamic_shared = 0, carveout = -1, scheduling = 0;
};

struct Stream {
  uint32_t id = 0;
  StreamKind kind = StreamKind::Blocking;
  unsigned flags = 0;
  int priority = 0;
  Graph* capture = nullptr;  // being captured into
  bool capture_origin = false;
  std::vector<size_t> capture_tail;  // nodes that the next captured one comes after
};

struct Event {
  uint32_t id = 0;
  unsigned flags = 0;
  bool recorded = false;
  Graph* capture = nullptr;  // last recorded while capturing
  std::vector<size_t> capture_tail;
};

struct GraphNode {
  enum class Kind { Kernel, Memset, Copy, HostWrite, Empty, Child };
  Kind kind = Kind::Empty;
  Graph* graph = nullptr;
  size_t index = 0;
  PlanAction action = WriteBytes{};   // Kernel, Memset, Copy; HostWrite: address only
  const void* host_source = nullptr;  // HostWrite: read at launch, as CUDA does
  size_t host_bytes = 0;
  Kernel* kernel = nullptr;
  std::vector<void*> param_pointers;  // what ...GetParams hands out
  std::shared_ptr<Graph> child;       // a copy
  std::vector<size_t> after;
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
  int capture_mode = 0;
  std::shared_ptr<Graph> copy() const;
  std::vector<size_t> order() const;  // topological; shorter than nodes when there is a cycle
};

struct GraphExec {
  std::shared_ptr<Graph> graph;
  std::unordered_map<const GraphNode*, size_t> index_of;  // nodes of the graph it was made from
  unsigned long long flags = 0;
};

struct LaunchShape {
  Dim3 grid, block, cluster{0, 0, 0};
  uint64_t dynamic_shared_bytes = 0;
  bool cooperative = false, programmatic_serialization = false;
};

struct Module {
  uint32_t index = 0;
  std::map<std::string, Kernel*> kernels;
  std::map<std::string, uint64_t> variables;  // name, size
};

enum class DefaultStream { Legacy, PerThread };

class Recorder {
 public:
  static Recorder& get();
  Guard lock() { return Guard(mutex_); }

  // --- driven by ptxbench-record (recorder.cc)
  void start(Request request, std::function<void(const Recording&)> on_stop);
  void enter_call(int call);  // 1..3
  void leave_call();
  void* caller_stream() const { return streams_.at(0).get(); }
  const Recording& recording() const { return recording_; }
  [[noreturn]] void stop(Ending ending, std::string detail);
  [[noreturn]] void unsupported(std::string_view api, std::string_view why = {});
  Code refuse(std::string_view api, Code code, std::string why);
  void note(std::string text);
  int phase() const { return phase_; }
  const ChipLimits& chip() const { return request_.chip; }
  const Refusal* last_refusal() const {
    return recording_.refusals.empty() ? nullptr : &recording_.refusals.back();
  }

  // --- memory (recorder_memory.cc)
  Code allocate(std::string_view api, void** pointer, uint64_t size_bytes, Stream* stream);
  Code release(std::string_view api, uint64_t address, Stream* stream);
  struct Region {
    enum class Kind { Argument, Allocation, Symbol } kind = Kind::Argument;
    uint32_t index = 0;
    uint64_t address = 0, size_bytes = 0;
    bool live = true;
  };
  const Region* region_of(uint64_t address) const;  // also a dead one
  bool is_device(uint64_t address) const { return address >= kWindowBegin && address < kWindowEnd; }
  Code memset(std::string_view api, Memset memset, Stream* stream);
  struct Copy {
    uint64_t destination = 0, source = 0;  // host or device addresses
    uint64_t width_bytes = 0, height = 1, destination_pitch = 0, source_pitch = 0;
    int kind = abi::kDefaultKind;
  };
  Code copy(std::string_view api, const Copy& copy, Stream* stream);
  uint64_t free_bytes() const;
  uint64_t symbol_address(uint32_t module, const std::string& name, uint64_t size_bytes);

  // --- modules and kernels (recorder_modules.cc)
  Kernel* register_kernel(const void* host_function, const char* name);
  Kernel* kernel_of(const void* handle_or_function) const;  // nullptr: none
  void register_variable(const void* host, const char* name, uint64_t size_bytes);
  struct Variable {
    std::string name;
    uint64_t size_bytes = 0;
  };
  const Variable* variable_of(const void* host) const;
  Code load_module(std::string_view api, const void* image, Module** module);
  Module* module_of(const void* handle) const;

  // --- launches (recorder_launch.cc)
  Code read_attributes(std::string_view api, const abi::LaunchAttribute* attributes, unsigned count,
                       LaunchShape& shape);
  // Checks as the driver would, and makes the action. `extra` is the driver's alternative to
  // `params`.
  Code make_launch(std::string_view api, Kernel* kernel, const LaunchShape& shape, void** params,
                   void** extra, KernelLaunch& launch);
  Code launch(std::string_view api, Kernel* kernel, const LaunchShape& shape, void** params,
              void** extra, Stream* stream);
  Code encode_tensor_map(std::string_view api, void* image, PlanTensorMap map);
  Code replace_tensor_address(std::string_view api, void* image, uint64_t address);

  // --- streams, events (recorder_streams.cc)
  Stream* stream_of(void* handle, DefaultStream when_null);  // nullptr: no such stream
  Code create_stream(void** handle, unsigned flags, int priority);
  Code destroy_stream(std::string_view api, void* handle);
  Code create_event(void** handle, unsigned flags);
  Code destroy_event(void* handle);
  Event* event_of(void* handle) const;
  Code record_event(std::string_view api, void* event, Stream* stream);
  Code wait_event(std::string_view api, Stream* stream, void* event);
  Code synchronize(std::string_view api, Stream* stream);  // nullptr: the device
  Code synchronize_event(std::string_view api, void* event);
  bool any_capture() const;
  // Appends to the call's steps, or to the graph being captured on `stream`.
  Code submit(std::string_view api, Stream* stream, PlanAction action, Kernel* kernel = nullptr);
  Code submit_host_write(std::string_view api, Stream* stream, uint64_t address, const void* source,
                         uint64_t size_bytes);

  // --- graphs (recorder_graphs.cc)
  Code begin_capture(std::string_view api, Stream* stream, int mode, Graph* into);
  Code end_capture(std::string_view api, Stream* stream, void** graph);
  Graph* new_graph();
  Graph* graph_of(const void* handle) const;
  GraphNode* node_of(const void* handle) const;
  GraphExec* exec_of(const void* handle) const;
  Code add_node(Graph* graph, void* const* after, size_t count, GraphNode&& node, void** handle);
  Code instantiate(std::string_view api, Graph* graph, unsigned long long flags, void** exec);
  Code update(std::string_view api, GraphExec* exec, Graph* graph, abi::GraphUpdateInfo& info);
  Code launch_graph(std::string_view api, GraphExec* exec, Stream* stream);
  Code forget_graph(void* handle);
  Code forget_exec(void* handle);

 private:
  std::vector<Step>& steps(std::string_view api);
  void add_step(std::string_view api, Step step);
  GraphNode& add_captured(Stream* stream, GraphNode::Kind kind);
  Stream* add_stream(StreamKind kind, unsigned flags, int priority);
  Code check_range(std::string_view api, uint64_t address, uint64_t width, uint64_t pitch,
                   uint64_t height);
  uint64_t place(uint64_t size_bytes);
  WriteBytes host_bytes(std::string_view api, uint64_t address, const void* source,
                        uint64_t size_bytes);
  void emit(std::string_view api, const Graph& graph, const std::vector<uint32_t>& roots,
            std::vector<GraphWork>& out, std::vector<uint32_t>& sinks);

  mutable std::recursive_mutex mutex_;
  Request request_;
  Recording recording_;
  std::function<void(const Recording&)> on_stop_;
  int phase_ = 0;  // 0 loading, 1..3 in a call, -1 between calls
  uint64_t next_address_ = 0, used_bytes_ = 0, written_bytes_ = 0;
  size_t work_count_ = 0;
  std::map<uint64_t, Region> regions_;  // by address
  std::set<std::string> noted_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::map<std::pair<uint32_t, std::string>, size_t> symbols_;
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::vector<std::unique_ptr<GraphExec>> execs_;
  enum class HandleKind { Stream, Event, Kernel, Module, Graph, Node, Exec };
  std::unordered_map<const void*, HandleKind> alive_;  // given out and not taken back
  bool is_alive(const void* handle, HandleKind kind) const {
    auto found = alive_.find(handle);
    return found != alive_.end() && found->second == kind;
  }
  std::unordered_map<const void*, Kernel*> host_functions_;
  std::unordered_map<const void*, Variable> host_variables_;
};

}  // namespace ptxb::shim
