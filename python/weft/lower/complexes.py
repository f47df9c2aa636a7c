"""Complex numbers as pairs of real ones: rotary positions that multiply by cos + i sin."""

import torch

from .elementwise import broadcast
from .graph import OPERATORS, Value, lowers, narrowed


@lowers("view_as_complex")
def view_as_complex(self, node, x):
    shape = self.shape(x)
    parts = [self.range_of_value(node, self.get(x), len(shape) - 1, i, 1) for i in (0, 1)]
    self.pairs[node] = tuple(self.reshaped(one, shape[:-1]) for one in parts)


@lowers("view_as_real")
def view_as_real(self, node, x):
    parts = [self.reshaped(one, (*one.shape, 1)) for one in self.pairs[x]]
    self.give(node, "Concat", [one.name for one in parts], axis=len(self.shape(node)) - 1)


_real_product = OPERATORS["mul"]


@lowers("mul")
def product(self, node, a, b, **given):
    pairs = [pair_of(self, one) for one in (a, b)]
    if None in pairs:
        _real_product(self, node, a, b, **given)
        return
    (p, q), (r, s) = pairs

    def times(x, y):
        return self.emit("Mul", [x.name, y.name], broadcast(x.shape, y.shape), node)

    def join(operation, x, y):
        return self.emit(operation, [x.name, y.name], x.shape, node)

    self.pairs[node] = (join("Sub", times(p, r), times(q, s)), join("Add", times(p, s), times(q, r)))


def pair_of(self, node):
    if node in self.pairs:
        return self.pairs[node]
    known = self.constants.get(node) if isinstance(node, torch.fx.Node) else None
    if known is None or not known.is_complex():
        return None
    parts = [narrowed(part.contiguous()) for part in (known.real, known.imag)]
    return tuple(Value(self.constant(part), tuple(part.shape)) for part in parts)

