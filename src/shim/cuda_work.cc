// Driver API: launches, memory, copies, memsets, streams, events, capture, graphs, tensor maps.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>

#include "shim/cuda.h"

using ptxb::shim::abi::DriverKernelNodeParams;
using ptxb::shim::abi::DriverLaunchConfig;
using ptxb::shim::abi::DriverMemcpy2D;

namespace ptxb::shim {
namespace {

LaunchShape shape_of(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                     unsigned shared_bytes) {
  LaunchShape shape;
  shape.grid = {gx, gy, gz};
  shape.block = {bx, by, bz};
  shape.dynamic_shared_bytes = shared_bytes;
  return shape;
}

enum class Wait { No, Yes };

int copy_rows(const char* api, Recorder::Copy copy, Stream* stream, Wait wait) {
  if (!stream) return abi::kInvalidHandle;
  if (Code code = recorder().copy(api, copy, stream)) return code;
  bool within = recorder().is_device(copy.destination) && recorder().is_device(copy.source);
  return wait == Wait::Yes && !within ? recorder().synchronize(api, stream) : int{abi::kSuccess};
}

int copy_line(const char* api, uint64_t destination, uint64_t source, size_t bytes, int kind,
              Stream* stream, Wait wait) {
  return copy_rows(api, {destination, source, bytes, 1, 0, 0, kind}, stream, wait);
}

int copy_2d(const char* api, const DriverMemcpy2D* p, Stream* stream, Wait wait) {
  constexpr int kHostType = 1, kArrayType = 3;
  if (!p) return abi::kInvalidValue;
  if (p->source_type == kArrayType || p->destination_type == kArrayType)
    recorder().unsupported(api, "CUDA arrays");
  uint64_t source = p->source_type == kHostType ? bits(p->source_host) : p->source_device;
  uint64_t destination =
      p->destination_type == kHostType ? bits(p->destination_host) : p->destination_device;
  return copy_rows(api,
                   {destination + p->destination_y * p->destination_pitch + p->destination_x,
                    source + p->source_y * p->source_pitch + p->source_x, p->width_bytes, p->height,
                    p->destination_pitch, p->source_pitch, abi::kDefaultKind},
                   stream, wait);
}

int set_elements(const char* api, uint64_t address, size_t pitch, uint32_t value,
                 uint32_t element_bytes, size_t width, size_t height, Stream* stream) {
  if (!stream) return abi::kInvalidHandle;
  if (!recorder().is_device(address))
    return recorder().refuse(api, abi::kInvalidValue, "not a device address");
  return recorder().memset(api, {address, pitch, value, element_bytes, width, height}, stream);
}

int pointer_attribute(void* data, int attribute, uint64_t pointer) {
  constexpr int kContext = 1, kMemoryType = 2, kDevicePointer = 3, kIsManaged = 8, kOrdinal = 9,
                kRangeStart = 11, kRangeSize = 12, kMapped = 13;
  const Recorder::Region* region = recorder().region_of(pointer);
  if (!data || !region || !region->live) return abi::kInvalidValue;
  switch (attribute) {
    case kMemoryType:
      *static_cast<unsigned*>(data) = abi::kDevice;
      return abi::kSuccess;
    case kDevicePointer:
      *static_cast<uint64_t*>(data) = pointer;
      return abi::kSuccess;
    case kIsManaged:
      *static_cast<bool*>(data) = false;
      return abi::kSuccess;
    case kOrdinal:
      *static_cast<int*>(data) = 0;
      return abi::kSuccess;
    case kRangeStart:
      *static_cast<uint64_t*>(data) = region->address;
      return abi::kSuccess;
    case kRangeSize:
      *static_cast<uint64_t*>(data) = region->size_bytes;
      return abi::kSuccess;
    case kMapped:
      *static_cast<bool*>(data) = true;
      return abi::kSuccess;
    case kContext:
      recorder().unsupported("cuPointerGetAttribute", "CU_POINTER_ATTRIBUTE_CONTEXT");
    default:
      return abi::kInvalidValue;
  }
}

int host_allocate(void** pointer, size_t size_bytes) {
  constexpr size_t kPage = 4096;
  if (!pointer || size_bytes == 0 || size_bytes > SIZE_MAX - kPage) return abi::kInvalidValue;
  *pointer = std::aligned_alloc(kPage, (size_bytes + kPage - 1) / kPage * kPage);
  return *pointer ? abi::kSuccess : abi::kOutOfMemory;
}

}  // namespace
}  // namespace ptxb::shim

