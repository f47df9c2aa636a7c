"""Sums, means and norms."""

import math

import torch

from .graph import Lowering, groups_of, lowers, numbers_of, stem


def reduce(self, node, operation, x, dims, keepdim):
    rank = len(self.shape(x))
    places = sorted(d % rank for d in dims) if dims else list(range(rank))
    if places == list(range(rank)) and not keepdim:
        self.give(node, operation, [self.loose(x).name], keepdims=0)
        return
    value = self.loose(x)
    if groups_of(value.shape, self.shape(x)) is not None and places == [rank - 1] and value.shape[-1] == self.shape(x)[-1]:
        places = [len(value.shape) - 1]  # rows may keep their separate dims
        made = self.emit(operation, [value.name, self.wholes(places)], (*value.shape[:-1], 1), node, keepdims=1)
        self.values[node] = made if keepdim else self.reshaped(made, value.shape[:-1])
        return
    value = self.full(x)
    shape = tuple(1 if d in places else size for d, size in enumerate(value.shape))
    made = self.emit(operation, [value.name, self.wholes(places)], shape, node, keepdims=1)
    self.values[node] = self.reshaped(made, self.shape(node))


def summed(self, node, value, dim):
    """The sum over one dim, which is removed."""
    dim %= len(value.shape)
    shape = (*value.shape[:dim], *value.shape[dim + 1 :])
    return self.emit("ReduceSum", [value.name, self.wholes([dim])], shape, node, keepdims=0)


Lowering.summed = summed


@lowers("mean")
def mean(self, node, x, dims=None, keepdim=False, **_):
    rank = len(self.shape(x))
    places = sorted(d % rank for d in dims) if dims else list(range(rank))
    if rank == 4 and places == [2, 3] and self.shape(x)[2] == self.shape(x)[3]:
        b, c, *_ = self.shape(x)
        pooled = self.emit("GlobalAveragePool", [self.get(x).name], (b, c, 1, 1), node)
        self.values[node] = self.reshaped(pooled, self.shape(node))
    else:
        reduce(self, node, "ReduceMean", x, dims, keepdim)


@lowers("sum")
def sum_(self, node, x, dims=None, keepdim=False, **_):
    reduce(self, node, "ReduceSum", x, dims, keepdim)


@lowers("norm.ScalarOpt_dim", "linalg_vector_norm")
def norm(self, node, x, p=2, dims=None, keepdim=False, **_):
    if p not in (None, 2):
        self.refuse(node, f"a norm of order {p}")
    value = self.get(x)
    square = self.emit("Mul", [value.name, value.name], value.shape, node)
    places = sorted(d % len(value.shape) for d in dims) if dims else list(range(len(value.shape)))
    shape = tuple(1 if d in places else size for d, size in enumerate(value.shape))
    total = self.emit("ReduceSum", [square.name, self.wholes(places)], shape, node, keepdims=1)
    self.values[node] = self.reshaped(self.emit("Sqrt", [total.name], shape, node), self.shape(node))


@lowers("amax")
def amax(self, node, x, dims=(), keepdim=False):
    reduce(self, node, "ReduceMax", x, dims, keepdim)


@lowers("amin")
def amin(self, node, x, dims=(), keepdim=False):
    reduce(self, node, "ReduceMin", x, dims, keepdim)


@lowers("cumsum")
def cumsum(self, node, x, dim, **_):
    """The product of a dim with ones above the diagonal."""
    dim %= len(self.shape(x))
    size = self.shape(x)[dim]
    self.values[node] = self.product(node, self.get(x), dim, torch.ones(size, size).triu())


@lowers("native_layer_norm", "layer_norm")
def layer_norm(self, node, x, shape, weight=None, bias=None, epsilon=1e-5, *_):
    value = self.loose(x)
    if value.shape[-len(shape) :] != tuple(shape):
        value = self.get(x)
    features = math.prod(shape)
    if len(shape) != 1:  # several dims are normalized as one
        value = self.reshaped(value, (*value.shape[: -len(shape)], features))
    inputs = [value.name]
    if weight is None and bias is not None:
        inputs.append(self.constant(torch.ones(features)))
    for one in (weight, bias):
        if one is not None:
            inputs.append(self.reshaped(self.get(one), (features,)).name)
    made = self.emit("LayerNormalization", inputs, value.shape, node, axis=-1, epsilon=float(epsilon))
    self.values[node] = made if len(shape) == 1 else self.reshaped(made, self.shape(node))


@lowers("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
def batch_norm(self, node, x, weight, bias, mean, variance, *rest):
    epsilon = rest[-1] if isinstance(rest[-1], float) else rest[-2]
    value = self.get(x)
    image = value if len(value.shape) == 4 else self.reshaped(value, (*value.shape, *[1] * (4 - len(value.shape))))
    inputs = [image.name]
    for one, filling in ((weight, 1.0), (bias, 0.0)):
        inputs.append(self.get(one).name if one is not None else self.constant(torch.full((value.shape[1],), filling)))
    for one in (mean, variance):
        if one not in self.buffers:
            self.refuse(node, "statistics that are not buffers of the module")
        inputs.append(self.buffers[one])
        self.file.fixed(self.buffers[one], self.shape(one), numbers_of(self.constants[one]))
    made = self.emit("BatchNormalization", inputs, image.shape, node, epsilon=float(epsilon))
    self.values[node] = self.reshaped(made, value.shape)


@lowers("native_group_norm", "group_norm")
def group_norm(self, node, x, *given):
    """Each group of channels of an example is normalized as one row."""
    if stem(node) == "group_norm":
        groups, weight, bias, epsilon = (*given, None, None, 1e-5)[:4] if len(given) < 4 else given[:4]
    else:
        weight, bias, _, _, _, groups, epsilon = given
    shape = self.shape(node)
    rows = self.reshaped(self.get(x), (shape[0], groups, math.prod(shape[1:]) // groups))
    made = self.emit("LayerNormalization", [rows.name], rows.shape, node, axis=-1, epsilon=float(epsilon))
    made = self.reshaped(made, shape)
    for one, operation in ((weight, "Mul"), (bias, "Add")):
        if one is not None:
            channel = self.reshaped(self.get(one), (shape[1], *[1] * (len(shape) - 2)))
            made = self.emit(operation, [made.name, channel.name], shape, node)
    self.values[node] = made
