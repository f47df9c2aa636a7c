"""Compares the outputs of small exported modules with torch: odd shapes, masks, false idioms, name clashes.

    export_cases_test.py [NAME ...]

Each case is a function of its inputs and of a module's weights. Weft's INFER must give torch's outputs, or
the exporter must refuse the operator with its source line. Exits with 77 if torch is not installed.
"""

import math
import os
import re
import subprocess
import sys
import tempfile

from beside_torch import WEFT
import numpy
import torch
from torch import nn
from torch.nn import functional as F

from weft import export

HERE = os.path.basename(__file__)


class Case(nn.Module):
    """Calls a function with itself, whose attributes are weights and layers."""

    def __init__(self, function, *shapes, **layers):
        super().__init__()
        self.function = function
        for i, shape in enumerate(shapes):
            self.register_parameter(f"w{i}", nn.Parameter(torch.randn(shape)))
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.zero = nn.Parameter(torch.zeros(1))  # INFER needs a model with parameters

    def forward(self, x):
        return self.function(self, x) + self.zero


class Two(Case):
    def forward(self, x, y):
        return self.function(self, x, y) + self.zero


class Names(nn.Module):
    """Parameters called like an input, the output and values of the file."""

    def __init__(self):
        super().__init__()
        for name in ("x", "output", "mul_1", "constant_1"):
            self.register_parameter(name, nn.Parameter(torch.randn(5)))

    def forward(self, x):
        return x * self.x + self.output * self.mul_1 * self.constant_1


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.group = nn.Parameter(torch.randn(5))

    def forward(self, select, order):
        return select * self.group - order


def rms(x, epsilon=0.1, dim=-1):
    return x * torch.rsqrt(x.pow(2).mean(dim, keepdim=True) + epsilon)


def tables(length, size, base=1e4, first=0):
    angles = (torch.arange(length) + first).float()[:, None] * base ** (-torch.arange(0, size, 2).float() / size)
    return torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()


def turned(x):
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)


def rotary(x, other=None, **given):
    cos, sin = tables(*x.shape[-2:], **given)
    return x * cos + turned(x if other is None else other) * sin


