// Streams and events: which exist, what is being captured, and the order of what the host asked
// for.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shim/recorder.h"

namespace ptxb::shim {

namespace {

// The handles with a fixed meaning.
constexpr uintptr_t kLegacyHandle = 1, kPerThreadHandle = 2;
constexpr unsigned kNonBlocking = 1;
constexpr int kRelaxed = 2;  // capture mode in which other calls stay allowed

}  // namespace

Stream* Recorder::add_stream(StreamKind kind, unsigned flags, int priority) {
  if (streams_.size() >= PlanLimits::kStreams) unsupported("cudaStreamCreate", "too many streams");
  auto stream = std::make_unique<Stream>();
  stream->id = static_cast<uint32_t>(streams_.size());
  stream->kind = kind;
  stream->flags = flags;
  stream->priority = priority;
  recording_.streams.push_back(kind);
  alive_[stream.get()] = HandleKind::Stream;
  return streams_.emplace_back(std::move(stream)).get();
}

Stream* Recorder::stream_of(void* handle, DefaultStream when_null) {
  auto bits = reinterpret_cast<uintptr_t>(handle);
  if (bits == 0) bits = when_null == DefaultStream::Legacy ? kLegacyHandle : kPerThreadHandle;
  if (bits == kLegacyHandle) return streams_[1].get();
  if (bits == kPerThreadHandle) {
    thread_local Stream* own = nullptr;
    if (!own) own = add_stream(StreamKind::PerThread, 0, 0);
    return own;
  }
  return is_alive(handle, HandleKind::Stream) ? static_cast<Stream*>(handle) : nullptr;
}

Code Recorder::create_stream(void** handle, unsigned flags, int priority) {
  if (!handle || flags > kNonBlocking) return abi::kInvalidValue;
  StreamKind kind = flags & kNonBlocking ? StreamKind::NonBlocking : StreamKind::Blocking;
  *handle = add_stream(kind, flags, std::clamp(priority, -5, 0));
  return abi::kSuccess;
}

Code Recorder::destroy_stream(std::string_view api, void* handle) {
  Stream* stream = stream_of(handle, DefaultStream::Legacy);
  if (!stream || stream->kind == StreamKind::Legacy || stream->kind == StreamKind::PerThread)
    return abi::kInvalidHandle;
  if (stream->kind == StreamKind::Caller)
    return refuse(api, abi::kInvalidHandle,
                  "the caller's stream is not the host function's to destroy");
  alive_.erase(stream);  // the object stays: its work does
  return abi::kSuccess;
}

Code Recorder::create_event(void** handle, unsigned flags) {
  constexpr unsigned kInterprocess = 4, kAll = 7;
  constexpr size_t kEvents = 1u << 20;
  if (!handle || flags > kAll) return abi::kInvalidValue;
  if (flags & kInterprocess) unsupported("cudaEventCreateWithFlags", "interprocess events");
  if (events_.size() >= kEvents) unsupported("cudaEventCreate", "too many events");
  auto event = std::make_unique<Event>();
  event->id = recording_.events++;
  event->flags = flags;
  *handle = event.get();
  alive_[event.get()] = HandleKind::Event;
  events_.push_back(std::move(event));
  return abi::kSuccess;
}

Event* Recorder::event_of(void* handle) const {
  return is_alive(handle, HandleKind::Event) ? static_cast<Event*>(handle) : nullptr;
}

Code Recorder::destroy_event(void* handle) {
  if (!event_of(handle)) return abi::kInvalidHandle;
  alive_.erase(handle);
  return abi::kSuccess;
}

Code Recorder::record_event(std::string_view api, void* handle, Stream* stream) {
  Event* event = event_of(handle);
  if (!event || !stream) return abi::kInvalidHandle;
  event->recorded = true;
  event->capture = stream->capture;
  event->capture_tail = stream->capture_tail;
  if (stream->capture) return abi::kSuccess;
  Step step;
  step.kind = Step::Kind::RecordEvent;
  step.stream = stream->id;
  step.event = event->id;
  add_step(api, std::move(step));
  return abi::kSuccess;
}

Code Recorder::wait_event(std::string_view api, Stream* stream, void* handle) {
  Event* event = event_of(handle);
  if (!event || !stream) return abi::kInvalidHandle;
  if (!event->recorded) return abi::kSuccess;
  if (event->capture) {
    // Waiting on a captured event pulls the stream into that capture.
    if (stream->capture && stream->capture != event->capture)
      return refuse(api, abi::kCaptureIsolation, "the event belongs to another capture");
    if (stream->kind == StreamKind::Legacy)
      return refuse(api, abi::kCaptureImplicit, "the legacy stream cannot join a capture");
    if (!is_alive(event->capture, HandleKind::Graph) || !any_capture())
      return refuse(api, abi::kInvalidValue, "the event's capture has ended");
    stream->capture = event->capture;
    for (size_t node : event->capture_tail) {
      auto& tail = stream->capture_tail;
      if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
    }
    return abi::kSuccess;
  }
  if (stream->capture)
    return refuse(api, abi::kCaptureIsolation,
                  "a captured stream waits for an event recorded outside of the capture");
  Step step;
  step.kind = Step::Kind::WaitEvent;
  step.stream = stream->id;
  step.event = event->id;
  add_step(api, std::move(step));
  return abi::kSuccess;
}

bool Recorder::any_capture() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& stream) {
    return stream->capture && stream->capture->capture_mode != kRelaxed;
  });
}

