// ptxbench-record REQUEST.json RECORDING.json: loads an untrusted host library against the shims,
// calls its entry three times, writes what it asked of the device. Runs in the sandbox; the caller
// judges by the wait status and the file. Exit codes: 0 the recording was written, 3 our own
// trouble before anything untrusted was loaded.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "model/work_library.h"
#include "shim/entry.h"
#include "shim/record_files.h"
#include "shim/recorder.h"

namespace ptxb::shim {

namespace {

std::string output_path;
int progress_file = -1;
bool finished = false;

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "ptxbench-record: %s\n", message.c_str());
  std::_Exit(kOwnFailure);
}

// The first mapped library that would do a task's work; "" when there is none.
std::string work_library() {
  std::string found;
  auto look = [](dl_phdr_info* info, size_t, void* out) {
    if (!info->dlpi_name || !is_work_library(info->dlpi_name)) return 0;
    *static_cast<std::string*>(out) = info->dlpi_name;
    return 1;
  };
  ::dl_iterate_phdr(look, &found);
  return found;
}

[[noreturn]] void write_and_leave(const Recording& recording) {
  finished = true;
  Recording written_as = recording;
  if (std::string library = work_library(); !library.empty()) {
    written_as.ending = Ending::WorkLibrary;
    written_as.detail = library;
  }
  if (auto written = write_file(output_path, to_json(written_as).dump()); !written) {
    std::fprintf(stderr, "ptxbench-record: %s\n", written.error().message.c_str());
    std::_Exit(kOwnFailure);
  }
  std::_Exit(0);
}

// The host function called exit(): keep what is known, for the words of the verdict.
void on_exit() {
  if (finished) return;
  Recorder& recorder = Recorder::get();
  std::string detail = "the host function called exit()";
  if (const Refusal* last = recorder.last_refusal())
    detail += "; " + last->api + " had failed before: " + last->why;
  recorder.stop(Ending::Exited, std::move(detail));
}

// Leaves the faulting address in the progress file, then dies of the same signal.
void on_fault(int number, siginfo_t* info, void*) {
  char text[64] = "fault 0x";
  size_t length = 8;
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (int shift = 60; shift >= 0; shift -= 4)
    text[length++] = "0123456789abcdef"[(address >> shift) & 15];
  text[length++] = '\n';
  if (::write(progress_file, text, length) < 0) ::_exit(128 + number);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void watch_faults() {
  static char stack[64 << 10];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (int number : {SIGSEGV, SIGBUS}) ::sigaction(number, &action, nullptr);
}

int thread_count() {
  DIR* folder = ::opendir("/proc/self/task");
  if (!folder) return 1;
  int count = 0;
  while (dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.';
  ::closedir(folder);
  return count;
}

// A joined thread may linger for a moment; one that is still there after that outlived the call.
bool threads_left(int expected) {
  constexpr int kTries = 100;
  constexpr useconds_t kPause_us = 1000;
  for (int i = 0; i < kTries; ++i) {
    if (thread_count() <= expected) return false;
    ::usleep(kPause_us);
  }
  return true;
}

// A child that is still there, running or not waited for. The sandbox ends it; its starter is told.
bool processes_left() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void progress(const char* what) {
  if (::write(progress_file, what, std::strlen(what)) < 0)
    fail("cannot write beside the recording");
}

Result<Entry> load(const Request& request, void* stream) {
  void* tvm_library = nullptr;
  if (request.binding == Binding::TvmFfi) {
    tvm_library = ::dlopen(request.tvm_library.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!tvm_library) fail(std::string("cannot load tvm-ffi: ") + ::dlerror());
  }
  if (::write(STDOUT_FILENO, kStartedLine, std::strlen(kStartedLine)) < 0)
    fail("cannot write to standard output");
  progress("loading\n");
  void* library = ::dlopen(request.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return not_found(printable(::dlerror(), 2000));
  return request.binding == Binding::TvmFfi ? find_tvm_entry(library, tvm_library, request, stream)
                                            : find_plain_entry(library, request, stream);
}

int record_main(int argc, char** argv) {
  if (argc != 3) fail("usage: ptxbench-record REQUEST.json RECORDING.json");
  output_path = argv[2];
  auto text = read_file(argv[1]);
  if (!text) fail(text.error().message);
  auto json = parse_json(*text, argv[1]);
  if (!json) fail(json.error().message);
  auto request = request_from_json(*json, argv[1]);
  if (!request) fail(request.error().message);
  progress_file = ::open((output_path + kProgressEnding).c_str(),
                         O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (progress_file < 0) fail("cannot write beside " + output_path);

  Recorder& recorder = Recorder::get();
  recorder.start(*request, write_and_leave);
  std::atexit(on_exit);
  watch_faults();
  int threads = thread_count();
  auto entry = load(*request, recorder.caller_stream());
  if (!entry) recorder.stop(Ending::NoEntry, entry.error().message);
  for (int call = 1; call <= kCalls; ++call) {
    progress(call == 1 ? "call 1\n" : call == 2 ? "call 2\n" : "call 3\n");
    recorder.enter_call(call);
    std::string thrown = (*entry)(call);
    if (!thrown.empty()) recorder.stop(Ending::Threw, std::move(thrown));
    if (threads_left(threads)) {
      recorder.stop(Ending::Unsupported, "threads: run left a thread running when it returned");
    }
    if (processes_left())
      recorder.stop(Ending::Unsupported, "processes: run left a process behind when it returned");
    recorder.leave_call();
  }
  recorder.stop(Ending::Complete, "");
}

}  // namespace
}  // namespace ptxb::shim

int main(int argc, char** argv) { return ptxb::shim::record_main(argc, argv); }
