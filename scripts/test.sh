#!/usr/bin/env bash
# test.sh JOBS -- builds and runs all tests; readers replay their corpora and mutations of them (`make fuzz` hunts
# for new ones). The last line is `N passed, M failed`; fails when a test does.
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

# Runs the tests of a preset and adds up what ctest says at the end. A run that says nothing, or
# fails without naming a test, counts as one failed test.
run_tests() {
  local log=build/$1/tests.log code=0 ran fell left
  ctest --preset "$1" -j "$jobs" | tee "$log" || code=$?
  read -r fell ran < <(sed -n 's/.*tests passed, \([0-9]*\) tests\? failed out of \([0-9]*\).*/\1 \2/p' "$log")
  if [[ -z ${ran:-} || (code -ne 0 && fell -eq 0) ]]; then
    echo "ctest failed in build/$1" >&2
    ran=$((${ran:-0} + 1)) fell=1
  fi
  left=$(grep -c '([Ss]kipped)$' "$log")
  failed=$((failed + fell))
  skipped=$((skipped + left))
  passed=$((passed + ran - fell - left))
}

build dev "$jobs"
run_tests dev
finish
