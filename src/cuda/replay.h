// Owns one LaunchPlan on the device: its memory at its own addresses, its modules, its operations
// ready to queue. What a candidate can cause is a Trouble, never an Error. Nothing of it is left
// when the object is gone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "model/launch_plan.h"
#include "model/outcome.h"

namespace ptxb::cuda {

// Why a plan did not run to its end.
struct Trouble {
  RunStatus status = RunStatus::Fault;
  std::string
      stage;  // "load": module or memory; "launch": refused by the driver; "run": while executing
  std::string error;    // the driver's name, "CUDA_ERROR_ILLEGAL_ADDRESS"; "" for a time-out
  std::string cause;    // one line
  std::string kernel;   // "" when no kernel can be named
  int operation = -1;   // index in the list that ran
  bool sticky = false;  // the context is lost: the process must end after saying so
};

class Replay {
 public:
  // REQUIRES: validate(plan) succeeded. Null with `trouble` set when the plan itself cannot be
  // loaded.
  static Result<std::unique_ptr<Replay>> make(const Device& device, const LaunchPlan& plan,
                                              std::optional<Trouble>& trouble);
  ~Replay();
  Replay(const Replay&) = delete;  // owns mappings whose addresses the device holds
  Replay& operator=(const Replay&) = delete;

  const LaunchPlan& plan() const { return plan_; }
  CUstream stream() const { return stream_.get(); }

  enum class Marking {
    None,
    Progress,  // each operation's end is noted in host memory, so that a fault or hang can be
               // placed
  };
  // Queues the operations between the stream's past and future: side streams fork from the stream's
  // present and are joined at the end, so unjoined work can neither escape the clock nor run into
  // the next sample.
  std::optional<Trouble> enqueue(const std::vector<PlanOperation>& list, Marking marking);
  // Waits for everything queued; after timeout_s the status is Budget (the process must end: the
  // kernel still runs).
  std::optional<Trouble> wait(double timeout_s);

  // True when something that the plan's kernels write could be there at its next call: scratch
  // memory, module variables.
  bool keeps_state() const { return keeps_state_; }
  // Scratch poisoned, modules loaded anew: as make() left it. Inputs and outputs are left alone.
  // Nothing may be running.
  Result<std::optional<Trouble>> forget_state(uint8_t poison);

  // Every byte of every buffer's mapping (padding too) becomes `poison`.
  Result<void> poison_all(uint8_t poison);
  Result<void> poison_outputs(uint8_t poison);
  // Adds digests to sum: of the buffers of a role, or of the padding before and after all buffers.
  Result<void> digest_role(BufferRole role, CUdeviceptr sum);
  Result<void> digest_buffer(size_t index, CUdeviceptr sum);
  Result<void> digest_padding(CUdeviceptr sum);

 private:
  struct Mapping {
    CUdeviceptr begin = 0;
    uint64_t size_bytes = 0;
    CUmemGenericAllocationHandle memory = 0;
    bool created = false, mapped = false;
  };
  struct Prepared {
    CUfunction function = nullptr;  // of a KernelLaunch
    std::vector<uint8_t> params;    // patched copy
    std::vector<void*> arguments;   // into params
    std::vector<CUlaunchAttribute> attributes;
    CUdeviceptr destination = 0, source = 0;
    std::vector<uint8_t> bytes;  // of WriteBytes, patched
    bool record_end = false;     // another stream waits for it, or it is a side stream's last
  };

  explicit Replay(const Device& device) : device_(device) {}
  Result<void> reserve_window();
  std::optional<Trouble> map_buffer(const PlanBuffer& buffer);
  std::optional<Trouble> load_modules();
  std::optional<Trouble> prepare_all();
  std::optional<Trouble> prepare(const std::vector<PlanOperation>& list,
                                 std::vector<Prepared>& prepared);
  std::optional<Trouble> prepare_launch(const KernelLaunch& launch, Prepared& prepared);
  std::optional<Trouble> patch(std::vector<uint8_t>& bytes, uint64_t base_address);
  const KernelInfo* kernel_info(const KernelLaunch& launch) const;
  Result<void> make_streams();
  CUresult issue(const PlanOperation& operation, Prepared& prepared, CUstream stream);
  CUdeviceptr translate(uint64_t address) const;
  Trouble trouble_of(CUresult result, std::string stage, const std::vector<PlanOperation>* list,
                     int operation) const;
  int first_unfinished() const;

  const Device& device_;
  LaunchPlan plan_;
  CUdeviceptr window_ = 0;  // one reservation around all buffers; what is not mapped in it faults
  uint64_t window_bytes_ = 0;
  std::vector<Mapping> mappings_;  // of plan_.buffers, same order
  std::vector<Module> modules_;
  std::vector<CUdeviceptr> symbols_;  // real addresses of plan_.symbols
  std::vector<Prepared> setup_, steady_;
  Stream stream_;
  std::map<uint32_t, Stream> side_streams_;
  Event fork_, done_;
  std::vector<Event> ends_;  // one for each operation that another stream waits for
  HostMemory marks_;         // u32 each operation
  const std::vector<PlanOperation>* running_ = nullptr;  // the list that was queued last
  bool marking_ = false, keeps_state_ = false, has_variables_ = false;
};

}  // namespace ptxb::cuda
