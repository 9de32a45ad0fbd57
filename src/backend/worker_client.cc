// Owns the worker process of a GPU: spawn, pipes, deadline, kill, reap. Never interprets a job's
// content.
// SPDX-License-Identifier: Apache-2.0
#include "backend/worker_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"

namespace ptxb {

namespace {

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

int poll_timeout_ms(double deadline_s) {
  const double left_s = deadline_s - now_s();
  if (!(left_s > 0)) return 0;
  return static_cast<int>(std::min(left_s * 1000 + 1, 60'000.0));
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  if (WIFEXITED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
  return "status " + std::to_string(status);
}

struct Channel {
  int parent = -1, child = -1;
};

// Both ends close-on-exec; the child's end is duplicated onto its number after the fork.
enum class Flow { ToChild, FromChild };
bool open_channel(Channel& channel, Flow flow) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  channel = flow == Flow::ToChild ? Channel{ends[1], ends[0]} : Channel{ends[0], ends[1]};
  return true;
}

// Runs in the child between fork and exec: only async-signal-safe calls.
[[noreturn]] void become_worker(const char* program, char* const* argv, int in, int out, int err,
                                pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);  // the parent ended before the request took hold
  // Jobs arrive on stdin, answers leave on descriptor 3: nothing that prints to stdout can forge a
  // frame.
  const int in_copy = ::fcntl(in, F_DUPFD_CLOEXEC, 10),
            out_copy = ::fcntl(out, F_DUPFD_CLOEXEC, 10);
  const int err_copy = ::fcntl(err, F_DUPFD_CLOEXEC, 10);
  if (::dup2(in_copy, 0) < 0 || ::dup2(err_copy, 1) < 0 || ::dup2(err_copy, 2) < 0 ||
      ::dup2(out_copy, 3) < 0) {
    ::_exit(126);
  }
  ::execv(program, argv);
  ::_exit(127);
}

}  // namespace

WorkerClient::~WorkerClient() {
  if (pid_ > 0 && to_worker_ >= 0)
    send_all(encode_frame({FrameType::Bye, Json::object(), {}}), now_s() + 0.1);
  stop();
}

Result<void> WorkerClient::start() {
  if (pid_ > 0) return {};
  Channel in, out, err;
  if (!open_channel(in, Flow::ToChild) || !open_channel(out, Flow::FromChild) ||
      !open_channel(err, Flow::FromChild)) {
    return io_error(std::string("worker pipes: ") + ::strerror(errno));
  }
  std::vector<char*> argv;
  std::vector<std::string> words = {settings_.program};
  words.insert(words.end(), settings_.arguments.begin(), settings_.arguments.end());
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0)
    become_worker(settings_.program.c_str(), argv.data(), in.child, out.child, err.child, parent);
  close_fd(in.child);
  close_fd(out.child);
  close_fd(err.child);
  if (pid < 0) return io_error(std::string("starting the worker: ") + ::strerror(errno));
  ::setpgid(pid, pid);  // as the child does; whoever is first
  pid_ = pid;
  to_worker_ = in.parent;
  from_worker_ = out.parent;
  stderr_ = err.parent;
  for (int fd : {to_worker_, from_worker_, stderr_}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  reader_ = FrameReader();
  stderr_tail_.clear();
  ++starts_;

  Frame frame;
  PTXB_TRY(const Wait got, wait_frame(now_s() + settings_.start_timeout_s, frame));
  if (got == Wait::Frame && frame.type == FrameType::Hello) {
    hello_ = std::move(frame.json);
    return {};
  }
  drain_stderr();
  const std::string said = stderr_tail_.empty() ? "" : ": " + stderr_tail_;
  const std::string ended = reap(got == Wait::Ended ? Ending::Await : Ending::Kill);
  if (got == Wait::Ended)
    return harness_error("the worker ended at its start (" + ended + ")" + said);
  if (got == Wait::Deadline) return harness_error("the worker did not start in time" + said);
  return harness_error("the worker's first frame is no Hello");
}

Result<JobReply> WorkerClient::run(const Frame& job, double timeout_s) {
  PTXB_CHECK_OK(start());
  const double begin_s = now_s(), deadline_s = begin_s + timeout_s;
  JobReply reply;
  bool sent = send_all(encode_frame(job), deadline_s);
  for (;;) {
    Frame frame;
    Result<Wait> got = sent ? wait_frame(deadline_s, frame) : Result<Wait>(Wait::Ended);
    if (!got) {
      reap(Ending::Kill);
      return std::move(got).error().in("the worker's answer");
    }
    if (*got == Wait::Frame && frame.type == FrameType::Progress) {
      reply.last_progress = std::move(frame.json);
      continue;
    }
    reply.seconds = now_s() - begin_s;
    drain_stderr();
    reply.stderr_tail = stderr_tail_;
    if (*got == Wait::Frame && frame.type == FrameType::Outcome) {
      reply.outcome = std::move(frame);
      // A worker that met a sticky fault says so in its last frame and ends: it is reaped here, not
      // at the next job.
      if (const Json* ending = reply.outcome.json.find("ending");
          ending && ending->is_bool() && ending->as_bool()) {
        reap(Ending::Kill);
      }
      return reply;
    }
    if (*got == Wait::Frame) {
      reap(Ending::Kill);
      return harness_error("the worker sent a frame of an unexpected type");
    }
    reply.kind = *got == Wait::Deadline ? JobReply::Kind::TimedOut : JobReply::Kind::Died;
    reply.died_of = reap(*got == Wait::Deadline ? Ending::Kill : Ending::Await);
    return reply;
  }
}

void WorkerClient::stop() {
  if (pid_ > 0) reap(Ending::Kill);
}

Result<WorkerClient::Wait> WorkerClient::wait_frame(double deadline_s, Frame& frame) {
  std::string buffer(1 << 16, '\0');
  for (;;) {
    PTXB_TRY(std::optional<Frame> next, reader_.next());
    if (next) {
      frame = *std::move(next);
      return Wait::Frame;
    }
    pollfd fds[2] = {{from_worker_, POLLIN, 0}, {stderr_, POLLIN, 0}};
    const int ready = ::poll(fds, stderr_ >= 0 ? 2 : 1, poll_timeout_ms(deadline_s));
    if (ready < 0 && errno != EINTR) return io_error(std::string("poll: ") + ::strerror(errno));
    if (ready > 0 && fds[1].revents != 0) drain_stderr();
    if (ready > 0 && fds[0].revents != 0) {
      const ssize_t count = ::read(from_worker_, buffer.data(), buffer.size());
      if (count == 0) return Wait::Ended;
      if (count > 0) reader_.feed({buffer.data(), static_cast<size_t>(count)});
      if (count < 0 && errno != EAGAIN && errno != EINTR) return Wait::Ended;
      continue;
    }
    if (now_s() >= deadline_s) return Wait::Deadline;
  }
}

bool WorkerClient::send_all(std::string_view bytes, double deadline_s) {
  // A worker that died makes write fail with EPIPE; the signal would end us instead.
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  bool good = true;
  while (good && !bytes.empty()) {
    const ssize_t count = ::write(to_worker_, bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN || errno == EINTR) {
      pollfd fd = {to_worker_, POLLOUT, 0};
      ::poll(&fd, 1, poll_timeout_ms(deadline_s));
      drain_stderr();
      good = now_s() < deadline_s;
    } else {
      good = false;
    }
  }
  ::sigaction(SIGPIPE, &before, nullptr);
  return good;
}

void WorkerClient::drain_stderr() {
  char buffer[4096];
  while (stderr_ >= 0) {
    const ssize_t count = ::read(stderr_, buffer, sizeof buffer);
    if (count > 0) {
      stderr_tail_.append(buffer, static_cast<size_t>(count));
      if (stderr_tail_.size() > 2 * settings_.stderr_bytes) {
        stderr_tail_.erase(0, stderr_tail_.size() - settings_.stderr_bytes);
      }
      continue;
    }
    if (count == 0) close_fd(stderr_);
    if (count < 0 && errno == EINTR) continue;
    return;
  }
}

std::string WorkerClient::reap(Ending how) {
  if (pid_ <= 0) return "";
  int status = 0;
  bool ended = false;
  // A worker that closed its pipe is about to end by itself: its own status says more than our
  // kill.
  for (int i = 0; !ended && how == Ending::Await && i < 200; ++i) {
    ended = ::waitpid(pid_, &status, WNOHANG) == pid_;
    if (!ended) ::poll(nullptr, 0, 10);
  }
  ::kill(-pid_, SIGKILL);
  if (!ended) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  close_fd(to_worker_);
  close_fd(from_worker_);
  drain_stderr();
  close_fd(stderr_);
  return describe_status(status);
}

}  // namespace ptxb
