// Runtime API: allocation, copies, memsets, symbols, pools, pointers.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>

#include "shim/cudart.h"

using ptxb::shim::abi::Extent;
using ptxb::shim::abi::Memcpy3DParams;
using ptxb::shim::abi::PitchedPtr;
using ptxb::shim::abi::PointerAttributes;

namespace ptxb::shim {
namespace {

constexpr size_t kPitchUnit = 512;
constexpr unsigned kHostMapped = 2;
int default_pool;  // its address is the handle of the device's memory pool

enum class Wait { No, Yes };  // whether the host waits for the copy

int copy_rows(const char* api, void* destination, size_t destination_pitch, const void* source,
              size_t source_pitch, size_t width, size_t height, int kind, Stream* stream,
              Wait wait) {
  if (!stream) return abi::kInvalidHandle;
  Recorder::Copy copy{bits(destination), bits(source), width, height,
                      destination_pitch, source_pitch, kind};
  if (Code code = recorder().copy(api, copy, stream)) return code;
  // A copy inside the device does not make the host wait, one from the host does.
  bool within = recorder().is_device(copy.destination) && recorder().is_device(copy.source);
  return wait == Wait::Yes && !within ? recorder().synchronize(api, stream) : int{abi::kSuccess};
}

int set_bytes(const char* api, void* pointer, size_t pitch, int value, size_t width, size_t height,
              Stream* stream) {
  if (!stream) return abi::kInvalidHandle;
  if (!recorder().is_device(bits(pointer)))
    return recorder().refuse(api, abi::kInvalidValue, "not a device address");
  Memset memset{bits(pointer), pitch, static_cast<uint32_t>(value), 1, width, height};
  return recorder().memset(api, memset, stream);
}

// Where a symbol's bytes lie, or nullptr with the code.
int symbol_place(const char* api, const void* symbol, size_t size_bytes, size_t offset,
                 void** place) {
  const Recorder::Variable* variable = recorder().variable_of(symbol);
  if (!variable)
    return recorder().refuse(api, abi::kInvalidSymbol, "not a device variable of this program");
  if (offset > variable->size_bytes || variable->size_bytes - offset < size_bytes) {
    return recorder().refuse(api, abi::kInvalidValue, "goes beyond the end of " + variable->name);
  }
  *place = reinterpret_cast<void*>(
      recorder().symbol_address(0, variable->name, variable->size_bytes) + offset);
  return abi::kSuccess;
}

int copy_3d(const char* api, const Memcpy3DParams* p, Stream* stream, Wait wait) {
  if (!p) return abi::kInvalidValue;
  if (p->source_array || p->destination_array) recorder().unsupported(api, "CUDA arrays");
  for (size_t z = 0; z < p->extent.z; ++z) {
    auto at = [z](const PitchedPtr& base, const Extent& position) {
      return static_cast<char*>(base.pointer) +
             ((position.z + z) * base.height + position.y) * base.pitch_bytes + position.x;
    };
    if (int code =
            copy_rows(api, at(p->destination, p->destination_position), p->destination.pitch_bytes,
                      at(p->source, p->source_position), p->source.pitch_bytes, p->extent.x,
                      p->extent.y, p->kind, stream, wait)) {
      return code;
    }
  }
  return abi::kSuccess;
}

int host_allocate(void** pointer, size_t size_bytes) {
  if (!pointer) return abi::kInvalidValue;
  *pointer = nullptr;
  if (size_bytes == 0) return abi::kSuccess;
  constexpr size_t kPage = 4096;
  if (size_bytes > SIZE_MAX - kPage) return abi::kOutOfMemory;
  *pointer = std::aligned_alloc(kPage, (size_bytes + kPage - 1) / kPage * kPage);
  return *pointer ? abi::kSuccess : abi::kOutOfMemory;
}

}  // namespace
}  // namespace ptxb::shim

ENTRY(cudaMalloc, (void** pointer, size_t size_bytes),
      { return recorder().allocate(kApi, pointer, size_bytes, nullptr); })
