// Owns the tests of the worker link that need no GPU: frames, job and result round trips, the
// client against small programs.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "backend/worker_client.h"
#include "backend/worker_jobs.h"
#include "backend/worker_protocol.h"
#include "base/file.h"

namespace ptxb {
namespace {

Frame sample_frame() {
  Frame frame;
  frame.type = FrameType::Progress;
  frame.json.set("stage", "run");
  frame.blobs = {"", std::string(1000, 'x'), std::string("a\0b", 3)};
  return frame;
}

TEST(Frames, SurviveByteByByteAndBackToBack) {
  const std::string bytes = encode_frame(sample_frame()) + encode_frame(sample_frame());
  FrameReader reader;
  int frames = 0;
  for (char byte : bytes) {
    reader.feed({&byte, 1});
    const auto next = reader.next();
    ASSERT_TRUE(next) << next.error().message;
    if (!*next) continue;
    ++frames;
    EXPECT_EQ((*next)->json.find("stage")->as_string(), "run");
    EXPECT_EQ((*next)->blobs, sample_frame().blobs);
  }
  EXPECT_EQ(frames, 2);
  EXPECT_EQ(reader.buffered_bytes(), 0u);
}

TEST(Frames, BrokenHeadersAreNamedAndStayBroken) {
  const std::string good = encode_frame(sample_frame());
  struct Case {
    size_t at;
    char value;
    const char* words;
  };
  for (const Case& test : {Case{0, 'X', "magic"}, Case{4, 9, "version 9"}, Case{6, 77, "type 77"},
                           Case{11, '\x7f', "JSON of"}, Case{15, 1, "blobs"},
                           Case{23, 1, "a blob of"}, Case{40, '\x01', "worker frame"}}) {
    std::string bytes = good;
    bytes[test.at] = test.value;
    FrameReader reader;
    reader.feed(bytes);
    const auto first = reader.next();
    ASSERT_FALSE(first) << test.words;
    EXPECT_NE(first.error().message.find(test.words), std::string::npos) << first.error().message;
    reader.feed(good);
    EXPECT_FALSE(reader.next());
  }
}

TEST(Frames, LimitsHoldBeforeTheBytesArrive) {
  FrameReader reader({.json_bytes = 100, .blobs = 2, .total_bytes = 500});
  reader.feed(encode_frame(sample_frame()).substr(0, 48));
  EXPECT_FALSE(reader.next());
}

WorkerJob sample_job() {
  WorkerJob job;
  job.kind = JobKind::Time;
  job.plan.arch = "sm_90a";
  job.plan.task = "t";
  PlanModule module;
  module.name = "candidate";
  module.ptx = "// ptx";
  module.cubin = std::string(
      "\x7f"
      "ELF\0bytes",
      10);
  module.kernels.push_back(KernelInfo{.name = "k", .params = {{0, 8}}});
  job.plan.modules.push_back(module);
  job.plan.buffers.push_back({"C", BufferRole::Output, kWindowBegin + kMappingBytes - 1024, 1024});
  KernelLaunch launch;
  launch.kernel = "k";
  launch.params.assign(8, 0);
  job.plan.steady.push_back({0, {}, launch});
  job.task.definition.name = "gemm_test";
  job.task.definition.reference = "native:gemm_nt";
  job.task.definition.inputs.push_back({"A", {"M", "K"}, false, DType::BF16, ""});
  job.task.definition.outputs.push_back({"C", {"M", "N"}, false, DType::BF16, ""});
  job.task.axes = {{"M", 16}, {"N", 32}, {"K", 64}};
  job.task.workload.inputs["s"] = {WorkloadInput::Kind::Scalar, 0.5, "", ""};
  job.inputs = {0xfedcba9876543210u, Distribution::Exact};
  job.policy.duty = 0.25;
  job.baseline = "cublaslt";
  job.expected_digest = 0xffffffffffffffffu;
  return job;
}

TEST(Jobs, RoundTrip) {
  const WorkerJob job = sample_job();
  const auto back = decode_job(encode_job(job));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode_job(*back).json, encode_job(job).json);
  EXPECT_EQ(back->plan.modules[0].cubin, job.plan.modules[0].cubin);
  EXPECT_EQ(back->inputs.seed, job.inputs.seed);
  EXPECT_EQ(back->expected_digest, job.expected_digest);
  EXPECT_EQ(back->task.axes, job.task.axes);
  EXPECT_EQ(back->policy.duty, 0.25);
}

TEST(Jobs, HostileFieldsAreRefusedByName) {
  struct Case {
    const char* key;
    Json value;
  };
  for (const Case& test :
       {Case{"job", "erase"}, Case{"seed", 5}, Case{"distribution", "zeros"},
        Case{"run_timeout_s", Json()}, Case{"run_timeout_s", -1.0},
        Case{"policy", Json::object({{"duty", 0.0}})}, Case{"expected_digest", "0xg"},
        Case{"task", Json::object()}, Case{"extra", 1}}) {
    Frame frame = encode_job(sample_job());
    frame.json.set(test.key, test.value);
    const auto job = decode_job(frame);
    ASSERT_FALSE(job) << test.key;
    EXPECT_EQ(job.error().code, ErrorCode::BadInput);
  }
  Frame frame = encode_job(sample_job());
  frame.blobs.pop_back();
  EXPECT_FALSE(decode_job(frame));
}

TEST(Results, RoundTrip) {
  WorkerResult result;
  result.status = RunStatus::Fault;
  result.stage = "run";
  result.error = "CUDA_ERROR_ILLEGAL_ADDRESS";
  result.cause = "kernel k accessed memory";
  result.kernel = "k";
  result.operation = 3;
  result.ending = true;
  Comparison comparison;
  comparison.output = "C";
  comparison.max_abs_error = 1e308 * 10;  // infinity has no JSON
  result.comparisons.push_back(comparison);
  result.modified_inputs = {"A"};
  result.digest = 0xffffffffffffffffu;
  result.repeat_digest = 7;
  result.cold.push_back({{1.5, 1900, 600, 3}, timing::Sample{2.5, 1890, 610, 4}});
  result.hot.push_back({{1.25, 1900, 0, 3}, std::nullopt});
  result.baseline = BaselineChoice{"cuBLASLt 13.0.0", "algo 66", 33554432, 1.5, 1.4, 8};
  result.sass.push_back({"k", 0x40, 123, 3936});
  result.steps = Json::object({{"run", 0.5}});
  const auto back = decode_result(encode_result(result));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode_result(*back).json, encode_result(result).json);
  EXPECT_EQ(back->sass[0].threads, 3936u);
  EXPECT_EQ(back->cold[0].baseline->time_ms, 2.5);
}

