#!/usr/bin/env bash
# Succeeds if clang++ can link a libFuzzer target with the sanitizers.
command -v clang++ >/dev/null || exit 1
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  clang++ -x c++ - -fsanitize=fuzzer,address,undefined -o "$probe/target" 2>/dev/null
