#!/usr/bin/env bash
# wires.sh -- what a step takes between hosts whose links are limited, by each way to send less or later.
#
#   bench/wires.sh build/release/weft [HOSTS [RATE [DELAY]]]        2 hosts, 1gbit, 50us
#
# Hosts are network namespaces (scripts/hosts.sh); a rank on each learns by slices of the batch. Each model learns
#   by itself    every gradient in a call of its own
#   25 MiB       in buckets as PyTorch has them
#   chosen       in buckets as the simulation finds quickest: what runs without being asked
#   int8, int4   the same, gradients coded for the wire
#   sync 8       gradients stay, parameters are averaged every 8 steps
#   DDP, DDP/2   PyTorch over Gloo, and with gradients rounded to f16 by its hook; where there is a PyTorch
# in turns; the least time of a step of each is what is shown, as others use the machine too. Needs root.
set -euo pipefail
weft=$(realpath "$1")
hosts=${2:-2} rate=${3:-1gbit} delay=${4:-50us}
steps=${STEPS:-30} rounds=${ROUNDS:-3}
root=$(cd "$(dirname "$0")/.." && pwd)
export WEFT_HOSTS=weftwires$$ WEFT_JOB_SECRET=$(head -c 24 /dev/urandom | base64) WEFT_TIMEOUT='60 s'
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

# step_time COMMAND...: seconds of a step, of what prints them as JSON in its last line.
step_time() {
  on_hosts "$@" >"$work/out" 2>"$work/err" || { tail -n 5 "$work/out" "$work/err" >&2; return 1; }
  python3 -c 'import json, sys; it = json.loads(sys.stdin.readlines()[-1]); print(it["seconds"] / it["steps"])' <"$work/out"
}

# train MODEL DATA SIZES SETTING
train() {
  step_time "$weft" --format json -c "TRAIN $1 ON JOB FROM '$2' STEPS $steps
    WITH ($3, threads = 1, distribution = 'host=$hosts: slice b', network = '$network'${4:+, $4})"
}

# What a host sends, for the prices: hosts.sh limits it to that.
network=$(python3 -c 'import re, sys
rate, delay = sys.argv[1:]
number, unit = re.fullmatch(r"([0-9.]+)([kmg])bit", rate).groups()
print(f"{float(number) * {chr(107): 1e-3, chr(109): 1, chr(103): 1e3}[unit] / 8:g} MB/s, {delay[:-2]} {delay[-2:]}")' "$rate" "$delay")

ways=("by itself|buckets = off" "25 MiB|buckets = '25 MiB'" "chosen|" "int8|codecs = 'gradients: int8 always'"
  "int4|codecs = 'gradients: int4 always'" "sync 8|sync_every = 8")
/usr/bin/python3 -c 'import torch' 2>/dev/null && ways+=("DDP|torch" "DDP/2|torch half")
echo "$hosts hosts, $rate, $delay: '$network'; milliseconds of a step, the least of $rounds rounds of $steps steps"
printf '%-44s' model
for way in "${ways[@]}"; do printf '%10s' "${way%%|*}"; done
echo
while IFS='|' read -r model data sizes; do
  declare -A least=()
  for ((round = 0; round < rounds; round++)); do
    for way in "${ways[@]}"; do
      name=${way%%|*} how=${way#*|}
      case $how in
        torch*) seconds=$(step_time "$root/bench/peers/torch_hosts.py" "$model" "$steps" ${how#torch}) ;;
        *) seconds=$(train "$model" "$root/$data" "$sizes" "$how") ;;
      esac
      least[$name]=$(python3 -c 'import sys; print(min(float(x) for x in sys.argv[1:]))' "$seconds" ${least[$name]:-})
    done
  done
  printf '%-44s' "$model ($sizes)"
  for way in "${ways[@]}"; do python3 -c 'import sys; print(f"{1000 * float(sys.argv[1]):10.2f}", end="")' "${least[${way%%|*}]}"; done
  echo
done <<'END'
digits_mlp|examples/digits.csv.gz|b = 32, f = 512
char_gpt|docs/weftql.md|b = 4, s = 64, d = 96, layers = 4
END
