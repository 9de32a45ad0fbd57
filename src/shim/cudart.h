// Owns what every file of libcudart.so.13 shares: the entry macros and the thread's last error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shim/device.h"
#include "shim/recorder.h"

namespace ptxb::shim {

// The thread's last error, as cudaGetLastError reports and clears it.
inline thread_local int last_error = 0;
inline int leave(int code) {
  if (code) last_error = code;
  return code;
}

inline Recorder& recorder() { return Recorder::get(); }
inline uint64_t bits(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

}  // namespace ptxb::shim

// ENTRY(cudaFoo, (int a), { ... return code; }): the function, under the recorder's lock, its code
// kept as last error.
#define ENTRY(NAME, PARAMS, ...)                                \
  extern "C" int NAME PARAMS {                                  \
    using namespace ptxb;                                       \
    using namespace ptxb::shim;                                 \
    [[maybe_unused]] static constexpr const char* kApi = #NAME; \
    Guard guard = recorder().lock();                            \
    return leave([&]() -> int __VA_ARGS__());                   \
  }
// The same in two flavours: `DEFAULT` tells what stream 0 means, as nvcc's --default-stream
// chooses.
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
    return leave([&]() -> int __VA_ARGS__());                           \
  }
