// Measures the emulator on one core: warp instructions a second of the SIMT GEMM, whole runs of the
// mma.sync GEMM, and what check mode costs. Never judges. SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include "emu/test_kernels.h"

namespace {

using ptxb::emu::GemmCase;
using ptxb::emu::Mode;
using ptxb::emu::TestPlan;

void run_gemm(benchmark::State& state, GemmCase::Kernel kernel, const char* file, int m, int n,
              int k, Mode mode) {
  std::string ptx =
      ptxb::emu::read_text(std::string(PTXB_SOURCE_DIR) + "/src/emu/testdata/" + file);
  GemmCase gemm{kernel, m, n, k};
  TestPlan plan = gemm.plan(ptx);
  plan.options().mode = mode;
  plan.options().wall_budget_s = 600;
  double instructions = 0;
  for (auto _ : state) {
    auto report = plan.run();
    if (!report || report->status != ptxb::RunStatus::Completed) {
      state.SkipWithError("the run did not complete");
      return;
    }
    instructions += static_cast<double>(report->warp_instructions);
  }
  state.counters["warp_instructions/s"] =
      benchmark::Counter(instructions, benchmark::Counter::kIsRate);
  double flops = 2.0 * m * n * k * static_cast<double>(state.iterations());
  state.counters["flop/s"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
}

void SimtGemm(benchmark::State& state) {
  run_gemm(state, GemmCase::Kernel::Simt, "gemm_simt.ptx", 256, 256, 512, Mode::Fast);
}
void SimtGemmCheck(benchmark::State& state) {
  run_gemm(state, GemmCase::Kernel::Simt, "gemm_simt.ptx", 128, 128, 256, Mode::Check);
}
void MmaGemm(benchmark::State& state) {
  run_gemm(state, GemmCase::Kernel::MmaSync, "gemm_mma_sync.ptx", 128,
           static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), Mode::Fast);
}
void MmaGemmExact(benchmark::State& state) {
  run_gemm(state, GemmCase::Kernel::MmaSync, "gemm_mma_sync.ptx", 128, 512, 1024, Mode::Exact);
}
void MmaGemmCheck(benchmark::State& state) {
  run_gemm(state, GemmCase::Kernel::MmaSync, "gemm_mma_sync.ptx", 128, 128, 1024, Mode::Check);
}

BENCHMARK(SimtGemm)->Unit(benchmark::kMillisecond);
BENCHMARK(SimtGemmCheck)->Unit(benchmark::kMillisecond);
BENCHMARK(MmaGemm)->Args({512, 1024})->Args({7168, 5120})->Unit(benchmark::kMillisecond);
BENCHMARK(MmaGemmExact)->Unit(benchmark::kMillisecond);
BENCHMARK(MmaGemmCheck)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
