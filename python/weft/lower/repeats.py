"""Tensors that are repeated along a dim.

An elementwise operator broadcasts dims of size 1 itself, and grouped-query attention reads the heads
before they were repeated. Only an operator that can do neither makes the repeats.
"""

from .graph import Lowering, Value, lowers
from .shapes import same


@lowers("expand")
def expand(self, node, x, *_, **__):
    shape, own = self.shape(node), self.shape(x)
    if own == shape:
        same(self, node, x)
        return
    node.meta["repeats"] = (x, [d for d, size in enumerate(shape)
                                if d < len(shape) - len(own) or own[d - len(shape) + len(own)] != size])
    self.later[node] = lambda: self.emit("Expand", [self.full(x).name, self.wholes(shape)], shape, node)


def pass_on(self, node, x):
    """The value of x. Repeats stay to be made."""
    if x in self.later:
        node.meta.update({key: x.meta[key] for key in ("repeats", "grouped", "narrow") if key in x.meta})
        self.later[node] = lambda: self.loose(x)
    else:
        self.values[node] = self.loose(x)


def pass_repeat(self, node, x):
    """A new dim of size 1 for a repeated tensor whose repeats need not be made."""
    if x not in self.later or "repeats" not in x.meta:
        return False
    self.later[node] = lambda: self.reshaped(self.loose(x), self.shape(node))
    return True


def merge_repeat(self, node, x):
    """Whether this view merges a dim and its repeats, [b, g, n, s, e] to [b, g * n, s, e]: heads of
    grouped-query attention, which reads the g heads."""
    if x not in self.later or "repeats" not in x.meta:
        return False
    base, dims = x.meta["repeats"]
    wide, shape = self.shape(x), self.shape(node)
    if len(dims) == 1 and len(self.shape(base)) == len(wide) and dims[0] > 0:
        d = dims[0]
        if (*wide[: d - 1], wide[d - 1] * wide[d], *wide[d + 1 :]) == shape:
            heads = (*wide[:d], *wide[d + 1 :])
            node.meta["grouped"] = (lambda: self.reshaped(self.get(base), heads), d - 1, wide[d])
            self.later[node] = lambda: self.reshaped(self.loose(x), shape)
            return True
    return False


def narrow(self, node, shape):
    """A value that broadcasts to `shape`: that before the repeats, where dims of size 1 do."""
    while node in self.later and "repeats" in node.meta:
        base, dims = node.meta["repeats"]
        own = self.shape(base)
        if len(self.shape(node)) > len(shape):
            break
        if any(size not in (1, other) for size, other in zip(own[::-1], shape[::-1])):
            break
        node = base
    if node in self.later and "narrow" in node.meta:
        return node.meta["narrow"]
    return self.full(node) if node not in self.constants else self.table(node)


def full(self, node):
    """The value with the node's shape; a constant keeps dims of size 1 that are repeated."""
    return self.get(node)


Lowering.pass_on, Lowering.pass_repeat, Lowering.merge_repeat = pass_on, pass_repeat, merge_repeat
Lowering.narrow, Lowering.full = narrow, full
