// Owns the GPU tests of the worker's own kernels: they must agree with the CPU to the bit or to the
// last place.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/minifloat.h"
#include "cuda/device.h"
#include "cuda/gpu_plans.h"
#include "task/inputs.h"
#include "task/reference.h"

namespace ptxb::cuda {
namespace {

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    static const Result<Device>* opened = new Result<Device>(Device::open(0));
    if (!*opened) GTEST_SKIP() << opened->error().message;
    device_ = &**opened;
    auto stream = device_->make_stream();
    ASSERT_TRUE(stream) << stream.error().message;
    stream_ = *std::move(stream);
  }
  DeviceMemory allocate(uint64_t bytes) {
    auto memory = device_->allocate(bytes, "test");
    PTXB_CHECK(memory);
    return *std::move(memory);
  }
  DeviceMemory upload(const std::vector<uint8_t>& bytes) {
    DeviceMemory memory = allocate(bytes.size());
    PTXB_CHECK(driver().cuMemcpyHtoDAsync(memory.get(), bytes.data(), bytes.size(),
                                          stream_.get()) == CUDA_SUCCESS);
    return memory;
  }
  template <class T>
  std::vector<T> download(const DeviceMemory& memory, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(
        driver().cuMemcpyDtoHAsync(values.data(), memory.get(), count * sizeof(T), stream_.get()),
        CUDA_SUCCESS);
    EXPECT_EQ(driver().cuStreamSynchronize(stream_.get()), CUDA_SUCCESS);
    return values;
  }
  // The number of values that differ by more than one place in f32.
  static int differing(const std::vector<float>& a, const std::vector<float>& b) {
    int count = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const float scale = std::max(std::abs(a[i]), std::abs(b[i]));
      if (!(std::abs(a[i] - b[i]) <= 1.2e-7f * scale)) ++count;
    }
    return count;
  }

  const Device* device_ = nullptr;
  Stream stream_;
};

TEST_F(OnDevice, InputsAreBitEqualToTheCpus) {
  for (const Task& task : {gemm_task(37, 65, 129), attention_task(1, 3, 70, 64, true),
                           attention_task(2, 2, 33, 128, false)}) {
    for (Distribution distribution : distributions(task)) {
      const InputSpec spec{0x123456789abcdef0u, distribution};
      const auto expected = make_inputs(task, spec, 1);
      ASSERT_TRUE(expected);
      for (size_t i = 0; i < expected->size(); ++i) {
        const auto generator = generator_spec(task, i, spec);
        ASSERT_TRUE(generator);
        const DeviceMemory memory = allocate((*expected)[i].size());
        ASSERT_TRUE(device_->fill(stream_.get(), *generator,
                                  task.elements(task.definition.inputs[i]), Element::BF16,
                                  memory.get()));
        EXPECT_EQ(download<uint8_t>(memory, (*expected)[i].size()), (*expected)[i])
            << task.definition.name << " " << name(distribution) << " input " << i;
      }
    }
  }
}

TEST_F(OnDevice, GemmReferenceAgreesWithTheCpus) {
  const Task task = gemm_task(141, 75, 203);
  for (Distribution distribution : distributions(task)) {
    const InputSpec spec{5, distribution};
    const auto inputs = make_inputs(task, spec, 1);
    ASSERT_TRUE(inputs);
    const auto expected = compute_reference(task, *inputs, spec, 1);
    ASSERT_TRUE(expected);
    const DeviceMemory a = upload((*inputs)[0]), b = upload((*inputs)[1]);
    const DeviceMemory a_norms = allocate(141 * 8), b_norms = allocate(75 * 8);
    const size_t count = expected->outputs[0].value.size();
    const DeviceMemory value = allocate(count * 4), bound = allocate(count * 4);
    ASSERT_TRUE(device_->row_norms(stream_.get(), a.get(), 141, 203, a_norms.get()));
    ASSERT_TRUE(device_->row_norms(stream_.get(), b.get(), 75, 203, b_norms.get()));
    GemmCall call;
    call.a = reinterpret_cast<void*>(a.get());
    call.b = reinterpret_cast<void*>(b.get());
    call.a_norms = reinterpret_cast<double*>(a_norms.get());
    call.b_norms = reinterpret_cast<double*>(b_norms.get());
    call.value = reinterpret_cast<float*>(value.get());
    call.bound = reinterpret_cast<float*>(bound.get());
    call.m = 141;
    call.n = 75;
    call.k = 203;
    const bool exact = distribution == Distribution::Exact || distribution == Distribution::Coded;
    call.kind = exact ? BoundKind::Exact : BoundKind::Rounded;
    ASSERT_TRUE(device_->reference_gemm(stream_.get(), call));
    EXPECT_EQ(differing(download<float>(value, count), expected->outputs[0].value), 0)
        << name(distribution);
    EXPECT_EQ(differing(download<float>(bound, count), expected->outputs[0].bound), 0)
        << name(distribution);
  }
}

