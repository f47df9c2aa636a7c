"""Mixtures of experts: rows are sent to slots of the experts that they chose, and mixed again.

Every expert has a slot for each row, so that no row is dropped and the outputs are those of PyTorch.
The two operators are those that trace.py gives to the experts of transformers.
"""

import torch

from .graph import Value, lowers, short


def rows_of(self, node, shape):
    """This value with rows [b, s], as those that are sent."""
    value = self.loose(node)
    return self.reshaped(value, (*shape, value.shape[-1]))


@lowers("weft.experts_sent")
def experts_sent(self, node, x, chosen, experts):
    value = self.loose(x)
    batch, length = value.shape[:-1] if len(value.shape) == 3 else (1, self.shape(x)[0])
    rows, features = rows_of(self, x, (batch, length)), self.shape(x)[1]
    positions = rows_of(self, chosen, (batch, length))
    slots = self.emit("weft.ExpertSlots", [positions.name], positions.shape, node, experts=experts, capacity=length)
    self.values[("slots", chosen)] = slots
    sent = self.emit("weft.ExpertSend", [rows.name, slots.name], (batch, experts * length, features), node)
    self.values[node] = self.turned(self.reshaped(sent, (batch, experts, length, features)), [1, 0, 2, 3])


@lowers("weft.experts_mixed")
def experts_mixed(self, node, done, chosen, weights):
    slots = self.values[("slots", chosen)]
    batch, length, _ = slots.shape
    experts, _, features = self.shape(done)
    value = self.turned(self.reshaped(self.loose(done), (experts, batch, length, features)), [1, 0, 2, 3])
    flat = self.reshaped(value, (batch, experts * length, features))
    shares = rows_of(self, weights, (batch, length))
    made = self.emit("weft.ExpertMix", [shares.name, slots.name, flat.name], (batch, length, features), node)
    self.values[node] = made if batch > 1 else self.reshaped(made, self.shape(node))


def last_apart(self, x):
    """The value, whose last dim is that of the node; rows may keep their separate dims."""
    value = self.loose(x)
    return value if value.shape[-1:] == self.shape(x)[-1:] else self.get(x)


@lowers("topk")
def top_k(self, node, x, k, dim=-1, largest=True, sorted=True):
    value = last_apart(self, x)
    if not largest or dim % len(self.shape(x)) != len(self.shape(x)) - 1:
        self.refuse(node, "only the largest of the last dim")
    self.values[(node, 0)], self.values[(node, 1)] = chosen_of(self, node, value, k)


def chosen_of(self, node, value, k):
    """The k largest elements of the last dim, and their positions."""
    shape = (*value.shape[:-1], k)
    chosen, positions = self.fresh("chosen"), self.fresh("positions")
    self.file.add("TopK", [value.name, self.wholes([k])], (chosen, positions), node.meta.get("place") or "",
                  axis=len(shape) - 1)
    self.whole_values.add(positions)
    return Value(chosen, shape), Value(positions, shape)


@lowers("argmax", "max.dim")
def largest(self, node, x, dim=-1, keepdim=False):
    """The largest element along the last dim, and its position."""
    value = last_apart(self, x)
    if dim is None or dim % len(self.shape(x)) != len(self.shape(x)) - 1:
        self.refuse(node, "only along the last dim")
    pair = chosen_of(self, node, self.numbers(x) if self.is_whole(x) else value, 1)
    first, second = (one if keepdim else self.reshaped(one, value.shape[:-1]) for one in pair)
    if not keepdim:
        self.whole_values.add(second.name)
    if short(node).startswith("argmax"):
        self.values[node] = second
    else:
        self.values[(node, 0)], self.values[(node, 1)] = first, second


@lowers("gather")
def gather(self, node, x, dim, places, **_):
    """Elements at computed positions of the last dim: a sum over all, of which one counts."""
    value = last_apart(self, x)
    if dim % len(self.shape(x)) != len(self.shape(x)) - 1 or places in self.constants:
        self.refuse(node, "only positions of the last dim that are computed")
    if self.shape(places)[:-1] != self.shape(x)[:-1]:
        self.refuse(node, f"positions {list(self.shape(places))} of a tensor {list(self.shape(x))}")
    marks = marked(self, node, places, value.shape[-1])
    if marks.shape[:-2] != value.shape[:-1]:
        value, marks = self.get(x), self.reshaped(marks, (*self.shape(places), value.shape[-1]))
    wide = self.reshaped(value, (*value.shape[:-1], 1, value.shape[-1]))
    product = self.emit("Mul", [wide.name, marks.name], marks.shape, node)
    self.values[node] = self.summed(node, product, len(marks.shape) - 1)


@lowers("scatter.value")
def scatter(self, node, x, dim, places, number, **_):
    """Zeros, with a number at computed positions of the last dim."""
    known = self.constants.get(x)
    if known is None or bool(known.any()) or dim % known.dim() != known.dim() - 1:
        self.refuse(node, "only into zeros, along the last dim")
    made = self.summed(node, marked(self, node, places, known.shape[-1]), -2)  # rows may keep their separate dims
    if number != 1:
        made = self.emit("Mul", [made.name, self.constant(number)], made.shape, node)
    self.values[node] = made


def marked(self, node, places, size):
    """[..., k] positions as [..., k, size] ones and zeros."""
    numbers = self.numbers(places)
    wide = self.reshaped(numbers, (*numbers.shape, 1))
    steps = self.constant(torch.arange(size).float())
    equal = self.emit("Equal", [wide.name, steps], (*numbers.shape, size), node)
    return self.emit("Cast", [equal.name], equal.shape, node, to=1)
