"""Shared by the PyTorch scripts: torch with a number of threads, and the protocol for running steps.

  out  {"ready": true, "torch": "1.13.0a0", "threads": 1, ...}     or {"ready": false, "reason": "..."}
  in   steps 20
  out  {"seconds": 0.0159, ...}                                    the wall time of 20 steps
  in   quit
"""
import json
import os
import sys
import time


def answer(fields):
    print(json.dumps(fields), flush=True)


def import_torch(threads):
    # OpenBLAS and OpenMP read these only when loaded; torch.set_num_threads affects only OpenMP.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(threads)
    try:
        import torch
    except ImportError as error:
        answer({"ready": False, "reason": str(error)})
        sys.exit(1)
    torch.set_num_threads(threads)
    # Debian's oneDNN has only reference kernels for Arm; without it bmm and conv2d use the BLAS.
    torch.backends.mkldnn.set_flags(os.uname().machine != "aarch64")
    return torch


def serve(ready, take_steps, begin=lambda line: None):
    """Reports that it is ready, then runs steps on request until it reads quit. `begin` is not timed. The result of
    `take_steps` is returned with the seconds."""
    answer({"ready": True, **ready})
    for line in sys.stdin:
        command, _, count = line.strip().partition(" ")
        if command == "quit":
            break
        if command != "steps" or not count.isdigit() or int(count) < 1:
            answer({"error": f"expected 'steps N' or 'quit', found '{line.strip()}'"})
            continue
        begin(line)
        start = time.perf_counter()
        found = take_steps(int(count))
        answer({"seconds": time.perf_counter() - start, **found})
