// Owns making a plan ready on the device: addresses, memory, modules, tensor maps, parameters.
// Queues nothing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cuda/replay.h"

namespace ptxb::cuda {

namespace {
uint64_t little_endian(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count && at + i < bytes.size(); ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  }
  return value;
}

// Whether a module has variables that its kernels can write: sections .nv.global (zeroed) and
// .nv.global.init of an ELF64 cubin (ELF-64 object file format, section headers). True where that
// cannot be told.
bool has_variables(const PlanModule& module) {
  const std::string_view image = module.cubin;
  if (image.size() < 64 || !image.starts_with("\x7f"
                                              "ELF\x02"))
    return true;
  const uint64_t headers = little_endian(image, 0x28, 8),
                 header_bytes = little_endian(image, 0x3a, 2),
                 count = little_endian(image, 0x3c, 2), names_index = little_endian(image, 0x3e, 2);
  if (header_bytes < 64 || headers > image.size() ||
      count * header_bytes > image.size() - headers || names_index >= count)
    return true;
  const uint64_t names = little_endian(image, headers + names_index * header_bytes + 0x18, 8);
  if (names >= image.size()) return true;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t header = headers + i * header_bytes,
                   name = names + little_endian(image, header, 4);
    if (name >= image.size()) return true;
    if (image.substr(name).starts_with(".nv.global") && little_endian(image, header + 0x20, 8) > 0)
      return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Replay>> Replay::make(const Device& device, const LaunchPlan& plan,
                                             std::optional<Trouble>& trouble) {
  std::unique_ptr<Replay> replay(new Replay(device));
  replay->plan_ = plan;
  PTXB_TRY(replay->stream_, device.make_stream());
  PTXB_TRY(replay->fork_, device.make_event(EventKind::Order));
  PTXB_TRY(replay->done_, device.make_event(EventKind::Order));
  const size_t operations = std::max(plan.setup.size(), plan.steady.size());
  PTXB_TRY(replay->marks_,
           device.allocate_host(std::max<size_t>(operations, 1) * sizeof(uint32_t)));
  PTXB_CHECK_OK(replay->reserve_window());
  for (const PlanBuffer& buffer : replay->plan_.buffers) {
    trouble = replay->map_buffer(buffer);
    if (trouble) return std::unique_ptr<Replay>();
  }
  trouble = replay->prepare_all();
  if (trouble) return std::unique_ptr<Replay>();
  for (const PlanModule& module : plan.modules)
    replay->has_variables_ = replay->has_variables_ || has_variables(module);
  replay->keeps_state_ = replay->has_variables_;
  for (const PlanBuffer& buffer : plan.buffers) {
    replay->keeps_state_ = replay->keeps_state_ || buffer.role == BufferRole::Scratch;
  }
  PTXB_CHECK_OK(replay->make_streams());
  return replay;
}

Replay::~Replay() {
  if (context_abandoned()) return;
  modules_.clear();
  for (Mapping& mapping : mappings_) {
    if (mapping.mapped) driver().cuMemUnmap(mapping.begin, mapping.size_bytes);
    if (mapping.created) driver().cuMemRelease(mapping.memory);
  }
  if (window_ != 0) driver().cuMemAddressFree(window_, window_bytes_);
}

Result<void> Replay::reserve_window() {
  // A small reservation, or one at an odd address, is put elsewhere (H200, driver 580); a large one
  // at a round address is granted. So one reservation spans all buffers.
  constexpr uint64_t kRound = uint64_t{1} << 30;
  uint64_t begin = kWindowEnd, end = kWindowBegin;
  for (const PlanBuffer& buffer : plan_.buffers) {
    begin = std::min(begin, mapping_begin(buffer.address, buffer.size_bytes));
    end = std::max(end, buffer.address + buffer.size_bytes);
  }
  if (begin >= end) return {};
  begin = begin / kRound * kRound;
  window_bytes_ = round_up(end - begin, kRound);
  PTXB_CHECK_OK(cuda_check(driver().cuMemAddressReserve(&window_, window_bytes_, 0, begin, 0),
                           "reserving the plan's addresses"));
  if (window_ != begin) return harness_error("the driver does not grant the plan's addresses");
  return {};
}

std::optional<Trouble> Replay::map_buffer(const PlanBuffer& buffer) {
  Mapping& mapping = mappings_.emplace_back();
  // The buffer's last byte lies at the mapping's end (up to its 256-byte alignment), the next 2 MiB
  // stay unmapped.
  mapping.size_bytes = mapping_bytes(buffer.size_bytes);
  mapping.begin = mapping_begin(buffer.address, buffer.size_bytes);
  const auto failed = [&](CUresult result, const char* what) -> std::optional<Trouble> {
    Trouble trouble = trouble_of(result, "load", nullptr, -1);
    trouble.status = RunStatus::Unsupported;
    trouble.cause = std::string(what) + " for buffer " + buffer.name + " (" +
                    std::to_string(buffer.size_bytes) + " bytes): " + describe(result);
    return trouble;
  };
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_.facts().ordinal}};
  CUresult result = driver().cuMemCreate(&mapping.memory, mapping.size_bytes, &properties, 0);
  if (result != CUDA_SUCCESS) return failed(result, "device memory");
  mapping.created = true;
  result = driver().cuMemMap(mapping.begin, mapping.size_bytes, 0, mapping.memory, 0);
  if (result != CUDA_SUCCESS) return failed(result, "mapping memory");
  mapping.mapped = true;
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  result = driver().cuMemSetAccess(mapping.begin, mapping.size_bytes, &access, 1);
  if (result != CUDA_SUCCESS) return failed(result, "making memory accessible");
  return std::nullopt;
}

