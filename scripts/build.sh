#!/usr/bin/env bash
# build.sh PRESET JOBS [TARGET...] -- configures a preset where that is due, and builds.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 jobs=$2
shift 2

# Ninja configures again by itself when a CMake file changes; only the first time and a change
# of the presets are ours to see. A bench configured before its library came is a first time too.
ninja_file=build/$preset/build.ninja
if [[ ! -e $ninja_file || CMakePresets.json -nt $ninja_file || " $* " == *" bench "* ]]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # With the sanitizers clang compiles in half the time of g++. Releases are g++'s, so both are tried.
  if [[ $preset == dev && ! -e $ninja_file && -z ${CXX:-} ]] && scripts/has_libfuzzer.sh; then
    export CXX=clang++
  fi
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
  touch "$ninja_file"
fi

# No target named: all that the preset builds by default.
cmake --build --preset "$preset" --parallel "$jobs" ${1:+--target "$@"}
