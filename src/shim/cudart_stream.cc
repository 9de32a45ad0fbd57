// Runtime API: streams, events, capture, graphs.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "shim/cudart.h"

using ptxb::shim::abi::GraphInstantiateParams;
using ptxb::shim::abi::GraphUpdateInfo;
using ptxb::shim::abi::KernelNodeParams;
using ptxb::shim::abi::Memcpy3DParams;
using ptxb::shim::abi::MemsetNodeParams;

namespace ptxb::shim {
namespace {

constexpr float kElapsedMs = 1.0f;  // recorded runs have no time

int capture_status(Stream* stream, int* status) {
  if (!stream || !status) return abi::kInvalidValue;
  *status = stream->capture ? 1 : 0;
  return abi::kSuccess;
}

// Fills a kernel node from its parameters, with the launch checks.
int fill_kernel(const char* api, const KernelNodeParams* p, GraphNode& node) {
  if (!p) return abi::kInvalidValue;
  LaunchShape shape;
  shape.grid = {p->grid.x, p->grid.y, p->grid.z};
  shape.block = {p->block.x, p->block.y, p->block.z};
  shape.dynamic_shared_bytes = p->dynamic_shared_bytes;
  Kernel* kernel = recorder().kernel_of(p->func);
  KernelLaunch launch;
  if (Code code = recorder().make_launch(api, kernel, shape, p->params, p->extra, launch))
    return code;
  if (auto* old =
          std::get_if<KernelLaunch>(&node.action)) {  // attributes stay when parameters change
    launch.cooperative = old->cooperative;
    launch.programmatic_serialization = old->programmatic_serialization;
    if (old->cluster.x) launch.cluster = old->cluster;
  }
  node.kind = GraphNode::Kind::Kernel;
  node.kernel = kernel;
  node.action = std::move(launch);
  return abi::kSuccess;
}

int fill_memset(const MemsetNodeParams* p, GraphNode& node) {
  if (!p || (p->element_bytes != 1 && p->element_bytes != 2 && p->element_bytes != 4))
    return abi::kInvalidValue;
  Memset memset{bits(p->destination),
                p->height > 1 ? p->pitch_bytes : 0,
                p->value,
                p->element_bytes,
                p->width_elements,
                p->height};
  if (p->element_bytes < 4) memset.value &= (1u << (8 * p->element_bytes)) - 1;
  node.kind = GraphNode::Kind::Memset;
  node.action = memset;
  return abi::kSuccess;
}

int fill_copy(const char* api, void* destination, const void* source, size_t count,
              GraphNode& node) {
  if (recorder().is_device(bits(source)) && !recorder().is_device(bits(destination))) {
    recorder().unsupported(api, "the host reads device data");
  }
  if (!recorder().is_device(bits(destination))) return abi::kInvalidValue;
  if (recorder().is_device(bits(source))) {
    node.kind = GraphNode::Kind::Copy;
    node.action = CopyDevice{bits(destination), bits(source), count, 0, 0, 1};
  } else {
    node.kind = GraphNode::Kind::HostWrite;
    node.action = WriteBytes{bits(destination), {}};
    node.host_source = source;
    node.host_bytes = count;
  }
  return abi::kSuccess;
}

// The node of an executable graph that stands for `node` of the graph it was made from.
GraphNode* node_in(GraphExec* exec, const void* node) {
  if (!exec) return nullptr;
  auto found = exec->index_of.find(static_cast<const GraphNode*>(node));
  return found == exec->index_of.end() ? nullptr : exec->graph->nodes[found->second].get();
}

int copy_1d_of(const Memcpy3DParams* p, const char* api, GraphNode& node) {
  if (!p) return abi::kInvalidValue;
  if (p->source_array || p->destination_array || p->extent.y > 1 || p->extent.z > 1) {
    recorder().unsupported(api, "a copy node of more than one row");
  }
  return fill_copy(api, static_cast<char*>(p->destination.pointer) + p->destination_position.x,
                   static_cast<const char*>(p->source.pointer) + p->source_position.x, p->extent.x,
                   node);
}

}  // namespace
}  // namespace ptxb::shim

ENTRY(cudaStreamCreate, (void** stream), { return recorder().create_stream(stream, 0, 0); })
ENTRY(cudaStreamCreateWithFlags, (void** stream, unsigned flags),
      { return recorder().create_stream(stream, flags, 0); })
ENTRY(cudaStreamCreateWithPriority, (void** stream, unsigned flags, int priority),
      { return recorder().create_stream(stream, flags, priority); })
