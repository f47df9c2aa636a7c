#!/usr/bin/env bash
# buckets.sh -- what summing gradients in buckets gives between hosts whose links are limited.
#
#   bench/buckets.sh build/release/weft [HOSTS [RATE [DELAY]]]        2 hosts, 1gbit, 50us
#
# Hosts are network namespaces (scripts/hosts.sh); a rank on each learns by slices of the batch. Each model learns
# with every gradient by itself, in buckets of 25 MiB as PyTorch has them, and in those that are chosen, in turns;
# the least time of a step of each is what is shown, as others use the machine too. Needs root.
set -euo pipefail
weft=$(realpath "$1")
hosts=${2:-2} rate=${3:-1gbit} delay=${4:-50us}
steps=${STEPS:-30} rounds=${ROUNDS:-3}
root=$(cd "$(dirname "$0")/.." && pwd)
export WEFT_HOSTS=weftbuckets$$ WEFT_JOB_SECRET=$(head -c 24 /dev/urandom | base64) WEFT_TIMEOUT='60 s'
work=$(mktemp -d)
trap '"$root/scripts/hosts.sh" down; rm -rf "$work"' EXIT
"$root/scripts/hosts.sh" up "$hosts" --rate "$rate" --delay "$delay"

# on_hosts COMMAND...: rank r of them on host r; rank 0's output.
on_hosts() {
  local r pids=()
  for ((r = 1; r < hosts; r++)); do
    RANK=$r WORLD_SIZE=$hosts MASTER_ADDR=$("$root/scripts/hosts.sh" address 0) MASTER_PORT=4711 \
      XDG_CACHE_HOME=$work/cache$r "$root/scripts/hosts.sh" run $r "$@" >"$work/out$r" 2>&1 </dev/null &
    pids+=($!)
  done
  RANK=0 WORLD_SIZE=$hosts MASTER_ADDR=$("$root/scripts/hosts.sh" address 0) MASTER_PORT=4711 \
    XDG_CACHE_HOME=$work/cache0 "$root/scripts/hosts.sh" run 0 "$@" </dev/null || { tail -n 5 "$work"/out*; return 1; }
  for r in "${pids[@]}"; do wait "$r"; done
}

# step_time MODEL DATA SIZES SETTING: seconds of a step.
step_time() {
  on_hosts "$weft" --format json -c "TRAIN $1 ON JOB FROM '$2' STEPS $steps
    WITH ($3, distribution = 'host=$hosts: slice b', network = '$network'${4:+, $4})" >"$work/out" 2>"$work/err" ||
    { tail -n 5 "$work/out" "$work/err" >&2; return 1; }
  python3 -c 'import json, sys; it = json.loads(sys.stdin.readlines()[-1]); print(it["seconds"] / it["steps"])' <"$work/out"
}

# What a host sends, for the prices: hosts.sh limits it to that.
network=$(python3 -c 'import re, sys
rate, delay = sys.argv[1:]
number, unit = re.fullmatch(r"([0-9.]+)([kmg])bit", rate).groups()
print(f"{float(number) * {chr(107): 1e-3, chr(109): 1, chr(103): 1e3}[unit] / 8:g} MB/s, {delay[:-2]} {delay[-2:]}")' "$rate" "$delay")
echo "$hosts hosts, $rate, $delay: '$network'; the least of $rounds rounds of $steps steps"
printf '%-34s %12s %12s %12s\n' model 'by itself' '25 MiB' chosen
while IFS='|' read -r model data sizes; do
  declare -A least=()
  for ((round = 0; round < rounds; round++)); do
    for way in "optimizer_off = 'bucket'" "buckets = '25 MiB'" ''; do
      seconds=$(step_time "$model" "$root/$data" "$sizes" "$way")
      least[x$way]=$(python3 -c 'import sys; print(min(float(x) for x in sys.argv[1:]))' "$seconds" ${least[x$way]:-})
    done
  done
  printf '%-34s %9.2f ms %9.2f ms %9.2f ms\n' "$model ($sizes)" \
    "$(bc -l <<<"1000 * ${least["xoptimizer_off = 'bucket'"]}")" "$(bc -l <<<"1000 * ${least["xbuckets = '25 MiB'"]}")" \
    "$(bc -l <<<"1000 * ${least[x]}")"
done <<'END'
digits_mlp|examples/digits.csv.gz|b = 32, f = 512
char_gpt|docs/weftql.md|b = 4, s = 64, d = 96, layers = 4
END
