"""python -m weft.export script.py [-o model.weft] [--onnx model.onnx] [--name NAME] [--model NAME] [--weft PROGRAM]

Converts the model of a PyTorch script to WeftQL and writes its weights as safetensors next to it.
The script defines

    model     a torch.nn.Module; --model selects another name
    inputs    a tuple of example inputs, or a dict of them by name
    loss      optional: loss(result, *targets), with `targets`, a tuple of tensors. Without it, the
              model's output is the module's result, which is a loss if it is a scalar; of several
              results, the loss, the logits or the first

The script runs like an imported module, so code under `if __name__ == "__main__"` does not run.
Shapes are those of the inputs. The graph is written as ONNX, which `weft import` reads, folding
repeated layers; --onnx keeps that file. Without -o, the text goes to standard output. Unsupported
operations are errors with their source location.
"""

import argparse
import os
import runpy
import shutil
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    sys.exit("error: weft.export needs PyTorch\n  python3-torch of the distribution, or pip install torch")

from . import _library
from .lower import Lowering, without_prefix
from .trace import Called, NotUnderstood, argument_names, trace


def as_tuple(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def find_program(given):
    program = given or os.environ.get("WEFT") or _library.program() or shutil.which("weft")
    if not program:
        raise NotUnderstood("the program weft is not on the path: --weft PROGRAM, or --onnx FILE, which needs none")
    return program


def export_onnx(model, inputs, path, name="model", loss=None, targets=()):
    """Writes the ONNX file of a module. Returns notes on what was left out."""
    by_name = list(inputs) if isinstance(inputs, dict) else None
    inputs, targets = as_tuple(tuple(inputs.values()) if by_name else inputs), as_tuple(targets)
    names = by_name or argument_names(model.forward, len(inputs))
    if loss is not None:
        # The first argument of a loss is the model's result.
        targeted = argument_names(loss.forward if isinstance(loss, torch.nn.Module) else loss, len(targets) + 1)[1:]
        names = names + [one if one not in names else one + "_target" for one in targeted]
    for own, one in zip(names, inputs + targets):
        if not isinstance(one, torch.Tensor):
            raise NotUnderstood(f"input {own}: expected a tensor, found {type(one).__name__}")
    notes = set()
    traced = trace(Called(model, len(inputs), by_name, loss, notes), inputs + targets, names, notes)
    # Tensors keep their names within the model.
    traced.sources = {node: (kind, own if kind == "input" else without_prefix(own, "model."), tensor)
                      for node, (kind, own, tensor) in traced.sources.items()}
    lowering = Lowering(traced, name)
    lowering.run().save(path)
    return sorted(notes) + lowering.notes


def script_model(path, wanted):
    made = runpy.run_path(path, run_name="weft_export")
    if wanted not in made or not isinstance(made[wanted], torch.nn.Module):
        modules = [name for name, value in made.items() if isinstance(value, torch.nn.Module)]
        raise NotUnderstood(f"{path}: expected a torch.nn.Module called {wanted}, found "
                            + (f"{', '.join(modules)}: --model NAME" if modules else "none"))
    if "inputs" not in made:
        raise NotUnderstood(f"{path}: expected `inputs`, a tuple of tensors that {wanted} is called with, found none")
    if ("loss" in made) != ("targets" in made):
        raise NotUnderstood(f"{path}: `loss` and `targets` go together")
    return made[wanted], made["inputs"], made.get("loss"), made.get("targets", ())


def run(arguments):
    parser = argparse.ArgumentParser(prog="python -m weft.export", description="a PyTorch model as WeftQL")
    parser.add_argument("script")
    parser.add_argument("-o", dest="to", help="where the model goes; its weights go beside it")
    parser.add_argument("--onnx", help="keep the ONNX file here")
    parser.add_argument("--name", help="of the model; the script's name otherwise")
    parser.add_argument("--model", default="model", help="its name in the script")
    parser.add_argument("--weft", help="the program; else $WEFT, else on the path")
    asked = parser.parse_args(arguments)
    model, inputs, loss, targets = script_model(asked.script, asked.model)
    stem = os.path.splitext(os.path.basename(asked.script))[0]
    name = asked.name or "".join(c if c.isalnum() else "_" for c in stem.lower())
    with tempfile.TemporaryDirectory() as folder:
        path = asked.onnx or os.path.join(folder, name + ".onnx")
        for note in export_onnx(model, inputs, path, name, loss, targets):
            print(f"note: {note}", file=sys.stderr)
        if asked.onnx and not asked.to:
            return 0
        command = [find_program(asked.weft), "import", path, "--name", name]
        return subprocess.run(command + (["-o", asked.to] if asked.to else [])).returncode


def main():
    try:
        return run(sys.argv[1:])
    except (NotUnderstood, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