ENTRY(cudaStreamDestroy, (void* stream), { return recorder().destroy_stream(kApi, stream); })
STREAM_ENTRY(cudaStreamSynchronize, _ptsz, (void* stream), {
  Stream* on = stream_at(stream);
  return on ? recorder().synchronize(kApi, on) : int{abi::kInvalidHandle};
})
STREAM_ENTRY(cudaStreamQuery, _ptsz, (void* stream), {
  recorder().note("cudaStreamQuery answered that the stream is idle");
  Stream* on = stream_at(stream);
  return on ? recorder().synchronize(kApi, on) : int{abi::kInvalidHandle};
})
STREAM_ENTRY(cudaStreamWaitEvent, _ptsz, (void* stream, void* event, unsigned),
             { return recorder().wait_event(kApi, stream_at(stream), event); })
STREAM_ENTRY(cudaStreamGetFlags, _ptsz, (void* stream, unsigned* flags), {
  Stream* on = stream_at(stream);
  if (!on || !flags) return abi::kInvalidHandle;
  *flags = on->flags;
  return abi::kSuccess;
})
STREAM_ENTRY(cudaStreamGetPriority, _ptsz, (void* stream, int* priority), {
  Stream* on = stream_at(stream);
  if (!on || !priority) return abi::kInvalidHandle;
  *priority = on->priority;
  return abi::kSuccess;
})
STREAM_ENTRY(cudaStreamGetId, _ptsz, (void* stream, unsigned long long* id), {
  Stream* on = stream_at(stream);
  if (!on || !id) return abi::kInvalidHandle;
  *id = on->id;
  return abi::kSuccess;
})
STREAM_ENTRY(cudaStreamGetDevice, _ptsz, (void* stream, int* device), {
  if (!stream_at(stream) || !device) return abi::kInvalidHandle;
  *device = 0;
  return abi::kSuccess;
})
STREAM_ENTRY(cudaStreamSetAttribute, _ptsz, (void* stream, int, const void*), {
  if (!stream_at(stream)) return abi::kInvalidHandle;
  recorder().note("cudaStreamSetAttribute was ignored");
  return abi::kSuccess;
})
STREAM_ENTRY(cudaStreamGetAttribute, _ptsz, (void* stream, int, void* value), {
  if (!stream_at(stream) || !value) return abi::kInvalidHandle;
  std::memset(value, 0, sizeof(abi::LaunchAttributeValue));
  return abi::kSuccess;
})
STREAM_ENTRY(cudaStreamCopyAttributes, _ptsz, (void* destination, void* source), {
  return stream_at(destination) && stream_at(source) ? abi::kSuccess : abi::kInvalidHandle;
})

ENTRY(cudaEventCreate, (void** event), { return recorder().create_event(event, 0); })
ENTRY(cudaEventCreateWithFlags, (void** event, unsigned flags),
      { return recorder().create_event(event, flags); })
ENTRY(cudaEventDestroy, (void* event), { return recorder().destroy_event(event); })
STREAM_ENTRY(cudaEventRecord, _ptsz, (void* event, void* stream),
             { return recorder().record_event(kApi, event, stream_at(stream)); })
STREAM_ENTRY(cudaEventRecordWithFlags, _ptsz, (void* event, void* stream, unsigned flags), {
  if (flags) recorder().unsupported(kApi, "external events");
  return recorder().record_event(kApi, event, stream_at(stream));
})
ENTRY(cudaEventSynchronize, (void* event), { return recorder().synchronize_event(kApi, event); })
ENTRY(cudaEventQuery, (void* event), {
  recorder().note("cudaEventQuery answered that the event has happened");
  return recorder().synchronize_event(kApi, event);
})
ENTRY(cudaEventElapsedTime, (float* ms, void* begin, void* end), {
  if (!ms || !recorder().event_of(begin) || !recorder().event_of(end)) return abi::kInvalidHandle;
  recorder().note("cudaEventElapsedTime answered 1 ms: a recorded run has no time");
  *ms = kElapsedMs;
  return abi::kSuccess;
})

STREAM_ENTRY(cudaStreamBeginCapture, _ptsz, (void* stream, int mode), {
  Stream* on = stream_at(stream);
  return on ? recorder().begin_capture(kApi, on, mode, nullptr) : int{abi::kInvalidHandle};
})
STREAM_ENTRY(cudaStreamBeginCaptureToGraph, _ptsz,
             (void* stream, void* graph, void* const*, const void*, size_t dependencies, int mode),
             {
               Stream* on = stream_at(stream);
               Graph* into = recorder().graph_of(graph);
               if (!on || !into) return abi::kInvalidHandle;
               if (dependencies) recorder().unsupported(kApi, "capture with dependencies");
               return recorder().begin_capture(kApi, on, mode, into);
             })
