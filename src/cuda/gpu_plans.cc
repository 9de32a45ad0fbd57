// Owns hand-made plans for GPU tests. Never part of the product.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/gpu_plans.h"

#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace ptxb::cuda {

namespace {

std::string must_read(const Path& path) {
  Result<std::string> bytes = read_file(path);
  if (!bytes) std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
  PTXB_CHECK(bytes);
  return *std::move(bytes);
}

uint32_t tiles(int64_t extent, int64_t tile) {
  return static_cast<uint32_t>((extent + tile - 1) / tile);
}

}  // namespace

Task gemm_task(int64_t m, int64_t n, int64_t k) {
  Task task;
  task.definition.name = "gemm_n" + std::to_string(n) + "_k" + std::to_string(k);
  task.definition.reference = "native:gemm_nt";
  task.definition.op_type = "gemm";
  task.definition.inputs = {{"A", {"M", "K"}, false, DType::BF16, ""},
                            {"B", {"N", "K"}, false, DType::BF16, ""}};
  task.definition.outputs = {{"C", {"M", "N"}, false, DType::BF16, ""}};
  task.definition.axes = {{"M", std::nullopt, ""}, {"N", n, ""}, {"K", k, ""}};
  task.axes = {{"M", m}, {"N", n}, {"K", k}};
  return task;
}

Task attention_task(int64_t batch, int64_t heads, int64_t length, int64_t width, bool causal) {
  Task task;
  task.definition.name = "mha_with_lse_d" + std::to_string(width) + (causal ? "_causal" : "");
  task.definition.reference = causal ? "native:mha_with_lse_causal" : "native:mha_with_lse";
  task.definition.op_type = "mha";
  for (const char* name : {"q", "k", "v"}) {
    task.definition.inputs.push_back({name, {"B", "H", "S", "D"}, false, DType::BF16, ""});
  }
  task.definition.outputs = {{"o", {"B", "H", "S", "D"}, false, DType::BF16, ""},
                             {"lse", {"B", "H", "S"}, false, DType::F32, ""}};
  task.definition.axes = {
      {"B", batch, ""}, {"H", heads, ""}, {"S", std::nullopt, ""}, {"D", width, ""}};
  task.axes = {{"B", batch}, {"H", heads}, {"S", length}, {"D", width}};
  return task;
}

std::string program_folder() {
  char path[4096] = {};
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  PTXB_CHECK(length > 0);
  return Path(path).parent_path().string();
}

Params& Params::add_map(uint32_t index) {
  std::array<uint8_t, kTensorMapBytes> image = {};
  std::copy(kTensorMapMagic.begin(), kTensorMapMagic.end(), image.begin());
  std::memcpy(image.data() + kTensorMapMagic.size(), &index, sizeof index);
  return add(image, 64);
}

PlanMaker::PlanMaker(const Task& task, const std::string& stem) : task_(task) {
  plan_.arch = "sm_90a";
  plan_.task = task.definition.name;
  plan_.axes = task.axes;
  PlanModule module;
  module.name = "candidate";
  const Path folder = Path(program_folder()) / "testdata";
  module.cubin = must_read(folder / (stem + ".cubin"));
  module.ptx = must_read(folder / (stem + ".ptx"));
  plan_.modules.push_back(std::move(module));
  for (const TensorSpec& tensor : task.definition.inputs) {
    const auto size = static_cast<uint64_t>(task.size_bytes(tensor));
    inputs_.push_back(place(size));
    plan_.buffers.push_back({tensor.name, BufferRole::Input, inputs_.back(), size});
  }
  for (const TensorSpec& tensor : task.definition.outputs) {
    const auto size = static_cast<uint64_t>(task.size_bytes(tensor));
    outputs_.push_back(place(size));
    plan_.buffers.push_back({tensor.name, BufferRole::Output, outputs_.back(), size});
  }
}

uint64_t PlanMaker::place(uint64_t size_bytes) {
  const uint64_t address = placed_address(next_, size_bytes);
  next_ += mapping_bytes(size_bytes) + kMappingBytes;
  return address;
}

uint64_t PlanMaker::scratch(uint64_t size_bytes) {
  const uint64_t address = place(size_bytes);
  plan_.buffers.push_back(
      {"scratch" + std::to_string(plan_.buffers.size()), BufferRole::Scratch, address, size_bytes});
  return address;
}

uint64_t PlanMaker::symbol(const std::string& name, uint64_t size_bytes) {
  const uint64_t address = place(size_bytes);
  plan_.symbols.push_back({0, name, address, size_bytes});
  return address;
}

uint32_t PlanMaker::tensor_map(uint64_t address, uint64_t rows, uint64_t columns, uint32_t box_rows,
                               uint32_t box_columns, uint32_t swizzle) {
  PlanTensorMap map;
  map.dtype = 9;  // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
  map.rank = 2;
  map.address = address;
  map.dims = {columns, rows};
  map.strides_bytes = {columns * 2};
  map.box = {box_columns, box_rows};
  map.element_strides = {1, 1};
  map.swizzle = swizzle;
  map.l2_promotion = 3;  // 256 bytes
  plan_.tensor_maps.push_back(map);
  return static_cast<uint32_t>(plan_.tensor_maps.size() - 1);
}

