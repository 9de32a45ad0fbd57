#!/usr/bin/env bash
# Says how many tests need a GPU and were not run here: skipped is counted, never hidden.
set -euo pipefail
build=${1:-build}
count=$(ctest --test-dir "$build" -N -L gpu 2>/dev/null | sed -n 's/^Total Tests: //p')
echo "gpu tests: ${count:-0} not run here (no part of make test; make gpu-test runs them on a machine with a GPU)"
