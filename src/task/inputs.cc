// SPDX-License-Identifier: Apache-2.0
#include "task/inputs.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/minifloat.h"
#include "base/parallel.h"
#include "task/normal_fill.h"

namespace ptxb {

namespace {

constexpr std::string_view kDistributionNames[] = {"normal", "spiky", "exact", "coded"};

bool is_gemm(const Task& task) { return task.definition.reference == "native:gemm_nt"; }
bool is_attention(const Task& task) {
  return task.definition.reference == "native:mha_with_lse" ||
         task.definition.reference == "native:mha_with_lse_causal";
}

// FNV-1a over the definition's name and the axes: the same data for a shape, however the workload
// was named.
uint64_t key_of(const Task& task, uint64_t seed) {
  std::string text = task.definition.name;
  for (const auto& [axis, value] : task.axes) text += "|" + axis + "=" + std::to_string(value);
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash ^= seed * 0x9e3779b97f4a7c15u;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

GeneratorSpec gemm_spec(const Task& task, size_t index, GeneratorSpec spec,
                        Distribution distribution) {
  spec.inner = task.axes.at("K");
  spec.side = static_cast<uint32_t>(index);
  // About 1024 terms in each sum at most: then one missing term (129 at least) is above the bf16
  // step of all outputs below 2^14, and a typical output stays below 2^13.
  spec.density = static_cast<uint32_t>(std::clamp<int64_t>((1024 * 1024) / spec.inner, 1, 1024));
  if (distribution == Distribution::Exact) spec.pattern = Pattern::GemmExact;
  if (distribution == Distribution::Coded)
    spec.pattern = index == 0 ? Pattern::GemmCoded : Pattern::GemmOneHot;
  return spec;
}

GeneratorSpec attention_spec(const Task& task, size_t index, GeneratorSpec spec,
                             Distribution distribution) {
  spec.inner = task.axes.at("D");
  spec.rows = task.axes.at("S");
  spec.causal = task.definition.reference == "native:mha_with_lse_causal";
  spec.pairs = distribution == Distribution::Exact;
  spec.key_tensor = 1;
  if (distribution == Distribution::Exact || distribution == Distribution::Coded) {
    const Pattern value = distribution == Distribution::Exact ? Pattern::AttentionExactValue
                                                              : Pattern::AttentionCodedValue;
    spec.pattern = index == 0   ? Pattern::AttentionQuery
                   : index == 1 ? Pattern::AttentionKey
                                : value;
  }
  return spec;
}

void store(DType type, float value, uint8_t* out) {
  const uint16_t half = type == DType::BF16  ? float_to_bf16(value)
                        : type == DType::F16 ? float_to_f16(value)
                                             : uint16_t{0};
  const double wide = static_cast<double>(value);
  switch (type) {
    case DType::F64:
      std::memcpy(out, &wide, 8);
      return;
    case DType::F32:
      std::memcpy(out, &value, 4);
      return;
    case DType::F16:
    case DType::BF16:
      std::memcpy(out, &half, 2);
      return;
    case DType::E4M3:
      *out = float_to_e4m3_satfinite(value);
      return;
    case DType::E5M2:
      *out = float_to_e5m2_satfinite(value);
      return;
    default:
      return;
  }
}

constexpr int64_t kChunk = int64_t{1} << 16;

void fill(const GeneratorSpec& spec, DType type, int64_t elements, int threads,
          std::vector<uint8_t>& out) {
  const bool fast =
      type == DType::BF16 && (spec.pattern == Pattern::Normal || spec.pattern == Pattern::Spiky);
  const int64_t item_bytes = size_bytes(type);
  parallel_for(static_cast<size_t>((elements + kChunk - 1) / kChunk), threads,
               [&](size_t chunk, int) {
                 const int64_t begin = static_cast<int64_t>(chunk) * kChunk,
                               count = std::min(kChunk, elements - begin);
                 uint8_t* at = out.data() + begin * item_bytes;
                 if (fast)
                   return fill_normal_bf16(spec, begin, count, reinterpret_cast<uint16_t*>(at));
                 for (int64_t i = 0; i < count; ++i)
                   store(type, generate(spec, begin + i), at + i * item_bytes);
               });
}

bool is_float(DType type) {
  return type == DType::F64 || type == DType::F32 || type == DType::F16 || type == DType::BF16 ||
         type == DType::E4M3 || type == DType::E5M2;
}

void store_scalar(DType type, double value, uint8_t* out) {
  if (type == DType::F64) return static_cast<void>(std::memcpy(out, &value, 8));
  if (is_float(type)) return store(type, static_cast<float>(value), out);
  const int64_t whole = static_cast<int64_t>(std::clamp(value, -9e18, 9e18));
  std::memcpy(out, &whole, static_cast<size_t>(size_bytes(type)));  // little-endian
}

}  // namespace

std::string_view name(Distribution distribution) {
  return kDistributionNames[static_cast<size_t>(distribution)];
}

std::optional<Distribution> parse_distribution(std::string_view text) {
  for (size_t i = 0; i < std::size(kDistributionNames); ++i) {
    if (text == kDistributionNames[i]) return static_cast<Distribution>(i);
  }
  return std::nullopt;
}

std::vector<Distribution> distributions(const Task& task) {
  if (is_gemm(task)) return {Distribution::Normal, Distribution::Exact, Distribution::Coded};
  if (is_attention(task)) {
    return {Distribution::Normal, Distribution::Exact, Distribution::Coded, Distribution::Spiky};
  }
  return {Distribution::Normal};
}

Result<GeneratorSpec> generator_spec(const Task& task, size_t index, InputSpec spec) {
  const std::vector<Distribution> known = distributions(task);
  if (spec.distribution != Distribution::Spiky &&
      std::find(known.begin(), known.end(), spec.distribution) == known.end()) {
    return unsupported("task " + task.definition.name + " has no " +
                       std::string(name(spec.distribution)) + " inputs");
  }
  GeneratorSpec out;
  out.key = key_of(task, spec.seed);
  out.tensor = static_cast<uint32_t>(index);
  out.pattern = spec.distribution == Distribution::Spiky ? Pattern::Spiky : Pattern::Normal;
  const TensorSpec& tensor = task.definition.inputs[index];
  if (!tensor.shape.empty()) out.inner = task.axes.at(tensor.shape.back());
  if (is_gemm(task)) return gemm_spec(task, index, out, spec.distribution);
  if (is_attention(task)) return attention_spec(task, index, out, spec.distribution);
  return out;
}

Result<Buffers> make_inputs(const Task& task, InputSpec spec, int threads) {
  Buffers out;
  for (size_t i = 0; i < task.definition.inputs.size(); ++i) {
    const TensorSpec& tensor = task.definition.inputs[i];
    auto found = task.workload.inputs.find(tensor.name);
    const WorkloadInput input =
        found == task.workload.inputs.end() ? WorkloadInput{} : found->second;
    if (input.kind == WorkloadInput::Kind::Safetensors) {
      return unsupported("workload " + task.workload.uuid + ": input " + tensor.name +
                         " comes from a safetensors blob, which this build does not read");
    }
    std::vector<uint8_t>& bytes = out.emplace_back(static_cast<size_t>(task.size_bytes(tensor)));
    if (input.kind == WorkloadInput::Kind::Scalar) {
      store_scalar(tensor.dtype, input.value, bytes.data());
      continue;
    }
    if (!is_float(tensor.dtype)) {
      return unsupported("task " + task.definition.name + ": random inputs of type " +
                         std::string(name(tensor.dtype)) + " (" + tensor.name + ")");
    }
    PTXB_TRY(GeneratorSpec generator, generator_spec(task, i, spec));
    fill(generator, tensor.dtype, task.elements(tensor), threads, bytes);
  }
  return out;
}

Buffers poisoned_outputs(const Task& task) {
  Buffers out;
  for (const TensorSpec& tensor : task.definition.outputs) {
    out.emplace_back(static_cast<size_t>(task.size_bytes(tensor)), kPoisonByte);
  }
  return out;
}

}  // namespace ptxb