STREAM_ENTRY(cuLaunchKernel, _ptsz,
             (void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
              unsigned bz, unsigned shared_bytes, void* stream, void** params, void** extra),
             {
               return recorder().launch(kApi, recorder().kernel_of(function),
                                        shape_of(gx, gy, gz, bx, by, bz, shared_bytes), params,
                                        extra, stream_at(stream));
             })
STREAM_ENTRY(cuLaunchCooperativeKernel, _ptsz,
             (void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
              unsigned bz, unsigned shared_bytes, void* stream, void** params),
             {
               LaunchShape shape = shape_of(gx, gy, gz, bx, by, bz, shared_bytes);
               shape.cooperative = true;
               return recorder().launch(kApi, recorder().kernel_of(function), shape, params,
                                        nullptr, stream_at(stream));
             })
STREAM_ENTRY(cuLaunchKernelEx, _ptsz,
             (const DriverLaunchConfig* c, void* function, void** params, void** extra), {
               if (!c) return abi::kInvalidValue;
               LaunchShape shape = shape_of(c->grid.x, c->grid.y, c->grid.z, c->block.x, c->block.y,
                                            c->block.z, c->dynamic_shared_bytes);
               if (Code code =
                       recorder().read_attributes(kApi, c->attributes, c->attribute_count, shape))
                 return code;
               return recorder().launch(kApi, recorder().kernel_of(function), shape, params, extra,
                                        stream_at(c->stream));
             })

ENTRY(cuMemAlloc_v2, (uint64_t * address, size_t bytes), {
  if (!address || bytes == 0) return abi::kInvalidValue;
  return recorder().allocate(kApi, reinterpret_cast<void**>(address), bytes, nullptr);
})
ENTRY(cuMemFree_v2, (uint64_t address), { return recorder().release(kApi, address, nullptr); })
STREAM_ENTRY(cuMemAllocAsync, _ptsz, (uint64_t * address, size_t bytes, void* stream), {
  Stream* on = stream_at(stream);
  return on ? recorder().allocate(kApi, reinterpret_cast<void**>(address), bytes, on)
            : int{abi::kInvalidHandle};
})
STREAM_ENTRY(cuMemFreeAsync, _ptsz, (uint64_t address, void* stream), {
  Stream* on = stream_at(stream);
  return on ? recorder().release(kApi, address, on) : int{abi::kInvalidHandle};
})
ENTRY(cuMemAllocPitch_v2,
      (uint64_t * address, size_t* pitch, size_t width, size_t height, unsigned), {
        constexpr size_t kUnit = 512;
        if (!address || !pitch || width > (size_t{1} << 40) || height > (size_t{1} << 20))
          return abi::kInvalidValue;
        *pitch = (width + kUnit - 1) / kUnit * kUnit;
        return recorder().allocate(kApi, reinterpret_cast<void**>(address), *pitch * height,
                                   nullptr);
      })
ENTRY(cuMemGetInfo_v2, (size_t * free_bytes, size_t* total_bytes), {
  *free_bytes = recorder().free_bytes();
  *total_bytes = recorder().chip().memory_bytes;
  return abi::kSuccess;
})
ENTRY(cuMemGetAddressRange_v2, (uint64_t * begin, size_t* bytes, uint64_t address), {
  const Recorder::Region* region = recorder().region_of(address);
  if (!region || !region->live) return abi::kNotFound;
  if (begin) *begin = region->address;
  if (bytes) *bytes = region->size_bytes;
  return abi::kSuccess;
})
ENTRY(cuMemAllocHost_v2, (void** pointer, size_t bytes), { return host_allocate(pointer, bytes); })
ENTRY(cuMemHostAlloc, (void** pointer, size_t bytes, unsigned),
      { return host_allocate(pointer, bytes); })
