#!/usr/bin/env bash
# test.sh JOBS -- builds and runs all tests. Fuzz targets replay their corpora with mutations (`make
# fuzz` searches for new inputs). Long tests run in full if WEFT_THOROUGH is set. The last line is
# `N passed, M failed`. Fails if a test fails.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
jobs=$1
passed=0 failed=0 skipped=0

finish() {
  ((skipped == 0)) || echo "$skipped skipped"
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}

# A failed build counts as one failed test.
build() {
  if ! scripts/build.sh "$@"; then
    failed=$((failed + 1))
    finish
  fi
}

# One ctest test may contain many tests: a googletest suite, or the cases of a golden file. Prints
# how many more tests passed, failed and were skipped than ctest counted.
count_inside() {
  awk '
    / Testing: /                        { inside = passes = failures = skips = 0 }
    /^\[  PASSED  \] [0-9]+ test/        { passes = $4; inside = 1 }
    /^\[  FAILED  \] [0-9]+ test.*below/ { failures = $4 }
    /^\[  SKIPPED \] [0-9]+ test/        { skips = $4 }
    /^[0-9]+ cases, [0-9]+ failed$/     { passes = $1 - $3; failures = $3; inside = 1 }
    /^Test Passed/ && inside            { passed += passes - 1; skipped += skips }
    /^Test Failed/ && inside            { passed += passes; skipped += skips; failed += failures > 0 ? failures - 1 : 0 }
    END                                 { print passed + 0, failed + 0, skipped + 0 }' "$1"
}

# Runs the tests of a preset and adds ctest's totals. A run without totals, or one that fails
# without a failed test, counts as one failed test.
run_tests() {
  local log=build/$1/tests.log code=0 ran fell left more_passed more_failed more_skipped
  ctest --preset "$1" -j "$jobs" | tee "$log" || code=$?
  read -r fell ran < <(sed -n 's/.*tests passed, \([0-9]*\) tests\? failed out of \([0-9]*\).*/\1 \2/p' "$log")
  if [[ -z ${ran:-} || (code -ne 0 && fell -eq 0) ]]; then
    echo "ctest failed in build/$1" >&2
    ran=$((${ran:-0} + 1)) fell=1
  fi
  left=$(grep -c '([Ss]kipped)$' "$log")
  read -r more_passed more_failed more_skipped < <(count_inside "build/$1/Testing/Temporary/LastTest.log")
  failed=$((failed + fell + more_failed))
  skipped=$((skipped + left + more_skipped))
  passed=$((passed + ran - fell - left + more_passed))
}

build dev "$jobs"

# Tests write thousands of small files and sync each of them, which is fast in memory even if the
# disk is slow. The disk is used if /dev/shm is small or does not allow executables.
in_memory() {
  local free
  free=$(df --output=avail -BM /dev/shm 2>/dev/null | tail -1 | tr -dc 0-9)
  ((${free:-0} >= 4096)) || return 1
  folder=$(mktemp -d /dev/shm/weft-tests.XXXXXX) || return 1
  if ! install -m 700 /bin/true "$folder/true" || ! "$folder/true" 2>/dev/null; then
    rm -rf "$folder"
    return 1
  fi
}
if in_memory; then
  export TMPDIR=$folder
  trap 'rm -rf "$folder"' EXIT
fi
run_tests dev
finish
