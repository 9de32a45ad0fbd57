// Owns executing a plan's operations on the device. Never touches what is not the plan's.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/replay.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace ptxb::cuda {

namespace {

std::string error_name(CUresult result) {
  const char* text = nullptr;
  return driver().cuGetErrorName(result, &text) == CUDA_SUCCESS && text != nullptr ? text
                                                                                   : "CUDA_ERROR";
}

const KernelLaunch* launch_of(const std::vector<PlanOperation>& list, int index) {
  if (index < 0 || static_cast<size_t>(index) >= list.size()) return nullptr;
  return std::get_if<KernelLaunch>(&list[static_cast<size_t>(index)].action);
}

std::string_view action_name(const PlanAction& action) {
  constexpr std::string_view kNames[] = {"kernel", "memset", "copy", "write"};
  return kNames[action.index()];
}

// What the driver's error means to a kernel's author.
std::string_view meaning(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return "accessed memory outside every buffer (or freed, or never given)";
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return "accessed an address that is not aligned to the access";
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
      return "executed an illegal instruction, or one with an illegal operand";
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
      return "used an address of the wrong state space";
    case CUDA_ERROR_INVALID_PC:
      return "jumped outside its code";
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
      return "overflowed its stack";
    case CUDA_ERROR_ASSERT:
      return "failed a device-side assert";
    case CUDA_ERROR_LAUNCH_FAILED:
      return "trapped, or faulted in a way the driver does not name";
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return "has a cluster that does not fit the device";
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return "has more blocks than can be resident for a cooperative launch";
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return "needs more registers or shared memory than a block may have";
    default:
      return "was refused or failed";
  }
}

}  // namespace

CUresult Replay::issue(const PlanOperation& operation, Prepared& prepared, CUstream stream) {
  if (const auto* launch = std::get_if<KernelLaunch>(&operation.action)) {
    CUlaunchConfig config = {};
    config.gridDimX = launch->grid.x;
    config.gridDimY = launch->grid.y;
    config.gridDimZ = launch->grid.z;
    config.blockDimX = launch->block.x;
    config.blockDimY = launch->block.y;
    config.blockDimZ = launch->block.z;
    config.sharedMemBytes = launch->dynamic_shared_bytes;
    config.hStream = stream;
    config.attrs = prepared.attributes.data();
    config.numAttrs = static_cast<unsigned>(prepared.attributes.size());
    return driver().cuLaunchKernelEx(&config, prepared.function, prepared.arguments.data(),
                                     nullptr);
  }
  if (const auto* memset = std::get_if<Memset>(&operation.action)) {
    const auto width = memset->width_elements;
    const auto byte = static_cast<unsigned char>(memset->value);
    const auto word = static_cast<unsigned short>(memset->value);
    const bool rows = memset->height > 1;
    switch (memset->element_bytes) {
      case 1:
        return rows ? driver().cuMemsetD2D8Async(prepared.destination, memset->pitch_bytes, byte,
                                                 width, memset->height, stream)
                    : driver().cuMemsetD8Async(prepared.destination, byte, width, stream);
      case 2:
        return rows ? driver().cuMemsetD2D16Async(prepared.destination, memset->pitch_bytes, word,
                                                  width, memset->height, stream)
                    : driver().cuMemsetD16Async(prepared.destination, word, width, stream);
      default:
        return rows ? driver().cuMemsetD2D32Async(prepared.destination, memset->pitch_bytes,
                                                  memset->value, width, memset->height, stream)
                    : driver().cuMemsetD32Async(prepared.destination, memset->value, width, stream);
    }
  }
  if (const auto* copy = std::get_if<CopyDevice>(&operation.action)) {
    if (copy->height <= 1) {
      return driver().cuMemcpyDtoDAsync(prepared.destination, prepared.source, copy->width_bytes,
                                        stream);
    }
    CUDA_MEMCPY2D rows = {};
    rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.srcDevice = prepared.source;
    rows.dstDevice = prepared.destination;
    rows.srcPitch = copy->source_pitch_bytes;
    rows.dstPitch = copy->destination_pitch_bytes;
    rows.WidthInBytes = copy->width_bytes;
    rows.Height = copy->height;
    return driver().cuMemcpy2DAsync(&rows, stream);
  }
  return driver().cuMemcpyHtoDAsync(prepared.destination, prepared.bytes.data(),
                                    prepared.bytes.size(), stream);
}

