"""Exports models of transformers, torchvision and timm, and compares them with torch.

    zoo_test.py [NAME ...] [--jobs N]

Each is exported by weft.export and imported; Weft's INFER must give its outputs within 1e-4 of the largest,
and the parameters must be as many. For TRAINED, a loss and the gradient of each parameter are compared, too.
Exits with 77 if torch, or all of the libraries, are not installed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from beside_torch import WEFT, distance, gradient_of, load, step
import numpy
import torch
import zoo

from weft import export, trace

ABSENT = 77
TRAINED = ("llama", "gemma2", "mixtral", "bert", "t5", "vit", "whisper", "mamba", "convnext_tiny")


def imported(model, inputs, folder, **loss):
    path = os.path.join(folder, "net.onnx")
    export.export_onnx(model, inputs, path, "net", **loss)
    ran = subprocess.run([WEFT, "import", "net.onnx", "--name", "net", "-o", "net.weft"], cwd=folder,
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    text = open(os.path.join(folder, "net.weft")).read()
    states = re.findall(r"(\w+)(?:\[[^\]]*\])?(?: INIT ones)?(?:,|\n)", "".join(
        part + "\n" for part in re.findall(r"\n  STATE +(.*?)\nAS", text, re.S)))
    weights = load(os.path.join(folder, "net.safetensors"))
    return {name: one for name, one in weights.items() if name.split(".")[-1] not in states}


def made(name, seed):
    torch.manual_seed(seed)
    model, inputs = zoo.MODELS[name]()
    with torch.no_grad():
        for parameter in model.parameters():  # no two are alike: a gradient is found by its weight's values
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model.eval(), inputs  # without dropout


def outputs(name, folder):
    model, inputs = made(name, 0)
    with torch.no_grad():
        expected = trace.one_result(model(**inputs)).numpy()
    weights = imported(model, inputs, folder)
    counts = [sum(one.numel() for one in some) for some in (weights.values(), model.parameters())]
    assert counts[0] == counts[1], f"{counts[0]} parameters, expected {counts[1]}"
    numpy.savez(os.path.join(folder, "data.npz"), **{
        key: one.numpy().astype("f4" if one.dtype.is_floating_point else "i4") for key, one in inputs.items()})
    ran = subprocess.run([WEFT, "run", "net.weft", "-c", "LOAD net FROM 'net.safetensors'",
                          "-c", "INFER net FROM 'data.npz' INTO 'out.npy'"], cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-400:] + ran.stderr
    found = numpy.load(os.path.join(folder, "out.npy")).reshape(expected.shape)
    error = abs(found - expected).max() / abs(expected).max()
    assert error < 1e-4, f"outputs differ by {error:.1e}"
    return f"{counts[0]} parameters, outputs within {error:.0e}"


def gradients(name, folder):
    model, inputs = made(name, 1)
    with torch.no_grad():
        shape = trace.one_result(model(**inputs)).shape
    targets = torch.randint(0, shape[-1], shape[:-1])

    def loss(result, targets):
        scores = trace.one_result(result)
        return torch.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), targets.reshape(-1))

    expected = loss(model(**inputs), targets)
    expected.backward()
    before = imported(model, inputs, folder, loss=loss, targets=(targets,))
    found, after = step(folder, "net", {**inputs, "targets": targets})
    assert abs(found - expected.item()) < 1e-4 * max(1, abs(expected.item())), (found, expected.item())
    farthest, compared = 0, 0
    for tensor, weight in before.items():
        gradient = gradient_of(weight, model.parameters())
        if gradient is not None:
            compared += weight.numel()
            farthest = max(farthest, distance(weight - after[tensor], gradient))
    whole = sum(one.numel() for one in model.parameters() if one.grad is not None)
    assert compared >= 0.9 * whole, f"{compared} of {whole} parameters were found"
    assert farthest < 1e-3, f"gradients differ by {farthest:.1e}"
    return f"loss {found:.5f}, {compared} gradients within {farthest:.0e}"


def compare(name):
    """One model in a process of its own."""
    ran = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True)
    told = (ran.stdout + (ran.stderr if ran.returncode not in (0, ABSENT) else "")).strip()
    return name, ran.returncode, told


def one(name):
    torch.set_num_threads(1)
    try:
        for check in (outputs, gradients) if name in TRAINED else (outputs,):
            with tempfile.TemporaryDirectory() as folder:
                print(check(name, folder))
    except (ImportError, AttributeError, KeyError) as error:
        if isinstance(error, ImportError) or "transformers" in str(error) or "torchvision" in str(error):
            print(f"absent: {error}")
            return ABSENT
        raise
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--one")
    asked = parser.parse_args()
    if asked.one:
        return one(asked.one)
    with ThreadPoolExecutor(asked.jobs) as pool:
        results = list(pool.map(compare, asked.names or zoo.MODELS))
    for name, code, told in results:
        print(f"{'ok' if code == 0 else 'absent' if code == ABSENT else 'FAILED':7}{name}: {told}")
    if all(code == ABSENT for _, code, _ in results):
        return ABSENT
    failed = [name for name, code, _ in results if code not in (0, ABSENT)]
    print(f"{len(results) - len(failed)} of {len(results)} without a difference")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
