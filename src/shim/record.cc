// SPDX-License-Identifier: Apache-2.0
#include "shim/record.h"

#include <signal.h>

#include <algorithm>

#include "arch/chip.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "shim/record_files.h"
#include "shim/reduce.h"

namespace ptxb::shim {

namespace {

// Where each call's tensors and the scratch lie: far apart, and with low words that small integers
// in a kernel's parameters do not form by accident.
constexpr uint64_t kCallBegin[kCalls] = {0x2111'a4c0'0000, 0x2222'b5e0'0000, 0x2333'c780'0000};
constexpr uint64_t kScratchBegin = 0x2445'9e40'0000;
constexpr uint64_t kRecordingBytes = 512u << 20;

ChipLimits limits_of(const arch::Chip& chip) {
  ChipLimits out;
  out.product = chip.product;
  out.major = static_cast<uint32_t>(chip.major);
  out.minor = static_cast<uint32_t>(chip.minor);
  out.multiprocessors = chip.multiprocessors;
  out.max_threads_per_block = chip.max_threads_per_block;
  out.max_threads_per_multiprocessor = chip.max_threads_per_multiprocessor;
  out.max_blocks_per_multiprocessor = chip.max_blocks_per_multiprocessor;
  out.registers_per_multiprocessor = chip.registers_per_multiprocessor;
  out.max_registers_per_thread = chip.max_registers_per_thread;
  out.shared_per_multiprocessor_bytes = chip.shared_per_multiprocessor_bytes;
  out.shared_per_block_bytes = chip.shared_per_block_bytes;
  out.shared_per_block_optin_bytes = chip.shared_per_block_optin_bytes;
  out.reserved_shared_bytes = chip.reserved_shared_bytes;
  out.max_cluster_size = chip.max_cluster_size;
  out.max_cluster_size_nonportable = chip.max_cluster_size_nonportable;
  out.memory_bytes = chip.memory_bytes;
  out.l2_bytes = chip.l2_bytes;
  out.clock_khz = chip.clock_khz;
  out.memory_clock_khz = chip.memory_clock_khz;
  out.memory_bus_bits = chip.memory_bus_bits;
  return out;
}

Result<Argument> argument_of(const Task& task, const TensorSpec& tensor, bool output) {
  Argument a;
  a.name = tensor.name;
  a.dtype = tensor.dtype;
  a.output = output;
  a.scalar = tensor.scalar;
  if (tensor.scalar) {
    auto given = task.workload.inputs.find(tensor.name);
    if (given == task.workload.inputs.end() || given->second.kind != WorkloadInput::Kind::Scalar) {
      return bad_input("workload " + task.workload.uuid + ": no value for the scalar " +
                       tensor.name);
    }
    a.value = given->second.value;
    return a;
  }
  a.shape = task.shape(tensor);
  a.size_bytes = static_cast<uint64_t>(task.size_bytes(tensor));
  return a;
}

void place_arguments(Request& request) {
  for (size_t call = 0; call < kCalls; ++call) {
    uint64_t next = kCallBegin[call];
    for (Argument& a : request.arguments) {
      if (a.scalar) continue;
      a.addresses.push_back(placed_address(next, a.size_bytes));
      next += mapping_bytes(a.size_bytes) + kMappingBytes;
    }
  }
  request.scratch_begin = kScratchBegin;
}

std::string one_line(std::string_view text) { return printable(trim(text), 1500); }

RecordOutcome failed(Verdict verdict, std::string cause, std::string hint) {
  RecordOutcome out;
  out.verdict = verdict;
  out.cause = std::move(cause);
  out.hint = std::move(hint);
  return out;
}

// Words for a call that CUDA refused.
std::vector<std::string> refused_texts(const Recording& recording, int call) {
  std::vector<std::string> out;
  for (const Refusal& refusal : recording.refusals) {
    if (refusal.call == call) out.push_back(one_line(refusal.api + ": " + refusal.why));
  }
  return out;
}

RecordOutcome no_entry(const Recording& recording) {
  std::string cause = one_line(recording.detail);
  if (cause.find("undefined symbol: run") != std::string::npos) {
    return failed(Verdict::NoEntry, "the candidate does not define run",
                  "define extern \"C\" void run(...) as ptxbench_task.h declares it");
  }
  return failed(
      Verdict::NoEntry, cause.empty() ? "the library has no entry" : cause,
      "define the entry as the task asks, and use no libraries but CUDA's runtime and driver");
}

}  // namespace

Result<Request> make_request(const Artifact& artifact, const Task& task,
                             const RecordSettings& settings) {
  const arch::Chip* chip =
      settings.chip.empty() ? arch::default_chip(artifact.arch) : arch::find_chip(settings.chip);
  if (!chip)
    return not_found("no chip profile for \"" +
                     (settings.chip.empty() ? artifact.arch : settings.chip) + "\"");
  Request request;
  request.library = artifact.host_library;
  request.tvm_library = artifact.binding == Binding::TvmFfi ? settings.tvm_library : "";
  request.binding = artifact.binding;
  request.chip = limits_of(*chip);
  request.kernels = artifact.kernels;
  for (const SymbolInfo& symbol : artifact.symbols)
    request.symbols.push_back({0, symbol.name, 0, symbol.size_bytes});
  for (const TensorSpec& input : task.definition.inputs) {
    PTXB_TRY(Argument a, argument_of(task, input, false));
    request.arguments.push_back(std::move(a));
  }
  for (const TensorSpec& output : task.definition.outputs) {
    PTXB_TRY(Argument a, argument_of(task, output, true));
    request.arguments.push_back(std::move(a));
  }
  for (const Axis& axis : task.definition.axes) {
    auto bound = task.axes.find(axis.name);
    if (bound == task.axes.end())
      return bad_input("task " + task.definition.name + ": axis " + axis.name + " is not bound");
    request.axes.push_back(bound->second);
  }
  place_arguments(request);
  return request;
}

Result<RecordOutcome> judge(const Request& request, const Recording& recording,
                            const Artifact& artifact, const Task& task) {
  switch (recording.ending) {
    case Ending::Complete:
      break;
    case Ending::NoEntry:
      return no_entry(recording);
    case Ending::Threw:
      return failed(Verdict::LaunchError, "run " + one_line(recording.detail),
                    "return from run without raising errors");
    case Ending::Unsupported:
      return failed(Verdict::LaunchUnsupported, one_line(recording.detail),
                    "host code may launch and copy on the device, but not depend on device data or "
                    "on other resources");
    case Ending::WorkLibrary:
      return failed(Verdict::ForbiddenLibrary,
                    "the host code loaded " + one_line(Path(recording.detail).filename().string()) +
                        ", a library that would do the work",
                    "write the kernel itself; only the CUDA runtime and driver may be called");
    case Ending::Exited: {
      bool cuda_failed = !recording.refusals.empty();
      return failed(cuda_failed ? Verdict::LaunchError : Verdict::HostCrash,
                    one_line(recording.detail), "return from run instead of ending the process");
    }
  }
  PTXB_TRY(auto reduced, reduce(request, recording));
  if (auto* none = std::get_if<NoPlan>(&reduced))
    return failed(none->verdict, one_line(none->cause), none->hint);
  RecordOutcome out;
  out.plan = std::move(std::get<LaunchPlan>(reduced));
  out.plan.arch = artifact.arch;
  out.plan.source_sha256 = artifact.source_sha256;
  out.plan.cubin_sha256 = artifact.cubin_sha256;
  out.plan.task = task.definition.name;
  out.plan.workload = task.workload.uuid;
  out.plan.axes = task.axes;
  out.plan.modules[0] = {"candidate", artifact.ptx, artifact.cubin, artifact.kernels};
  if (auto sense = validate(out.plan); !sense) {
    return failed(Verdict::LaunchError,
                  "the recorded work makes no sense: " + one_line(sense.error().message),
                  "give kernels, copies and tensor maps addresses inside of live buffers");
  }
  out.refused = refused_texts(recording, 2);
  out.notes = recording.notes;
  return out;
}

namespace {

// What the wait status alone says; nullopt: the process ended well.
std::optional<RecordOutcome> crash(const os::Exit& exit, const std::string& progress,
                                   bool has_recording, double wall_s) {
  using Kind = os::Exit::Kind;
  std::string during =
      progress.find("call 1") == std::string::npos ? " while the library was loaded" : " in run";
  switch (exit.kind) {
    case Kind::TimedOut:
      return failed(Verdict::HostTimeout,
                    "the host function did not return within " +
                        std::to_string(static_cast<int>(wall_s)) + " s",
                    "do the work on the device; the host function only launches it");
    case Kind::MemoryLimit:
      return failed(Verdict::HostCrash, "the host function used too much memory",
                    "allocate less host memory");
    case Kind::ProcessLimit:
      return failed(Verdict::HostCrash, "the host function started too many threads or processes",
                    "start none");
    case Kind::FolderLimit:
      return failed(Verdict::HostCrash, "the host function wrote too many bytes to files",
                    "write none");
    case Kind::OutputLimit:
      return failed(Verdict::HostCrash, "the host function printed too much", "print nothing");
    case Kind::Signal: {
      std::string cause = "the host function crashed" + during + ": " + os::summary(exit);
      std::string hint = "run the host function under a debugger";
      if (exit.number == SIGSYS) hint = "the sandbox does not allow that system call";
      if (size_t at = progress.find("fault 0x"); at != std::string::npos) {
        std::string digits(trim(std::string_view(progress).substr(at + 6, 18)));
        uint64_t address = parse_uint(digits).value_or(0);
        if (address >= kWindowBegin && address < kWindowEnd) {
          cause += "; it touched device memory at " + digits + " from the host";
          hint = "device pointers cannot be read or written by host code";
        } else {
          cause += " at address " + digits;
        }
      }
      return failed(Verdict::HostCrash, cause, hint);
    }
    case Kind::Code:
      break;
  }
  if (exit.number == 0 && has_recording) return std::nullopt;
  return failed(Verdict::HostCrash,
                "the host function ended the process" + during + " with exit code " +
                    std::to_string(exit.number),
                "return from run instead of ending the process");
}

}  // namespace

Result<RecordOutcome> record(const Artifact& artifact, const Task& task,
                             const RecordSettings& settings) {
  PTXB_CHECK(settings.sandbox != nullptr);
  if (artifact.binding == Binding::Ptx)
    return bad_input("a PTX candidate has no host function to record");
  if (artifact.host_library.empty()) return harness_error("the artifact has no host library");
  if (artifact.binding == Binding::TvmFfi && settings.tvm_library.empty()) {
    return harness_error("this candidate needs tvm-ffi, and no libtvm_ffi.so was found");
  }
  double begin_s = now_s();
  PTXB_TRY(Request request, make_request(artifact, task, settings));
  PTXB_TRY(TempFolder work, TempFolder::make("ptxbench-record-"));
  const os::Sandbox& sandbox = *settings.sandbox;
  Path program = std::filesystem::absolute(settings.program),
       library = std::filesystem::absolute(artifact.host_library);
  os::Bind program_bind(program.parent_path(), "/ptxbench/bin"),
      library_bind(library.parent_path(), "/ptxbench/candidate"),
      work_bind(work.path(), "/ptxbench/work");
  os::SandboxRoom room;
  room.read_only = {program_bind, library_bind};
  room.writable = {work_bind};
  if (!request.tvm_library.empty()) {
    Path tvm = std::filesystem::absolute(request.tvm_library);
    os::Bind tvm_bind(tvm.parent_path(), "/ptxbench/tvm");
    room.read_only.push_back(tvm_bind);
    request.tvm_library = (sandbox.inside(tvm_bind) / tvm.filename()).string();
    room.environment.push_back("LD_LIBRARY_PATH=" + sandbox.inside(tvm_bind).string());
  }
  request.library = (sandbox.inside(library_bind) / library.filename()).string();
  PTXB_CHECK_OK(write_file(work.path() / "request.json", to_json(request).dump()));

  os::Command command;
  Path inside = sandbox.inside(work_bind);
  command.argv = {(sandbox.inside(program_bind) / program.filename()).string(),
                  (inside / "request.json").string(), (inside / "recording.json").string()};
  command.limits.wall_s = settings.wall_s;
  command.limits.memory_bytes = settings.memory_bytes;
  command.limits.data_bytes =
      settings.memory_bytes;  // malloc says no before the kernel has to kill
  command.limits.processes = settings.processes;
  command.limits.file_size_bytes = kRecordingBytes;
  command.limits.output_bytes = 1u << 20;
  PTXB_TRY(os::Finished finished, sandbox.run(command, room));

  if (!finished.out.head.starts_with(kStartedLine)) {
    return harness_error("ptxbench-record did not start: " + os::summary(finished.exit) + ": " +
                         one_line(finished.err.head));
  }
  // The candidate can write in this folder: links, devices and FIFOs are not followed or waited
  // for.
  Path recording_path = work.path() / "recording.json", progress_path = recording_path;
  progress_path += kProgressEnding;
  auto text = read_plain_file(recording_path, kRecordingBytes);
  std::string progress;
  if (auto notes = read_plain_file(progress_path, 1u << 20)) progress = *notes;
  auto finish = [&](RecordOutcome outcome) {
    outcome.seconds = now_s() - begin_s;
    return outcome;
  };
  if (auto crashed = crash(finished.exit, progress, text.has_value(), settings.wall_s))
    return finish(*std::move(crashed));
  // From here on the file may have been written by the candidate itself: anything odd is its doing.
  auto forged = [&](const Error& error) {
    return finish(
        failed(Verdict::HostCrash,
               "the recording is not one that the recorder writes: " + one_line(error.message),
               "do not interfere with the recorder"));
  };
  auto json = parse_json(*text, "recording");
  if (!json) return forged(json.error());
  auto recording = recording_from_json(*json, "recording");
  if (!recording) return forged(recording.error());
  auto outcome = judge(request, *recording, artifact, task);
  if (!outcome) return forged(outcome.error());
  return finish(*std::move(outcome));
}

}  // namespace ptxb::shim
