#!/usr/bin/env bash
# fuzz.sh JOBS SECONDS -- fuzzes every reader for SECONDS each. New inputs are kept in
# build/fuzz/corpus, failing inputs in build/fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$1 seconds=$2

if ! scripts/has_libfuzzer.sh; then
  echo "fuzz: clang++ with libFuzzer not found" >&2
  exit 1
fi
cmake --preset fuzz -DWEFT_FUZZ_ALL=ON >/dev/null
scripts/build.sh fuzz "$jobs"
mkdir -p build/fuzz/artifacts
for door in parse bind plan csv npy safetensors; do
  echo "fuzz: $door for $seconds s"
  mkdir -p "build/fuzz/corpus/$door"
  dictionary=$door
  [[ $door != parse && $door != bind ]] || dictionary=weftql
  build/fuzz/fuzz_$door "build/fuzz/corpus/$door" "test/fuzz/corpus/$door" -dict="test/fuzz/$dictionary.dict" \
    -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=4096 -timeout=10 -detect_leaks=0 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/artifacts/$door-"
done
