// SPDX-License-Identifier: Apache-2.0
#include "os/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "base/text.h"
#include "os/process_tree.h"
#include "os/seccomp.h"

namespace ptxb::os {
namespace {

const Path kChild = PTXB_BINARY_DIR "/bin/os_test_child";

// One probe for all tests.
const Result<Sandbox>& sandbox() {
  static const Result<Sandbox> probed = Sandbox::probe(SandboxPolicy::RequireAll);
  return probed;
}

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!sandbox()) {
      // Only a machine without namespaces may skip; any other missing layer is our fault.
      auto any = Sandbox::probe(SandboxPolicy::AllowMissing);
      ASSERT_TRUE(any);
      ASSERT_FALSE(any->remaps_paths()) << sandbox().error().message;
      GTEST_SKIP() << sandbox().error().message;
    }
    room_.read_only.push_back({kChild, "/opt/child"});
  }
  void TearDown() override { EXPECT_EQ(descendants(::getpid()), std::vector<pid_t>()); }

  Finished finish(std::vector<std::string> arguments) {
    command_.argv = {"/opt/child"};
    command_.argv.insert(command_.argv.end(), arguments.begin(), arguments.end());
    auto finished = sandbox()->run(command_, room_);
    EXPECT_TRUE(finished) << finished.error().message;
    return finished ? *finished : Finished();
  }
  std::string output(std::vector<std::string> arguments) {
    return finish(std::move(arguments)).out.text();
  }

  Command command_;
  SandboxRoom room_;
};

TEST_F(SandboxTest, ReportsExitCodesAndSignals) {
  command_.argv = {"/bin/sh", "-c", "exit 7"};
  auto finished = sandbox()->run(command_, room_);
  ASSERT_TRUE(finished);
  EXPECT_EQ(summary(finished->exit), "exit code 7");
  EXPECT_EQ(summary(finish({"signal", std::to_string(SIGSEGV)}).exit), "signal 11 (SIGSEGV)");
}

