#!/usr/bin/env bash
# wires.sh -- time of a step between hosts with slow links, by ways to reduce communication.
#
#   bench/slow_links.sh build/release/weft [HOSTS [RATE [DELAY]]]        2 hosts, 1gbit, 50us
#
# Hosts are network namespaces (scripts/hosts.sh) with one rank each, which slices the batch. Each model is
# trained in turns with
#   by itself    one call per gradient
#   25 MiB       buckets of PyTorch's size
#   chosen       the buckets that are fastest in simulation: the default
#   int8, int4   the same, with gradients compressed
#   sync 8       no gradient sums; parameters are averaged every 8 steps
#   DDP, DDP/2   PyTorch over Gloo, and with gradients rounded to f16 by its hook; if PyTorch is installed
# Shows the least time per step, since other programs may use the machine. Needs root.
set -euo pipefail
weft=$(realpath "$1")
hosts=${2:-2} rate=${3:-1gbit} delay=${4:-50us}
steps=${STEPS:-30} rounds=${ROUNDS:-3}
root=$(cd "$(dirname "$0")/.." && pwd)
export WEFT_HOSTS=weftwires$$ WEFT_JOB_SECRET=$(head -c 24 /dev/urandom | base64) WEFT_TIMEOUT='60 s'
work=$(mktemp -d)
trap '"$root/scripts/hosts.sh" down; rm -rf "$work"' EXIT
"$root/scripts/hosts.sh" up "$hosts" --rate "$rate" --delay "$delay"

# on_hosts COMMAND...: runs rank r on host r; prints the output of rank 0.
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

# step_time COMMAND...: seconds per step of a command that prints JSON in its last line.
step_time() {
  on_hosts "$@" >"$work/out" 2>"$work/err" || { tail -n 5 "$work/out" "$work/err" >&2; return 1; }
  python3 -c 'import json, sys; it = json.loads(sys.stdin.readlines()[-1]); print(it["seconds"] / it["steps"])' <"$work/out"
}

# train MODEL DATA SIZES SETTING
train() {
  step_time "$weft" --format json -c "TRAIN $1 ON JOB FROM '$2' STEPS $steps
    WITH ($3, threads = 1, distribution = 'host=$hosts: slice b', network = '$network'${4:+, $4})"
}

# Bandwidth and latency per host, for predictions: hosts.sh limits it to that.
network=$(python3 -c 'import re, sys
rate, delay = sys.argv[1:]
number, unit = re.fullmatch(r"([0-9.]+)([kmg])bit", rate).groups()
print(f"{float(number) * {chr(107): 1e-3, chr(109): 1, chr(103): 1e3}[unit] / 8:g} MB/s, {delay[:-2]} {delay[-2:]}")' "$rate" "$delay")

ways=("by itself|buckets = off" "25 MiB|buckets = '25 MiB'" "chosen|" "int8|codecs = 'gradients: int8 always'"
  "int4|codecs = 'gradients: int4 always'" "sync 8|sync_every = 8")
/usr/bin/python3 -c 'import torch' 2>/dev/null && ways+=("DDP|torch" "DDP/2|torch half")
echo "$hosts hosts, $rate, $delay: '$network'; milliseconds per step, the least of $rounds rounds of $steps steps"
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