std::optional<Trouble> Replay::prepare_all() {
  modules_.clear();
  symbols_.clear();
  setup_.clear();
  steady_.clear();
  std::optional<Trouble> trouble = load_modules();
  if (!trouble) trouble = prepare(plan_.setup, setup_);
  if (!trouble) trouble = prepare(plan_.steady, steady_);
  return trouble;
}

Result<std::optional<Trouble>> Replay::forget_state(uint8_t poison) {
  for (size_t i = 0; i < mappings_.size(); ++i) {
    if (plan_.buffers[i].role != BufferRole::Scratch) continue;
    PTXB_CHECK_OK(cuda_check(driver().cuMemsetD8Async(mappings_[i].begin, poison,
                                                      mappings_[i].size_bytes, stream_.get()),
                             "poison"));
  }
  if (!has_variables_) return std::optional<Trouble>();
  return prepare_all();
}

std::optional<Trouble> Replay::load_modules() {
  for (const PlanModule& module : plan_.modules) {
    CUmodule loaded = nullptr;
    char log[4096] = {};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
    // The very cubin that was built and is counted; PTX only where the plan has nothing else.
    const std::string& image = module.cubin.empty() ? module.ptx : module.cubin;
    const CUresult result = driver().cuModuleLoadDataEx(&loaded, image.c_str(), 2, options, values);
    if (result != CUDA_SUCCESS) {
      Trouble trouble = trouble_of(result, "load", nullptr, -1);
      trouble.cause = "module " + module.name + ": " + describe(result) +
                      (log[0] ? ": " + std::string(log) : "");
      return trouble;
    }
    modules_.emplace_back(loaded);
  }
  for (const PlanSymbol& symbol : plan_.symbols) {
    CUdeviceptr address = 0;
    size_t size_bytes = 0;
    const CUresult result = driver().cuModuleGetGlobal(
        &address, &size_bytes, modules_[symbol.module].get(), symbol.name.c_str());
    if (result != CUDA_SUCCESS || size_bytes < symbol.size_bytes) {
      Trouble trouble = trouble_of(result, "load", nullptr, -1);
      trouble.cause =
          "variable " + symbol.name + ": " +
          (result != CUDA_SUCCESS ? describe(result) : "smaller in the module than in the plan");
      return trouble;
    }
    symbols_.push_back(address);
  }
  return std::nullopt;
}

CUdeviceptr Replay::translate(uint64_t address) const {
  for (size_t i = 0; i < plan_.symbols.size(); ++i) {
    const PlanSymbol& symbol = plan_.symbols[i];
    // One past the end too: end pointers are legal to form.
    if (address >= symbol.address && address - symbol.address <= symbol.size_bytes) {
      return symbols_[i] + (address - symbol.address);
    }
  }
  return address;
}

