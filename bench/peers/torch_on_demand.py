#!/usr/bin/python3
"""PyTorch's side of the kernel benchmark: one product, or attention, on demand.

  torch_on_demand.py KERNEL THREADS      KERNEL "product f32 2048 384 1536"            m, n, k
                                              "attention bf16 8 1024 64"             heads, length, width: causal
                                              "attention-back bf16 8 1024 64"        and its gradients

Uses the protocol of on_demand.py; a step runs the kernel once.
"""

import os
import sys

import on_demand

KERNELS = {"product": 3, "attention": 3, "attention-back": 3}
DTYPES = ("f32", "bf16")


def arguments():
    words = sys.argv[1].split() if len(sys.argv) >= 3 else []
    known = len(words) > 2 and words[0] in KERNELS and words[1] in DTYPES and len(words) == 2 + KERNELS[words[0]]
    if not known or not all(word.isdigit() for word in words[2:] + sys.argv[2:3]):
        sys.exit("usage: torch_on_demand.py 'product|attention|attention-back f32|bf16 SIZE SIZE SIZE' THREADS")
    return words[0], words[1], [int(word) for word in words[2:]], max(int(sys.argv[2]), 1)


kernel, dtype, sizes, threads = arguments()
torch = on_demand.import_torch(threads)

from torch.nn import functional as F


def attend(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    # Its name before 2.0.
    return F._scaled_dot_product_attention(q, k, v, None, 0.0, False, True)[0]


def make_step():
    of = torch.float32 if dtype == "f32" else torch.bfloat16
    if kernel == "product":
        m, n, k = sizes
        a, b = torch.randn(m, k).to(of), torch.randn(k, n).to(of)
        return lambda: torch.mm(a, b)
    heads, length, width = sizes
    learns = kernel == "attention-back"
    q, k, v = (torch.randn(1, heads, length, width).to(of).requires_grad_(learns) for _ in range(3))
    dy = torch.randn(1, heads, length, width).to(of)
    if not learns:
        return lambda: attend(q, k, v)

    def step():
        q.grad = k.grad = v.grad = None
        attend(q, k, v).backward(dy)

    return step


def main():
    step = make_step()

    def take_steps(count):
        for _ in range(count):
            step()
        return {}

    on_demand.serve({"torch": torch.__version__, "threads": threads, "processes": [os.getpid()]}, take_steps)


if __name__ == "__main__":
    main()
