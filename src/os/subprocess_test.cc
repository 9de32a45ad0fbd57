// SPDX-License-Identifier: Apache-2.0
#include "os/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "os/process_tree.h"

namespace ptxb::os {
namespace {

const std::string kChild = PTXB_BINARY_DIR "/bin/os_test_child";

Command child(std::vector<std::string> arguments) {
  Command command;
  command.argv = {kChild};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.limits.wall_s = 20;
  return command;
}

Command shell(std::string script) {
  Command command;
  command.argv = {"/bin/sh", "-c", std::move(script)};
  command.limits.wall_s = 20;
  return command;
}

Finished finish(const Command& command) {
  auto finished = run(command);
  EXPECT_TRUE(finished) << finished.error().message;
  return finished ? *finished : Finished();
}

std::set<int> open_descriptors() {
  std::set<int> found;
  for (int fd = 0; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) found.insert(fd);
  }
  return found;
}

// Every test ends as it began: same descriptors, no child, no process running our test program.
class SubprocessTest : public ::testing::Test {
 protected:
  void SetUp() override { before_ = open_descriptors(); }
  void TearDown() override {
    EXPECT_EQ(open_descriptors(), before_);
    EXPECT_EQ(descendants(::getpid()), std::vector<pid_t>());
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a zombie is left";
  }