ENTRY(cuMemFreeHost, (void* pointer), {
  std::free(pointer);
  return abi::kSuccess;
})
ENTRY(cuPointerGetAttribute, (void* data, int attribute, uint64_t pointer),
      { return pointer_attribute(data, attribute, pointer); })

STREAM_ENTRY(cuMemcpy, _ptds, (uint64_t destination, uint64_t source, size_t bytes), {
  return copy_line(kApi, destination, source, bytes, abi::kDefaultKind, stream_at(nullptr),
                   Wait::Yes);
})
STREAM_ENTRY(cuMemcpyAsync, _ptsz,
             (uint64_t destination, uint64_t source, size_t bytes, void* stream), {
               return copy_line(kApi, destination, source, bytes, abi::kDefaultKind,
                                stream_at(stream), Wait::No);
             })
STREAM_ENTRY(cuMemcpyHtoD_v2, _ptds, (uint64_t destination, const void* source, size_t bytes), {
  return copy_line(kApi, destination, bits(source), bytes, abi::kHostToDevice, stream_at(nullptr),
                   Wait::Yes);
})
STREAM_ENTRY(cuMemcpyHtoDAsync_v2, _ptsz,
             (uint64_t destination, const void* source, size_t bytes, void* stream), {
               return copy_line(kApi, destination, bits(source), bytes, abi::kHostToDevice,
                                stream_at(stream), Wait::No);
             })
STREAM_ENTRY(cuMemcpyDtoH_v2, _ptds, (void* destination, uint64_t source, size_t bytes), {
  return copy_line(kApi, bits(destination), source, bytes, abi::kDeviceToHost, stream_at(nullptr),
                   Wait::Yes);
})
STREAM_ENTRY(cuMemcpyDtoHAsync_v2, _ptsz,
             (void* destination, uint64_t source, size_t bytes, void* stream), {
               return copy_line(kApi, bits(destination), source, bytes, abi::kDeviceToHost,
                                stream_at(stream), Wait::No);
             })
STREAM_ENTRY(cuMemcpyDtoD_v2, _ptds, (uint64_t destination, uint64_t source, size_t bytes), {
  return copy_line(kApi, destination, source, bytes, abi::kDeviceToDevice, stream_at(nullptr),
                   Wait::Yes);
})
STREAM_ENTRY(cuMemcpyDtoDAsync_v2, _ptsz,
             (uint64_t destination, uint64_t source, size_t bytes, void* stream), {
               return copy_line(kApi, destination, source, bytes, abi::kDeviceToDevice,
                                stream_at(stream), Wait::No);
             })
STREAM_ENTRY(cuMemcpy2D_v2, _ptds, (const DriverMemcpy2D* params),
             { return copy_2d(kApi, params, stream_at(nullptr), Wait::Yes); })
STREAM_ENTRY(cuMemcpy2DUnaligned_v2, _ptds, (const DriverMemcpy2D* params),
             { return copy_2d(kApi, params, stream_at(nullptr), Wait::Yes); })
STREAM_ENTRY(cuMemcpy2DAsync_v2, _ptsz, (const DriverMemcpy2D* params, void* stream),
             { return copy_2d(kApi, params, stream_at(stream), Wait::No); })

STREAM_ENTRY(cuMemsetD8_v2, _ptds, (uint64_t address, unsigned char value, size_t count),
             { return set_elements(kApi, address, 0, value, 1, count, 1, stream_at(nullptr)); })
STREAM_ENTRY(cuMemsetD16_v2, _ptds, (uint64_t address, unsigned short value, size_t count),
             { return set_elements(kApi, address, 0, value, 2, count, 1, stream_at(nullptr)); })
STREAM_ENTRY(cuMemsetD32_v2, _ptds, (uint64_t address, unsigned value, size_t count),
             { return set_elements(kApi, address, 0, value, 4, count, 1, stream_at(nullptr)); })
STREAM_ENTRY(cuMemsetD8Async, _ptsz,
             (uint64_t address, unsigned char value, size_t count, void* stream),
             { return set_elements(kApi, address, 0, value, 1, count, 1, stream_at(stream)); })
