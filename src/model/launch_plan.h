// Owns the LaunchPlan: everything a candidate's host code asked of the device, as plain data
// (docs/formats.md, "LaunchPlan"). A plan with its modules is self-contained: any machine can
// replay it. A plan that was read is hostile until validate()d.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/artifact.h"
#include "model/types.h"

namespace ptxb {

// The reserved window of device addresses that the recorder hands out and every backend maps at the
// same place. Below 2^47, so that it is a user address on the GPU (47-bit unified addressing) and
// free on the host.
inline constexpr uint64_t kWindowBegin = 0x2000'0000'0000;
inline constexpr uint64_t kWindowEnd = 0x2800'0000'0000;
// Buffers start on 2 MiB (the driver's mapping granularity) plus padding so that the LAST byte lies
// at a mapping's end: address = begin_of_mapping + (round_up(size, 2 MiB) - round_up(size, 256));
// the next 2 MiB stay unmapped.
inline constexpr uint64_t kMappingBytes = 2u << 20;
inline constexpr uint64_t kBufferAlignment = 256;
constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}
// Bytes of the mapping that holds a buffer of this size (an empty buffer has one too).
constexpr uint64_t mapping_bytes(uint64_t size_bytes) {
  return round_up(size_bytes ? size_bytes : 1, kMappingBytes);
}
constexpr uint64_t placed_address(uint64_t mapping_begin, uint64_t size_bytes) {
  return mapping_begin + mapping_bytes(size_bytes) -
         round_up(size_bytes ? size_bytes : 1, kBufferAlignment);
}
constexpr uint64_t mapping_begin(uint64_t address, uint64_t size_bytes) {
  return round_up(address + (size_bytes ? size_bytes : 1), kBufferAlignment) -
         mapping_bytes(size_bytes);
}

enum class BufferRole { Input, Output, Scratch };

struct PlanBuffer {
  std::string name;  // tensor name, or "scratch0"...
  BufferRole role = BufferRole::Scratch;
  uint64_t address = 0, size_bytes = 0;
};

// A module-scope variable whose address the host took. The recorder hands out window addresses for
// symbols too; the variable itself lies where the replayer's module loader put it. Replayers
// therefore translate [address, address + size_bytes) in operations' addresses, tensor maps and in
// pointers that kernels receive (docs/formats.md, "Symbols").
struct PlanSymbol {
  uint32_t module = 0;
  std::string name;
  uint64_t address = 0, size_bytes = 0;
};

struct PlanModule {
  std::string name;   // "candidate" for module 0, else "loaded1"...
  std::string ptx;    // text; may be empty when only a cubin was given
  std::string cubin;  // bytes; may be empty when only PTX was given
  std::vector<KernelInfo> kernels;
};

// Arguments of cuTensorMapEncodeTiled, checked by the recorder. Enum values are the driver's
// (cuda.h, CUtensorMap*).
struct PlanTensorMap {
  uint32_t dtype = 0, rank = 0;
  uint64_t address = 0;
  std::array<uint64_t, 5> dims{};           // elements, innermost first
  std::array<uint64_t, 4> strides_bytes{};  // of dims 1..rank-1
  std::array<uint32_t, 5> box{};
  std::array<uint32_t, 5> element_strides{};
  uint32_t interleave = 0, swizzle = 0, l2_promotion = 0, oob_fill = 0;
};
// The recorder writes this 128-byte image where the driver would write its opaque CUtensorMap: 16
// bytes of magic, a 4-byte index into LaunchPlan::tensor_maps, zeros. Replayers find the magic
// (64-byte aligned) and put in their own encoding.
inline constexpr std::array<uint8_t, 16> kTensorMapMagic = {
    'p', 't', 'x', 'b', 0x8f, 't', 'm', 'a', 'p', 0xd1, 0x3c, 0x77, 0xa5, 0x01, 0xee, 0x42};
inline constexpr uint32_t kTensorMapBytes = 128;

