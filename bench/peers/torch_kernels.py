#!/usr/bin/env python3
"""Kernels of PyTorch and Weft on one thread.

  build/release/bench_kernels | bench/peers/torch_kernels.py

Reads the table of bench_kernels, runs the same work in PyTorch (the row names contain the shapes), and adds
PyTorch's time and the ratio: above 1.00 Weft is faster. Like bench_kernels it uses the fastest of seven turns of
about 20 ms of processor time.
"""

import re
import sys
import time

import os

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(1)
backward = torch.ops.aten.convolution_backward


def numbers(*shape):
    return torch.rand(*shape) + 0.01


def seconds_of(work):
    work()
    best = 1e9
    for _ in range(7):
        times, begin = 0, time.process_time()
        end = begin
        while end - begin < 0.02:
            work()
            times += 1
            end = time.process_time()
        best = min(best, (end - begin) / times)
    return best


def batch_norm(batch, channels, inner):
    x = numbers(batch, channels, inner)
    mean, variance = numbers(channels), numbers(channels)
    return lambda: torch.native_batch_norm(x, None, None, mean, variance, True, 0.1, 1e-5)


def power(exponent):
    x, y = numbers(1024), torch.empty(1024)
    if exponent == "varying":
        other = numbers(1024)
        return lambda: torch.pow(x, other, out=y)
    return lambda: torch.pow(x, float(exponent), out=y)


def convolution(what, batch, inputs, outputs, size, kernel, stride, groups):
    x, w = numbers(batch, inputs, size, size), numbers(outputs, inputs // groups, kernel, kernel)
    padding = kernel // 2
    if what == "":
        return lambda: F.conv2d(x, w, stride=stride, padding=padding, groups=groups)
    dy = torch.rand_like(F.conv2d(x, w, stride=stride, padding=padding, groups=groups))
    wanted = [what == "dx ", what == "dw ", False]
    return lambda: backward(dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups, wanted)


def product(n, k, transposed):
    a, c = numbers(1, k), torch.empty(1, n)
    b = numbers(n, k).t() if transposed else numbers(k, n)
    return lambda: torch.mm(a, b, out=c)


def pool(kind, planes, size, window, stride, padding):
    x = numbers(1, planes, size, size)
    if kind == "avg pool":
        return lambda: F.avg_pool2d(x, window, stride, padding, count_include_pad=False)
    y, places = F.max_pool2d(x, window, stride, padding, return_indices=True)
    if kind == "max pool":
        return lambda: F.max_pool2d(x, window, stride, padding)
    dy = torch.rand_like(y)
    gradient = torch.ops.aten.max_pool2d_with_indices_backward
    return lambda: gradient(dy, x, [window] * 2, [stride] * 2, [padding] * 2, [1, 1], False, places)


def rows_of(kind, rows, n):
    x = numbers(rows, n)
    if kind == "softmax":
        return lambda: torch.softmax(x, -1)
    return lambda: torch.native_layer_norm(x, [n], None, None, 1e-5)


def attention(what, heads, width, length):
    shape = (1, heads, length, width)
    q, k, v = (numbers(*shape).requires_grad_(what != "") for _ in range(3))
    if hasattr(F, "scaled_dot_product_attention"):
        attend = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:  # before PyTorch 2: as everybody wrote it
        hidden = torch.ones(length, length).triu(1).bool()
        attend = lambda: torch.softmax((q @ k.transpose(-1, -2) / width**0.5).masked_fill(hidden, -float("inf")), -1) @ v
    if what == "":
        return attend
    dy = torch.rand(*shape)
    with torch.enable_grad():
        y = attend()
    return lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)


def work_of(name):
    """The PyTorch equivalent of a row, or None if there is none."""
    if found := re.fullmatch(r"batch norm train \[(\d+), (\d+), (\d+)\]", name):
        return batch_norm(*map(int, found.groups()))
    if found := re.fullmatch(r"pow (\S+) of 1024", name):
        return power(found[1])
    if name == "exp of 1024":
        x, y = numbers(1024), torch.empty(1024)
        return lambda: torch.exp(x, out=y)
    if found := re.fullmatch(r"conv (dx |dw |)\[(\d+), (\d+)->(\d+), (\d+)x\d+\] (\d+)x\d+ /(\d+) g(\d+)", name):
        return convolution(found[1], *map(int, found.groups()[1:]))
    if found := re.fullmatch(r"product 1 x (\d+) x (\d+)( transposed|)", name):
        return product(int(found[1]), int(found[2]), found[3] != "")
    if found := re.fullmatch(r"(max pool|max pool dx|avg pool) (\d+) x (\d+)x\d+ by (\d+) /(\d+) \+(\d+)", name):
        return pool(found[1], *map(int, found.groups()[1:]))
    if found := re.fullmatch(r"(layer norm|softmax) (\d+) rows of (\d+)", name):
        return rows_of(found[1], int(found[2]), int(found[3]))
    if found := re.fullmatch(r"attention (back |kept |)(\d+) heads of (\d+), (\d+) long", name):
        return attention(found[1] if found[1] == "back " else "", *map(int, found.groups()[1:]))
    return None


def main():
    print(f"PyTorch {torch.__version__}, one thread")
    for line in sys.stdin:
        found = re.match(r"(.{44}) +([\d.]+) us", line)
        if not found:
            print(line.rstrip() + f" {'PyTorch':>10} {'ratio':>6}")
            continue
        work = work_of(found[1].rstrip())
        if work is None:
            print(line.rstrip())
            continue
        with torch.no_grad():
            seconds = seconds_of(work)
        print(line.rstrip() + f" {1e6 * seconds:7.1f} us {1e6 * seconds / float(found[2]):6.2f}", flush=True)


if __name__ == "__main__":
    main()