TEST_F(OnDevice, AttentionReferenceAgreesWithTheCpus) {
  for (bool causal : {false, true}) {
    const Task task = attention_task(1, 2, 150, 128, causal);
    for (Distribution distribution : distributions(task)) {
      const InputSpec spec{9, distribution};
      const auto inputs = make_inputs(task, spec, 1);
      ASSERT_TRUE(inputs);
      const auto expected = compute_reference(task, *inputs, spec, 1);
      ASSERT_TRUE(expected);
      const DeviceMemory q = upload((*inputs)[0]), k = upload((*inputs)[1]),
                         v = upload((*inputs)[2]);
      const DeviceMemory q_norms = allocate(300 * 8), k_norms = allocate(300 * 8);
      ASSERT_TRUE(device_->row_norms(stream_.get(), q.get(), 300, 128, q_norms.get()));
      ASSERT_TRUE(device_->row_norms(stream_.get(), k.get(), 300, 128, k_norms.get()));
      const size_t count = expected->outputs[0].value.size(),
                   rows = expected->outputs[1].value.size();
      const DeviceMemory value = allocate(count * 4), bound = allocate(count * 4),
                         lse = allocate(rows * 4), lse_bound = allocate(rows * 4);
      AttentionCall call;
      call.q = reinterpret_cast<void*>(q.get());
      call.k = reinterpret_cast<void*>(k.get());
      call.v = reinterpret_cast<void*>(v.get());
      call.q_norms = reinterpret_cast<double*>(q_norms.get());
      call.k_norms = reinterpret_cast<double*>(k_norms.get());
      call.value = reinterpret_cast<float*>(value.get());
      call.bound = reinterpret_cast<float*>(bound.get());
      call.lse = reinterpret_cast<float*>(lse.get());
      call.lse_bound = reinterpret_cast<float*>(lse_bound.get());
      call.heads = 2;
      call.length = 150;
      call.width = 128;
      call.scale = 1 / std::sqrt(128.0);
      call.causal = causal ? 1 : 0;
      const bool exact = distribution == Distribution::Exact || distribution == Distribution::Coded;
      call.kind = exact ? BoundKind::Exact : BoundKind::Rounded;
      ASSERT_TRUE(device_->reference_attention(stream_.get(), call));
      EXPECT_EQ(differing(download<float>(value, count), expected->outputs[0].value), 0)
          << name(distribution);
      EXPECT_EQ(differing(download<float>(lse, rows), expected->outputs[1].value), 0)
          << name(distribution);
      // The bounds hold fp32 sums on the device: close, not equal.
      const auto bounds = download<float>(bound, count),
                 lse_bounds = download<float>(lse_bound, rows);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_NEAR(bounds[i], expected->outputs[0].bound[i], 1e-4f * expected->outputs[0].bound[i])
            << name(distribution) << " " << i;
      }
      for (size_t i = 0; i < rows; ++i) {
        ASSERT_NEAR(lse_bounds[i], expected->outputs[1].bound[i],
                    1e-4f * expected->outputs[1].bound[i])
            << name(distribution) << " " << i;
      }
    }
  }
}

