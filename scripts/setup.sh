#!/usr/bin/env bash
# Brings a Debian 12 machine to where the project builds: packages of scripts/apt-packages.txt, wheels of scripts/wheels.txt in
# .venv/. Does nothing, quickly, when nothing is missing. Without root it says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }

listed() { grep -vE '^[[:space:]]*(#|$)' "$1"; }

missing_packages() {
  local wanted installed
  mapfile -t wanted < <(listed scripts/apt-packages.txt)
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/ installed$//p' || true)
  for package in "${wanted[@]}"; do
    grep -qxF "$package" <<<"$installed" || echo "$package"
  done
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    say "these Debian packages are missing, and installing them needs root:"
    say "  sudo apt-get install ${missing[*]}"
    exit 3
  fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# As src/build/toolchain.cc looks for it: a forced home, CUDA_HOME, the usual place, the search path.
has_toolkit() {
  [ -n "${PTXBENCH_CUDA_HOME:-}" ] && { [ -x "$PTXBENCH_CUDA_HOME/bin/nvcc" ]; return; }
  [ -n "${PTXBENCH_HIDE_SYSTEM_CUDA:-}" ] && return 1
  [ -x "${CUDA_HOME:-/nonexistent}/bin/nvcc" ] || [ -x /usr/local/cuda/bin/nvcc ] || command -v nvcc >/dev/null
}

wanted_wheels() {
  listed scripts/wheels.txt | sed -n 's/^always //p'
  has_toolkit || listed scripts/wheels.txt | sed -n 's/^cuda //p'
}

# .venv/.ptxbench-wheels lists what was installed; wheels that are there beside it do no harm.
missing_wheels() {
  local done=.venv/.ptxbench-wheels
  [ -x .venv/bin/python ] || { wanted_wheels; return; }
  touch "$done"
  wanted_wheels | grep -vxFf "$done" || true
}

install_wheels() {
  local missing
  mapfile -t missing < <(missing_wheels)
  [ ${#missing[@]} -eq 0 ] && return
  say "installing wheels into .venv/: ${missing[*]}"
  if [ ! -x .venv/bin/python ]; then
    local python=/usr/bin/python3
    [ -x "$python" ] || python=python3
    "$python" -m venv .venv
  fi
  if ! .venv/bin/python -m pip -q --disable-pip-version-check install "${missing[@]}"; then
    if has_toolkit; then
      say "the wheels could not be installed; without them tvm-ffi candidates cannot be built and nothing can be disassembled"
      return
    fi
    say "no CUDA toolkit was found and NVIDIA's compiler wheels could not be installed: nothing can be compiled"
    exit 3
  fi
  printf '%s\n' "${missing[@]}" >>.venv/.ptxbench-wheels
}

mkdir -p .cache
exec 9>.cache/setup.lock
flock 9
install_packages
install_wheels