TEST_F(SandboxTest, MissingProgramIsNotFoundAndImpossibleBindIsAHarnessError) {
  command_.argv = {"/opt/other"};
  auto missing = sandbox()->run(command_, room_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  command_.argv = {"child"};
  EXPECT_FALSE(sandbox()->run(command_, room_));
  command_.argv = {"/opt/child"};
  room_.read_only.push_back({"/no/such/source", "/opt/x"});
  missing = sandbox()->run(command_, room_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::Harness);
}

TEST_F(SandboxTest, EnvironmentIsClearedAndUserIsNobody) {
  ::setenv("PTXB_SECRET", "token", 1);
  room_.environment = {"EXTRA=a=b"};
  std::string text = output({"environment"});
  ::unsetenv("PTXB_SECRET");
  EXPECT_EQ(text.find("PTXB_SECRET"), std::string::npos);
  for (const char* line : {"HOME=/tmp\n", "TMPDIR=/tmp\n", "PATH=/usr/bin:/bin\n", "EXTRA=a=b\n",
                           "uid 65534 gid 65534\n", "CapEff:\t0000000000000000\n",
                           "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST_F(SandboxTest, HostFilesAreNotThere) {
  for (const char* path :
       {"/etc/passwd", "/etc/shadow", "/root", "/home", "/var", "/run", "/sys", PTXB_SOURCE_DIR,
        PTXB_BINARY_DIR "/bin", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/kvm",
        "/dev/vda", "/dev/mem", "/proc/1/root/etc/passwd"}) {
    EXPECT_NE(output({"read", path}), "opened\n") << path;
  }
  EXPECT_EQ(output({"read", "/etc/passwd"}), "No such file or directory\n");
  EXPECT_EQ(output({"read", "/usr/bin/env"}), "opened\n");
  EXPECT_EQ(output({"read", "/etc/ld.so.cache"}), "opened\n");
}

TEST_F(SandboxTest, OnlyWritableFoldersAndTmpCanBeWritten) {
  auto folder = TempFolder::make("ptxb-os-");
  ASSERT_TRUE(folder);
  room_.writable.push_back({folder->path(), "/out"});
  for (const char* path :
       {"/x", "/usr/x", "/opt/x", "/opt/child", "/dev/x", "/proc/x", "/etc/x", "/usr/bin/env"}) {
    EXPECT_NE(output({"write", path}), "written\n") << path;
  }
  // Only opened: a hole must not change the machine that runs the test.
  for (const char* path :
       {"/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
        "/proc/sys/user/max_user_namespaces", "/proc/irq/default_smp_affinity"}) {
    EXPECT_NE(output({"open-write", path}), "opened\n") << path;
  }
  EXPECT_EQ(output({"write", "/tmp/x"}), "written\n");
  EXPECT_EQ(output({"write", "/out/x"}), "written\n");
  EXPECT_EQ(*read_file(folder->path() / "x"), "hello");
  EXPECT_EQ(output({"read", "/tmp/x"}), "No such file or directory\n") << "/tmp is fresh each time";
}

TEST_F(SandboxTest, SocketsAreRefused) {
  EXPECT_EQ(output({"connect"}), "last error: Operation not permitted\n");
}

TEST_F(SandboxTest, DangerousCallsAreRefused) {
  std::string text = output({"calls"});
  EXPECT_EQ(split_lines(trim(text)).size(), 17u) << text;
  for (std::string_view line : split_lines(trim(text))) {
    EXPECT_TRUE(line.ends_with(" EPERM")) << line;
  }
}

TEST_F(SandboxTest, ThreadsAndChildrenWork) {
  EXPECT_EQ(output({"thread"}), "thread ran\n");
  command_.argv = {"/bin/sh", "-c", "echo a | cat; (echo b); wait"};
  auto finished = sandbox()->run(command_, room_);
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->out.text(), "a\nb\n");
}

TEST_F(SandboxTest, OnlyPassedDescriptorsAreOpen) {
  Descriptor kept(::open("/dev/null", O_RDONLY));
  EXPECT_EQ(output({"descriptors"}), "0 1 2 ");
  command_.descriptors = {{kept.get(), 7}};
  EXPECT_EQ(output({"descriptors"}), "0 1 2 7 ");
}

TEST_F(SandboxTest, DaemonsEndWithTheCommand) {
  Finished finished = finish({"daemonise"});
  EXPECT_TRUE(finished.exit.ok());
  EXPECT_LT(finished.wall_s, 5);
  command_.limits.wall_s = 0.3;
  EXPECT_EQ(finish({"daemonise", "stays"}).exit.kind, Exit::Kind::TimedOut);
}

TEST_F(SandboxTest, KilledCommandReportsIt) {
  command_.argv = {"/opt/child", "spin"};
  auto running = sandbox()->start(command_, room_);
  ASSERT_TRUE(running) << running.error().message;
  running->kill();
  auto finished = running->wait();
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(summary(finished->exit), "signal 9 (SIGKILL)");
}

TEST_F(SandboxTest, ForkBombIsContained) {
  command_.limits.processes = 100;
  command_.limits.wall_s = 1;
  for (const char* sessions : {"", "setsid"}) {
    Finished finished = finish({"bomb", sessions});
    EXPECT_EQ(finished.exit.kind, Exit::Kind::ProcessLimit) << summary(finished.exit);
    EXPECT_LT(finished.wall_s, 8);
  }
}

TEST_F(SandboxTest, MemoryHogIsContained) {
  command_.limits.memory_bytes = 200 << 20;
  Finished finished = finish({"hog", "100000"});
  EXPECT_EQ(finished.exit.kind, Exit::Kind::MemoryLimit) << summary(finished.exit);
}

TEST_F(SandboxTest, TmpAndFoldersAreBounded) {
  room_.tmp_bytes = 20 << 20;
  Finished finished = finish({"fill", "/tmp"});
  EXPECT_NE(finished.err.text().find("No space left"), std::string::npos) << finished.err.text();
  auto folder = TempFolder::make("ptxb-os-");
  ASSERT_TRUE(folder);
  room_.writable.push_back({folder->path(), "/out"});
  command_.limits.folder_bytes = 32 << 20;
  EXPECT_EQ(finish({"fill", "/out"}).exit.kind, Exit::Kind::FolderLimit);
  command_.limits.folder_bytes = 0;
  command_.limits.file_size_bytes = 1 << 20;
  EXPECT_EQ(finish({"fill", "/out"}).exit.kind, Exit::Kind::Signal) << "SIGXFSZ";
}

TEST_F(SandboxTest, FloodEndsTheCommand) {
  command_.limits.output_bytes = 4 << 20;
  EXPECT_EQ(finish({"flood", "150"}).exit.kind, Exit::Kind::OutputLimit);
}

TEST_F(SandboxTest, NoControlGroupIsLeftBehind) {
  command_.limits.memory_bytes = 1 << 30;
  EXPECT_TRUE(finish({"thread"}).exit.ok());
  for (const CgroupSite& site : find_cgroups().sites) {
    std::error_code fault;
    for (std::filesystem::directory_iterator it(site.folder, fault), end; !fault && it != end;
         it.increment(fault)) {
      EXPECT_FALSE(it->path().filename().string().starts_with("ptxbench." +
                                                              std::to_string(::getpid()) + "."))
          << it->path();
    }
  }
}

TEST(Sandbox, LayersAreNamedWithReasons) {
  auto any = Sandbox::probe(SandboxPolicy::AllowMissing);
  ASSERT_TRUE(any) << any.error().message;
  EXPECT_GE(any->layers().size(), 10u);
  for (const Layer& layer : any->layers()) EXPECT_FALSE(layer.detail.empty()) << layer.name;
  EXPECT_EQ(any->active_names().size() + any->missing_names().size(), any->layers().size());
}

TEST(Sandbox, WithoutBubblewrapOnlyAllowMissingGoesOn) {
  std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  auto strict = Sandbox::probe(SandboxPolicy::RequireAll);
  auto lenient = Sandbox::probe(SandboxPolicy::AllowMissing);
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code, ErrorCode::Harness);
  EXPECT_NE(strict.error().message.find("no network: bubblewrap is not installed"),
            std::string::npos)
      << strict.error().message;
  ASSERT_TRUE(lenient);
  EXPECT_FALSE(lenient->remaps_paths());
  EXPECT_EQ(lenient->inside({"/a", "/b"}), Path("/a"));
  // The filter, the limits and the empty environment still hold.
  Command command;
  command.argv = {kChild.string(), "connect"};
  auto finished = lenient->run(command, {});
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(finished->out.text(), "last error: Operation not permitted\n");
}

TEST(Seccomp, FilterFitsTheKernelsLimit) {
  auto filter = compile_filter();
  ASSERT_TRUE(filter);
  EXPECT_EQ(filter->size() % 8, 0u);
  EXPECT_LT(filter->size() / 8, 4096u);
}

}  // namespace
}  // namespace ptxb::os