ENTRY(cudaFree, (void* pointer), { return recorder().release(kApi, bits(pointer), nullptr); })
STREAM_ENTRY(cudaMallocAsync, _ptsz, (void** pointer, size_t size_bytes, void* stream), {
  Stream* on = stream_at(stream);
  return on ? recorder().allocate(kApi, pointer, size_bytes, on) : int{abi::kInvalidHandle};
})
STREAM_ENTRY(cudaMallocFromPoolAsync, _ptsz,
             (void** pointer, size_t size_bytes, void*, void* stream), {
               Stream* on = stream_at(stream);
               return on ? recorder().allocate(kApi, pointer, size_bytes, on)
                         : int{abi::kInvalidHandle};
             })
STREAM_ENTRY(cudaFreeAsync, _ptsz, (void* pointer, void* stream), {
  Stream* on = stream_at(stream);
  return on ? recorder().release(kApi, bits(pointer), on) : int{abi::kInvalidHandle};
})
ENTRY(cudaMallocPitch, (void** pointer, size_t* pitch, size_t width, size_t height), {
  if (!pitch || width > (size_t{1} << 40) || height > (size_t{1} << 20)) return abi::kInvalidValue;
  *pitch = (width + kPitchUnit - 1) / kPitchUnit * kPitchUnit;
  return recorder().allocate(kApi, pointer, *pitch * height, nullptr);
})
ENTRY(cudaMallocHost, (void** pointer, size_t size_bytes),
      { return host_allocate(pointer, size_bytes); })
ENTRY(cudaHostAlloc, (void** pointer, size_t size_bytes, unsigned flags), {
  if (flags & kHostMapped)
    recorder().note("mapped host memory was asked for; its device address is not supported");
  return host_allocate(pointer, size_bytes);
})
ENTRY(cudaFreeHost, (void* pointer), {
  std::free(pointer);
  return abi::kSuccess;
})
ENTRY(cudaMemGetInfo, (size_t * free_bytes, size_t* total_bytes), {
  if (free_bytes) *free_bytes = recorder().free_bytes();
  if (total_bytes) *total_bytes = recorder().chip().memory_bytes;
  return abi::kSuccess;
})
ENTRY(cudaPointerGetAttributes, (PointerAttributes * attributes, const void* pointer), {
  if (!attributes) return abi::kInvalidValue;
  const Recorder::Region* region = recorder().region_of(bits(pointer));
  *attributes = {};
  bool device = region && region->live;
  attributes->type = device ? abi::kDevice : abi::kUnregistered;
  attributes->device = device ? 0 : -2;
  attributes->device_pointer = device ? const_cast<void*>(pointer) : nullptr;
  attributes->host_pointer = device ? nullptr : const_cast<void*>(pointer);
  return abi::kSuccess;
})

STREAM_ENTRY(cudaMemcpy, _ptds, (void* destination, const void* source, size_t count, int kind), {
  return copy_rows(kApi, destination, 0, source, 0, count, 1, kind, stream_at(nullptr), Wait::Yes);
})
STREAM_ENTRY(cudaMemcpyAsync, _ptsz,
             (void* destination, const void* source, size_t count, int kind, void* stream), {
               return copy_rows(kApi, destination, 0, source, 0, count, 1, kind, stream_at(stream),
                                Wait::No);
             })
STREAM_ENTRY(cudaMemcpy2D, _ptds,
             (void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
              size_t width, size_t height, int kind),
             {
               return copy_rows(kApi, destination, destination_pitch, source, source_pitch, width,
                                height, kind, stream_at(nullptr), Wait::Yes);
             })
STREAM_ENTRY(cudaMemcpy2DAsync, _ptsz,
             (void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
              size_t width, size_t height, int kind, void* stream),
             {
               return copy_rows(kApi, destination, destination_pitch, source, source_pitch, width,
                                height, kind, stream_at(stream), Wait::No);
             })
STREAM_ENTRY(cudaMemcpy3D, _ptds, (const Memcpy3DParams* params),
             { return copy_3d(kApi, params, stream_at(nullptr), Wait::Yes); })
STREAM_ENTRY(cudaMemcpy3DAsync, _ptsz, (const Memcpy3DParams* params, void* stream),
             { return copy_3d(kApi, params, stream_at(stream), Wait::No); })
STREAM_ENTRY(cudaMemset, _ptds, (void* pointer, int value, size_t count),
             { return set_bytes(kApi, pointer, 0, value, count, 1, stream_at(nullptr)); })
STREAM_ENTRY(cudaMemsetAsync, _ptsz, (void* pointer, int value, size_t count, void* stream),
             { return set_bytes(kApi, pointer, 0, value, count, 1, stream_at(stream)); })