std::optional<Trouble> Replay::patch(std::vector<uint8_t>& bytes, uint64_t base_address) {
  // Tensor maps: the recorder's image is 64-byte aligned in device memory and in the parameter
  // block.
  std::vector<bool> is_map(bytes.size(), false);
  for (size_t at = (64 - base_address % 64) % 64; at + kTensorMapBytes <= bytes.size(); at += 64) {
    if (!std::equal(kTensorMapMagic.begin(), kTensorMapMagic.end(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at))) {
      continue;
    }
    uint32_t index = 0;
    std::memcpy(&index, bytes.data() + at + kTensorMapMagic.size(), sizeof index);
    if (index >= plan_.tensor_maps.size()) continue;  // validate() refused this already
    const PlanTensorMap& map = plan_.tensor_maps[index];
    alignas(64) CUtensorMap encoded = {};
    const CUresult result = driver().cuTensorMapEncodeTiled(
        &encoded, static_cast<CUtensorMapDataType>(map.dtype), map.rank,
        reinterpret_cast<void*>(translate(map.address)),  // NOLINT: the driver's interface
        map.dims.data(), map.strides_bytes.data(), map.box.data(), map.element_strides.data(),
        static_cast<CUtensorMapInterleave>(map.interleave),
        static_cast<CUtensorMapSwizzle>(map.swizzle),
        static_cast<CUtensorMapL2promotion>(map.l2_promotion),
        static_cast<CUtensorMapFloatOOBfill>(map.oob_fill));
    if (result != CUDA_SUCCESS) {
      Trouble trouble = trouble_of(result, "launch", nullptr, -1);
      trouble.cause = "tensor map " + std::to_string(index) + ": " + describe(result);
      return trouble;
    }
    std::memcpy(bytes.data() + at, &encoded, sizeof encoded);
    std::fill_n(is_map.begin() + static_cast<std::ptrdiff_t>(at), kTensorMapBytes, true);
  }
  if (plan_.symbols.empty()) return std::nullopt;
  for (size_t at = (8 - base_address % 8) % 8; at + 8 <= bytes.size(); at += 8) {
    if (is_map[at]) continue;
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    word = translate(word);
    std::memcpy(bytes.data() + at, &word, 8);
  }
  return std::nullopt;
}

std::optional<Trouble> Replay::prepare(const std::vector<PlanOperation>& list,
                                       std::vector<Prepared>& prepared) {
  prepared.resize(list.size());
  std::map<uint32_t, size_t> last_of_stream;
  for (size_t i = 0; i < list.size(); ++i) {
    const PlanOperation& operation = list[i];
    std::optional<Trouble> trouble;
    if (const auto* launch = std::get_if<KernelLaunch>(&operation.action)) {
      trouble = prepare_launch(*launch, prepared[i]);
    } else if (const auto* memset = std::get_if<Memset>(&operation.action)) {
      prepared[i].destination = translate(memset->address);
    } else if (const auto* copy = std::get_if<CopyDevice>(&operation.action)) {
      prepared[i].destination = translate(copy->destination);
      prepared[i].source = translate(copy->source);
    } else if (const auto* write = std::get_if<WriteBytes>(&operation.action)) {
      prepared[i].destination = translate(write->address);
      prepared[i].bytes = write->bytes;
      trouble = patch(prepared[i].bytes, write->address);
    }
    if (trouble) {
      trouble->operation = static_cast<int>(i);
      return trouble;
    }
    for (uint32_t earlier : operation.after) {
      if (list[earlier].stream != operation.stream) prepared[earlier].record_end = true;
    }
    if (operation.stream != 0) last_of_stream[operation.stream] = i;
  }
  for (const auto& [stream, last] : last_of_stream) prepared[last].record_end = true;
  return std::nullopt;
}

const KernelInfo* Replay::kernel_info(const KernelLaunch& launch) const {
  const auto& kernels = plan_.modules[launch.module].kernels;
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const KernelInfo& info) {
    return info.name == launch.kernel;
  });
  PTXB_CHECK(found != kernels.end());  // validate()
  return &*found;
}