std::string PlanMaker::entry(const std::string& part) const {
  for (std::string_view line : split_lines(plan_.modules[0].ptx)) {
    const size_t at = line.find(".entry ");
    if (at == std::string_view::npos) continue;
    const std::string_view name = line.substr(at + 7, line.find('(') - at - 7);
    if (name.find(part) != std::string_view::npos) return std::string(name);
  }
  std::fprintf(stderr, "no entry like %s\n", part.c_str());
  PTXB_CHECK(false);
  return {};
}

KernelLaunch PlanMaker::launch(const std::string& kernel, Dim3 grid, Dim3 block,
                               const Params& params, uint32_t shared_bytes) {
  auto& kernels = plan_.modules[0].kernels;
  if (std::none_of(kernels.begin(), kernels.end(),
                   [&](const KernelInfo& info) { return info.name == kernel; })) {
    KernelInfo info;
    info.name = kernel;
    info.params = params.slots();
    kernels.push_back(std::move(info));
  }
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.grid = grid;
  launch.block = block;
  launch.dynamic_shared_bytes = shared_bytes;
  launch.params = params.bytes();
  return launch;
}

KernelLaunch PlanMaker::tiled(const std::string& kernel) {
  const int64_t m = task_.axes.at("M"), n = task_.axes.at("N"), k = task_.axes.at("K");
  Params params;
  params.add(input(0)).add(input(1)).add(output(0)).add(m).add(n).add(k);
  return launch(kernel, {tiles(n, 16), tiles(m, 16), 1}, {16, 16, 1}, params);
}

LaunchPlan simple_plan(const Task& task, const std::string& kernel) {
  PlanMaker maker(task, "kernels");
  maker.plan().steady.push_back({0, {}, maker.tiled(kernel)});
  return maker.take();
}

LaunchPlan simt_plan(const Task& task) {
  PlanMaker maker(task, "simt");
  const int64_t m = task.axes.at("M"), n = task.axes.at("N"), k = task.axes.at("K");
  Params params;
  params.add(maker.input(0)).add(maker.input(1)).add(maker.output(0)).add(m).add(n).add(k);
  maker.plan().steady.push_back(
      {0,
       {},
       maker.launch(maker.entry("gemm_simt"), {tiles(n, 64), tiles(m, 64), 1}, {64, 1, 1},
                    params)});
  return maker.take();
}

LaunchPlan mma_sync_plan(const Task& task) {
  PlanMaker maker(task, "mma_sync");
  const int64_t m = task.axes.at("M"), n = task.axes.at("N"), k = task.axes.at("K");
  const auto tiles_m = static_cast<int32_t>(tiles(m, 128)),
             tiles_n = static_cast<int32_t>(tiles(n, 128));
  Params params;
  params.add(maker.input(0))
      .add(maker.input(1))
      .add(maker.output(0))
      .add(m)
      .add(n)
      .add(k)
      .add(tiles_m)
      .add(tiles_n);
  const auto grid = static_cast<uint32_t>(tiles_m * tiles_n);
  maker.plan().steady.push_back({0,
                                 {},
                                 maker.launch(maker.entry("gemm_mma_sync"), {grid, 1, 1},
                                              {256, 1, 1}, params, 3 * 2 * 128 * 128)});
  return maker.take();
}

LaunchPlan wgmma_plan(const Task& task, int multiprocessors) {
  PlanMaker maker(task, "wgmma_tma");
  const auto m = static_cast<uint64_t>(task.axes.at("M")),
             n = static_cast<uint64_t>(task.axes.at("N")),
             k = static_cast<uint64_t>(task.axes.at("K"));
  constexpr uint32_t kSwizzle128 = 3;
  const uint32_t map_a = maker.tensor_map(maker.input(0), m, k, 128, 64, kSwizzle128);
  const uint32_t map_b = maker.tensor_map(maker.input(1), n, k, 256, 64, kSwizzle128);
  const uint32_t map_c = maker.tensor_map(maker.output(0), m, n, 64, 64, kSwizzle128);
  const auto tiles_m = static_cast<int32_t>(tiles(task.axes.at("M"), 128)),
             tiles_n = static_cast<int32_t>(tiles(task.axes.at("N"), 256)),
             steps = static_cast<int32_t>(tiles(task.axes.at("K"), 64));
  Params params;
  params.add_map(map_a).add_map(map_b).add_map(map_c).add(tiles_m).add(tiles_n).add(steps);
  // Four stages of 48 KiB, two store buffers for each of two consumers, barriers, alignment: as in
  // the kernel's Shape<256>.
  constexpr uint32_t kShared = 4 * (128 * 128 + 256 * 128) + 4 * 8192 + 2 * 4 * 8 + 1024;
  const auto grid = static_cast<uint32_t>(std::min(tiles_m * tiles_n, multiprocessors));
  maker.plan().steady.push_back(
      {0,
       {},
       maker.launch(maker.entry("gemm_wgmmaILi256E"), {grid, 1, 1}, {384, 1, 1}, params, kShared)});
  return maker.take();
}

}  // namespace ptxb::cuda
