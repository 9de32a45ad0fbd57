// Owns the misbehaving programs of this room's tests: os_test_child MODE [ARGUMENT]. Not part of
// the product.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace {

[[noreturn]] void sleep_for_ever() {
  for (;;) ::pause();
}

// "parent" ends or stays, its grandchild lives in a session of its own.
int daemonise(const std::string& parent) {
  if (::fork() == 0) {
    ::setsid();
    if (::fork() == 0) {
      ::setsid();
      sleep_for_ever();
    }
    ::_exit(0);
  }
  ::wait(nullptr);
  std::puts("daemon started");
  std::fflush(stdout);
  if (parent == "stays") sleep_for_ever();
  return 0;
}

// Every mode that grows has a cap of its own: when what is tested fails, the machine must survive
// the test.
constexpr int kMostForks = 1500;
constexpr long kMostHog_mib = 4096;

int bomb(const std::string& sessions) {
  void* page = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  auto* forks = new (page) std::atomic<int>(0);
  for (int idle = 0; idle < 20000; ++idle) {
    if (forks->fetch_add(1) >= kMostForks) {
      ::usleep(1000);
      continue;
    }
    pid_t pid = ::fork();
    if (pid == 0 && sessions == "setsid") ::setsid();
    if (pid < 0) ::usleep(1000);
  }
  return 0;
}

// Grows by a process each millisecond: for the tests where nothing but the watching stops it.
int spawn_many(const std::string&) {
  for (int i = 0; i < kMostForks; ++i) {
    if (::fork() == 0) sleep_for_ever();
    ::usleep(1000);
  }
  sleep_for_ever();
}

int hog(const std::string& mebibytes) {
  for (long i = 0; i < std::min(std::atol(mebibytes.c_str()), kMostHog_mib); ++i) {
    char* block = static_cast<char*>(std::malloc(1 << 20));
    if (!block) {
      std::puts("refused");
      return 9;
    }
    std::memset(block, 1, 1 << 20);
  }
  std::puts("all allocated");
  return 0;
}

int flood(const std::string& mebibytes) {
  std::string block(1 << 20, 'x');
  for (long i = 0; i < std::atol(mebibytes.c_str()); ++i) {
    if (::write(1, block.data(), block.size()) < 0) return 1;
  }
  return 0;
}

int fill(const std::string& folder) {
  std::string block(1 << 20, 'x');
  for (int file = 0; file < 200; ++file) {  // 1.6 GB
    int fd = ::open((folder + "/f" + std::to_string(file)).c_str(), O_WRONLY | O_CREAT, 0644);
    if (fd < 0) return std::perror("open"), 1;
    for (int i = 0; i < 8; ++i) {
      if (::write(fd, block.data(), block.size()) < 0) return std::perror("write"), 1;
    }
    ::close(fd);
  }
  return 0;
}

int connect_out(const std::string&) {
  for (int family : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK}) {
    if (::socket(family, SOCK_DGRAM, 0) >= 0) std::printf("family %d opened\n", family);
  }
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) std::puts("pair opened");
  std::printf("last error: %s\n", std::strerror(errno));
  return 0;
}

void tell(const char* name, long result) {
  std::printf("%s %s\n", name,
              result >= 0      ? "worked"
              : errno == EPERM ? "EPERM"
                               : std::strerror(errno));
}

