// SPDX-License-Identifier: Apache-2.0
#include "build/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "build/stored.h"

namespace ptxb::build {
namespace {

namespace fs = std::filesystem;

class CacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempFolder::make("ptxb-cache-");
    ASSERT_TRUE(made);
    folder_.emplace(*std::move(made));
    auto cache = Cache::open(root());
    ASSERT_TRUE(cache) << cache.error().message;
    cache_.emplace(*std::move(cache));
  }
  Path root() const { return folder_->path() / "cache"; }
  void put(const std::string& key, const std::string& text) {
    auto work = cache_->make_work_folder();
    ASSERT_TRUE(work);
    ASSERT_TRUE(write_file(*work / "finished" / "file", text));
    auto published = cache_->publish(*work / "finished", key);
    ASSERT_TRUE(published) << published.error().message;
    std::error_code fault;
    fs::remove_all(*work, fault);
  }
  void age(const std::string& key, int hours) {
    fs::last_write_time(root() / "entries" / key,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  std::optional<TempFolder> folder_;
  std::optional<Cache> cache_;
};

TEST_F(CacheTest, EntriesAppearWholeAndAreReplacedWhole) {
  EXPECT_FALSE(cache_->find("k"));
  put("k", "one");
  ASSERT_TRUE(cache_->find("k"));
  EXPECT_EQ(*read_file(*cache_->find("k") / "file"), "one");
  put("k", "two");
  EXPECT_EQ(*read_file(*cache_->find("k") / "file"), "two");
  EXPECT_TRUE(fs::is_empty(root() / "work"));
}

TEST_F(CacheTest, OneHolderOfALockAtATime) {
  std::atomic<int> inside{0}, most{0}, rounds{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        auto lock = cache_->lock("k");
        ASSERT_TRUE(lock);
        int now = ++inside;
        if (now > most) most = now;
        std::this_thread::yield();
        --inside;
        ++rounds;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(rounds, 80);
}

TEST_F(CacheTest, OldestEntriesGoFirstAndFreshOnesStay) {
  for (const char* key : {"a", "b", "c", "d"}) put(key, std::string(1000, 'x'));
  age("a", 5);
  age("b", 9);
  age("c", 2);
  cache_->shrink(2500);
  EXPECT_FALSE(cache_->find("b"));
  EXPECT_FALSE(cache_->find("a"));
  EXPECT_TRUE(cache_->find("c"));
  EXPECT_TRUE(cache_->find("d"));
  cache_->shrink(0);  // c and d have just been used
  EXPECT_TRUE(cache_->find("c"));
  cache_->shrink(0, -1);
  EXPECT_FALSE(cache_->find("c"));
}

TEST_F(CacheTest, ClearRemovesEntriesAndDeadWork) {
  put("a", std::string(1000, 'x'));
  fs::create_directories(root() / "work" / "999999999-dead");
  EXPECT_EQ(cache_->clear(), 1000u);
  EXPECT_FALSE(cache_->find("a"));
  EXPECT_TRUE(fs::is_empty(root() / "work"));
}

TEST_F(CacheTest, FailuresAndArtifactsComeBackAsTheyWere) {
  BuildFailure failure{Verdict::CompileError,
                       "why",
                       "what to do",
                       {{Diagnostic::Severity::Error, "nvcc", "a.cu", 3, "20-D", "no \"x\""}}};
  ASSERT_TRUE(store(Built(failure), "", root() / "entries" / "f"));
  auto stored = load_stored(root() / "entries" / "f");
  ASSERT_TRUE(stored && std::holds_alternative<BuildFailure>(*stored));
  const BuildFailure& back = std::get<BuildFailure>(*stored);
  EXPECT_EQ(back.verdict, failure.verdict);
  EXPECT_EQ(back.cause, "why");
  ASSERT_EQ(back.diagnostics.size(), 1u);
  EXPECT_EQ(back.diagnostics[0].message, "no \"x\"");
  EXPECT_EQ(back.diagnostics[0].line, 3);

  Artifact artifact;
  artifact.arch = "sm_90a";
  artifact.ptx = "ptx text";
  artifact.cubin = std::string("\0\1\2", 3);
  artifact.cubin_sha256 =
      "ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc";  // of these three bytes
  artifact.kernels.push_back({"k", {{0, 8}, {8, 4}}, 32, 1, 2, 3, 4, 5, 256, {2, 1, 1}});
  artifact.symbols.push_back({"table", 64, true});
  artifact.tools = {"nvcc 13.0.88"};
  Path folder = root() / "entries" / "a";
  ASSERT_TRUE(store(Built(artifact), "library", folder));
  stored = load_stored(folder);
  ASSERT_TRUE(stored && std::holds_alternative<Artifact>(*stored));
  const Artifact& same = std::get<Artifact>(*stored);
  EXPECT_EQ(same.cubin, artifact.cubin);
  EXPECT_EQ(same.ptx, "ptx text");
  ASSERT_EQ(same.kernels.size(), 1u);
  EXPECT_EQ(same.kernels[0].params[1].size_bytes, 4u);
  EXPECT_EQ(same.kernels[0].required_cluster, (Dim3{2, 1, 1}));
  EXPECT_EQ(same.kernels[0].max_threads, 256u);
  EXPECT_TRUE(same.symbols[0].constant);
  EXPECT_EQ(same.host_library, (folder / "candidate.so").string());
  EXPECT_EQ(*read_file(same.host_library), "library");

  // Any damage makes it absent.
  for (const char* name : {"candidate.so", "candidate.ptx", "candidate.cubin"}) {
    ASSERT_TRUE(store(Built(artifact), "library", folder));
    ASSERT_TRUE(load_stored(folder));
    ASSERT_TRUE(write_file(folder / name, "other"));
    EXPECT_FALSE(load_stored(folder)) << name;
  }
  for (const char* record :
       {"", "{}", "[]", "{\"schema\":\"ptxbench.build/1\"}",
        "{\"schema\":\"ptxbench.build/1\",\"built\":true}",
        "{\"schema\":\"ptxbench.build/1\",\"built\":false,\"verdict\":\"nonsense\"}"}) {
    ASSERT_TRUE(write_file(folder / "build.json", record));
    EXPECT_FALSE(load_stored(folder)) << record;
  }
}

}  // namespace
}  // namespace ptxb::build
