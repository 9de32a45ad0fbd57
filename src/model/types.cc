// SPDX-License-Identifier: Apache-2.0
#include "model/types.h"

#include <cstdlib>

namespace ptxb {

namespace {

struct DTypeRow {
  DType type;
  const char* name;
  int64_t bytes;
};

constexpr DTypeRow kTypes[] = {
    {DType::F64, "float64", 8},        {DType::F32, "float32", 4},
    {DType::F16, "float16", 2},        {DType::BF16, "bfloat16", 2},
    {DType::E4M3, "float8_e4m3fn", 1}, {DType::E5M2, "float8_e5m2", 1},
    {DType::I64, "int64", 8},          {DType::I32, "int32", 4},
    {DType::I16, "int16", 2},          {DType::I8, "int8", 1},
    {DType::U8, "uint8", 1},           {DType::Bool, "bool", 1},
};

const DTypeRow& row(DType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

int64_t size_bytes(DType type) { return row(type).bytes; }
std::string_view name(DType type) { return row(type).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DTypeRow& entry : kTypes) {
    if (text == entry.name) return entry.type;
  }
  return std::nullopt;
}

}  // namespace ptxb
