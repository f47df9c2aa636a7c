#!/bin/sh
# Improves the configurations of five models on 64 and 1,024 devices: improve_all.sh [WEFT]
# Results: docs/measurements/planning.md.
weft=$(command -v "${1:-weft}") || exit 1
case $weft in /*) ;; *) weft=$PWD/$weft ;; esac
cd "$(dirname "$0")" || exit 1

improve() {  # TITLE OPTIONS..
  title=$1
  shift
  echo "== $title"
  began=$(date +%s)
  "$weft" improve "$@" | grep -E '^(Plan|Step|Memory|Limit|Faster|faster still)'
  echo "wall      $(($(date +%s) - began)) s"
}

megatron='--seq-length 4096 --micro-batch-size 1 --use-distributed-optimizer --overlap-grad-reduce --bf16'
for on in h100_64.weft:512 superpod:2048; do
  cluster=${on%:*} batch=${on#*:}
  improve "Llama 7B on $cluster" --model llama_7b.json --on "$cluster" --batch "$batch" \
    --megatron "--tensor-model-parallel-size 8 --sequence-parallel $megatron"
  improve "Llama 70B on $cluster" --model llama_70b.json --on "$cluster" --batch "$batch" \
    --megatron "--tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 8 $megatron"
  improve "Qwen2 7B on $cluster" --model qwen2_7b.json --on "$cluster" --sequence 4096 --deepspeed zero3.json
  improve "Mistral 7B on $cluster" --model mistral_7b.json --on "$cluster" --batch "$batch" --torchtitan fsdp_tensor8.toml
  improve "Mixtral 8x7B on $cluster" --model mixtral_8x7b.json --on "$cluster" --batch "$batch" \
    --megatron "--tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 $megatron"
done
