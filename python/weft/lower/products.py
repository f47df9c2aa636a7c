"""Matrix products, linear layers and embeddings."""

import math
import string

import torch

from .experts import marked
from .graph import Lowering, Value, lowers, narrowed


def linear(self, node, x, weight, bias, parameter=None):
    """Multiplies rows by a matrix. `weight`: a Value [inputs, outputs]."""
    rows = self.loose(x)
    if rows.shape[-1] != self.shape(x)[-1]:
        rows = self.get(x)
    shape = (*rows.shape[:-1], weight.shape[1])
    made = self.emit("MatMul", [rows.name, weight.name], shape, node)
    if bias is not None:
        made = self.emit("Add", [made.name, bias], shape, node)
    node.meta["linear"] = (rows, parameter, bias)
    return made


@lowers("mm")
def mm(self, node, x, weight):
    self.values[node] = linear(self, node, x, self.get(weight), None, self.parameters.get(weight))


@lowers("addmm")
def addmm(self, node, bias, x, weight, beta=1, alpha=1):
    if beta != 1 or alpha != 1:
        self.refuse(node, "beta and alpha other than 1")
    node.meta["bias"] = self.parameters.get(bias)
    parameter = self.parameters.get(weight) if bias in self.parameters else None
    self.values[node] = linear(self, node, x, self.get(weight), self.get(bias).name, parameter)


@lowers("linear")
def whole_linear(self, node, x, weight, bias=None):
    turned = self.turned(self.get(weight), [1, 0])
    parameter = self.parameters.get(weight)
    node.meta["bias"] = self.parameters.get(bias) if bias is not None else None
    self.values[node] = linear(self, node, x, turned, self.get(bias).name if bias is not None else None,
                               parameter and (*parameter[:2], True))


@lowers("bmm")
def bmm(self, node, a, b):
    x, y = self.loose(a), self.loose(b)
    last = [value.shape[-2:] == self.shape(one)[-2:] for value, one in ((x, a), (y, b))]
    if all(last) and len(x.shape) == len(y.shape) and x.shape[:-2] == y.shape[:-2]:
        self.values[node] = self.emit("MatMul", [x.name, y.name], (*x.shape[:-1], y.shape[-1]), node)
    elif last[1] and len(y.shape) == 3 and len(x.shape) > 3 and x.shape[0] == y.shape[0] and x.shape[-1] == y.shape[1]:
        # Rows of several dims, such as those sent to each expert.
        rows = string.ascii_lowercase[: len(x.shape) - 2]
        self.values[node] = self.einsum(node, f"x{rows}y,xyz->x{rows}z", x, y)
    else:
        x, y = self.get(a), self.get(b)
        self.values[node] = self.emit("MatMul", [x.name, y.name], (*x.shape[:-1], y.shape[-1]), node)


@lowers("mv", "dot")
def product_with_row(self, node, x, row):
    """The sum over the last dim of x."""
    value = self.get(x)
    made = self.emit("Mul", [value.name, self.get(row).name], value.shape, node)
    self.values[node] = self.summed(node, made, -1)


@lowers("baddbmm")
def baddbmm(self, node, c, a, b, beta=1, alpha=1):
    bmm(self, node, a, b)
    value = self.values[node]
    if alpha != 1:
        value = self.emit("Mul", [value.name, self.constant(alpha)], value.shape, node)
    if beta == 0:
        self.values[node] = value
        return
    added = self.get(c)
    if beta != 1:
        added = self.emit("Mul", [added.name, self.constant(beta)], added.shape, node)
    value = self.reshaped(value, self.shape(node))
    self.values[node] = self.emit("Add", [value.name, added.name], value.shape, node)


@lowers("matmul")
def matmul(self, node, a, b):
    if len(self.shape(b)) == 2:
        mm(self, node, a, b)
    else:
        self.give(node, "MatMul", [self.get(a).name, self.get(b).name])


def einsum(self, node, equation, *values):
    labels, result = equation.split("->")
    sizes = {label: size for part, value in zip(labels.split(","), values) for label, size in zip(part, value.shape)}
    return self.emit("Einsum", [value.name for value in values], tuple(sizes[one] for one in result), node,
                     equation=equation)


def product(self, node, value, dim, matrix):
    """The product of a dim with a known matrix."""
    labels = string.ascii_lowercase[: len(value.shape)]
    result = labels.replace(labels[dim], "z")
    known = Value(self.constant(matrix), tuple(matrix.shape))
    return self.einsum(node, f"{labels},{labels[dim]}z->{result}", value, known)


@lowers("embedding")
def embedding(self, node, table, positions, *_, **__):
    if positions in self.constants:
        looked_up(self, node, table, self.constants[positions])
    elif self.loose(positions).name in self.whole_inputs:
        value, rows = self.loose(positions), self.get(table)
        self.values[node] = self.emit("Gather", [rows.name, value.name], (*value.shape, rows.shape[1]), node)
    else:  # positions that are computed, such as those of tokens that are not padding
        marks, rows = marked(self, node, positions, self.shape(table)[0]), self.get(table)
        self.values[node] = self.emit("MatMul", [marks.name, rows.name], (*marks.shape[:-1], rows.shape[1]), node)


def give_narrow(self, node, value):
    """A value with dims of size 1 that elementwise operators repeat."""
    shape = self.shape(node)
    if value.shape == shape:
        self.values[node] = value
        return
    node.meta["narrow"] = value
    self.later[node] = lambda: self.emit("Expand", [value.name, self.wholes(shape)], shape, node)


def looked_up(self, node, table, positions):
    """Rows of a table at known positions: a range of its rows if they follow one another, otherwise
    a product with ones and zeros."""
    value, positions = self.get(table), narrowed(positions, keep_rank=True)
    rows = positions.flatten()
    shape = (*positions.shape, *value.shape[1:])
    if torch.equal(rows, torch.arange(int(rows[0]), int(rows[0]) + len(rows)).to(rows)):
        found = self.range_of_value(node, value, 0, int(rows[0]), len(rows))
    else:
        chosen = torch.zeros(len(rows), value.shape[0])
        chosen[torch.arange(len(rows)), rows] = 1
        known = self.constant(chosen)
        flat = self.reshaped(value, (value.shape[0], math.prod(value.shape[1:])))
        found = self.emit("MatMul", [known, flat.name], (len(rows), flat.shape[1]), node)
    give_narrow(self, node, self.reshaped(found, shape))


Lowering.einsum, Lowering.product, Lowering.looked_up, Lowering.give_narrow = einsum, product, looked_up, give_narrow