STREAM_ENTRY(cudaMemset2D, _ptds,
             (void* pointer, size_t pitch, int value, size_t width, size_t height),
             { return set_bytes(kApi, pointer, pitch, value, width, height, stream_at(nullptr)); })
STREAM_ENTRY(cudaMemset2DAsync, _ptsz,
             (void* pointer, size_t pitch, int value, size_t width, size_t height, void* stream),
             { return set_bytes(kApi, pointer, pitch, value, width, height, stream_at(stream)); })

ENTRY(cudaGetSymbolAddress, (void** pointer, const void* symbol),
      { return pointer ? symbol_place(kApi, symbol, 0, 0, pointer) : int{abi::kInvalidValue}; })
ENTRY(cudaGetSymbolSize, (size_t * size_bytes, const void* symbol), {
  const Recorder::Variable* variable = recorder().variable_of(symbol);
  if (!variable) return abi::kInvalidSymbol;
  *size_bytes = variable->size_bytes;
  return abi::kSuccess;
})
STREAM_ENTRY(cudaMemcpyToSymbol, _ptds,
             (const void* symbol, const void* source, size_t count, size_t offset, int kind), {
               void* place = nullptr;
               if (int code = symbol_place(kApi, symbol, count, offset, &place)) return code;
               return copy_rows(kApi, place, 0, source, 0, count, 1, kind, stream_at(nullptr),
                                Wait::Yes);
             })
STREAM_ENTRY(
    cudaMemcpyToSymbolAsync, _ptsz,
    (const void* symbol, const void* source, size_t count, size_t offset, int kind, void* stream), {
      void* place = nullptr;
      if (int code = symbol_place(kApi, symbol, count, offset, &place)) return code;
      return copy_rows(kApi, place, 0, source, 0, count, 1, kind, stream_at(stream), Wait::No);
    })
STREAM_ENTRY(cudaMemcpyFromSymbol, _ptds,
             (void* destination, const void* symbol, size_t count, size_t offset, int kind), {
               void* place = nullptr;
               if (int code = symbol_place(kApi, symbol, count, offset, &place)) return code;
               return copy_rows(kApi, destination, 0, place, 0, count, 1, kind, stream_at(nullptr),
                                Wait::Yes);
             })
STREAM_ENTRY(
    cudaMemcpyFromSymbolAsync, _ptsz,
    (void* destination, const void* symbol, size_t count, size_t offset, int kind, void* stream), {
      void* place = nullptr;
      if (int code = symbol_place(kApi, symbol, count, offset, &place)) return code;
      return copy_rows(kApi, destination, 0, place, 0, count, 1, kind, stream_at(stream), Wait::No);
    })

// One pool stands for all: its settings change nothing that a plan could show.
ENTRY(cudaDeviceGetDefaultMemPool, (void** pool, int device), {
  if (device != 0) return abi::kInvalidDevice;
  *pool = &default_pool;
  return abi::kSuccess;
})
ENTRY(cudaDeviceGetMemPool, (void** pool, int device), {
  if (device != 0) return abi::kInvalidDevice;
  *pool = &default_pool;
  return abi::kSuccess;
})
ENTRY(cudaDeviceSetMemPool, (int device, void* pool),
      { return device == 0 && pool ? abi::kSuccess : abi::kInvalidValue; })
ENTRY(cudaMemPoolCreate, (void** pool, const void*), {
  *pool = &default_pool;
  return abi::kSuccess;
})
ENTRY(cudaMemPoolDestroy, (void* pool), { return pool ? abi::kSuccess : abi::kInvalidValue; })
ENTRY(cudaMemPoolSetAttribute, (void* pool, int, void* value),
      { return pool && value ? abi::kSuccess : abi::kInvalidValue; })
ENTRY(cudaMemPoolGetAttribute, (void* pool, int attribute, void* value), {
  constexpr int kFirst64Bit = 4;
  if (!pool || !value) return abi::kInvalidValue;
  std::memset(value, 0, attribute >= kFirst64Bit ? 8 : 4);
  return abi::kSuccess;
})
ENTRY(cudaMemPoolTrimTo, (void* pool, size_t),
      { return pool ? abi::kSuccess : abi::kInvalidValue; })
