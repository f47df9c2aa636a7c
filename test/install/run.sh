#!/usr/bin/env bash
# run.sh BUILD CXX [FLAG...] -- installs a build into an empty folder and uses it from there like
# any other package: headers from C and C++, the examples with pkg-config and find_package. Except
# for the examples, nothing outside the folder is read.
#
# FLAGs are the sanitizer flags of the build: programs must then link the sanitizers' runtime.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 cxx=$2
flags=("${@:3}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
expect() {  # expect WHAT EXPECTED FOUND
  [[ $2 == "$3" ]] || fail "$1: expected '$2', found '$3'"
  echo "ok: $1"
}

# Installs as packagers do: into a staging folder, which is then moved to its final place.
DESTDIR=$work/stage cmake --install "$build" --prefix /opt/weft >"$work/log" || fail "install: $(tail -n 5 "$work/log")"
mv "$work/stage/opt/weft" "$work/weft"
prefix=$work/weft
library=$(dirname "$(find "$prefix" -name libweft.so)")
export PKG_CONFIG_PATH=$library/pkgconfig LD_LIBRARY_PATH=$library XDG_CACHE_HOME=$work/cache

expect "the files" "bin/weft include/weft/weft.h include/weft/weft_comm.h" \
  "$(cd "$prefix" && find bin include -type f | sort | xargs)"
expect "the program's version" "weft $(pkg-config --modversion weft)" "$("$prefix/bin/weft" --version)"
strangers=$(nm -D --defined-only "$library/libweft.so" | awk '$3 !~ /^(weft_[a-z_]+(@@WEFT_0)?|WEFT_0)$/ { print $3 }' | head -n 3)
expect "nothing but weft_* is exported" "" "$strangers"
missing=$(comm -23 <(grep -ohE '\bweft_[a-z_]+\(' "$prefix"/include/weft/*.h | tr -d '(' | sort -u) \
  <(nm -D --defined-only "$library/libweft.so" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u))
expect "every function of the headers is exported" "" "$missing"
for plugin in "$build"/weft_mpi_*.so; do
  [[ ! -e $plugin ]] || expect "a plugin" yes "$([[ -e $library/weft/$(basename "$plugin") ]] && echo yes)"
done

# Each header alone and both together, in the languages that they support.
for headers in weft.h weft_comm.h "weft.h weft_comm.h" "weft_comm.h weft.h"; do
  printf '#include <weft/%s>\n' $headers >"$work/header.c"
  cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" "$work/header.c"
  "$cxx" -x c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$prefix/include" "$work/header.c"
done
echo "ok: headers in C99 and C++11"

# A sanitized library needs a compiler that links the sanitizers' runtime; otherwise cc is enough.
compiler=(cc)
((${#flags[@]} == 0)) || compiler=("$cxx" -x c "${flags[@]}")
for example in plan average work_queue; do
  read -r -a found <<<"$(pkg-config --cflags --libs weft)"
  "${compiler[@]}" -std=c99 -pedantic -Wall -Wextra -Werror "examples/c/$example.c" "${found[@]}" -o "$work/$example"
done

statement='EXPLAIN TRAIN digits_mlp ON dgx1 WITH (b = 4096)'
json=$("$prefix/bin/weft" --format json -c "$statement")
[[ $json =~ \"plan\":\ *\"(gpu=8:[^\"]*)\" ]] || fail "the program's answer has no plan: $json"
asked=${BASH_REMATCH[1]}
expect "plan.c prints the program's plan" "$asked" "$("$work/plan")"
code=0
"$work/plan" 'EXPLAIN TRAIN gpt2 ON pood' 2>"$work/complaint" || code=$?
expect "a mistake's exit code" 1 $code
expect "a mistake's place" "error 1:23: unknown cluster or device: pood" "$(head -n 1 "$work/complaint")"
expect "average.c on 4 ranks" "4 ranks, average 1.5" "$("$prefix/bin/weft" launch -n 4 "$work/average")"
expect "work_queue.c on 4 ranks" "4 ranks, the sum of 100 squares is 338350" "$("$prefix/bin/weft" launch -n 4 "$work/work_queue")"

if ((${#flags[@]} == 0)); then
  cmake -S examples/c -B "$work/by_cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 || fail "find_package: $(tail -n 5 "$work/log")"
  cmake --build "$work/by_cmake" >"$work/log" 2>&1 || fail "by CMake: $(tail -n 5 "$work/log")"
  expect "plan.c by find_package" "$asked" "$(env -u LD_LIBRARY_PATH "$work/by_cmake/plan")"
fi
