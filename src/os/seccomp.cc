// SPDX-License-Identifier: Apache-2.0
#include "os/seccomp.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "os/subprocess.h"

namespace ptxb::os {

namespace {

// What compilers, linkers and ordinary host code need: files, memory, threads, time, signals,
// waiting. The set*id family is for the tool that gives up root inside; afterwards it can do
// nothing. Left out on purpose, so refused: every socket call, ptrace and process_vm_*, mounts and
// namespaces, keyrings, bpf, perf, userfaultfd, io_uring, kexec, reboot, modules, SysV IPC, message
// queues, NUMA policy, handles, clocks' setting, memfd_create (memory outside every size limit but
// the cgroup's).
constexpr const char* kAllowed[] = {
    "access",
    "alarm",
    "arch_prctl",
    "brk",
    "cachestat",
    "capget",
    "capset",
    "chdir",
    "chmod",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "close_range",
    "copy_file_range",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fork",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futex",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "futex_requeue",
    "futimesat",
    "get_mempolicy",
    "get_robust_list",
    "get_thread_area",
    "getcpu",
    "getcwd",
    "getdents",
    "getdents64",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getitimer",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getrandom",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "gettimeofday",
    "getuid",
    "getxattr",
    "kill",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listxattr",
    "llistxattr",
    "lseek",
    "lstat",
    "madvise",
    "membarrier",
    "mincore",
    "mkdir",
    "mkdirat",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mprotect",
    "mremap",
    "mseal",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "nanosleep",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "pause",
    "pidfd_open",
    "pidfd_send_signal",
    "pipe",
    "pipe2",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "poll",
    "ppoll",
    "pread64",
    "preadv",
    "preadv2",
    "prlimit64",
    "pselect6",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "rename",
    "renameat",
    "renameat2",
    "restart_syscall",
    "riscv_flush_icache",
    "rmdir",
    "rseq",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_yield",
    "select",
    "sendfile",
    "set_robust_list",
    "set_tid_address",
    "setitimer",
    "setgid",
    "setgroups",
    "setpgid",
    "setpriority",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setsid",
    "setuid",
    "sigaltstack",
    "signalfd",
    "signalfd4",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync_file_range",
    "sysinfo",
    "tee",
    "tgkill",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    "times",
    "tkill",
    "truncate",
    "umask",
    "uname",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "vfork",
    "wait4",
    "waitid",
    "write",
    "writev",
};

// No terminal tricks (TIOCSTI, TIOCLINUX), no device control: only questions about a descriptor.
constexpr unsigned long kIoctls[] = {TCGETS,  TIOCGWINSZ, TIOCGPGRP, FIONREAD,
                                     FIONBIO, FIOCLEX,    FIONCLEX};

// No subreaper, no undoing of no_new_privs' company (dumpable, seccomp, securebits), no speculation
// or ptracer changes.
constexpr int kPrctls[] = {PR_SET_NAME,         PR_GET_NAME,       PR_SET_PDEATHSIG,
                           PR_GET_PDEATHSIG,    PR_GET_DUMPABLE,   PR_GET_NO_NEW_PRIVS,
                           PR_SET_NO_NEW_PRIVS, PR_GET_SECCOMP,    PR_CAPBSET_READ,
                           PR_CAPBSET_DROP,     PR_CAP_AMBIENT,    PR_SET_KEEPCAPS,
                           PR_GET_SECUREBITS,   PR_SET_TIMERSLACK, PR_GET_TIMERSLACK,
                           0x53564d41 /* PR_SET_VMA: names of mappings */};

constexpr uint64_t kNamespaceFlags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                     CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

struct FreeFilter {
  void operator()(void* filter) const { seccomp_release(filter); }
};

Error filter_error(const char* what, int code) {
  return harness_error(std::string("making the system call filter (") + what +
                       "): " + std::strerror(-code));
}

Result<void> add_rules(scmp_filter_ctx filter) {
  for (const char* name : kAllowed) {
    int number = seccomp_syscall_resolve_name(name);
    if (number < 0) continue;  // not on this architecture, or newer than the library
    if (int code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0); code != 0)
      return filter_error(name, code);
  }
  for (unsigned long request : kIoctls) {
    // The kernel looks at the low 32 bits of the request only; so must we.
    int code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, request));
    if (code != 0) return filter_error("ioctl", code);
  }
  for (int option : kPrctls) {
    int code = seccomp_rule_add(
        filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
        SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffu, static_cast<scmp_datum_t>(option)));
    if (code != 0) return filter_error("prctl", code);
  }
  int code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, kNamespaceFlags, 0));
  if (code != 0) return filter_error("clone", code);
  // clone3 hides its flags in memory: pretend that it does not exist, and libc falls back to clone.
  code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  if (code != 0) return filter_error("clone3", code);
  return {};
}

}  // namespace

Result<std::string> compile_filter() {
  // A call of another architecture (i386 on x86-64, x32) ends the process: libseccomp's default for
  // unknown ones.
  std::unique_ptr<void, FreeFilter> filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  if (!filter) return harness_error("making the system call filter: no memory");
  // A binary tree instead of a list of comparisons: compilers make many system calls.
  seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  PTXB_CHECK_OK(add_rules(filter.get()));
  Descriptor file(::memfd_create("filter", MFD_CLOEXEC));
  if (!file)
    return harness_error(std::string("making the system call filter: ") + std::strerror(errno));
  if (int code = seccomp_export_bpf(filter.get(), file.get()); code != 0)
    return filter_error("export", code);
  off_t size = ::lseek(file.get(), 0, SEEK_END);
  std::string program(static_cast<size_t>(size > 0 ? size : 0), '\0');
  if (program.empty() || ::pread(file.get(), program.data(), program.size(), 0) != size) {
    return harness_error("making the system call filter: cannot read it back");
  }
  return program;
}

}  // namespace ptxb::os