STREAM_ENTRY(cuMemsetD16Async, _ptsz,
             (uint64_t address, unsigned short value, size_t count, void* stream),
             { return set_elements(kApi, address, 0, value, 2, count, 1, stream_at(stream)); })
STREAM_ENTRY(cuMemsetD32Async, _ptsz,
             (uint64_t address, unsigned value, size_t count, void* stream),
             { return set_elements(kApi, address, 0, value, 4, count, 1, stream_at(stream)); })
STREAM_ENTRY(cuMemsetD2D8_v2, _ptds,
             (uint64_t address, size_t pitch, unsigned char value, size_t width, size_t height), {
               return set_elements(kApi, address, pitch, value, 1, width, height,
                                   stream_at(nullptr));
             })
STREAM_ENTRY(cuMemsetD2D32_v2, _ptds,
             (uint64_t address, size_t pitch, unsigned value, size_t width, size_t height), {
               return set_elements(kApi, address, pitch, value, 4, width, height,
                                   stream_at(nullptr));
             })
STREAM_ENTRY(cuMemsetD2D8Async, _ptsz,
             (uint64_t address, size_t pitch, unsigned char value, size_t width, size_t height,
              void* stream),
             {
               return set_elements(kApi, address, pitch, value, 1, width, height,
                                   stream_at(stream));
             })
STREAM_ENTRY(
    cuMemsetD2D32Async, _ptsz,
    (uint64_t address, size_t pitch, unsigned value, size_t width, size_t height, void* stream),
    { return set_elements(kApi, address, pitch, value, 4, width, height, stream_at(stream)); })

ENTRY(cuStreamCreate, (void** stream, unsigned flags),
      { return recorder().create_stream(stream, flags, 0); })
ENTRY(cuStreamCreateWithPriority, (void** stream, unsigned flags, int priority),
      { return recorder().create_stream(stream, flags, priority); })
ENTRY(cuStreamDestroy_v2, (void* stream), { return recorder().destroy_stream(kApi, stream); })
STREAM_ENTRY(cuStreamSynchronize, _ptsz, (void* stream), {
  Stream* on = stream_at(stream);
  return on ? recorder().synchronize(kApi, on) : int{abi::kInvalidHandle};
})
STREAM_ENTRY(cuStreamQuery, _ptsz, (void* stream), {
  recorder().note("cuStreamQuery answered that the stream is idle");
  Stream* on = stream_at(stream);
  return on ? recorder().synchronize(kApi, on) : int{abi::kInvalidHandle};
})
STREAM_ENTRY(cuStreamWaitEvent, _ptsz, (void* stream, void* event, unsigned),
             { return recorder().wait_event(kApi, stream_at(stream), event); })
STREAM_ENTRY(cuStreamGetFlags, _ptsz, (void* stream, unsigned* flags), {
  Stream* on = stream_at(stream);
  if (!on || !flags) return abi::kInvalidHandle;
  *flags = on->flags;
  return abi::kSuccess;
})
STREAM_ENTRY(cuStreamGetPriority, _ptsz, (void* stream, int* priority), {
  Stream* on = stream_at(stream);
  if (!on || !priority) return abi::kInvalidHandle;
  *priority = on->priority;
  return abi::kSuccess;
})
STREAM_ENTRY(cuStreamIsCapturing, _ptsz, (void* stream, int* status), {
  Stream* on = stream_at(stream);
  if (!on || !status) return abi::kInvalidHandle;
  *status = on->capture ? 1 : 0;
  return abi::kSuccess;
})
ENTRY(cuEventCreate, (void** event, unsigned flags),
      { return recorder().create_event(event, flags); })
ENTRY(cuEventDestroy_v2, (void* event), { return recorder().destroy_event(event); })
STREAM_ENTRY(cuEventRecord, _ptsz, (void* event, void* stream),
             { return recorder().record_event(kApi, event, stream_at(stream)); })