std::optional<Trouble> Replay::prepare_launch(const KernelLaunch& launch, Prepared& prepared) {
  const auto refuse = [&](CUresult result, const std::string& what) -> std::optional<Trouble> {
    Trouble trouble = trouble_of(result, "launch", nullptr, -1);
    trouble.kernel = launch.kernel;
    trouble.cause = "kernel " + launch.kernel + ": " + what + ": " + describe(result);
    return trouble;
  };
  CUresult result = driver().cuModuleGetFunction(&prepared.function, modules_[launch.module].get(),
                                                 launch.kernel.c_str());
  if (result != CUDA_SUCCESS) return refuse(result, "not in its module");
  if (launch.dynamic_shared_bytes > 0) {
    int before =
        0;  // two launches of one kernel may ask for different sizes: the limit is the larger
    driver().cuFuncGetAttribute(&before, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                prepared.function);
    if (static_cast<int>(launch.dynamic_shared_bytes) > before) {
      result = driver().cuFuncSetAttribute(prepared.function,
                                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           static_cast<int>(launch.dynamic_shared_bytes));
      if (result != CUDA_SUCCESS) {
        return refuse(result, std::to_string(launch.dynamic_shared_bytes) +
                                  " bytes of dynamic shared memory");
      }
    }
  }
  if (launch.cluster.x != 0 && launch.cluster.volume() > 8) {
    result = driver().cuFuncSetAttribute(prepared.function,
                                         CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (result != CUDA_SUCCESS)
      return refuse(result, "a cluster of " + std::to_string(launch.cluster.volume()));
  }
  prepared.params = launch.params;
  if (auto trouble = patch(prepared.params, 0)) {
    trouble->kernel = launch.kernel;
    return trouble;
  }
  // The driver's own offsets start behind an alignment gap of the constant bank, the plan's do not:
  // values are passed one by one, by number.
  const KernelInfo* info = kernel_info(launch);
  size_t offset = 0, size = 0, count = 0;
  for (; driver().cuFuncGetParamInfo(prepared.function, count, &offset, &size) == CUDA_SUCCESS;
       ++count) {
    if (count >= info->params.size() || info->params[count].size_bytes != size) {
      return refuse(
          CUDA_ERROR_INVALID_VALUE,
          "parameter " + std::to_string(count) + " has " + std::to_string(size) +
              " bytes in the module and " +
              (count < info->params.size() ? std::to_string(info->params[count].size_bytes)
                                           : "none") +
              " in the plan");
    }
    prepared.arguments.push_back(prepared.params.data() + info->params[count].offset_bytes);
  }
  if (count != info->params.size())
    return refuse(CUDA_ERROR_INVALID_VALUE, "the plan has more parameters than the module");
  const auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    CUlaunchAttribute& attribute = prepared.attributes.emplace_back();
    attribute = {};
    attribute.id = id;
    return attribute.value;
  };
  if (launch.cluster.x != 0) {
    CUlaunchAttributeValue& value = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    value.clusterDim.x = launch.cluster.x;
    value.clusterDim.y = launch.cluster.y;
    value.clusterDim.z = launch.cluster.z;
  }
  if (launch.cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (launch.programmatic_serialization) {
    add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        .programmaticStreamSerializationAllowed = 1;
  }
  return std::nullopt;
}

Result<void> Replay::make_streams() {
  for (const auto* list : {&plan_.setup, &plan_.steady}) {
    for (const PlanOperation& operation : *list) {
      if (operation.stream == 0 || side_streams_.count(operation.stream) != 0) continue;
      PTXB_TRY(side_streams_[operation.stream], device_.make_stream());
    }
  }
  ends_.resize(std::max(setup_.size(), steady_.size()));
  for (const auto* prepared : {&setup_, &steady_}) {
    for (size_t i = 0; i < prepared->size(); ++i) {
      if (!(*prepared)[i].record_end || ends_[i]) continue;
      PTXB_TRY(ends_[i], device_.make_event(EventKind::Order));
    }
  }
  return {};
}

}  // namespace ptxb::cuda