STREAM_ENTRY(cudaStreamEndCapture, _ptsz, (void* stream, void** graph),
             { return recorder().end_capture(kApi, stream_at(stream), graph); })
STREAM_ENTRY(cudaStreamIsCapturing, _ptsz, (void* stream, int* status),
             { return capture_status(stream_at(stream), status); })
STREAM_ENTRY(cudaStreamGetCaptureInfo, _ptsz,
             (void* stream, int* status, unsigned long long* id, void** graph, const void***,
              const void**, size_t* count),
             {
               Stream* on = stream_at(stream);
               if (int code = capture_status(on, status)) return code;
               if (on->capture && count) recorder().unsupported(kApi, "capture dependencies");
               if (id) *id = on->capture ? bits(on->capture) : 0;
               if (graph) *graph = on->capture;
               return abi::kSuccess;
             })
ENTRY(cudaThreadExchangeStreamCaptureMode, (int* mode), {
  if (!mode || *mode < 0 || *mode > 2) return abi::kInvalidValue;
  thread_local int current = 0;
  std::swap(current, *mode);
  return abi::kSuccess;
})

ENTRY(cudaGraphCreate, (void** graph, unsigned), {
  if (!graph) return abi::kInvalidValue;
  *graph = recorder().new_graph();
  return abi::kSuccess;
})
ENTRY(cudaGraphDestroy, (void* graph), { return recorder().forget_graph(graph); })
ENTRY(cudaGraphExecDestroy, (void* exec), { return recorder().forget_exec(exec); })
ENTRY(cudaGraphInstantiate, (void** exec, void* graph, unsigned long long flags),
      { return recorder().instantiate(kApi, recorder().graph_of(graph), flags, exec); })
ENTRY(cudaGraphInstantiateWithFlags, (void** exec, void* graph, unsigned long long flags),
      { return recorder().instantiate(kApi, recorder().graph_of(graph), flags, exec); })
STREAM_ENTRY(cudaGraphInstantiateWithParams, _ptsz,
             (void** exec, void* graph, GraphInstantiateParams* params), {
               if (!params) return abi::kInvalidValue;
               int code =
                   recorder().instantiate(kApi, recorder().graph_of(graph), params->flags, exec);
               params->error_node = nullptr;
               params->result = code ? 1 : 0;
               return code;
             })
STREAM_ENTRY(cudaGraphUpload, _ptsz, (void* exec, void* stream), {
  return recorder().exec_of(exec) && stream_at(stream) ? abi::kSuccess : abi::kInvalidValue;
})
STREAM_ENTRY(cudaGraphLaunch, _ptsz, (void* exec, void* stream),
             { return recorder().launch_graph(kApi, recorder().exec_of(exec), stream_at(stream)); })
ENTRY(cudaGraphExecUpdate, (void* exec, void* graph, GraphUpdateInfo* info), {
  if (!info) return abi::kInvalidValue;
  return recorder().update(kApi, recorder().exec_of(exec), recorder().graph_of(graph), *info);
})
ENTRY(cudaGraphClone, (void** clone, void* graph), {
  Graph* source = recorder().graph_of(graph);
  if (!source || !clone) return abi::kInvalidValue;
  Graph* made = recorder().new_graph();
  auto twin = source->copy();
  for (auto& node : twin->nodes) {
    void* handle = nullptr;
    std::vector<size_t> after = std::move(node->after);
    node->after.clear();
    if (int code = recorder().add_node(made, nullptr, 0, std::move(*node), &handle)) return code;
    static_cast<GraphNode*>(handle)->after = std::move(after);
  }
  *clone = made;
  return abi::kSuccess;
})

ENTRY(cudaGraphAddKernelNode,
      (void** node, void* graph, void* const* after, size_t count, const KernelNodeParams* params),
      {
        GraphNode made;
        if (int code = fill_kernel(kApi, params, made)) return code;
        return recorder().add_node(recorder().graph_of(graph), after, count, std::move(made), node);
      })
ENTRY(cudaGraphAddMemsetNode,
      (void** node, void* graph, void* const* after, size_t count, const MemsetNodeParams* params),
      {
        GraphNode made;
        if (int code = fill_memset(params, made)) return code;
        return recorder().add_node(recorder().graph_of(graph), after, count, std::move(made), node);
      })
ENTRY(cudaGraphAddMemcpyNode1D,
      (void** node, void* graph, void* const* after, size_t count, void* destination,
       const void* source, size_t bytes, int),
      {
        GraphNode made;
        if (int code = fill_copy(kApi, destination, source, bytes, made)) return code;
        return recorder().add_node(recorder().graph_of(graph), after, count, std::move(made), node);
      })
