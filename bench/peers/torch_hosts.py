#!/usr/bin/python3
"""PyTorch's side of bench/slow_links.sh: DistributedDataParallel over Gloo between hosts, as started by torchrun.

  RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=4712 torch_hosts.py MODEL STEPS [half]
  out  {"seconds": 0.41, "steps": 30}          of rank 0, after as many warm-up steps, at most 5

MODEL is digits_mlp (b = 32, f = 512) or char_gpt (b = 4, s = 64, d = 96, layers = 4). half: gradients are sent
as f16, by DDP's own hook, since Gloo cannot sum bf16.
"""

import itertools
import json
import os
import socket
import sys
import time

model_name, steps, compressed = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["half"]
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
# A host has one network interface besides loopback.
os.environ["GLOO_SOCKET_IFNAME"] = next(name for _, name in socket.if_nameindex() if name != "lo")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.argv[1:] = [model_name, "1", str(ranks), str(rank)]  # what torch_training reads

import torch_training as training  # noqa: E402
import torch  # noqa: E402
from torch import distributed, nn  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks  # noqa: E402


def build():
    torch.manual_seed(1)
    if model_name == "char_gpt":
        model = training.CharGpt(training.TunedGptBlock, layers=4, width=96, heads=6, length=64)
        batches = training.token_batches(batch=4, length=64)
    else:
        model, batches = training.DigitsMlp(width=512), training.digit_batches(batch=32)
    return model, [training.my_rows(batch) for batch in batches]


def main():
    distributed.init_process_group("gloo", rank=rank, world_size=ranks)
    model, batches = build()
    masks = [name for name, buffer in model.named_buffers() if buffer.dtype == torch.bool]
    nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, masks)
    model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    if compressed:
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    following = itertools.cycle(batches)

    def train(count):
        for _ in range(count):
            inputs, targets = next(following)
            optimizer.zero_grad(set_to_none=False)
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()

    train(min(steps, 5))
    distributed.barrier()
    start = time.perf_counter()
    train(steps)
    distributed.barrier()
    if rank == 0:
        print(json.dumps({"seconds": time.perf_counter() - start, "steps": steps}), flush=True)


main()
