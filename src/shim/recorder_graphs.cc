// Graphs: captured or built by hand, instantiated as copies, launched as their nodes with their
// dependencies.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "shim/recorder.h"

namespace ptxb::shim {

std::shared_ptr<Graph> Graph::copy() const {
  auto out = std::make_shared<Graph>();
  for (const auto& node : nodes) {
    auto twin = std::make_unique<GraphNode>(*node);
    twin->graph = out.get();
    twin->param_pointers.clear();
    out->nodes.push_back(std::move(twin));
  }
  return out;
}

std::vector<size_t> Graph::order() const {
  std::vector<size_t> waiting(nodes.size()), out;
  std::vector<std::vector<size_t>> next(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    waiting[i] = nodes[i]->after.size();
    for (size_t earlier : nodes[i]->after) next[earlier].push_back(i);
    if (waiting[i] == 0) out.push_back(i);
  }
  for (size_t done = 0; done < out.size(); ++done) {
    for (size_t later : next[out[done]]) {
      if (--waiting[later] == 0) out.push_back(later);
    }
  }
  return out;
}

Graph* Recorder::new_graph() {
  Graph* graph = graphs_.emplace_back(std::make_unique<Graph>()).get();
  alive_[graph] = HandleKind::Graph;
  return graph;
}

Graph* Recorder::graph_of(const void* handle) const {
  return is_alive(handle, HandleKind::Graph) ? static_cast<Graph*>(const_cast<void*>(handle))
                                             : nullptr;
}
GraphNode* Recorder::node_of(const void* handle) const {
  return is_alive(handle, HandleKind::Node) ? static_cast<GraphNode*>(const_cast<void*>(handle))
                                            : nullptr;
}
GraphExec* Recorder::exec_of(const void* handle) const {
  return is_alive(handle, HandleKind::Exec) ? static_cast<GraphExec*>(const_cast<void*>(handle))
                                            : nullptr;
}

Code Recorder::begin_capture(std::string_view api, Stream* stream, int mode, Graph* into) {
  if (!stream || mode < 0 || mode > 2) return abi::kInvalidValue;
  if (stream->kind == StreamKind::Legacy) {
    return refuse(api, abi::kCaptureUnsupported, "the legacy default stream cannot be captured");
  }
  if (stream->capture)
    return refuse(api, abi::kCaptureUnmatched, "the stream is already being captured");
  stream->capture = into ? into : new_graph();
  stream->capture->capture_mode = mode;
  stream->capture_origin = true;
  stream->capture_tail.clear();
  return abi::kSuccess;
}

Code Recorder::end_capture(std::string_view api, Stream* stream, void** handle) {
  if (!stream || !handle) return abi::kInvalidValue;
  *handle = nullptr;
  if (!stream->capture || !stream->capture_origin) {
    return refuse(api, abi::kCaptureUnmatched, "the stream did not begin a capture");
  }
  Graph* graph = stream->capture;
  // Every node must lead to the origin's tail, else a forked stream was not joined.
  std::vector<bool> joined(graph->nodes.size(), false);
  std::vector<size_t> open = stream->capture_tail;
  while (!open.empty()) {
    size_t node = open.back();
    open.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    open.insert(open.end(), graph->nodes[node]->after.begin(), graph->nodes[node]->after.end());
  }
  bool unjoined = false;
  for (const auto& other : streams_) {
    if (other->capture != graph) continue;
    for (size_t node : other->capture_tail) unjoined = unjoined || !joined[node];
    other->capture = nullptr;
    other->capture_origin = false;
    other->capture_tail.clear();
  }
  if (unjoined) {
    return refuse(api, abi::kCaptureUnjoined,
                  "work on a forked stream was not joined back into the captured stream");
  }
  *handle = graph;
  return abi::kSuccess;
}

Code Recorder::add_node(Graph* graph, void* const* after, size_t count, GraphNode&& node,
                        void** handle) {
  if (!graph || !handle || (count && !after)) return abi::kInvalidValue;
  if (graph->nodes.size() >= PlanLimits::kOperations)
    unsupported("cudaGraphAddNode", "too many nodes");
  node.graph = graph;
  node.index = graph->nodes.size();
  for (size_t i = 0; i < count; ++i) {
    GraphNode* earlier = node_of(after[i]);
    if (!earlier || earlier->graph != graph) return abi::kInvalidValue;
    node.after.push_back(earlier->index);
  }
  *handle = graph->nodes.emplace_back(std::make_unique<GraphNode>(std::move(node))).get();
  alive_[*handle] = HandleKind::Node;
  return abi::kSuccess;
}

Code Recorder::instantiate(std::string_view api, Graph* graph, unsigned long long flags,
                           void** handle) {
  constexpr unsigned long long kDeviceLaunch = 4;
  if (!graph || !handle) return abi::kInvalidValue;
  *handle = nullptr;
  if (flags & kDeviceLaunch) unsupported(api, "graphs launched by the device");
  if (graph->order().size() != graph->nodes.size())
    return refuse(api, abi::kInvalidValue, "the graph has a cycle");
  auto exec = std::make_unique<GraphExec>();
  exec->graph = graph->copy();
  exec->flags = flags;
  for (const auto& node : graph->nodes) exec->index_of[node.get()] = node->index;
  *handle = exec.get();
  alive_[exec.get()] = HandleKind::Exec;
  execs_.push_back(std::move(exec));
  return abi::kSuccess;
}

Code Recorder::update(std::string_view api, GraphExec* exec, Graph* graph,
                      abi::GraphUpdateInfo& info) {
  constexpr int kError = 1, kTopologyChanged = 2, kTypeChanged = 3;
  info = {kError, nullptr, nullptr};
  if (!exec || !graph) return abi::kInvalidValue;
  const auto &old_nodes = exec->graph->nodes, &new_nodes = graph->nodes;
  info.result = kTopologyChanged;
  if (old_nodes.size() != new_nodes.size()) {
    return refuse(api, abi::kGraphUpdateFailure, "the number of nodes changed");
  }
  for (size_t i = 0; i < new_nodes.size(); ++i) {
    if (old_nodes[i]->after != new_nodes[i]->after) {
      return refuse(api, abi::kGraphUpdateFailure, "the dependencies changed");
    }
    if (old_nodes[i]->kind != new_nodes[i]->kind) {
      info.result = kTypeChanged;
      return refuse(api, abi::kGraphUpdateFailure, "the type of a node changed");
    }
  }
  info.result = 0;
  exec->graph = graph->copy();
  for (const auto& node : new_nodes) exec->index_of[node.get()] = node->index;
  return abi::kSuccess;
}

// Appends the graph's nodes in a legal order; `roots` are the nodes that its first ones come after.
void Recorder::emit(std::string_view api, const Graph& graph, const std::vector<uint32_t>& roots,
                    std::vector<GraphWork>& out, std::vector<uint32_t>& sinks) {
  std::vector<std::vector<uint32_t>> ends(
      graph.nodes.size());  // emitted nodes that stand for each node's end
  std::vector<bool> followed(graph.nodes.size(), false);
  for (size_t index : graph.order()) {
    const GraphNode& node = *graph.nodes[index];
    GraphWork work;
    for (size_t earlier : node.after) {
      followed[earlier] = true;
      work.after.insert(work.after.end(), ends[earlier].begin(), ends[earlier].end());
    }
    if (node.after.empty()) work.after = roots;
    std::sort(work.after.begin(), work.after.end());
    work.after.erase(std::unique(work.after.begin(), work.after.end()), work.after.end());
    if (out.size() >= PlanLimits::kOperations) unsupported(api, "the graph has too many nodes");
    if (work.after.size() > PlanLimits::kAfter)
      unsupported(api, "a graph node has too many dependencies");
    if (node.kind == GraphNode::Kind::Child) {
      std::vector<uint32_t> before = work.after;
      emit(api, *node.child, before, out, ends[index]);
      if (node.child->nodes.empty()) ends[index] = before;
      continue;
    }
    if (node.kind == GraphNode::Kind::HostWrite) {
      work.action = host_bytes(api, std::get<WriteBytes>(node.action).address, node.host_source,
                               node.host_bytes);
    } else if (node.kind != GraphNode::Kind::Empty) {
      work.action = node.action;
    }
    ends[index] = {static_cast<uint32_t>(out.size())};
    out.push_back(std::move(work));
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!followed[i]) sinks.insert(sinks.end(), ends[i].begin(), ends[i].end());
  }
}

Code Recorder::launch_graph(std::string_view api, GraphExec* exec, Stream* stream) {
  if (!exec || !stream) return abi::kInvalidValue;
  if (stream->capture) {
    GraphNode& node = add_captured(stream, GraphNode::Kind::Child);
    node.child = exec->graph->copy();
    return abi::kSuccess;
  }
  Step step;
  step.kind = Step::Kind::Graph;
  step.stream = stream->id;
  std::vector<uint32_t> sinks;
  emit(api, *exec->graph, {}, step.nodes, sinks);
  add_step(api, std::move(step));
  return abi::kSuccess;
}

Code Recorder::forget_graph(void* handle) {
  Graph* graph = graph_of(handle);
  if (!graph) return abi::kInvalidValue;
  for (const auto& node : graph->nodes) alive_.erase(node.get());
  alive_.erase(graph);
  return abi::kSuccess;
}

Code Recorder::forget_exec(void* handle) {
  if (!exec_of(handle)) return abi::kInvalidValue;
  alive_.erase(handle);
  return abi::kSuccess;
}

}  // namespace ptxb::shim
