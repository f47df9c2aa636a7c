#!/usr/bin/env python3
"""Attention kernels of Weft and PyTorch on this machine's GPU, forward and backward, in one run.

  bench/gpu_attention.py build/release/weft [--shapes 16x12x1024x64,2x16x8192x128] [--precision bf16]

A shape is batch x heads x length x width; each runs with and without a causal mask. Weft's times are those of
EXPLAIN ANALYZE for a step of little else; PyTorch's are those of scaled_dot_product_attention with flash and cuDNN.
TFLOP/s count four (forward) or ten (backward) flops per column and pair of a query and a visible key, so a causal
pass has half.
"""
import argparse
import re
import subprocess

MODEL = """CREATE MODEL attending (b = 1, s = 64, h = 2, e = 64)
  PARAMETER q0[b, s, h, e] INIT normal(0, 1), k0[b, s, h, e] INIT normal(0, 1), v0[b, s, h, e] INIT normal(0, 1)
AS WITH
  q      AS (SELECT tanh(q0) FROM q0),
  k      AS (SELECT tanh(k0) FROM k0),
  v      AS (SELECT tanh(v0) FROM v0),
  scores AS (SELECT sum(q * k) / sqrt(e) FROM q, k[b, s AS t, h, e] GROUP BY b, h, s, t),
  probs  AS (SELECT softmax({scores}) OVER (PARTITION BY b, h, s) FROM scores),
  y      AS (SELECT sum(probs * v) FROM probs, v[b, s AS t, h, e] GROUP BY b, s, h, e)
SELECT mean(y * y) AS loss FROM y;
EXPLAIN ANALYZE TRAIN attending ON GPU WITH (b = {b}, s = {s}, h = {h}, e = {e}, precision = {precision});
"""
UNITS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}


def weft(program, shape, causal, precision):
    """Milliseconds of the forward and of the backward pass; None if no row has them."""
    b, h, s, e = shape
    scores = "CASE WHEN t <= s THEN scores ELSE -inf END" if causal else "scores"
    text = MODEL.format(scores=scores, b=b, h=h, s=s, e=e, precision=precision)
    out = subprocess.run([program], input=text, capture_output=True, text=True, timeout=300)
    times = {}
    for line in out.stdout.splitlines():
        found = re.search(r" (attention(?:-gradient|-gradi…|-grad…)?)\b.*?([\d.]+) (ns|us|ms|s) +[\d.]+x ", line)
        if found:
            times[found.group(1) != "attention"] = float(found.group(2)) * UNITS[found.group(3)]
    if len(times) < 2:
        print(out.stdout + out.stderr)
    return times.get(False), times.get(True)


def torch_times(shape, causal, precision):
    """By backend: milliseconds of the forward and of the backward pass."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def timed(call, turns=10):
        for _ in range(3):
            call()
        best = float("inf")
        for _ in range(3):
            begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
            begin.record()
            for _ in range(turns):
                call()
            end.record()
            torch.cuda.synchronize()
            best = min(best, begin.elapsed_time(end) / turns)
        return best

    b, h, s, e = shape
    dtype = torch.bfloat16 if precision == "bf16" else torch.float16
    q, k, v = [torch.randn(b, s, h, e, device="cuda", dtype=dtype, requires_grad=True).tanh().detach()
               .transpose(1, 2).requires_grad_() for _ in range(3)]
    dy = torch.randn_like(q)
    times = {}
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION)):
        with sdpa_kernel(backend):
            attend = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            with torch.no_grad():
                forward = timed(attend)
            y = attend()
            times[name] = forward, timed(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True))
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("--shapes", default="16x12x1024x64,8x16x1024x128,2x16x8192x64,2x16x8192x128")
    parser.add_argument("--precision", default="bf16", choices=["bf16", "f16"])
    args = parser.parse_args()
    print(f"{'b x h x s x e':18} {'':7} {'':8}  {'forward':>9} {'TFLOP/s':>8} {'of best':>8}  {'backward':>9} {'TFLOP/s':>8} {'of best':>8}")
    for text in args.shapes.split(","):
        shape = [int(part) for part in text.split("x")]
        for causal in (True, False):
            rows = torch_times(shape, causal, args.precision)
            best = [min(times[i] for times in rows.values()) for i in range(2)]
            rows["Weft"] = weft(args.weft, shape, causal, args.precision)
            b, h, s, e = shape
            work = b * h * s * s * e / (2 if causal else 1) / 1e9
            for name, times in rows.items():
                line = f"{text:18} {'causal' if causal else 'all':7} {name:8}"
                for i, each in enumerate((4, 10)):
                    line += f"  {times[i]:6.3f} ms {each * work / times[i]:8.0f} {best[i] / times[i]:8.2f}" if times[i] else "  not found"
                print(line, flush=True)


main()