std::optional<Trouble> Replay::enqueue(const std::vector<PlanOperation>& list, Marking marking) {
  std::vector<Prepared>& prepared = &list == &plan_.setup ? setup_ : steady_;
  PTXB_CHECK(&list == &plan_.setup || &list == &plan_.steady);
  auto* marks = static_cast<uint32_t*>(marks_.get());
  std::fill_n(marks, list.size(), 0u);
  running_ = &list;
  marking_ = marking == Marking::Progress;
  std::map<uint32_t, int> last_of_stream;
  CUresult result = CUDA_SUCCESS;
  if (!side_streams_.empty()) result = driver().cuEventRecord(fork_.get(), stream_.get());
  for (size_t i = 0; i < list.size() && result == CUDA_SUCCESS; ++i) {
    const PlanOperation& operation = list[i];
    CUstream stream =
        operation.stream == 0 ? stream_.get() : side_streams_.at(operation.stream).get();
    if (operation.stream != 0 && last_of_stream.count(operation.stream) == 0) {
      result = driver().cuStreamWaitEvent(stream, fork_.get(), 0);
    }
    for (uint32_t earlier : operation.after) {
      if (result == CUDA_SUCCESS && list[earlier].stream != operation.stream) {
        result = driver().cuStreamWaitEvent(stream, ends_[earlier].get(), 0);
      }
    }
    if (result == CUDA_SUCCESS) result = issue(operation, prepared[i], stream);
    if (result != CUDA_SUCCESS) {
      const bool before = is_sticky(result);  // an earlier operation's fault shows in a later call
      return trouble_of(result, before ? "run" : "launch", &list,
                        before ? first_unfinished() : static_cast<int>(i));
    }
    if (marking_) {
      result =
          driver().cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(marks + i), 1, 0);
    }
    if (result == CUDA_SUCCESS && prepared[i].record_end)
      result = driver().cuEventRecord(ends_[i].get(), stream);
    if (operation.stream != 0) last_of_stream[operation.stream] = static_cast<int>(i);
  }
  for (const auto& [stream, last] : last_of_stream) {
    if (result == CUDA_SUCCESS) {
      result = driver().cuStreamWaitEvent(stream_.get(), ends_[static_cast<size_t>(last)].get(), 0);
    }
  }
  if (result != CUDA_SUCCESS) return trouble_of(result, "run", &list, first_unfinished());
  return std::nullopt;
}

