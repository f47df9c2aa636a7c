"""Compares losses and gradients of exported models with torch, on the same weights.

Runs `python -m weft.export` on the scripts in this folder, trains the result for one SGD step with
a learning rate of 1, and compares the loss and the change of each weight with torch. Exits with 77
if torch is not installed.
"""

import os
import subprocess
import sys
import tempfile

from beside_torch import WEFT, check, distance, gradient_of, load, step
import torch

from weft import export

HERE = os.path.dirname(os.path.abspath(__file__))


def exported(script, folder, *more):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-m", "weft.export", script, "--weft", WEFT, *more], cwd=folder,
                          env=environment, capture_output=True, text=True)


def compare(name, folder):
    model, inputs, loss, targets = export.script_model(os.path.join(HERE, name + ".py"), "model")
    inputs, targets = export.as_tuple(inputs), export.as_tuple(targets)
    result = model(*inputs)
    expected = result if loss is None else loss(result, *targets)
    expected.backward()
    done = exported(os.path.join(HERE, name + ".py"), folder, "-o", f"{name}.weft")
    assert done.returncode == 0, done.stderr
    text = open(os.path.join(folder, f"{name}.weft")).read()
    # The names of the inputs, in the order of the text.
    names = export.argument_names(model.forward, len(inputs))
    if loss is not None:
        names += export.argument_names(loss.forward if isinstance(loss, torch.nn.Module) else loss, 2)[1:]
    names = [one if f" {one}[" in text else one + "_" for one in names]  # keywords get an underscore appended
    assert all(f" {one}[" in text for one in names), text
    found, after = step(folder, name, dict(zip(names, inputs + targets)))
    before = load(os.path.join(folder, f"{name}.safetensors"))
    farthest, compared = 0, 0
    for tensor, weight in before.items():
        gradient = gradient_of(weight, model.parameters())
        if gradient is None:
            assert any(one in tensor for one in ("mask", "constant", "running")), f"{tensor} is of no parameter"
            continue
        compared += weight.numel()
        farthest = max(farthest, distance(weight - after[tensor], gradient))
    assert compared == sum(parameter.numel() for parameter in model.parameters()), compared
    check(name, found, expected.item(), farthest, compared)


def refusals(folder):
    """Unsupported operations are reported with their source location."""
    cases = {
        "import torch\nclass M(torch.nn.Module):\n  def forward(self, x):\n    return torch.sort(x)[0]\n"
        "model = M()\ninputs = torch.ones(3, 2)\n": "wrong.py:4: aten.sort.default: this operator has no form",
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
    for name in sys.argv[1:] or ("mlp", "regression", "tied", "gpt", "encoder", "conv", "unbound"):
        with tempfile.TemporaryDirectory() as folder:
            compare(name, folder)
    with tempfile.TemporaryDirectory() as folder:
        refusals(folder)


if __name__ == "__main__":
    main()
