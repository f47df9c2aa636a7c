#!/usr/bin/env bash
# test.sh JOBS -- builds and runs all tests, then the fuzzers for a short while where clang has
# libFuzzer. The last line is `N passed, M failed`; fails when a test does.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=$1
passed=0 failed=0 skipped=0

finish() {
  ((skipped == 0)) || echo "$skipped skipped"
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}

# A build that breaks counts as one failed test.
build() {
  if ! scripts/build.sh "$@"; then
    failed=$((failed + 1))
    finish
  fi
}

# Runs the tests of a preset and adds up what ctest reports. Its report is read, not its exit
# code, so a run that dies without one counts as failed too.
run_tests() {
  local report=$PWD/build/$1/tests.xml count
  rm -f "$report"
  ctest --preset "$1" -j "$jobs" --output-junit "$report" "${@:2}"
  count() { sed -n "s/.*\b$1=\"\([0-9]*\)\".*/\1/p" "$report" | head -n 1; }
  if [[ ! -s $report || $(count tests) == 0 ]]; then
    echo "no test ran in build/$1" >&2
    failed=$((failed + 1))
    return
  fi
  local ran fell left
  ran=$(count tests) fell=$(count failures) left=$(($(count skipped) + $(count disabled)))
  failed=$((failed + fell))
  skipped=$((skipped + left))
  passed=$((passed + ran - fell - left))
}

build dev "$jobs" all all_verify_interface_header_sets
run_tests dev
if scripts/has_libfuzzer.sh; then
  build fuzz "$jobs"
  run_tests fuzz
else
  echo "clang++ with libFuzzer not found: the fuzzers only replayed their corpus"
fi
finish
