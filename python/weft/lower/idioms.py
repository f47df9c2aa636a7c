"""Groups of operators that WeftQL has a function for: RMS norms, rotary positions, bands of scores.

Lowered operator by operator they would give the same numbers; as functions, rules know them, and the
model holds no tables of positions.
"""

import math

import torch

from .elementwise import type_of
from .graph import OPERATORS, SAME_ORDER, Lowering, lowers, narrowed, stem


VIEWS = {"view", "_unsafe_view", "reshape", "_reshape_alias"}  # may give other dims


def behind(node):
    """The node whose elements these are, past copies and conversions."""
    while isinstance(node, torch.fx.Node) and node.op == "call_function" and stem(node) in SAME_ORDER - VIEWS:
        if stem(node) == "_to_copy" and torch.bool in (type_of(node), type_of(node.args[0])):
            break
        node = node.args[0]
    return node


def made_by(node, name):
    node = behind(node)
    return node if isinstance(node, torch.fx.Node) and node.op == "call_function" and stem(node) == name else None


# -- RMS norm: x * rsqrt(mean(x^2) + epsilon) ------------------------------------------------------


def rms_norm_of(x, factor):
    """Epsilon, if `factor` is the reciprocal root mean square of the last dim of x."""
    root = made_by(factor, "rsqrt")
    total = made_by(root.args[0], "add") if root else None
    if total is None or not isinstance(total.args[1], (int, float)) or len(total.args) > 2 or total.kwargs:
        return None
    mean = made_by(total.args[0], "mean")
    if mean is None or len(mean.args) < 3 or list(mean.args[1]) != [-1] or not mean.args[2]:
        return None
    square = made_by(mean.args[0], "pow")
    if square is None or square.args[1] != 2 or behind(square.args[0]) is not behind(x):
        return None
    return float(total.args[1])


_product = OPERATORS["mul"]


@lowers("mul")
def product(self, node, a, b, **given):
    for x, factor in ((a, b), (b, a)):
        if isinstance(x, torch.fx.Node) and isinstance(factor, torch.fx.Node):
            epsilon = rms_norm_of(x, factor)
            value = self.loose(x) if epsilon is not None and x not in self.constants else None
            if value is not None and value.shape[-1] == self.shape(x)[-1]:
                self.values[node] = self.emit("RMSNormalization", [value.name], value.shape, node, axis=-1,
                                              epsilon=epsilon)
                return
    _product(self, node, a, b, **given)


# -- Rotary positions: x * cos + (-second half of x, first half of x) * sin ------------------------


def halves_turned(node):
    """x, if this is the second half of its last dim, negated, before the first half."""
    joined = made_by(node, "cat")
    if joined is None or len(joined.args[0]) != 2:
        return None
    negated, first = made_by(joined.args[0][0], "neg"), made_by(joined.args[0][1], "slice")
    second = made_by(negated.args[0], "slice") if negated else None
    if first is None or second is None or first.args[0] is not second.args[0]:
        return None
    x = first.args[0]
    rank, size = len(x.meta["val"].shape), x.meta["val"].shape[-1]
    whole = [(*one.args[1:], *(0, 0, math.inf)[len(one.args) - 1 :])[:3] for one in (first, second)]
    fits = whole[0][0] % rank == rank - 1 == whole[1][0] % rank and whole[0][1:] == (0, size // 2)
    return x if fits and whole[1][1] == size // 2 and whole[1][2] >= size and size % 2 == 0 else None


def base_of(cos, sin):
    """The base of angles s * base^(-2 i / size) of which these are tables, or None."""
    if cos.shape != sin.shape or cos.dim() != 2 or cos.shape[0] < 2 or cos.shape[1] % 2:
        return None
    length, size = cos.shape
    steps = torch.atan2(sin[1, : size // 2].double(), cos[1, : size // 2].double())
    if abs(float(steps[0]) - 1) > 1e-5 or bool((steps <= 0).any()):
        return None
    base = 10000.0 if size == 2 else float(steps[1]) ** (-size / 2)
    base = round(base) if abs(base - round(base)) < 1e-3 * base else base
    powers = float(base) ** (-2 * torch.arange(size // 2, dtype=torch.float64) / size)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * powers.repeat(2)
    equal = all(float((table.double() - exact).abs().max()) < 1e-3 for table, exact in ((cos, angles.cos()), (sin, angles.sin())))
    return float(base) if equal else None


_sum = OPERATORS["add"]


@lowers("add")
def addition(self, node, a, b, alpha=1, **given):
    direct, turned = (made_by(one, "mul") if isinstance(one, torch.fx.Node) else None for one in (a, b))
    if alpha == 1 and direct is not None and turned is not None:
        x, cos = direct.args
        half, sin = turned.args
        if cos in self.constants and sin in self.constants and "val" in x.meta and halves_turned(half) is behind(x):
            base = base_of(*(narrowed(self.constants[one]) for one in (cos, sin)))
            value = self.get(x)
            if base is not None and value.shape == self.shape(node) and value.shape[-2:] == narrowed(self.constants[cos]).shape:
                self.values[node] = self.emit("weft.Rotary", [value.name], value.shape, node, base=base)
                return
    _sum(self, node, a, b, alpha, **given)


# -- Bands: scores of positions s and t with lowest <= s - t <= highest ------------------------------


def band_of(hides):
    """The attributes of a mask [s, t] that keeps a band of s - t, such as a causal one, or None."""
    if hides.dim() != 2 or bool(hides.all(1).any()) or not bool(hides.any()):
        return None
    rows, columns = hides.shape
    apart = torch.arange(rows)[:, None] - torch.arange(columns)[None]
    kept = apart[~hides]
    lowest, highest = int(kept.min()), int(kept.max())
    if not torch.equal(~hides, (apart >= lowest) & (apart <= highest)):
        return None
    attributes = {}
    if lowest > 1 - columns:
        attributes["lowest"] = lowest
    if highest < rows - 1:
        attributes["highest"] = highest
    return attributes


def banded(self, node, scores, hides):
    """The scores with those outside of the band hidden, or None if the mask is no band."""
    band = band_of(narrowed(hides))
    if band is None or len(scores.shape) < 2 or tuple(narrowed(hides).shape) != scores.shape[-2:]:
        return None
    return self.emit("weft.Band", [scores.name], scores.shape, node, **band)


Lowering.banded = banded
