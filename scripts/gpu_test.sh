#!/usr/bin/env bash
# Tests and measures on a machine with a GPU: the tests labelled gpu, then what the harness promises of itself.
# Usage: scripts/gpu_test.sh [BUILD_FOLDER] [QUICK|FULL]   (default: build FULL; FULL holds the GPU about three minutes)
# Builds what such a machine can build (no sandbox, no SQLite); where even that is impossible (a header is missing, no
# compiler), the programs of a tree built elsewhere and carried over are run: binaries from Debian 12 run on Ubuntu 24.04.
# Writes BUILD_FOLDER/gpu-tests.json (every test) and BUILD_FOLDER/gpu-report.json (every number).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
mode=${2:-FULL}
bin=$build/bin

can_build() {
  command -v cmake >/dev/null && command -v g++ >/dev/null || return 1
  printf '#include <nlohmann/json.hpp>\n#include <openssl/sha.h>\n#include <xxhash.h>\n#include <fmt/format.h>\n#include <gtest/gtest.h>\n' |
    g++ -std=c++20 -fsyntax-only -x c++ - 2>/dev/null
}

if can_build; then
  generator=()
  if command -v ninja >/dev/null && [ ! -e "$build/CMakeCache.txt" ]; then generator=(-G Ninja); fi
  rooms=()
  # A tree that is configured already keeps its rooms; a fresh one takes those that need nothing but CUDA.
  if [ ! -e "$build/CMakeCache.txt" ]; then rooms=("-DPTXB_ROOMS=base;model;task;arch;timing;backend;cuda" -DPTXB_BENCH=OFF); fi
  mkdir -p "$build"
  cmake -S . -B "$build" "${generator[@]}" "${rooms[@]}" >"$build/gpu-configure.log" || { tail -20 "$build/gpu-configure.log"; exit 3; }
  cmake --build "$build" --parallel "$(nproc)" --target cuda_gpu_test ptxbench-gpu-report ptxbench-worker timing_test worker_link_test ||
    { echo "gpu-test: the GPU programs could not be built; is the CUDA toolkit (CUDA_HOME) there?"; exit 3; }
elif [ -x "$bin/cuda_gpu_test" ]; then
  echo "gpu-test: nothing is built here (a header or compiler is missing); running the programs in $bin"
else
  echo "gpu-test: neither can the programs be built here nor are they in $bin"
  exit 3
fi

status=0
for program in timing_test worker_link_test; do
  if [ -x "$bin/$program" ]; then "$bin/$program" --gtest_brief=1 || status=1; fi
done
"$bin/cuda_gpu_test" --gtest_brief=1 --gtest_output=json:"$build/gpu-tests.json" | tee "$build/gpu-tests.log" || status=1
ran=$(grep -c '"result": "COMPLETED"' "$build/gpu-tests.json" || true)
skipped=$(grep -c '"result": "SKIPPED"' "$build/gpu-tests.json" || true)
echo "gpu tests: $ran ran, $skipped skipped"
if [ "$skipped" -gt 0 ] && [ "$ran" -eq 0 ]; then
  echo "gpu-test: not measured, there is no usable GPU: $(grep -m1 -A1 Skipped "$build/gpu-tests.log" | tail -1)"
  exit 3
fi

arguments=(--json "$build/gpu-report.json")
if [ "$mode" = QUICK ]; then arguments+=(--load-seconds 2 --workers 2 --faults 10); fi
if [ -d "$build/plans" ]; then arguments+=(--plans "$build/plans" --tasks tasks); fi
"$bin/ptxbench-gpu-report" "${arguments[@]}" || status=1
echo "written: $build/gpu-report.json"
exit $status