 private:
  std::set<int> before_;
};

TEST_F(SubprocessTest, ReportsExitCodesAndOutput) {
  Finished finished = finish(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(finished.exit.kind, Exit::Kind::Code);
  EXPECT_EQ(finished.exit.number, 3);
  EXPECT_FALSE(finished.exit.ok());
  EXPECT_EQ(finished.out.text(), "out\n");
  EXPECT_EQ(finished.err.text(), "err\n");
  EXPECT_EQ(summary(finished.exit), "exit code 3");
  EXPECT_TRUE(finish(shell("true")).exit.ok());
}

TEST_F(SubprocessTest, ReportsSignals) {
  for (int signal : {SIGSEGV, SIGABRT, SIGKILL, SIGTERM}) {
    Finished finished = finish(child({"signal", std::to_string(signal)}));
    EXPECT_EQ(finished.exit.kind, Exit::Kind::Signal);
    EXPECT_EQ(finished.exit.number, signal);
  }
  EXPECT_EQ(summary({Exit::Kind::Signal, SIGSEGV}), "signal 11 (SIGSEGV)");
}

TEST_F(SubprocessTest, MissingProgramAndFolderAreNotFound) {
  Command command;
  command.argv = {"/no/such/program"};
  auto missing = run(command);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  EXPECT_EQ(missing.error().message, "no such program: /no/such/program");
  command.argv = {"no-such-program-on-the-path"};
  EXPECT_FALSE(run(command));
  command = shell("true");
  command.folder = "/no/such/folder";
  missing = run(command);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  command = Command();
  EXPECT_FALSE(run(command));
}

TEST_F(SubprocessTest, ProgramThatCannotRunIsAnError) {
  auto folder = TempFolder::make("ptxb-os-");
  ASSERT_TRUE(folder);
  Path script = folder->path() / "broken";
  ASSERT_TRUE(write_file(script, "#!/no/such/interpreter\n"));
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  Command command;
  command.argv = {script.string()};
  auto failed = run(command);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("cannot start (exec)"), std::string::npos)
      << failed.error().message;
}

TEST_F(SubprocessTest, ArgumentsAreNotReadByAShell) {
  Command command;
  command.argv = {"/bin/echo", "$HOME", ";", "a b", "`id`"};
  EXPECT_EQ(finish(command).out.text(), "$HOME ; a b `id`\n");
}

TEST_F(SubprocessTest, InputIsGivenWholeAndAbsentInputIsEmpty) {
  Command command = child({"input"});
  EXPECT_EQ(finish(command).out.text(), "0\n");
  command.input.assign(3 << 20, 'a');  // more than a pipe holds, and the child need not read it
  EXPECT_EQ(finish(command).out.text(), std::to_string(3 << 20) + "\n");
  Command deaf = shell("exit 0");
  deaf.input = command.input;
  EXPECT_TRUE(finish(deaf).exit.ok());
}

TEST_F(SubprocessTest, EnvironmentAndFolderAreAsAsked) {
  Command command = shell("pwd; echo $A; echo ${HOME:-none}");
  command.environment = {{"A=1"}};
  command.folder = "/usr";
  EXPECT_EQ(finish(command).out.text(), "/usr\n1\nnone\n");
}

TEST_F(SubprocessTest, OnlyPassedDescriptorsAreOpen) {
  Descriptor kept(::open("/dev/null", O_RDONLY));  // no close-on-exec: must still not leak
  Descriptor swapped(::open("/dev/null", O_RDONLY));
  EXPECT_EQ(finish(child({"descriptors"})).out.text(), "0 1 2 ");
  Command command = child({"descriptors"});
  command.descriptors = {{kept.get(), 9}, {swapped.get(), 5}};
  EXPECT_EQ(finish(command).out.text(), "0 1 2 5 9 ");
  // Targets that are sources of each other.
  command.descriptors = {{kept.get(), swapped.get() < 3 ? 3 : swapped.get()}, {swapped.get(), 900}};
  EXPECT_TRUE(finish(command).exit.ok());
  command.descriptors = {{kept.get(), 5}, {swapped.get(), 5}};
  EXPECT_FALSE(run(command));
}

TEST_F(SubprocessTest, LimitsReachTheChild) {
  Command command = child({"limits"});
  command.limits.cpu_s = 7;
  command.limits.address_space_bytes = 1 << 30;
  command.limits.data_bytes = 1 << 29;
  command.limits.file_size_bytes = 1 << 20;
  command.limits.open_files = 32;
  EXPECT_EQ(finish(command).out.text(),
            "as=1073741824\ncore=0\ncpu=7\ndata=536870912\nfsize=1048576\nnofile=32\n");
}

TEST_F(SubprocessTest, CpuLimitEndsASpinningChild) {
  Command command = child({"spin"});
  command.limits.cpu_s = 1;
  Finished finished = finish(command);
  EXPECT_EQ(finished.exit.kind, Exit::Kind::Signal);
  EXPECT_GE(finished.cpu_s, 0.9);
}

TEST_F(SubprocessTest, TimeoutKillsGrandchildren) {
  Command command = shell("sleep 1000 & (sleep 1000 & sleep 1000) & wait");
  command.limits.wall_s = 0.2;
  Finished finished = finish(command);
  EXPECT_EQ(finished.exit.kind, Exit::Kind::TimedOut);
  EXPECT_LT(finished.wall_s, 5);
}

TEST_F(SubprocessTest, TimeoutKillsDaemons) {
  Command command = child({"daemonise", "stays"});
  command.limits.wall_s = 0.3;
  Finished finished = finish(command);
  EXPECT_EQ(finished.exit.kind, Exit::Kind::TimedOut);
  EXPECT_EQ(finished.out.text(), "daemon started\n");
}

TEST_F(SubprocessTest, DaemonsDoNotOutliveTheirParent) {
  Finished finished = finish(child({"daemonise"}));
  EXPECT_TRUE(finished.exit.ok());
  EXPECT_EQ(finished.out.text(), "daemon started\n");
  EXPECT_LT(finished.wall_s, 5);
}

TEST_F(SubprocessTest, DestructorKills) {
  pid_t pid = 0;
  {
    auto running = Subprocess::start(child({"daemonise", "stays"}));
    ASSERT_TRUE(running);
    pid = running->pid();
    ASSERT_GT(pid, 0);
    auto early = running->poll(0.1);
    ASSERT_TRUE(early);
    EXPECT_FALSE(early->has_value());
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(SubprocessTest, KilledChildReportsIt) {
  auto running = Subprocess::start(child({"spin"}));
  ASSERT_TRUE(running);
  running->kill();
  auto finished = running->wait();
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->exit.kind, Exit::Kind::Signal);
  EXPECT_EQ(finished->exit.number, SIGKILL);
}

TEST_F(SubprocessTest, ChildrenDieWithTheirStarter) {
  // A process that starts a daemonising child and is killed: nothing may stay.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t starter = ::fork();
  if (starter == 0) {
    auto running = Subprocess::start(child({"daemonise", "stays"}));
    pid_t pid = running ? running->pid() : -1;
    [[maybe_unused]] ssize_t ignored = ::write(ends[1], &pid, sizeof pid);
    for (;;) ::pause();
  }
  pid_t pid = -1;
  ASSERT_EQ(::read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_GT(pid, 0);
  ::kill(starter, SIGKILL);
  ::waitpid(starter, nullptr, 0);
  bool gone = false;
  for (int tries = 0; tries < 500 && !gone; ++tries) {
    gone = ::kill(pid, 0) != 0;
    if (!gone) ::usleep(10000);
  }
  EXPECT_TRUE(gone);
}

TEST_F(SubprocessTest, FloodIsCutAndEndsTheChild) {
  Command command = child({"flood", "200"});
  command.limits.output_bytes = 8 << 20;
  command.limits.output_head_bytes = 1000;
  command.limits.output_tail_bytes = 500;
  Finished finished = finish(command);
  EXPECT_EQ(finished.exit.kind, Exit::Kind::OutputLimit);
  EXPECT_GT(finished.out.total_bytes, uint64_t{8} << 20);
  EXPECT_LT(finished.out.total_bytes, uint64_t{100} << 20) << "of 200 MiB";
  EXPECT_EQ(finished.out.head, std::string(1000, 'x'));
  EXPECT_EQ(finished.out.tail, std::string(500, 'x'));
}

TEST_F(SubprocessTest, LongOutputWithinItsBudgetKeepsHeadAndTail) {
  Command command = shell("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done");
  command.limits.output_head_bytes = 14;
  command.limits.output_tail_bytes = 10;
  Finished finished = finish(command);
  EXPECT_TRUE(finished.exit.ok());
  EXPECT_EQ(finished.out.text(), "line 0\nline 1\n\n[... " +
                                     std::to_string(finished.out.dropped_bytes()) +
                                     " bytes left out ...]\nline 1999\n");
}

TEST_F(SubprocessTest, OutputWhollyFloodedAtTheEndIsStillALimit) {
  // Faster than we look: the child is gone before its output is counted.
  Command command = shell("head -c 60000 /dev/zero");
  command.limits.output_bytes = 1000;
  EXPECT_EQ(finish(command).exit.kind, Exit::Kind::OutputLimit);
}

TEST_F(SubprocessTest, WatchedMemoryHogIsEnded) {
  Command command = child({"hog", "100000"});
  command.limits.memory_bytes = 200 << 20;
  EXPECT_EQ(finish(command).exit.kind, Exit::Kind::MemoryLimit);
}

TEST_F(SubprocessTest, DataLimitRefusesMemory) {
  Command command = child({"hog", "1000"});
  command.limits.data_bytes = 100 << 20;
  Finished finished = finish(command);
  EXPECT_EQ(finished.exit.number, 9);
  EXPECT_EQ(finished.out.text(), "refused\n");
}

TEST_F(SubprocessTest, WatchedProcessCountIsEnforced) {
  Command command = child({"many"});
  command.limits.processes = 60;
  command.limits.wall_s = 10;
  EXPECT_EQ(finish(command).exit.kind, Exit::Kind::ProcessLimit);
}

TEST_F(SubprocessTest, WatchedFolderIsBounded) {
  auto folder = TempFolder::make("ptxb-os-");
  ASSERT_TRUE(folder);
  Command command = child({"fill", folder->path().string()});
  command.watched_folders = {folder->path()};
  command.limits.folder_bytes = 32 << 20;
  EXPECT_EQ(finish(command).exit.kind, Exit::Kind::FolderLimit);
}

TEST_F(SubprocessTest, ThreadsMayRunChildrenAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &right] {
      for (int i = 0; i < 10; ++i) {
        std::string word = std::to_string(t) + "." + std::to_string(i);
        auto finished = run(shell("echo " + word + "; (sleep 100 &) ; exit " + std::to_string(t)));
        right[static_cast<size_t>(t)] +=
            finished && finished->exit.number == t && finished->out.text() == word + "\n";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 10));
}

TEST(FindProgram, LooksOnThePathGiven) {
  EXPECT_EQ(find_program("sh", "/nowhere:/usr/bin:/bin"), Path("/usr/bin/sh"));
  EXPECT_EQ(find_program("sh", ""), std::nullopt);
  EXPECT_EQ(find_program("/usr", "/usr/bin"), std::nullopt);
}

}  // namespace
}  // namespace ptxb::os
