#!/usr/bin/env bash
# The tour: says what this machine can do, then judges real kernels, right and wrong ones.
set -euo pipefail
build=${1:-build}
program="$build/bin/ptxbench"
"$program" doctor
echo
mkdir -p "$build/quickstart"
echo "== kernels with a known fault, and right ones: stage, verdict, cause, evidence"
"$program" selftest --quickstart --profile quick --json "$build/quickstart/selftest.json"
echo
echo "== one evaluation in full: a tensor-core GEMM at the headline width, asked for nothing but to be right"
"$program" eval kernels/gemm/mma_sync.cu --task gemm_n7168_k5120 --workload M=128 --target none \
  --json "$build/quickstart/mma_sync.json"
echo "results: $build/quickstart/selftest.json, $build/quickstart/mma_sync.json"