ENTRY(cudaGraphAddMemcpyNode,
      (void** node, void* graph, void* const* after, size_t count, const Memcpy3DParams* params), {
        GraphNode made;
        if (int code = copy_1d_of(params, kApi, made)) return code;
        return recorder().add_node(recorder().graph_of(graph), after, count, std::move(made), node);
      })
ENTRY(cudaGraphAddEmptyNode, (void** node, void* graph, void* const* after, size_t count),
      { return recorder().add_node(recorder().graph_of(graph), after, count, GraphNode(), node); })
ENTRY(cudaGraphAddChildGraphNode,
      (void** node, void* graph, void* const* after, size_t count, void* child), {
        Graph* inner = recorder().graph_of(child);
        if (!inner || inner->order().size() != inner->nodes.size()) return abi::kInvalidValue;
        GraphNode made;
        made.kind = GraphNode::Kind::Child;
        made.child = inner->copy();
        return recorder().add_node(recorder().graph_of(graph), after, count, std::move(made), node);
      })
ENTRY(cudaGraphAddDependencies,
      (void* graph, void* const* from, void* const* to, const void*, size_t count), {
        Graph* in = recorder().graph_of(graph);
        for (size_t i = 0; i < count; ++i) {
          GraphNode* first = recorder().node_of(from[i]);
          GraphNode* second = recorder().node_of(to[i]);
          if (!in || !first || !second || first->graph != in || second->graph != in)
            return abi::kInvalidValue;
          second->after.push_back(first->index);
        }
        return abi::kSuccess;
      })
ENTRY(cudaGraphGetNodes, (void* graph, void** nodes, size_t* count), {
  Graph* in = recorder().graph_of(graph);
  if (!in || !count) return abi::kInvalidValue;
  for (size_t i = 0; nodes && i < *count; ++i)
    nodes[i] = i < in->nodes.size() ? in->nodes[i].get() : nullptr;
  *count = nodes ? std::min(*count, in->nodes.size()) : in->nodes.size();
  return abi::kSuccess;
})
ENTRY(cudaGraphNodeGetType, (void* node, int* type), {
  constexpr int kTypes[] = {0, 2, 1, 1, 5, 4};  // cudaGraphNodeType of each GraphNode::Kind
  GraphNode* at = recorder().node_of(node);
  if (!at || !type) return abi::kInvalidValue;
  *type = kTypes[static_cast<size_t>(at->kind)];
  return abi::kSuccess;
})
ENTRY(cudaGraphKernelNodeGetParams, (void* node, KernelNodeParams* params), {
  GraphNode* at = recorder().node_of(node);
  if (!at || at->kind != GraphNode::Kind::Kernel || !params) return abi::kInvalidValue;
  auto& launch = std::get<KernelLaunch>(at->action);
  at->param_pointers.clear();
  for (const KernelParam& p : at->kernel->info.params)
    at->param_pointers.push_back(launch.params.data() + p.offset_bytes);
  *params = {at->kernel,
             {launch.grid.x, launch.grid.y, launch.grid.z},
             {launch.block.x, launch.block.y, launch.block.z},
             launch.dynamic_shared_bytes,
             at->param_pointers.data(),
             nullptr};
  return abi::kSuccess;
})
ENTRY(cudaGraphKernelNodeSetParams, (void* node, const KernelNodeParams* params), {
  GraphNode* at = recorder().node_of(node);
  if (!at || at->kind != GraphNode::Kind::Kernel) return abi::kInvalidValue;
  return fill_kernel(kApi, params, *at);
})
ENTRY(cudaGraphExecKernelNodeSetParams, (void* exec, void* node, const KernelNodeParams* params), {
  GraphNode* at = node_in(recorder().exec_of(exec), node);
  if (!at || at->kind != GraphNode::Kind::Kernel) return abi::kInvalidValue;
  return fill_kernel(kApi, params, *at);
})
ENTRY(cudaGraphExecMemsetNodeSetParams, (void* exec, void* node, const MemsetNodeParams* params), {
  GraphNode* at = node_in(recorder().exec_of(exec), node);
  if (!at || at->kind != GraphNode::Kind::Memset) return abi::kInvalidValue;
  return fill_memset(params, *at);
})
ENTRY(cudaGraphExecMemcpyNodeSetParams1D,
      (void* exec, void* node, void* destination, const void* source, size_t bytes, int), {
        GraphNode* at = node_in(recorder().exec_of(exec), node);
        if (!at) return abi::kInvalidValue;
        return fill_copy(kApi, destination, source, bytes, *at);
      })
