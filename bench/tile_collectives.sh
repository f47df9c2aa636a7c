#!/usr/bin/env bash
# decompose.sh -- gains and losses of tiled collectives.
#
#   bench/tile_collectives.sh build/release/weft
#
# Measured: tensor parallelism on two ranks of this machine, whole and tiled, in turns. Shows the least
# time per step, since other programs may use the machine. On CPUs, collectives are copies that compete
# with products for cores, so expect little gain, or a loss. Predicted: one block of GPT-3 on the eight
# GPUs of a node in bf16, with all-reduces, and with sequences sliced between products.
set -euo pipefail
weft=$(realpath "$1")
steps=${STEPS:-20} rounds=${ROUNDS:-3}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# step_time SETTING: seconds per step on two ranks.
step_time() {
  "$weft" --format json -c "TRAIN char_gpt ON LOCAL 2 FROM '$root/docs/weftql.md' STEPS $steps
    WITH (b = 4, s = 128, d = 192, layers = 2, distribution = 'rank=2: slice h, f', tile_collectives = $1)" >"$work/out" 2>"$work/err" ||
    { tail -n 5 "$work/out" "$work/err" >&2; return 1; }
  python3 -c 'import json, sys; it = json.loads(sys.stdin.readlines()[-1]); print(it["seconds"] / it["steps"])' <"$work/out"
}

# predicted DISTRIBUTION BATCH SETTING: time of a step in EXPLAIN, and exposed communication.
predicted() {
  "$weft" -c "EXPLAIN (FORMAT json) TRAIN gpt3_175b ON dgx_h100
    WITH (layers = 1, b = $2, precision = bf16, distribution = '$1', tile_collectives = $3)" >"$work/out" 2>"$work/err" ||
    { tail -n 5 "$work/out" "$work/err" >&2; return 1; }
  python3 -c 'import json, sys
it = json.load(sys.stdin)
print("%9.2f ms, %5.2f ms exposed, %s" % (1e3 * it["step_seconds"], 1e3 * it["exposed_communication_seconds"],
                                          "proven" if it["proven"] else "not proven"))' <"$work/out"
}

ways=(off 2 4)
echo "char_gpt (b = 4, s = 128, d = 192, layers = 2) on 2 ranks: the least of $rounds rounds of $steps steps"
declare -A least=()
for ((round = 0; round < rounds; round++)); do
  for way in "${ways[@]}"; do
    seconds=$(step_time "$way")
    least[$way]=$(python3 -c 'import sys; print(min(float(x) for x in sys.argv[1:]))' "$seconds" ${least[$way]:-})
  done
done
for way in "${ways[@]}"; do printf '  decompose = %-10s %9.2f ms\n' "$way" "$(bc -l <<<"1000 * ${least[$way]}")"; done
for distribution in 'gpu=8: slice h, f, v' 'gpu=8: slice h, f, v, s'; do
  for batch in 1 4; do
    echo "gpt3_175b (layers = 1, b = $batch) on dgx_h100, $distribution: predicted"
    for way in off automatic 2 4 8; do
      printf '  decompose = %-10s %s\n' "$way" "$(predicted "$distribution" "$batch" "$way")"
    done
  done
done