def interleaved(x):
    cos, sin = (one[:, : x.shape[-1] // 2] for one in tables(*x.shape[-2:]))
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def attention(self, x, mask=None, heads=4, keys=2, added=None, filling=-math.inf):
    batch, length, features = x.shape
    size = features // heads
    q, k, v = self.qkv(x).split([heads * size, keys * size, keys * size], -1)
    q = q.view(batch, length, heads, size).transpose(1, 2)
    k, v = (one.view(batch, length, keys, 1, size).expand(-1, -1, -1, heads // keys, -1).reshape(q.transpose(1, 2).shape)
            .transpose(1, 2) for one in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(size)
    scores = scores if mask is None else scores.masked_fill(mask, filling)
    scores = scores if added is None else scores + added
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)


def filled(first, begin):
    def fill(self, x):
        made = torch.arange(first, first + 18.0).view(3, 6)
        made[:, begin : begin + x.shape[1]] = x
        return made

    return fill


def assigned(self, x):
    y = x * 2
    y += 1
    y[:, 0] = 3.0
    y[:, 1:3] = x[:, :2]
    return y.relu_()


def slices(self, x):
    y = self.layer(x)
    return y[..., :3].sum(-1, keepdim=True) * y[..., :5] + y.split([2, 5], -1)[1] * y.sum(-1, keepdim=True)


def apart(size):
    return torch.arange(size)[:, None] - torch.arange(size)[None]


R = torch.randn
INF = math.inf
ABOVE = torch.ones(4, 4).triu(1).bool()
HIDES_ALL = ABOVE.clone()
HIDES_ALL[2] = True
QKV = {"qkv": lambda: nn.Linear(16, 32)}
# name: (function or module, inputs, shapes of weights, layers)
CASES = {
    # False idioms
    "rms of another tensor": (lambda s, x, y: y * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 0.1), (R(2, 3, 5), R(2, 3, 5))),
    "rms of signs": (lambda s, x: x * torch.rsqrt(x.bool().float().pow(2).mean(-1, keepdim=True) + 0.5), R(2, 3, 5)),
    "rms, epsilon twice": (lambda s, x: x * torch.rsqrt(torch.add(x.pow(2).mean(-1, keepdim=True), 0.5, alpha=2)), R(2, 5)),
    "rms, another dim": (lambda s, x: rms(x, dim=1), R(2, 3, 5)),
    "rms, epsilon outside": (lambda s, x: x / (x.pow(2).mean(-1, keepdim=True).sqrt() + 0.1), R(2, 3, 5)),
    "rms of rows in one": (lambda s, x: rms(x.view(2, 15)), R(2, 3, 5)),
    "rms of size 1": (lambda s, x: rms(x), R(2, 1)),
    "rotary": (lambda s, x: rotary(x, base=5e5), R(2, 3, 7, 8)),
    "rotary from position 3": (lambda s, x: rotary(x, first=3), R(2, 3, 7, 8)),
    "rotary of length 1": (lambda s, x: rotary(x), R(2, 3, 1, 8)),
    "rotary of another tensor": (lambda s, x, y: rotary(x, y), (R(2, 3, 7, 8), R(2, 3, 7, 8))),
    "rotary backwards": (lambda s, x: x * tables(7, 8)[0] - turned(x) * tables(7, 8)[1], R(2, 3, 7, 8)),
    "rotary, interleaved": (lambda s, x: interleaved(x), R(2, 3, 7, 8)),
    # Masks
    "finite filling": (lambda s, x: x.masked_fill(ABOVE, -2e4).sum(1), R(4, 4)),
    "filling, then exp": (lambda s, x: x.masked_fill(HIDES_ALL, -INF).exp(), R(4, 4)),
    "filling, then maximum": (lambda s, x: x.masked_fill(ABOVE, -INF).amax(1), R(4, 4)),
    "filling of 5": (lambda s, x: x.masked_fill(ABOVE, 5.0).softmax(-1), R(4, 4)),
    "softmax of columns": (lambda s, x: x.masked_fill(ABOVE, -1e5).softmax(1), R(2, 4, 4)),
    "row that hides all": (lambda s, x: x.masked_fill(HIDES_ALL, torch.finfo(torch.float32).min).softmax(-1), R(4, 4)),
    "grouped heads": (attention, R(2, 5, 16), (), QKV),
    "grouped heads, causal": (lambda s, x: attention(s, x, apart(5) < 0), R(2, 5, 16), (), QKV),
    "grouped heads, window": (lambda s, x: attention(s, x, (apart(5) < 0) | (apart(5) > 1)), R(1, 5, 16), (), QKV),
    "one position": (lambda s, x: attention(s, x, apart(1) < 0), R(2, 1, 16), (), QKV),
    "prefix": (lambda s, x: attention(s, x, (apart(5) < 0) & (torch.arange(5) > 1)), R(2, 5, 16), (), QKV),
    "blocks": (lambda s, x: attention(s, x, torch.arange(5)[:, None] // 2 != torch.arange(5) // 2), R(2, 5, 16), (), QKV),
    "a mask per head": (lambda s, x: attention(s, x, torch.stack([apart(5) < -i for i in range(4)])), R(2, 5, 16), (), QKV),
    "alibi": (lambda s, x: attention(s, x, apart(5) < 0, added=-apart(5).abs() * torch.tensor([0.5, 0.25, 0.1, 0.05])
                                     [:, None, None]), R(2, 5, 16), (), QKV),
    "mask of an input": (lambda s, x, m: x.masked_fill(~m[:, None], 2.0), (R(3, 2, 5), torch.rand(3, 5) > 0.5)),
    "lengths": (lambda s, x, n: x * (torch.arange(5) < n[:, None]), (R(3, 5), torch.tensor([2, 5, 1]))),
    "mask of integers": (lambda s, x, m: x * (m != 0)[..., None] / (m != 0).sum(1)[:, None, None].clamp(min=1),
                         (R(3, 5, 2), torch.randint(0, 2, (3, 5)))),
    # Linear layers of which slices are read
    "slices and the whole": (slices, R(2, 3, 5), (), {"layer": lambda: nn.Linear(5, 7)}),
    "slice and split": (lambda s, x: s.layer(x)[..., 1:4] * s.layer(x).split([2, 3, 2], -1)[1], R(2, 5), (),
                        {"layer": lambda: nn.Linear(5, 7)}),
    "overlapping slices": (lambda s, x: (lambda y: y[..., 1:4] * y.split([2, 3, 2], -1)[1])(s.layer(x)), R(2, 5), (),
                           {"layer": lambda: nn.Linear(5, 7)}),
    "slice of a scaled bias": (lambda s, x: torch.add(x @ s.w0, s.w1, alpha=3)[..., 1:4], R(2, 3, 5), ((5, 7), (7,))),
    "slice of a wide bias": (lambda s, x: (x @ s.w0 + s.w1)[..., 1:4], R(2, 3, 5), ((5, 7), (1,))),
    "tied, transposed": (lambda s, x: s.layer(x) @ s.layer.weight + s.layer.weight.sum(0), R(2, 5), (),
                         {"layer": lambda: nn.Linear(5, 3)}),
    "called twice": (lambda s, x: s.layer(s.layer(x).relu()), R(2, 5), (), {"layer": lambda: nn.Linear(5, 5)}),
    # Shapes
    "step of an odd size": (lambda s, x: x[:, ::2] + x[:, -99:99:2], R(3, 5)),
    "roll without dims": (lambda s, x: torch.roll(x, 2) * s.w0 + x, R(3, 5), ((5,),)),
    "flip": (lambda s, x: x.flip(1), R(3, 11)),
    "repeat a new dim": (lambda s, x: x.repeat(1, 2, 1).repeat(1, 1, 3) + s.w0.repeat(3, 1, 3), R(3, 1, 5), ((2, 5),)),
    "filled from the first": (filled(1, 0), R(3, 2)),
    "filled between": (filled(1, 1), R(3, 4)),
    "assigned": (assigned, R(3, 4)),
    "stack": (lambda s, x: torch.stack((x, s.w0.expand(3, 5), torch.ones(3, 5)), 1), R(3, 5), ((5,),)),
    "top of a flat view": (lambda s, x: x * x.flatten().topk(3)[0].sum(), R(3, 4)),
    "position in a flat view": (lambda s, x: x.flatten().argmax(0) + x, R(3, 4)),
    "positions in another view": (lambda s, x: s.table(x)[:, 0] * s.table(x.view(6, 2)).sum(1).amax(0), torch.randint(0, 7, (3, 4)), (),
                                  {"table": lambda: nn.Embedding(7, 4)}),
    "slice of positions": (lambda s, x: s.table(x[:, 1:-1]), torch.randint(0, 7, (3, 5)), (),
                           {"table": lambda: nn.Embedding(7, 4)}),
    "computed positions": (lambda s, x: s.table((x != 0).cumsum(1) * (x != 0)), torch.randint(0, 3, (3, 5)), (),
                           {"table": lambda: nn.Embedding(7, 4)}),
    "gather": (lambda s, x, i: x.gather(-1, i), (R(3, 5), torch.randint(0, 5, (3, 2)))),
    "matrix and row": (lambda s, x: (x @ s.w0)[..., None] * x, R(2, 3, 5), ((5,),)),
    # Names
    "names": (Names, R(3, 5)),
    "words of SQL": (Words, (R(3, 5), R(3, 5))),
    # Functions
    "softplus with beta": (lambda s, x: F.softplus(x, beta=3), R(3, 4)),
    "layer norm, only a bias": (lambda s, x: F.layer_norm(x, (4,), None, s.w0), R(3, 4), ((4,),)),
    "conditions added": (lambda s, x: ((x > 0) + (x > -1)).float(), R(3, 4)),
    "maximum": (lambda s, x, y: torch.maximum(x, y) - torch.min(x, s.w0), (R(3, 4), R(3, 4)), ((4,),)),
    "powers": (lambda s, x: 2**x + (x - 5) ** 3 + x.abs() ** 0.5, R(3, 4)),
    "log softmax": (lambda s, x: x.log_softmax(-1), R(2, 3, 5) * 30),
    "normalize": (lambda s, x: F.normalize(x, dim=-1) + x.std(-1, keepdim=True), R(2, 3, 5)),
    "mean of an image": (lambda s, x: x.mean((2, 3)) + x.mean((-1, -2)), R(2, 3, 4, 5)),
    "encoder layer": (lambda s, x: s.layer(x), R(2, 3, 6), (),
                      {"layer": lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)}),
    "strided convolution and a parameter": (lambda s, x: s.layer(x) + s.w0 + s.other(x), R(2, 3, 7, 7), [(1, 4, 4, 4)],
                                            {"layer": lambda: nn.Conv2d(3, 4, 3, 2, 1), "other": lambda: nn.Conv2d(3, 4, 3, 2, 1)}),
    "dilated convolution": (lambda s, x: s.layer(x), R(2, 4, 11), (),
                            {"layer": lambda: nn.Conv1d(4, 6, 3, padding=2, dilation=2, groups=2)}),
    "pool without a batch": (lambda s, x: F.max_pool2d(x, 2), R(3, 4, 6)),
    "pool, last window outside": (lambda s, x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), R(2, 3, 6, 8)),
    "adaptive pool": (lambda s, x: F.adaptive_avg_pool2d(x, (3, 5)), R(2, 3, 7, 8)),
    "gated recurrent unit": (lambda s, x: s.layer(x)[0], R(2, 3, 3), (), {"layer": lambda: nn.GRU(3, 4, batch_first=True)}),
}
# name: (function, expected in the message)
REFUSED = {
    "rounded division": (lambda s, x: torch.div(x, 0.3, rounding_mode="floor"), "rounding_mode 'floor'"),
    "truncation": (lambda s, x: (x * 3).long() + x, "floating point as torch.int64"),
    "softplus with a threshold": (lambda s, x: F.softplus(x, threshold=1), "a threshold of 1"),
    "power of a tensor": (lambda s, x: x.abs() ** x, "an exponent that is a tensor"),
    "unequal strides": (lambda s, x: F.conv2d(x[None, None], x[None, None, :2, :2], stride=(2, 1)), "strides [2, 1]"),
    "sort": (lambda s, x: x.sort(-1)[0], "no form in WeftQL"),
}


def made(function, shapes, layers, count):
    torch.manual_seed(0)
    if isinstance(function, type):
        return function().eval()
    kind = Case if count == 1 else Two
    return kind(function, *shapes, **{name: make() for name, make in layers.items()}).eval()


def compare(name, folder):
    function, inputs, shapes, layers = (*CASES[name], (), {})[:4] if len(CASES[name]) != 3 else (*CASES[name], {})
    inputs = export.as_tuple(inputs)
    model = made(function, shapes, layers, len(inputs))
    with torch.no_grad():
        expected = model(*(one.clone() for one in inputs)).numpy()
    export.export_onnx(model, inputs, os.path.join(folder, "net.onnx"), "net")
    commands = [["import", "net.onnx", "--name", "net", "-o", "net.weft"],
                ["run", "net.weft", "-c", "LOAD net FROM 'net.safetensors'",
                 "-c", "INFER net FROM 'data.npz' INTO 'out.npy'"]]
    for command in commands:
        ran = subprocess.run([WEFT, *command], cwd=folder, capture_output=True, text=True)
        assert ran.returncode == 0, f"{name}: {ran.stdout[-300:]}{ran.stderr}"
        text = open(os.path.join(folder, "net.weft")).read()
        names = [one if re.search(rf"\b{one}\[", text) else one + "_"  # keywords get an underscore appended
                 for one in export.argument_names(model.forward, len(inputs))]
        numpy.savez(os.path.join(folder, "data.npz"), **{
            one: value.numpy().astype("f4" if value.dtype.is_floating_point else "i4") for one, value in zip(names, inputs)})
    found = numpy.load(os.path.join(folder, "out.npy"))
    assert found.size == expected.size, f"{name}: {found.shape}, expected {expected.shape}"
    error = abs(found.reshape(expected.shape) - expected).max() / max(abs(expected).max(), 1e-6)
    assert error < 1e-4, f"{name}: outputs differ by {error:.1e}"


def refuse(name, folder):
    function, expected = REFUSED[name]
    try:
        export.export_onnx(Case(function).eval(), (R(3, 4),), os.path.join(folder, "net.onnx"), "net")
    except export.NotUnderstood as error:
        assert expected in str(error) and f"{HERE}:" in str(error), f"{name}: {error}"
    else:
        raise AssertionError(f"{name}: expected an error")


def main():
    torch.set_num_threads(1)
    failed = 0
    for name in sys.argv[1:] or [*CASES, *REFUSED]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                (compare if name in CASES else refuse)(name, folder)
            except Exception as error:  # the other cases are compared, too
                failed += 1
                print(f"FAILED {name}: {error}" if isinstance(error, AssertionError) else f"FAILED {name}: {error!r}")
    print(f"{len(sys.argv[1:] or [*CASES, *REFUSED]) - failed} cases without a difference")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