ENTRY(cuEventSynchronize, (void* event), { return recorder().synchronize_event(kApi, event); })
ENTRY(cuEventQuery, (void* event), {
  recorder().note("cuEventQuery answered that the event has happened");
  return recorder().synchronize_event(kApi, event);
})
ENTRY(cuEventElapsedTime_v2, (float* ms, void* begin, void* end), {
  if (!ms || !recorder().event_of(begin) || !recorder().event_of(end)) return abi::kInvalidHandle;
  recorder().note("cuEventElapsedTime answered 1 ms: a recorded run has no time");
  *ms = 1.0f;
  return abi::kSuccess;
})

STREAM_ENTRY(cuStreamBeginCapture_v2, _ptsz, (void* stream, int mode), {
  Stream* on = stream_at(stream);
  return on ? recorder().begin_capture(kApi, on, mode, nullptr) : int{abi::kInvalidHandle};
})
STREAM_ENTRY(cuStreamEndCapture, _ptsz, (void* stream, void** graph),
             { return recorder().end_capture(kApi, stream_at(stream), graph); })
ENTRY(cuGraphCreate, (void** graph, unsigned), {
  if (!graph) return abi::kInvalidValue;
  *graph = recorder().new_graph();
  return abi::kSuccess;
})
ENTRY(cuGraphDestroy, (void* graph), { return recorder().forget_graph(graph); })
ENTRY(cuGraphExecDestroy, (void* exec), { return recorder().forget_exec(exec); })
ENTRY(cuGraphInstantiateWithFlags, (void** exec, void* graph, unsigned long long flags),
      { return recorder().instantiate(kApi, recorder().graph_of(graph), flags, exec); })
STREAM_ENTRY(cuGraphLaunch, _ptsz, (void* exec, void* stream),
             { return recorder().launch_graph(kApi, recorder().exec_of(exec), stream_at(stream)); })
ENTRY(cuGraphAddKernelNode_v2,
      (void** node, void* graph, void* const* after, size_t count, const DriverKernelNodeParams* p),
      {
        if (!p) return abi::kInvalidValue;
        GraphNode made;
        made.kind = GraphNode::Kind::Kernel;
        made.kernel = recorder().kernel_of(p->func ? p->func : p->kernel);
        KernelLaunch launch;
        LaunchShape shape = shape_of(p->grid.x, p->grid.y, p->grid.z, p->block.x, p->block.y,
                                     p->block.z, p->dynamic_shared_bytes);
        if (Code code =
                recorder().make_launch(kApi, made.kernel, shape, p->params, p->extra, launch))
          return code;
        made.action = std::move(launch);
        return recorder().add_node(recorder().graph_of(graph), after, count, std::move(made), node);
      })
ENTRY(cuGraphAddEmptyNode, (void** node, void* graph, void* const* after, size_t count),
      { return recorder().add_node(recorder().graph_of(graph), after, count, GraphNode(), node); })

ENTRY(cuTensorMapEncodeTiled,
      (void* image, int dtype, uint32_t rank, void* address, const uint64_t* dims,
       const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides,
       int interleave, int swizzle, int promotion, int fill),
      {
        if (rank < 1 || rank > 5)
          return recorder().refuse(kApi, abi::kInvalidValue, "tensorRank is not from 1 to 5");
        if (!dims || !box || !element_strides || (rank > 1 && !strides)) {
          return recorder().refuse(kApi, abi::kInvalidValue, "a null array was given");
        }
        PlanTensorMap map;
        map.dtype = static_cast<uint32_t>(dtype);
        map.rank = rank;
        map.address = bits(address);
        for (uint32_t i = 0; i < rank; ++i) {
          map.dims[i] = dims[i];
          map.box[i] = box[i];
          map.element_strides[i] = element_strides[i];
          if (i + 1 < rank) map.strides_bytes[i] = strides[i];
        }
        map.interleave = static_cast<uint32_t>(interleave);
        map.swizzle = static_cast<uint32_t>(swizzle);
        map.l2_promotion = static_cast<uint32_t>(promotion);
        map.oob_fill = static_cast<uint32_t>(fill);
        return recorder().encode_tensor_map(kApi, image, map);
      })
ENTRY(cuTensorMapReplaceAddress, (void* image, void* address),
      { return recorder().replace_tensor_address(kApi, image, bits(address)); })
