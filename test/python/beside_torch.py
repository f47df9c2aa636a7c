"""Helpers of the tests that compare with torch: safetensors files and a training step."""

import json
import os
import subprocess
import sys

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

WEFT = os.environ["WEFT"]


def load(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header, data = json.loads(file.read(size)), file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32", (name, entry)
            begin, end = entry["data_offsets"]
            tensors[name] = torch.tensor(numpy.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"]))
    return tensors


def save(path, tensors):
    header, offset = {}, 0
    data = [tensor.detach().contiguous().numpy().tobytes() for tensor in tensors.values()]
    for (name, tensor), numbers in zip(tensors.items(), data):
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + len(numbers)]}
        offset += len(numbers)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(data))


def step(folder, name, inputs, sizes=""):
    """Runs an SGD step with learning rate 1 from NAME.safetensors. Returns the loss and new weights."""
    numpy.savez(os.path.join(folder, "data.npz"),
                **{one: value.numpy().astype("f4" if value.dtype.is_floating_point else "i4")
                   for one, value in inputs.items()})
    statements = [f"LOAD {name} FROM '{name}.safetensors'",
                  f"TRAIN {name} FROM 'data.npz' STEPS 1 WITH (optimizer = sgd, learning_rate = 1, momentum = 0{sizes})",
                  f"SAVE {name} TO 'after.safetensors'"]
    command = [WEFT, "--format", "json", "run", f"{name}.weft"]
    for statement in statements:
        command += ["-c", statement]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    loss = next(answer["last_loss"] for answer in answers if "last_loss" in answer)
    return loss, load(os.path.join(folder, "after.safetensors"))


def distance(taken, gradient):
    """The error relative to the largest element; a bias before a norm has only rounding error."""
    return ((taken - gradient).abs().max() / (gradient.abs().max() + 1e-2)).item()


def gradient_of(weight, parameters):
    """The gradient of the parameter, or the slice of one, whose values equal the weight."""
    for parameter in (one for one in parameters if one.grad is not None):
        own, gradient = parameter.detach(), parameter.grad
        if own.shape == weight.shape and torch.equal(own, weight):
            return gradient
        for whole, its in ((own.t(), gradient.t()), (own, gradient)) if own.dim() <= 2 else ():
            for begin in range(0, whole.shape[-1], weight.shape[-1]):
                part = slice(begin, begin + weight.shape[-1])
                if whole[..., part].shape == weight.shape and torch.equal(whole[..., part], weight):
                    return its[..., part]
    return None


def check(name, loss, expected, farthest, compared):
    assert abs(loss - expected) < 1e-5 * max(1, abs(expected)), (loss, expected)
    assert farthest < 2e-5, farthest
    print(f"{name}: loss {loss:.6f}, torch {expected:.6f}; {compared} gradients within {farthest:.1e}")
