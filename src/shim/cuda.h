// Owns what every file of libcuda.so.1 shares: the entry macros and the driver's spelling of result
// codes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shim/device.h"
#include "shim/recorder.h"

namespace ptxb::shim {

// Codes that only the runtime has become the driver's own.
inline int driver_code(int code) {
  switch (code) {
    case abi::kInvalidConfiguration:
    case abi::kInvalidPitch:
    case abi::kInvalidMemcpyDirection:
      return abi::kInvalidValue;
    case abi::kInvalidSymbol:
      return abi::kNotFound;
    case abi::kInvalidDeviceFunction:
      return abi::kInvalidHandle;
    default:
      return code;
  }
}
inline Recorder& recorder() { return Recorder::get(); }
inline uint64_t bits(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace ptxb::shim

// ENTRY(cuFoo, (int a), { ... return code; }): the function, under the recorder's lock.
#define ENTRY(NAME, PARAMS, ...)                                \
  extern "C" int NAME PARAMS {                                  \
    using namespace ptxb;                                       \
    using namespace ptxb::shim;                                 \
    [[maybe_unused]] static constexpr const char* kApi = #NAME; \
    Guard guard = recorder().lock();                            \
    return driver_code([&]() -> int __VA_ARGS__());             \
  }
// The same in two flavours; stream 0 means the legacy or the per-thread default stream.
#define STREAM_ENTRY(NAME, SUFFIX, PARAMS, ...)                            \
  STREAM_ENTRY_ONE(NAME, NAME, DefaultStream::Legacy, PARAMS, __VA_ARGS__) \
  STREAM_ENTRY_ONE(NAME, NAME##SUFFIX, DefaultStream::PerThread, PARAMS, __VA_ARGS__)
#define STREAM_ENTRY_ONE(NAME, SYMBOL, MEANING, PARAMS, ...)            \
  extern "C" int SYMBOL PARAMS {                                        \
    using namespace ptxb;                                               \
    using namespace ptxb::shim;                                         \
    [[maybe_unused]] static constexpr const char* kApi = #NAME;         \
    [[maybe_unused]] static constexpr DefaultStream kDefault = MEANING; \
    [[maybe_unused]] auto stream_at = [](void* handle) {                \
      return recorder().stream_of(handle, kDefault);                    \
    };                                                                  \
    Guard guard = recorder().lock();                                    \
    return driver_code([&]() -> int __VA_ARGS__());                     \
  }
