#!/usr/bin/env bash
# gpu.sh -- training steps of Weft and PyTorch on this machine's GPU; see gpu.py for the options.
#
#   bench/gpu.sh build/release/weft [--models gpt2,bert,llama,resnet,moe,mlp] [--steps 30] [--compile gpt2] [--precision bf16]
#
# Needs a GPU, the CUDA toolkit's NVRTC and cuBLAS, and PyTorch 2.5 or later for comparison.
set -euo pipefail
weft=$(realpath "${1:?expected the weft program, as in: bench/gpu.sh build/release/weft}")
shift
exec python3 "$(dirname "$0")/gpu.py" "$weft" "$@"