int forbidden_calls(const std::string&) {
  tell("mount", ::mount("none", "/tmp", "tmpfs", 0, nullptr));
  tell("umount2", ::umount2("/tmp", MNT_DETACH));
  tell("unshare", ::unshare(CLONE_NEWUSER));
  tell("setns", ::setns(0, 0));
  tell("clone", ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  tell("ptrace", ::syscall(SYS_ptrace, PTRACE_ATTACH, 1, 0, 0));
  tell("keyctl", ::syscall(SYS_keyctl, 0, 0));
  tell("bpf", ::syscall(SYS_bpf, 0, 0, 0));
  tell("perf_event_open", ::syscall(SYS_perf_event_open, 0, 0, 0, 0, 0));
  tell("userfaultfd", ::syscall(SYS_userfaultfd, 0));
  tell("io_uring_setup", ::syscall(SYS_io_uring_setup, 1, 0));
  tell("process_vm_readv", ::syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0));
  tell("kexec_load", ::syscall(SYS_kexec_load, 0, 0, 0, 0));
  tell("reboot", ::syscall(SYS_reboot, 0, 0, 0, 0));
  tell("memfd_create", ::syscall(SYS_memfd_create, "x", 0));
  tell("shmget", ::syscall(SYS_shmget, 0, 4096, 0));
  tell("open_by_handle_at", ::syscall(SYS_open_by_handle_at, 0, 0, 0));
  return 0;
}

int read_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY);
  std::printf("%s\n", fd < 0 ? std::strerror(errno) : "opened");
  return 0;
}

int write_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  bool wrote = fd >= 0 && ::write(fd, "hello", 5) == 5;
  std::printf("%s\n", wrote ? "written" : std::strerror(errno));
  return 0;
}

int open_for_writing(const std::string& path) {
  std::printf("%s\n", ::open(path.c_str(), O_WRONLY) >= 0 ? "opened" : std::strerror(errno));
  return 0;
}

int show_environment(const std::string&) {
  for (char** setting = environ; *setting; ++setting) std::puts(*setting);
  std::printf("uid %u gid %u\n", ::getuid(), ::getgid());
  if (FILE* status = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, status)) std::fputs(line, stdout);
    std::fclose(status);
  }
  return 0;
}

int list_descriptors(const std::string&) {
  for (int fd = 0; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) std::printf("%d ", fd);
  }
  return 0;
}

int show_limits(const std::string&) {
  for (auto [name, resource] : std::map<std::string, int>{{"cpu", RLIMIT_CPU},
                                                          {"as", RLIMIT_AS},
                                                          {"data", RLIMIT_DATA},
                                                          {"fsize", RLIMIT_FSIZE},
                                                          {"nofile", RLIMIT_NOFILE},
                                                          {"core", RLIMIT_CORE}}) {
    rlimit value{};
    ::getrlimit(static_cast<__rlimit_resource_t>(resource), &value);
    std::printf("%s=%lld\n", name.c_str(),
                value.rlim_cur == RLIM_INFINITY ? -1 : static_cast<long long>(value.rlim_cur));
  }
  return 0;
}

int copy_input(const std::string&) {
  char chunk[65536];
  long total = 0;
  for (ssize_t got; (got = ::read(0, chunk, sizeof chunk)) > 0;) total += got;
  std::printf("%ld\n", total);
  return 0;
}

int start_thread(const std::string&) {
  std::thread([] { std::puts("thread ran"); }).join();
  return 0;
}

int end_by_signal(const std::string& number) {
  ::raise(std::atoi(number.c_str()));
  return 0;
}

int spin(const std::string&) {
  volatile unsigned long turns = 0;
  for (;;) turns = turns + 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(const std::string&)> modes{{"daemonise", daemonise},
                                                                 {"bomb", bomb},
                                                                 {"many", spawn_many},
                                                                 {"hog", hog},
                                                                 {"flood", flood},
                                                                 {"fill", fill},
                                                                 {"connect", connect_out},
                                                                 {"calls", forbidden_calls},
                                                                 {"read", read_file},
                                                                 {"write", write_file},
                                                                 {"open-write", open_for_writing},
                                                                 {"environment", show_environment},
                                                                 {"descriptors", list_descriptors},
                                                                 {"limits", show_limits},
                                                                 {"input", copy_input},
                                                                 {"thread", start_thread},
                                                                 {"signal", end_by_signal},
                                                                 {"spin", spin}};
  auto mode = modes.find(argc > 1 ? argv[1] : "");
  if (mode == modes.end()) return 2;
  return mode->second(argc > 2 ? argv[2] : "");
}
