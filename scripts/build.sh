#!/usr/bin/env bash
# build.sh PRESET JOBS [TARGET...] -- configures a preset if necessary, and builds.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 jobs=$2
shift 2

# Ninja configures again by itself when a CMake file changes. This script handles the first build,
# changed presets, packages that setup.sh has installed since, and benchmarks, which search for
# their peers anew.
ninja_file=build/$preset/build.ninja
cache=build/$preset/CMakeCache.txt
options=()
look_again=
[[ " $*" != *" bench"* ]] || { look_again=yes options+=(-DWEFT_BUILD_BENCH=ON); }
[[ ! build/.setup-stamp -nt $ninja_file ]] || look_again=yes
if [[ -n $look_again && -e $cache ]]; then
  # CMake caches failed searches and would not repeat them.
  mapfile -t -O "${#options[@]}" options < <(
    sed -n -e 's/^\([A-Za-z0-9_]*\):[A-Z]*=.*-NOTFOUND$/-U\1/p' -e 's/^\(__pkg_config_checked_[^:]*\):.*/-U\1/p' "$cache")
fi
if [[ ! -e $ninja_file || CMakePresets.json -nt $ninja_file || -n $look_again ]]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # Clang compiles sanitized code in half the time of g++. Releases use g++, so both compilers are
  # tested.
  if [[ $preset == dev && ! -e $ninja_file && -z ${CXX:-} ]] && scripts/has_libfuzzer.sh; then
    export CXX=clang++
  fi
  if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
  touch "$ninja_file"
fi

# Without a target, builds the preset's default targets.
cmake --build --preset "$preset" --parallel "$jobs" ${1:+--target "$@"}
