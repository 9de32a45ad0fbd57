// Owns the worker's GPU: context, facts, our own kernels. Never runs a candidate's code.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/device.h"

#include <algorithm>
#include <array>

#include "cuda/embedded.h"
#include "model/types.h"

namespace ptxb::cuda {

static_assert(static_cast<uint32_t>(Element::F32) == static_cast<uint32_t>(DType::F32) &&
              static_cast<uint32_t>(Element::BF16) == static_cast<uint32_t>(DType::BF16) &&
              static_cast<uint32_t>(Element::E5M2) == static_cast<uint32_t>(DType::E5M2) &&
              static_cast<uint32_t>(Element::I32) == static_cast<uint32_t>(DType::I32));

struct Device::Kernels {
  Module module;
  CUfunction fill = nullptr, digest = nullptr, stamp = nullptr, gemm = nullptr, attention = nullptr,
             norms = nullptr, compare = nullptr;
};

namespace {

constexpr uint32_t kThreads = 256;
// Grid-stride kernels: enough blocks to fill the chip, few enough to start fast.
uint64_t stride_blocks(uint64_t items, int multiprocessors) {
  const uint64_t wanted = (items + kThreads - 1) / kThreads;
  return std::clamp<uint64_t>(wanted, 1, static_cast<uint64_t>(multiprocessors) * 16);
}

Result<DeviceFacts> read_facts(CUdevice device, int ordinal) {
  DeviceFacts facts;
  facts.ordinal = ordinal;
  std::array<char, 256> text = {};
  PTXB_CHECK_OK(
      cuda_check(driver().cuDeviceGetName(text.data(), text.size(), device), "device name"));
  facts.name = text.data();
  PTXB_CHECK_OK(
      cuda_check(driver().cuDeviceGetPCIBusId(text.data(), text.size(), device), "bus id"));
  facts.bus_id = text.data();
  int version = 0;
  PTXB_CHECK_OK(cuda_check(driver().cuDriverGetVersion(&version), "driver version"));
  facts.driver_version =
      "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  const auto nvml = load_nvml();
  if (nvml && (*nvml)->driver_version(text.data(), text.size()) == 0) {
    facts.driver_version = std::string(text.data()) + " (" + facts.driver_version + ")";
  }
  const std::pair<int*, CUdevice_attribute> attributes[] = {
      {&facts.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {&facts.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {&facts.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {&facts.l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {&facts.clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
  };
  for (const auto& [value, attribute] : attributes) {
    PTXB_CHECK_OK(
        cuda_check(driver().cuDeviceGetAttribute(value, attribute, device), "device attribute"));
  }
  size_t memory = 0, granularity = 0;
  PTXB_CHECK_OK(cuda_check(driver().cuDeviceTotalMem(&memory, device), "device memory"));
  facts.memory_bytes = memory;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {ordinal}};
  PTXB_CHECK_OK(cuda_check(driver().cuMemGetAllocationGranularity(&granularity, &properties,
                                                                  CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                           "allocation granularity"));
  facts.granularity_bytes = granularity;
  facts.cubin_arch = "sm_" + std::to_string(facts.major) + std::to_string(facts.minor) + "a";
  return facts;
}

}  // namespace

Json to_json(const DeviceFacts& facts) {
  Json json = Json::object();
  json.set("ordinal", facts.ordinal);
  json.set("name", facts.name);
  json.set("bus_id", facts.bus_id);
  json.set("driver", facts.driver_version);
  json.set("arch", facts.cubin_arch);
  json.set("multiprocessors", facts.multiprocessors);
  json.set("l2_bytes", facts.l2_bytes);
  json.set("clock_khz", facts.clock_khz);
  json.set("memory_bytes", facts.memory_bytes);
  json.set("granularity_bytes", facts.granularity_bytes);
  return json;
}

Result<Device> Device::open(int ordinal) {
  PTXB_CHECK_OK(load_driver());
  PTXB_CHECK_OK(cuda_check(driver().cuInit(0), "cuInit"));
  int count = 0;
  PTXB_CHECK_OK(cuda_check(driver().cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count) {
    return harness_error("no GPU " + std::to_string(ordinal) + ": the driver shows " +
                         std::to_string(count));
  }
  Device device;
  PTXB_CHECK_OK(cuda_check(driver().cuDeviceGet(&device.device_, ordinal), "cuDeviceGet"));
  PTXB_TRY(device.facts_, read_facts(device.device_, ordinal));
  if (device.facts_.granularity_bytes != 0 && (2u << 20) % device.facts_.granularity_bytes != 0) {
    return unsupported("this GPU maps memory in units of " +
                       std::to_string(device.facts_.granularity_bytes) + " bytes");
  }
  // The primary context: the libraries' own runtimes use it too.
  CUcontext context = nullptr;
  PTXB_CHECK_OK(cuda_check(driver().cuDevicePrimaryCtxRetain(&context, device.device_), "context"));
  PTXB_CHECK_OK(cuda_check(driver().cuCtxSetCurrent(context), "context"));

  device.kernels_ = std::make_shared<Kernels>();
  Kernels& kernels = *device.kernels_;
  const std::string_view image = embedded_kernels(device.facts_.cubin_arch);
  if (image.empty())
    return unsupported("this worker has no kernels for " + device.facts_.cubin_arch);
  CUmodule module = nullptr;
  PTXB_CHECK_OK(cuda_check(driver().cuModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr),
                           "own kernels"));
  kernels.module.reset(module);
  const std::pair<CUfunction*, const char*> functions[] = {
      {&kernels.fill, "ptxb_fill"},
      {&kernels.digest, "ptxb_digest"},
      {&kernels.stamp, "ptxb_stamp"},
      {&kernels.gemm, "ptxb_reference_gemm_nt"},
      {&kernels.compare, "ptxb_compare"},
      {&kernels.norms, "ptxb_row_norms"},
      {&kernels.attention, "ptxb_reference_attention"},
  };
  for (const auto& [function, function_name] : functions) {
    PTXB_CHECK_OK(
        cuda_check(driver().cuModuleGetFunction(function, module, function_name), function_name));
  }
  PTXB_CHECK_OK(cuda_check(driver().cuFuncSetAttribute(
                               kernels.attention, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               static_cast<int>(kAttentionSharedBytes)),
                           "own kernels"));
  device.flush_bytes_ = static_cast<uint64_t>(device.facts_.l2_bytes) * 5 / 2;
  PTXB_TRY(DeviceMemory flush, device.allocate(device.flush_bytes_, "the L2 flush buffer"));
  device.flush_ = std::make_shared<DeviceMemory>(std::move(flush));
  return device;
}

Result<Stream> Device::make_stream() const {
  CUstream stream = nullptr;
  PTXB_CHECK_OK(
      cuda_check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  return Stream(stream);
}

Result<Event> Device::make_event(EventKind kind) const {
  CUevent event = nullptr;
  const unsigned flags = kind == EventKind::Order ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT;
  PTXB_CHECK_OK(cuda_check(driver().cuEventCreate(&event, flags), "cuEventCreate"));
  return Event(event);
}

Result<DeviceMemory> Device::allocate(uint64_t size_bytes, std::string_view what) const {
  CUdeviceptr address = 0;
  const CUresult result = driver().cuMemAlloc(&address, std::max<uint64_t>(size_bytes, 1));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    return limit_error(std::string(what) + ": " + std::to_string(size_bytes) +
                       " bytes of device memory are not free");
  }
  PTXB_CHECK_OK(cuda_check(result, what));
  return DeviceMemory(address);
}

Result<HostMemory> Device::allocate_host(uint64_t size_bytes) const {
  void* memory = nullptr;
  PTXB_CHECK_OK(cuda_check(driver().cuMemHostAlloc(&memory, size_bytes, CU_MEMHOSTALLOC_PORTABLE),
                           "cuMemHostAlloc"));
  return HostMemory(memory);
}

Result<void> Device::launch(CUstream stream, CUfunction function, uint64_t blocks, uint32_t threads,
                            void** arguments, std::string_view what, uint32_t blocks_y,
                            uint32_t shared_bytes) const {
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(blocks);
  config.gridDimY = blocks_y;
  config.gridDimZ = 1;
  config.blockDimX = threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  return cuda_check(driver().cuLaunchKernelEx(&config, function, arguments, nullptr), what);
}

Result<void> Device::fill(CUstream stream, const GeneratorSpec& spec, int64_t count,
                          Element element, CUdeviceptr out) const {
  if (count == 0) return {};
  if (element != Element::BF16 && element != Element::F32)
    return unsupported("generated inputs of this type");
  GeneratorSpec own = spec;
  void* arguments[] = {&own, &count, &element, &out};
  return launch(stream, kernels_->fill,
                stride_blocks(static_cast<uint64_t>(count), facts_.multiprocessors), kThreads,
                arguments, "fill");
}

Result<void> Device::add_digest(CUstream stream, CUdeviceptr data, uint64_t size_bytes,
                                uint64_t salt, CUdeviceptr sum) const {
  void* arguments[] = {&data, &size_bytes, &salt, &sum};
  return launch(stream, kernels_->digest,
                stride_blocks(size_bytes / 16 + 1, facts_.multiprocessors), kThreads, arguments,
                "digest");
}

Result<void> Device::stamp(CUstream stream, CUdeviceptr slots, uint64_t hold_ns) const {
  void* arguments[] = {&slots, &hold_ns};
  return launch(stream, kernels_->stamp, static_cast<uint64_t>(facts_.multiprocessors), 32,
                arguments, "stamp");
}

Result<void> Device::reference_gemm(CUstream stream, const GemmCall& call) const {
  if (call.m == 0 || call.n == 0) return {};
  GemmCall own = call;
  void* arguments[] = {&own};
  return launch(stream, kernels_->gemm, static_cast<uint64_t>((call.n + 63) / 64), 256, arguments,
                "reference GEMM", static_cast<uint32_t>((call.m + 127) / 128));
}

Result<void> Device::reference_attention(CUstream stream, const AttentionCall& call) const {
  if (call.heads == 0 || call.length == 0) return {};
  if (call.width > kAttentionMaxWidth)
    return unsupported("attention wider than " + std::to_string(kAttentionMaxWidth));
  AttentionCall own = call;
  void* arguments[] = {&own};
  return launch(stream, kernels_->attention,
                static_cast<uint64_t>((call.length + kAttentionTile - 1) / kAttentionTile), 256,
                arguments, "reference attention", static_cast<uint32_t>(call.heads),
                kAttentionSharedBytes);
}

Result<void> Device::row_norms(CUstream stream, CUdeviceptr data, int64_t rows, int64_t length,
                               CUdeviceptr norms) const {
  if (rows == 0) return {};
  void* arguments[] = {&data, &rows, &length, &norms};
  return launch(stream, kernels_->norms,
                static_cast<uint64_t>((rows * 32 + kThreads - 1) / kThreads), kThreads, arguments,
                "row norms");
}

Result<void> Device::compare(CUstream stream, const CompareCall& call, CUdeviceptr totals) const {
  CompareCall own = call;
  void* arguments[] = {&own, &totals};
  return launch(stream, kernels_->compare,
                stride_blocks(static_cast<uint64_t>(call.count), facts_.multiprocessors), kThreads,
                arguments, "compare");
}

Result<void> Device::flush_l2(CUstream stream) const {
  // A persisting window survives any amount of writing; only the reset gives its lines back
  // (measured, docs/gpu.md).
  PTXB_CHECK_OK(cuda_check(driver().cuCtxResetPersistingL2Cache(), "cuCtxResetPersistingL2Cache"));
  return cuda_check(driver().cuMemsetD32Async(flush_->get(), 0x5eed5eed, flush_bytes_ / 4, stream),
                    "L2 flush");
}

}  // namespace ptxb::cuda