Code Recorder::synchronize(std::string_view api, Stream* stream) {
  bool capturing = stream ? stream->capture != nullptr : any_capture();
  if (capturing)
    return refuse(api, abi::kCaptureUnsupported, "not permitted while a stream is being captured");
  Step step;
  step.kind = stream ? Step::Kind::SyncStream : Step::Kind::SyncDevice;
  step.stream = stream ? stream->id : 0;
  add_step(api, std::move(step));
  return abi::kSuccess;
}

Code Recorder::synchronize_event(std::string_view api, void* handle) {
  Event* event = event_of(handle);
  if (!event) return abi::kInvalidHandle;
  if (event->capture)
    return refuse(api, abi::kCaptureUnsupported, "the event was recorded in a capture");
  if (!event->recorded) return abi::kSuccess;
  Step step;
  step.kind = Step::Kind::SyncEvent;
  step.event = event->id;
  add_step(api, std::move(step));
  return abi::kSuccess;
}

GraphNode& Recorder::add_captured(Stream* stream, GraphNode::Kind kind) {
  Graph* graph = stream->capture;
  auto node = std::make_unique<GraphNode>();
  node->kind = kind;
  node->graph = graph;
  node->index = graph->nodes.size();
  node->after = stream->capture_tail;
  alive_[node.get()] = HandleKind::Node;
  stream->capture_tail = {node->index};
  return *graph->nodes.emplace_back(std::move(node));
}

Code Recorder::submit(std::string_view api, Stream* stream, PlanAction action, Kernel* kernel) {
  if (!stream) return abi::kInvalidHandle;
  if (stream->capture) {
    GraphNode::Kind kind = std::holds_alternative<KernelLaunch>(action) ? GraphNode::Kind::Kernel
                           : std::holds_alternative<Memset>(action)     ? GraphNode::Kind::Memset
                                                                        : GraphNode::Kind::Copy;
    GraphNode& node = add_captured(stream, kind);
    node.action = std::move(action);
    node.kernel = kernel;
    return abi::kSuccess;
  }
  if (stream->kind == StreamKind::Legacy && any_capture()) {
    return refuse(api, abi::kCaptureImplicit,
                  "the legacy default stream is used while a stream is being captured");
  }
  Step step;
  step.kind = Step::Kind::Work;
  step.stream = stream->id;
  step.action = std::move(action);
  add_step(api, std::move(step));
  return abi::kSuccess;
}

Code Recorder::submit_host_write(std::string_view api, Stream* stream, uint64_t address,
                                 const void* source, uint64_t size_bytes) {
  if (!stream) return abi::kInvalidHandle;
  if (!stream->capture) return submit(api, stream, host_bytes(api, address, source, size_bytes));
  GraphNode& node = add_captured(stream, GraphNode::Kind::HostWrite);
  node.action = WriteBytes{address, {}};
  node.host_source = source;
  node.host_bytes = size_bytes;
  return abi::kSuccess;
}

}  // namespace ptxb::shim