std::optional<Trouble> Replay::wait(double timeout_s) {
  CUresult result = driver().cuEventRecord(done_.get(), stream_.get());
  const double begin_s = now_s();
  while (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) {
    result = driver().cuEventQuery(done_.get());
    if (result == CUDA_SUCCESS) return std::nullopt;
    const double waited_s = now_s() - begin_s;
    if (result == CUDA_ERROR_NOT_READY && waited_s > timeout_s) {
      Trouble trouble =
          trouble_of(CUDA_ERROR_NOT_READY, "run", running_, marking_ ? first_unfinished() : -1);
      trouble.status = RunStatus::Budget;
      trouble.error.clear();
      trouble.sticky = true;
      abandon_context();
      trouble.cause = (trouble.kernel.empty() ? "the plan" : "kernel " + trouble.kernel) +
                      " did not end within " + std::to_string(static_cast<int>(timeout_s * 1000)) +
                      " ms";
      return trouble;
    }
    // Short runs are polled; long ones leave the core to others.
    if (waited_s > 0.002) {
      const timespec pause = {0, 50'000};
      ::nanosleep(&pause, nullptr);
    }
  }
  return trouble_of(result, "run", running_, marking_ ? first_unfinished() : -1);
}

int Replay::first_unfinished() const {
  if (running_ == nullptr || !marking_)
    return running_ != nullptr && running_->size() == 1 ? 0 : -1;
  const auto* marks = static_cast<const volatile uint32_t*>(marks_.get());
  for (size_t i = 0; i < running_->size(); ++i) {
    if (marks[i] == 0) return static_cast<int>(i);
  }
  return -1;
}

Trouble Replay::trouble_of(CUresult result, std::string stage,
                           const std::vector<PlanOperation>* list, int operation) const {
  Trouble trouble;
  trouble.stage = std::move(stage);
  trouble.error = error_name(result);
  trouble.sticky = is_sticky(result);
  if (trouble.sticky) abandon_context();
  trouble.operation = operation;
  if (operation < 0 && list != nullptr && list->size() == 1) trouble.operation = 0;
  if (list == nullptr) {
    trouble.cause = describe(result);
    return trouble;
  }
  const KernelLaunch* launch = launch_of(*list, trouble.operation);
  std::string subject = "the plan";
  if (launch != nullptr) {
    trouble.kernel = launch->kernel;
    subject = "kernel " + launch->kernel;
  } else if (trouble.operation >= 0) {
    subject = std::string(action_name((*list)[static_cast<size_t>(trouble.operation)].action));
  }
  if (list->size() > 1 && trouble.operation >= 0) {
    subject += " (operation " + std::to_string(trouble.operation) + " of " +
               std::to_string(list->size()) + ")";
  }
  trouble.cause = subject + " " + std::string(meaning(result)) + ": " + trouble.error;
  return trouble;
}

Result<void> Replay::poison_all(uint8_t poison) {
  for (const Mapping& mapping : mappings_) {
    PTXB_CHECK_OK(cuda_check(
        driver().cuMemsetD8Async(mapping.begin, poison, mapping.size_bytes, stream_.get()),
        "poison"));
  }
  return {};
}

Result<void> Replay::poison_outputs(uint8_t poison) {
  for (const PlanBuffer& buffer : plan_.buffers) {
    if (buffer.role != BufferRole::Output || buffer.size_bytes == 0) continue;
    PTXB_CHECK_OK(cuda_check(
        driver().cuMemsetD8Async(buffer.address, poison, buffer.size_bytes, stream_.get()),
        "poison"));
  }
  return {};
}

Result<void> Replay::digest_buffer(size_t index, CUdeviceptr sum) {
  const PlanBuffer& buffer = plan_.buffers[index];
  if (buffer.size_bytes == 0) return {};
  return device_.add_digest(stream_.get(), buffer.address, buffer.size_bytes, index + 1, sum);
}

Result<void> Replay::digest_role(BufferRole role, CUdeviceptr sum) {
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    if (plan_.buffers[i].role == role) PTXB_CHECK_OK(digest_buffer(i, sum));
  }
  return {};
}

Result<void> Replay::digest_padding(CUdeviceptr sum) {
  for (size_t i = 0; i < mappings_.size(); ++i) {
    const uint64_t front = plan_.buffers[i].address - mappings_[i].begin;
    if (front > 0)
      PTXB_CHECK_OK(device_.add_digest(stream_.get(), mappings_[i].begin, front, 2 * i + 1, sum));
    const uint64_t behind = round_up(plan_.buffers[i].address + plan_.buffers[i].size_bytes, 16);
    const uint64_t end = mappings_[i].begin + mappings_[i].size_bytes;
    if (behind < end)
      PTXB_CHECK_OK(device_.add_digest(stream_.get(), behind, end - behind, 2 * i + 2, sum));
  }
  return {};
}

}  // namespace ptxb::cuda
