// SPDX-License-Identifier: Apache-2.0
#include "os/keeper.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>

namespace ptxb::os {

namespace {

using Step = KeeperReport::Step;

void send(int fd, const KeeperReport& report) {
  // Smaller than PIPE_BUF: whole or not at all. A parent that is gone needs no report (SIGPIPE is
  // blocked).
  while (::write(fd, &report, sizeof report) < 0 && errno == EINTR) {
  }
}

void close_span(int first, int last) {
  if (first > last) return;
  if (::syscall(SYS_close_range, first, last, 0) == 0) return;
  rlimit files{};  // kernels before 5.9
  ::getrlimit(RLIMIT_NOFILE, &files);
  int bound = files.rlim_cur < static_cast<rlim_t>(last) ? static_cast<int>(files.rlim_cur) : last;
  for (int fd = first; fd <= bound; ++fd) ::close(fd);
}

[[noreturn]] void give_up(int report, Step step) {
  KeeperReport failed;
  failed.kind = KeeperReport::Kind::Failed;
  failed.step = step;
  failed.error = errno;
  send(report, failed);
  ::_exit(127);
}

// Returns where `exec_report` now is: above every target, closed by exec.
int place_descriptors(const KeeperOrders& orders) {
  size_t count = orders.descriptor_count;
  int highest = orders.targets[count - 1];
  // First all sources out of the way of all targets, then each to its place: no order of dup2 can
  // clobber one.
  int moved[64];
  if (count > 64) {
    errno = EMFILE;
    give_up(orders.exec_report, Step::Descriptors);
  }
  int report = ::fcntl(orders.exec_report, F_DUPFD_CLOEXEC, highest + 1);
  if (report < 0) give_up(orders.exec_report, Step::Descriptors);
  for (size_t i = 0; i < count; ++i) {
    moved[i] = ::fcntl(orders.sources[i], F_DUPFD_CLOEXEC, highest + 1);
    if (moved[i] < 0) give_up(report, Step::Descriptors);
  }
  for (size_t i = 0; i < count; ++i) {
    if (::dup2(moved[i], orders.targets[i]) < 0) give_up(report, Step::Descriptors);
  }
  int previous = -1;
  for (size_t i = 0; i < count; ++i) {
    close_span(previous + 1, orders.targets[i] - 1);
    previous = orders.targets[i];
  }
  close_span(highest + 1, report - 1);
  close_span(report + 1, INT_MAX);
  return report;
}

[[noreturn]] void become_program(const KeeperOrders& orders) {
  ::setsid();
  // Should the machine run short of memory all the same, the kernel takes this process first.
  if (int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); fd >= 0) {
    [[maybe_unused]] ssize_t ignored = ::write(fd, "1000", 4);
    ::close(fd);
  }
  for (size_t i = 0; i < orders.cgroup_count; ++i) {
    if (::write(orders.cgroup_procs[i], "0", 1) != 1) give_up(orders.exec_report, Step::Cgroup);
  }
  int report = place_descriptors(orders);
  if (orders.folder && ::chdir(orders.folder) != 0) give_up(report, Step::Folder);
  for (size_t i = 0; i < orders.limit_count; ++i) {
    rlimit now{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(orders.limits[i].resource), &now) != 0) {
      give_up(report, Step::Limits);
    }
    // A limit that is already lower stays as it is.
    rlim_t value = orders.limits[i].value < now.rlim_max ? orders.limits[i].value : now.rlim_max;
    rlimit both{value, value};
    if (::setrlimit(static_cast<__rlimit_resource_t>(orders.limits[i].resource), &both) != 0) {
      give_up(report, Step::Limits);
    }
  }
  ::umask(022);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(signal, &usual, nullptr);  // fails for SIGKILL and SIGSTOP, which have no handler
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (orders.filter) {
    sock_fprog program{};
    program.len = static_cast<unsigned short>(orders.filter_bytes / sizeof(sock_filter));
    program.filter = static_cast<sock_filter*>(const_cast<void*>(orders.filter));
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      give_up(report, Step::Filter);
    }
  }
  ::execve(orders.program, orders.argv, orders.envp);
  give_up(report, Step::Exec);
}

// Signals each direct child. Children of killed children become ours (subreaper), so repeating
// reaches all. An unreaped child's pid cannot be reused, nor can a group id that equals it belong
// to strangers.
void kill_children() {
  int fd = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char chunk[4096];
  long pid = 0;
  for (ssize_t got; (got = ::read(fd, chunk, sizeof chunk)) > 0;) {
    for (ssize_t i = 0; i < got; ++i) {
      if (chunk[i] >= '0' && chunk[i] <= '9') {
        pid = pid * 10 + (chunk[i] - '0');
        continue;
      }
      if (pid > 1) {
        ::kill(static_cast<pid_t>(-pid), SIGKILL);  // its group, when it leads one
        ::kill(static_cast<pid_t>(pid), SIGKILL);
      }
      pid = 0;
    }
  }
  ::close(fd);
}

struct Child {
  pid_t pid = 0;
  bool ended = false;
  int wait_status = 0;
};

// Reaps all that have ended. Returns whether any child is left.
bool reap(Child& child) {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      return false;  // ECHILD
    }
    if (info.si_pid == 0) return true;
    // While it is a zombie its group id is still its own: the one safe moment to end the whole
    // group at once, which no member can fork away from.
    if (info.si_pid == child.pid) ::kill(-child.pid, SIGKILL);
    int status = 0;
    if (::waitpid(info.si_pid, &status, 0) == child.pid) {
      child.wait_status = status;
      child.ended = true;
    }
  }
}

void end_everything(Child& child) {
  if (!child.ended) ::kill(-child.pid, SIGKILL);
  while (reap(child)) {
    kill_children();
    if (!reap(child)) return;
    ::poll(nullptr, 0, 1);
  }
}

}  // namespace

void keep(const KeeperOrders& orders) {
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ::prctl(PR_SET_NAME, "keeper", 0, 0, 0);
  Child child;
  child.pid = ::fork();
  if (child.pid < 0) give_up(orders.exec_report, Step::Fork);
  if (child.pid == 0) become_program(orders);

  KeeperReport report;
  report.pid = child.pid;
  send(orders.report, report);
  // Only the two ends that matter stay open: the program's pipes must see its death, not ours.
  int low = orders.lifeline < orders.report ? orders.lifeline : orders.report;
  int high = orders.lifeline < orders.report ? orders.report : orders.lifeline;
  close_span(0, low - 1);
  close_span(low + 1, high - 1);
  close_span(high + 1, INT_MAX);

  sigset_t child_changed;
  sigemptyset(&child_changed);
  sigaddset(&child_changed, SIGCHLD);
  int signals = ::signalfd(-1, &child_changed, SFD_CLOEXEC | SFD_NONBLOCK);
  reap(child);
  while (!child.ended && !report.killed) {
    // Without a signalfd (no memory) the timeout still finds the end.
    pollfd events[2] = {{orders.lifeline, POLLIN, 0}, {signals, POLLIN, 0}};
    ::poll(events, 2, signals < 0 ? 10 : -1);
    signalfd_siginfo drained;
    while (signals >= 0 && ::read(signals, &drained, sizeof drained) > 0) {
    }
    reap(child);
    if (!child.ended && events[0].revents) report.killed = 1;
  }
  end_everything(child);

  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  report.kind = KeeperReport::Kind::Ended;
  report.wait_status = child.wait_status;
  report.cpu_s = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  send(orders.report, report);
  ::_exit(0);
}

}  // namespace ptxb::os