TEST(Results, AHarnessErrorIsAnError) {
  const auto result = decode_result(encode_harness_error(harness_error("no memory")));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::Harness);
  EXPECT_NE(result.error().message.find("no memory"), std::string::npos);
}

// Small shell programs stand in for the worker: they answer, die, hang or babble.
class FakeWorker : public ::testing::Test {
 protected:
  std::string write_script(const std::string& body) {
    const Path hello = folder_->path() / "hello", outcome = folder_->path() / "outcome";
    Frame frame;
    frame.type = FrameType::Hello;
    frame.json.set("name", "fake");
    EXPECT_TRUE(write_file(hello, encode_frame(frame)));
    EXPECT_TRUE(write_file(outcome, encode_frame(encode_result(WorkerResult{}))));
    const Path script = folder_->path() / "worker.sh";
    EXPECT_TRUE(write_file(script, "cd " + folder_->path().string() + "\n" + body + "\n"));
    return script.string();
  }
  WorkerClient client(const std::string& body, double start_timeout_s = 20) {
    return WorkerClient({"/bin/sh", {write_script(body)}, start_timeout_s, 4096});
  }
  Result<TempFolder> folder_ = TempFolder::make("ptxb-worker-test");
  Frame job_ = encode_job(sample_job());
};

TEST_F(FakeWorker, AnAnswerComesBack) {
  WorkerClient worker =
      client("cat hello >&3; head -c 20 >/dev/null; cat outcome >&3; cat >/dev/null");
  const auto reply = worker.run(job_, 20);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->kind, JobReply::Kind::Answered);
  EXPECT_EQ(worker.hello().find("name")->as_string(), "fake");
  EXPECT_TRUE(decode_result(reply->outcome));
}

TEST_F(FakeWorker, ADeathIsToldApartAndTheNextJobGetsANewWorker) {
  WorkerClient worker =
      client("cat hello >&3; head -c 20 >/dev/null; echo last words >&2; kill -SEGV $$");
  for (uint64_t i = 1; i <= 2; ++i) {
    const auto reply = worker.run(job_, 20);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->kind, JobReply::Kind::Died);
    EXPECT_EQ(reply->died_of, "signal 11");
    EXPECT_NE(reply->stderr_tail.find("last words"), std::string::npos);
    EXPECT_FALSE(worker.running());
    EXPECT_EQ(worker.starts(), i);
  }
}

TEST_F(FakeWorker, AHangIsKilledWithItsChildren) {
  WorkerClient worker = client("cat hello >&3; sleep 1000 & sleep 1000");
  ASSERT_TRUE(worker.start());
  const pid_t pid = worker.pid();
  const auto reply = worker.run(job_, 0.3);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->kind, JobReply::Kind::TimedOut);
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(FakeWorker, BabbleIsAProtocolError) {
  WorkerClient worker = client("cat hello >&3; echo '{\"status\":\"completed\"}' >&3; sleep 1000");
  const auto reply = worker.run(job_, 20);
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message.find("magic"), std::string::npos);
  EXPECT_FALSE(worker.running());
}

TEST_F(FakeWorker, WhatIsPrintedToStdoutIsNoAnswer) {
  WorkerClient worker =
      client("cat hello >&3; cat outcome; head -c 20 >/dev/null; cat outcome >&3; cat >/dev/null");
  const auto reply = worker.run(job_, 20);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->kind, JobReply::Kind::Answered);
}

TEST_F(FakeWorker, AFailedStartSaysWhatItPrinted) {
  WorkerClient worker = client("echo no driver here >&2; exit 3");
  const auto started = worker.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::Harness);
  EXPECT_NE(started.error().message.find("exit code 3"), std::string::npos)
      << started.error().message;
  EXPECT_NE(started.error().message.find("no driver here"), std::string::npos);
}

TEST_F(FakeWorker, AWorkerThatNeverGreetsIsGivenUp) {
  WorkerClient worker = client("sleep 1000", 0.2);
  EXPECT_FALSE(worker.start());
  EXPECT_FALSE(worker.running());
}

TEST(Client, AMissingProgramIsAHarnessError) {
  WorkerClient worker({"/nonexistent/ptxbench-worker", {}, 5, 4096});
  const auto started = worker.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::Harness);
}

}  // namespace
}  // namespace ptxb