TEST_F(OnDevice, DigestSeesEveryByteAndItsPlace) {
  std::vector<uint8_t> bytes(100003);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
  const auto digest_of = [&](const std::vector<uint8_t>& data) {
    const DeviceMemory memory = upload(data), sum = allocate(8);
    EXPECT_EQ(driver().cuMemsetD8Async(sum.get(), 0, 8, stream_.get()), CUDA_SUCCESS);
    EXPECT_TRUE(device_->add_digest(stream_.get(), memory.get(), data.size(), 1, sum.get()));
    return download<uint64_t>(sum, 1)[0];
  };
  const uint64_t first = digest_of(bytes);
  EXPECT_EQ(digest_of(bytes), first);
  for (size_t at : {size_t{0}, size_t{17}, size_t{50000}, size_t{99999}, size_t{100002}}) {
    auto changed = bytes;
    changed[at] ^= 1;
    EXPECT_NE(digest_of(changed), first) << at;
  }
  auto swapped = bytes;
  std::swap_ranges(swapped.begin(), swapped.begin() + 16, swapped.begin() + 16);
  EXPECT_NE(digest_of(swapped), first);
}

TEST_F(OnDevice, CompareCountsWhatTheCpuWouldCount) {
  // bf16: right, rule A only broken, rule B only broken, unwritten, infinity, NaN.
  const std::vector<uint16_t> out = {
      float_to_bf16(1.0f), float_to_bf16(2.0f), float_to_bf16(1.005f), 0xffff, 0x7f80, 0x7fc0};
  const std::vector<float> value(6, 1.0f), bound = {0.01f, 10.0f, 0.001f, 1, 1, 1};
  const auto bytes = [](const auto& values) {
    std::vector<uint8_t> raw(values.size() * sizeof(values[0]));
    std::memcpy(raw.data(), values.data(), raw.size());
    return raw;
  };
  const DeviceMemory out_memory = upload(bytes(out)), value_memory = upload(bytes(value)),
                     bound_memory = upload(bytes(bound));
  const DeviceMemory totals = allocate(sizeof(CompareTotals)), bad = allocate(6);
  ASSERT_EQ(driver().cuMemsetD8Async(totals.get(), 0, sizeof(CompareTotals), stream_.get()),
            CUDA_SUCCESS);
  CompareCall call;
  call.out = reinterpret_cast<void*>(out_memory.get());
  call.value = reinterpret_cast<float*>(value_memory.get());
  call.bound = reinterpret_cast<float*>(bound_memory.get());
  call.bad = reinterpret_cast<uint8_t*>(bad.get());
  call.count = 6;
  call.rtol = call.atol = 0.01;
  ASSERT_TRUE(device_->compare(stream_.get(), call, totals.get()));
  const CompareTotals got = download<CompareTotals>(totals, 1)[0];
  EXPECT_EQ(got.mismatched_a, 4u);
  EXPECT_EQ(got.mismatched_b, 4u);
  EXPECT_EQ(got.unwritten, 1u);
  EXPECT_EQ(got.non_finite, 2u);
  double max_abs = 0;
  std::memcpy(&max_abs, &got.max_abs_bits, 8);
  EXPECT_EQ(max_abs, 1.0);
  EXPECT_EQ(download<uint8_t>(bad, 6), (std::vector<uint8_t>{0, 1, 1, 1, 1, 1}));
}

TEST_F(OnDevice, TheClockIsPlausible) {
  const DeviceMemory slots = allocate(2 * kStampSlots * sizeof(ClockStamp));
  ASSERT_EQ(
      driver().cuMemsetD8Async(slots.get(), 0, 2 * kStampSlots * sizeof(ClockStamp), stream_.get()),
      CUDA_SUCCESS);
  const CUdeviceptr second = slots.get() + kStampSlots * sizeof(ClockStamp);
  ASSERT_TRUE(device_->stamp(stream_.get(), slots.get(), 200'000));
  ASSERT_TRUE(device_->stamp(stream_.get(), second, 100'000));
  const auto stamps = download<ClockStamp>(slots, 2 * kStampSlots);
  int seen = 0;
  for (uint32_t i = 0; i < kStampSlots; ++i) {
    const ClockStamp &a = stamps[i], &b = stamps[kStampSlots + i];
    if (a.time_ns == 0 || b.time_ns == 0) continue;
    ++seen;
    const double mhz =
        static_cast<double>(b.cycles - a.cycles) / static_cast<double>(b.time_ns - a.time_ns) * 1e3;
    EXPECT_GT(mhz, 200) << i;
    EXPECT_LT(mhz, 3000) << i;
  }
  EXPECT_GE(seen, device_->facts().multiprocessors * 9 / 10);
}

}  // namespace
}  // namespace ptxb::cuda
