// SPDX-License-Identifier: Apache-2.0
#include "shim/entry.h"

#include <dlfcn.h>

#include <cstring>
#include <exception>
#include <memory>

#include "base/minifloat.h"
#include "base/text.h"

namespace ptxb::shim {

namespace {

constexpr size_t kTextBytes = 4000;

// Calls body, turning what it throws into text.
template <class Body>
std::string guarded(Body body) {
  try {
    return body();
  } catch (const std::exception& thrown) {
    return "threw an exception: " + printable(thrown.what(), kTextBytes);
  } catch (...) {
    return "threw an exception that is no std::exception";
  }
}

// A scalar as its own type, in the low bytes of 8.
uint64_t scalar_bits(DType type, double value) {
  uint64_t bits = 0;
  auto put = [&bits](auto typed) { std::memcpy(&bits, &typed, sizeof typed); };
  switch (type) {
    case DType::F64:
      put(value);
      break;
    case DType::F32:
      put(static_cast<float>(value));
      break;
    case DType::F16:
      put(float_to_f16(static_cast<float>(value)));
      break;
    case DType::BF16:
      put(float_to_bf16(static_cast<float>(value)));
      break;
    case DType::E4M3:
      put(float_to_e4m3_satfinite(static_cast<float>(value)));
      break;
    case DType::E5M2:
      put(float_to_e5m2_satfinite(static_cast<float>(value)));
      break;
    case DType::Bool:
      put(static_cast<uint8_t>(value != 0));
      break;
    default:
      put(static_cast<int64_t>(value));
      break;  // little endian: the low bytes are the narrower integer
  }
  return bits;
}

}  // namespace

Result<Entry> find_plain_entry(void* library, const Request& request, void* stream) {
  auto* call = reinterpret_cast<void (*)(void**)>(dlsym(library, "ptxbench_call"));
  if (!call || !dlsym(library, "run")) {
    return not_found(
        "the library exports no extern \"C\" function run as ptxbench_task.h declares it");
  }
  return Entry([call, request, stream](int index) {
    std::vector<uint64_t> values;
    for (const Argument& a : request.arguments) {
      values.push_back(a.scalar ? scalar_bits(a.dtype, a.value)
                                : a.addresses[static_cast<size_t>(index - 1)]);
    }
    for (int64_t axis : request.axes) values.push_back(static_cast<uint64_t>(axis));
    values.push_back(reinterpret_cast<uint64_t>(stream));
    std::vector<void*> args;
    for (uint64_t& value : values) args.push_back(&value);
    return guarded([&] {
      call(args.data());
      return std::string();
    });
  });
}

namespace {

// The few types of tvm-ffi's and DLPack's public C interface (tvm/ffi/c_api.h 0.1, dlpack.h 1.1).
struct TvmAny {
  int32_t type = 0;
  uint32_t zero = 0;
  union {
    int64_t integer;
    double real;
    void* pointer;
  };
};
enum TvmType : int32_t {
  kTvmNone = 0,
  kTvmInt = 1,
  kTvmBool = 2,
  kTvmFloat = 3,
  kTvmTensorPointer = 7
};
struct TvmBytes {
  const char* data;
  size_t size;
};
struct TvmError {  // the object's header, then its cell
  uint64_t reference_count;
  int32_t type;
  uint32_t padding;
  void* deleter;
  TvmBytes kind, message;
};
struct DlTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
constexpr int32_t kDlCuda = 2;

void set_dtype(DlTensor& tensor, DType type) {
  constexpr uint8_t kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kBool = 6, kE4M3 = 10, kE5M2 = 12;
  tensor.bits = static_cast<uint8_t>(8 * size_bytes(type));
  tensor.lanes = 1;
  switch (type) {
    case DType::F64:
    case DType::F32:
    case DType::F16:
      tensor.code = kFloat;
      break;
    case DType::BF16:
      tensor.code = kBfloat;
      break;
    case DType::E4M3:
      tensor.code = kE4M3;
      break;
    case DType::E5M2:
      tensor.code = kE5M2;
      break;
    case DType::U8:
      tensor.code = kUint;
      break;
    case DType::Bool:
      tensor.code = kBool;
      break;
    default:
      tensor.code = kInt;
      break;
  }
}

using TvmCall = int (*)(void*, const TvmAny*, int32_t, TvmAny*);
using TvmSetStream = int (*)(int32_t, int32_t, void*, void**);
using TvmMoveError = void (*)(void**);

// Arguments of one call with the memory behind them.
struct TvmArguments {
  std::vector<TvmAny> values;
  std::vector<std::unique_ptr<DlTensor>> tensors;
  std::vector<std::unique_ptr<std::vector<int64_t>>> extents;

  void add(const Argument& a, int call) {
    TvmAny value{};
    if (a.scalar) {
      bool real = a.dtype == DType::F64 || a.dtype == DType::F32 || a.dtype == DType::F16 ||
                  a.dtype == DType::BF16 || a.dtype == DType::E4M3 || a.dtype == DType::E5M2;
      value.type = real ? kTvmFloat : a.dtype == DType::Bool ? kTvmBool : kTvmInt;
      if (real)
        value.real = a.value;
      else
        value.integer = static_cast<int64_t>(a.value);
    } else {
      auto& shape = *extents.emplace_back(std::make_unique<std::vector<int64_t>>(a.shape));
      auto& strides =
          *extents.emplace_back(std::make_unique<std::vector<int64_t>>(a.shape.size(), 1));
      for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
      auto& tensor = *tensors.emplace_back(std::make_unique<DlTensor>());
      tensor.data = reinterpret_cast<void*>(a.addresses[static_cast<size_t>(call - 1)]);
      tensor.device_type = kDlCuda;
      tensor.rank = static_cast<int32_t>(shape.size());
      tensor.shape = shape.data();
      tensor.strides = strides.data();
      set_dtype(tensor, a.dtype);
      value.type = kTvmTensorPointer;
      value.pointer = &tensor;
    }
    values.push_back(value);
  }
};

}  // namespace

Result<Entry> find_tvm_entry(void* library, void* tvm_library, const Request& request,
                             void* stream) {
  auto* call = reinterpret_cast<TvmCall>(dlsym(library, "__tvm_ffi_run"));
  if (!call)
    return not_found("the library exports no function run through TVM_FFI_DLL_EXPORT_TYPED_FUNC");
  auto* set_stream = reinterpret_cast<TvmSetStream>(dlsym(tvm_library, "TVMFFIEnvSetStream"));
  auto* move_error =
      reinterpret_cast<TvmMoveError>(dlsym(tvm_library, "TVMFFIErrorMoveFromRaised"));
  if (!set_stream || !move_error)
    return not_found("libtvm_ffi.so lacks TVMFFIEnvSetStream or TVMFFIErrorMoveFromRaised");
  return Entry([=, &request](int index) {
    TvmArguments arguments;
    for (const Argument& a : request.arguments) arguments.add(a, index);
    return guarded([&]() -> std::string {
      set_stream(kDlCuda, 0, stream, nullptr);
      TvmAny result{};
      if (call(nullptr, arguments.values.data(), static_cast<int32_t>(arguments.values.size()),
               &result) == 0)
        return {};
      void* raised = nullptr;
      move_error(&raised);
      if (!raised) return "raised an error without a text";
      auto* error = static_cast<TvmError*>(raised);
      return "raised " + printable({error->kind.data, error->kind.size}, 200) + ": " +
             printable({error->message.data, error->message.size}, kTextBytes);
    });
  });
}

}  // namespace ptxb::shim