struct KernelLaunch {
  uint32_t module = 0;
  std::string kernel;
  Dim3 grid, block, cluster{0, 0, 0};  // cluster 0,0,0: not given at launch
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  bool programmatic_serialization =
      false;                    // PDL: may start before its predecessor in the stream ends
  std::vector<uint8_t> params;  // laid out as KernelInfo::params says
};
struct Memset {
  uint64_t address = 0, pitch_bytes = 0;  // pitch 0: one row
  uint32_t value = 0, element_bytes = 1;  // 1, 2 or 4
  uint64_t width_elements = 0, height = 1;
};
struct CopyDevice {  // device to device; 2-D when height > 1
  uint64_t destination = 0, source = 0, width_bytes = 0;
  uint64_t destination_pitch_bytes = 0, source_pitch_bytes = 0, height = 1;
};
struct WriteBytes {  // host literal to device: tensor maps, constants
  uint64_t address = 0;
  std::vector<uint8_t> bytes;
};
using PlanAction = std::variant<KernelLaunch, Memset, CopyDevice, WriteBytes>;

struct PlanOperation {
  uint32_t stream = 0;  // 0: the caller's stream; 1..: candidate's own
  std::vector<uint32_t>
      after;  // indices of earlier operations in the same list that must have ended (events, joins)
  PlanAction action;
};

// What a plan may hold; more is refused by the recorder (launch_unsupported) and by the reader
// (BadInput).
struct PlanLimits {
  static constexpr size_t kOperations = 16384;  // of setup and steady each
  static constexpr size_t kBuffers = 4096, kSymbols = 4096, kModules = 64, kTensorMaps = 16384,
                          kKernels = 4096;
  static constexpr size_t kParamBytes = 32764;  // CUDA's own limit since 12.1
  static constexpr size_t kWriteBytes = 1u << 20, kWriteBytesTotal = 64u << 20;
  static constexpr size_t kModuleBytes = 64u << 20;
  static constexpr size_t kAfter = 1024;
  static constexpr size_t kNameBytes = 4096;
  static constexpr uint32_t kStreams = 4096;
};

struct LaunchPlan {
  static constexpr int kVersion = 1;
  std::string arch;  // "sm_90a"
  std::string source_sha256, cubin_sha256;
  std::string task, workload;  // names, for show and replay
  std::map<std::string, int64_t> axes;
  std::vector<PlanBuffer>
      buffers;  // inputs and outputs in definition order, then scratch; none overlap
  std::vector<PlanSymbol> symbols;
  std::vector<PlanModule> modules;  // module 0 is the candidate's own
  std::vector<PlanTensorMap> tensor_maps;
  // `setup` is the first recorded call, kept only when it differs from the later ones (first-call
  // initialisation); its replay is followed by poisoned outputs and fresh inputs. `steady` is a
  // later call: what is checked and timed.
  std::vector<PlanOperation> setup, steady;
};

// JSON without module bytes (those go beside it as files); `read_plan` checks structure, types and
// ranges, not sense.
Json to_json(const LaunchPlan& plan);
Result<LaunchPlan> plan_from_json(const Json& json, std::string_view name);
// Sense: addresses inside the window and inside a buffer or symbol, sizes bounded, kernels known,
// grid and block within the architecture-independent limits (x <= 2^31-1, block <= 1024 ...),
// `after` acyclic. Error: BadInput naming the operation.
Result<void> validate(const LaunchPlan& plan);
// Folder form: plan.json, module<i>.ptx, module<i>.cubin. Reading checks the modules' digests and
// validates.
Result<void> write_plan(const LaunchPlan& plan, const std::string& folder);
Result<LaunchPlan> read_plan(const std::string& folder);
// Identity of everything that is executed: the JSON with the digests of the module bytes.
std::string sha256(const LaunchPlan& plan);
// Bytes of parameters that a kernel takes, by its layout.
uint32_t param_bytes(const KernelInfo& kernel);
// Positions of tensor-map images in bytes that start at `address` (their alignment counts). 0 for
// parameter blocks.
std::vector<size_t> tensor_map_images(std::span<const uint8_t> bytes, uint64_t address);
// REQUIRES: an image at `position`.
uint32_t tensor_map_index(std::span<const uint8_t> bytes, size_t position);
// SHA-independent one-screen text for `ptxbench plan show`.
std::string show(const LaunchPlan& plan);

}  // namespace ptxb
