"""Losses and gradients of exported models beside torch's, on the same weights.

Runs `python -m weft.export` on the scripts beside this one, trains a step of what comes out by plain descent at a rate
of 1, and compares the loss, and what was taken from each weight, with torch. Ends with 77 where there is no torch.
"""

import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from weft import export

HERE = os.path.dirname(os.path.abspath(__file__))
WEFT = os.environ["WEFT"]


def safetensors(path):
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


def exported(script, folder, *more):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-m", "weft.export", script, "--weft", WEFT, *more], cwd=folder,
                          env=environment, capture_output=True, text=True)


def gradient_of(weight, parameters):
    """By the numbers: the parameter, or the part of one, that a weight was made of."""
    for parameter in parameters:
        own, gradient = parameter.detach(), parameter.grad
        if own.shape == weight.shape and torch.equal(own, weight):
            return gradient
        for whole, its in ((own.t(), gradient.t()), (own, gradient)) if own.dim() <= 2 else ():
            for begin in range(0, whole.shape[-1], weight.shape[-1]):
                part = slice(begin, begin + weight.shape[-1])
                if whole[..., part].shape == weight.shape and torch.equal(whole[..., part], weight):
                    return its[..., part]
    return None


def compare(name, folder):
    model, inputs, loss, targets = export.script_model(os.path.join(HERE, name + ".py"), "model")
    inputs, targets = export.as_tuple(inputs), export.as_tuple(targets)
    result = model(*inputs)
    expected = result if loss is None else loss(result, *targets)
    expected.backward()
    done = exported(os.path.join(HERE, name + ".py"), folder, "-o", f"{name}.weft")
    assert done.returncode == 0, done.stderr
    text = open(os.path.join(folder, f"{name}.weft")).read()
    # The names of inputs in the order in which the text has them.
    names = export.argument_names(model.forward, len(inputs))
    if loss is not None:
        names += export.argument_names(loss.forward if isinstance(loss, torch.nn.Module) else loss, 2)[1:]
    names = [one if f" {one}[" in text else one + "_" for one in names]  # a word of the language gets a line behind it
    assert all(f" {one}[" in text for one in names), text
    numpy.savez(os.path.join(folder, "data.npz"),
                **{one: value.numpy().astype("i4" if not value.dtype.is_floating_point else "f4")
                   for one, value in zip(names, inputs + targets)})
    statements = [f"LOAD {name} FROM '{name}.safetensors'",
                  f"TRAIN {name} FROM 'data.npz' STEPS 1 WITH (optimizer = sgd, learning_rate = 1, momentum = 0)",
                  f"SAVE {name} TO 'after.safetensors'"]
    command = [WEFT, "--format", "json", "run", f"{name}.weft"]
    for statement in statements:
        command += ["-c", statement]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    found = next(answer["last_loss"] for answer in answers if "last_loss" in answer)
    assert abs(found - expected.item()) < 1e-5 * max(1, abs(expected.item())), (found, expected.item())
    before = safetensors(os.path.join(folder, f"{name}.safetensors"))
    after = safetensors(os.path.join(folder, "after.safetensors"))
    farthest, compared = 0, 0
    for tensor, weight in before.items():
        gradient = gradient_of(weight, model.parameters())
        if gradient is None:
            assert any(one in tensor for one in ("mask", "mean_of", "running")), f"{tensor} is of no parameter"
            continue
        compared += weight.numel()
        taken = weight - after[tensor]
        # A bias before a norm has a gradient of nothing but rounding.
        farthest = max(farthest, ((taken - gradient).abs().max() / (gradient.abs().max() + 1e-2)).item())
    assert compared == sum(parameter.numel() for parameter in model.parameters()), compared
    assert farthest < 2e-5, farthest
    print(f"{name}: loss {found:.6f}, torch {expected.item():.6f}; {compared} gradients within {farthest:.1e}")


def refusals(folder):
    """What is not understood is named with its place."""
    cases = {
        "import torch\nclass M(torch.nn.Module):\n  def forward(self, x):\n    return torch.cumsum(x, 0)\n"
        "model = M()\ninputs = torch.ones(3, 2)\n": "wrong.py:4: aten.cumsum.default: this operator has no form",
        "import torch\nclass M(torch.nn.Module):\n  def forward(self, x):\n    if x.sum() > 0:\n      return x\n"
        "    return -x\nmodel = M()\ninputs = torch.ones(3)\n": "wrong.py:4: control flow",
        "import torch\nnet = torch.nn.ReLU()\ninputs = torch.ones(3)\n": "expected a torch.nn.Module called model, found net",
        "import torch\nmodel = torch.nn.ReLU()\n": "expected `inputs`",
    }
    for script, expected in cases.items():
        with open(os.path.join(folder, "wrong.py"), "w") as file:
            file.write(script)
        done = exported("wrong.py", folder)
        assert done.returncode == 1 and expected in done.stderr, (expected, done.stderr)
    print(f"refusals: {len(cases)}")


def main():
    for name in sys.argv[1:] or ("mlp", "regression", "tied", "gpt", "encoder", "conv"):
        with tempfile.TemporaryDirectory() as folder:
            compare(name, folder)
    with tempfile.TemporaryDirectory() as folder:
        refusals(folder)


if __name__ == "__main__":
    main()
