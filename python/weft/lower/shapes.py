"""Views, transposes, slices, concatenations and padding."""

import math
import string

import torch

from .experts import marked
from .graph import SAME_ORDER, Lowering, Value, groups_of, lowers, stem


@lowers("clone", "detach", "contiguous", "alias", "lift_fresh_copy")
def same(self, node, x, *_, **__):
    if x in self.parameters:
        self.parameters[node] = self.parameters[x]
    self.pass_on(node, x)


@lowers("copy")
def copy(self, node, _, x, *__):
    if self.shape(x) == self.shape(node):
        same(self, node, x)
    else:
        self.later[node] = lambda: self.emit("Expand", [self.full(x).name, self.wholes(self.shape(node))],
                                             self.shape(node), node)


@lowers("slice_scatter")
def slice_scatter(self, node, x, source, dim=0, start=None, end=None, step=1):
    """x, with a range of positions replaced."""
    dim, size = dim % len(self.shape(x)), self.shape(x)[dim]
    begin, end = (place if place is None else max(min(place + size if place < 0 else place, size), 0)
                  for place in (start, end))
    begin, end = begin or 0, size if end is None else end
    if step != 1:
        self.refuse(node, f"a step of {step}")
    parts = [self.get(source)]
    if begin > 0:
        parts.insert(0, self.range_of(node, x, dim, 0, begin))
    if end < size:
        if x in self.constants:
            rest = self.constants[x].narrow(dim, end, size - end).contiguous()
            parts.append(Value(self.constant(rest), tuple(rest.shape)))
        else:
            parts.append(self.range_of(node, x, dim, end, size - end))
    self.give(node, "Concat", [one.name for one in parts], axis=dim) if len(parts) > 1 else same(self, node, source)


@lowers("select_scatter")
def select_scatter(self, node, x, source, dim, place):
    """x, with one position replaced."""
    dim %= len(self.shape(x))
    begin = place % self.shape(x)[dim]
    shape = (*self.shape(x)[:dim], 1, *self.shape(x)[dim + 1 :])
    known = self.constants.get(source)
    parts = [Value(self.constant(known.reshape(shape)), shape) if known is not None
             else self.reshaped(self.get(source), shape)]
    if begin > 0:
        parts.insert(0, self.range_of(node, x, dim, 0, begin))
    if begin + 1 < self.shape(x)[dim]:
        parts.append(self.range_of(node, x, dim, begin + 1, self.shape(x)[dim] - begin - 1))
    self.give(node, "Concat", [one.name for one in parts], axis=dim) if len(parts) > 1 else view(self, node, source)


@lowers("flatten", "squeeze", "unsqueeze")
def view(self, node, x, *_, **__):
    if len(self.shape(node)) < len(self.shape(x)) or not self.pass_repeat(node, x):
        self.values[node] = self.reshaped(self.loose(x), self.shape(node))


@lowers("as_strided")
def as_strided(self, node, x, shape, strides, offset=0):
    """A view in row-major order, in which strides of dims of size 1 mean nothing."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            self.refuse(node, f"strides {list(strides)}, which are not those of a tensor {list(shape)}")
        step *= size
    if offset or math.prod(shape) != math.prod(self.shape(x)):
        self.refuse(node, "a part of a tensor by strides")
    self.values[node] = self.reshaped(self.get(x), shape)


@lowers("view", "_unsafe_view", "reshape", "_reshape_alias")
def merged_view(self, node, x, *_, **__):
    """Keeps merged rows as separate dims until an operator needs them merged."""
    if self.merge_repeat(node, x):
        return
    value, shape = self.loose(x), self.shape(node)
    if "scores" in x.meta or value.name in self.whole_inputs:
        # The scores and labels of a loss, which reads them with their original dims.
        node.meta.update({key: x.meta[key] for key in ("scores",) if key in x.meta})
        self.values[node] = value
    elif len(shape) >= 1 and len(value.shape) > len(shape) and merges(value.shape, shape):
        self.values[node] = value
    else:
        self.values[node] = self.reshaped(value, shape)


@lowers("permute")
def permute(self, node, x, order):
    rank = len(self.shape(x))
    order = [place % rank for place in order]
    if x in self.parameters and not self.parameters[x][2] and order == [1, 0]:
        name, tensor, _ = self.parameters[x]
        self.parameters[node] = (name, tensor, True)
    value = self.loose(x)
    groups = groups_of(value.shape, self.shape(x))
    if groups is None or 1 in self.shape(x):
        self.values[node] = self.turned(self.get(x), order)
    else:  # dims that are split stay split
        self.values[node] = self.turned(value, [d for place in order for d in groups[place]])


@lowers("transpose", "t")
def transpose(self, node, x, a=0, b=1):
    order = list(range(len(self.shape(x))))
    if not order:
        same(self, node, x)
        return
    order[a], order[b] = order[b], order[a]
    permute(self, node, x, order)


@lowers("split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes")
def split(self, node, x, sizes, dim=0):
    rank, whole = len(self.shape(x)), self.shape(x)
    if isinstance(sizes, int):
        sizes = [min(sizes, whole[dim] - at) for at in range(0, whole[dim], sizes)]
    linear = linear_behind(self, x) if dim % rank == rank - 1 else None
    begin = 0
    for i, size in enumerate(sizes):
        if linear is not None:  # one smaller layer per slice
            self.values[(node, i)] = cut_linear(self, node, linear, begin, size, i)
        else:
            self.values[(node, i)] = self.range_of(node, x, dim % rank, begin, size)
        begin += size


@lowers("chunk", "unsafe_chunk")
def chunk(self, node, x, chunks, dim=0):
    split(self, node, x, -(-self.shape(x)[dim] // chunks), dim)


@lowers("select")
def select(self, node, x, dim, place):
    self.values[node] = position_of(self, node, x, dim % len(self.shape(x)), place)


@lowers("unbind")
def unbind(self, node, x, dim=0):
    dim %= len(self.shape(x))
    for place in range(self.shape(x)[dim]):
        self.values[(node, place)] = position_of(self, node, x, dim, place)


def position_of(self, node, x, dim, place):
    """One position along a dim, which is removed."""
    shape = self.shape(x)
    one = self.range_of(node, x, dim, place % shape[dim], 1)
    return self.reshaped(one, (*shape[:dim], *shape[dim + 1 :]))


@lowers("slice")
def slice_(self, node, x, dim=0, start=None, end=None, step=1):
    rank, whole = len(self.shape(x)), self.shape(x)
    dim, size = dim % rank, self.shape(node)[dim]
    start = min(max(start + whole[dim], 0) if (start or 0) < 0 else start or 0, whole[dim])
    if step != 1:
        self.values[node] = every(self, node, x, dim, start, step, size)
        return
    if size == whole[dim]:
        same(self, node, x)
        return
    linear = linear_behind(self, x) if dim == rank - 1 else None
    if linear is not None:
        self.values[node] = cut_linear(self, node, linear, start, size, start)
    else:
        self.values[node] = self.range_of(node, x, dim, start, size)


def every(self, node, x, dim, start, step, size):
    """Each `step`-th position from `start` on: one of `step` columns."""
    shape = self.shape(x)
    begin = start - start % step
    if begin + size * step > shape[dim]:  # the step does not divide the dim
        return picked(self, node, self.get(x), dim, list(range(start, start + size * step, step))[:size])
    value = self.range_of(node, x, dim, begin, size * step) if size * step != shape[dim] else self.get(x)
    columns = self.reshaped(value, (*shape[:dim], size, step, *shape[dim + 1 :]))
    one = self.range_of_value(node, columns, dim + 1, start % step, 1)
    return self.reshaped(one, self.shape(node))


def linear_behind(self, x):
    """The linear layer whose outputs these are, with the same last dim."""
    while "linear" not in x.meta:
        if x.op != "call_function" or stem(x) not in SAME_ORDER or self.shape(x)[-1] != self.shape(x.args[0])[-1]:
            return None
        x = x.args[0]
    return x if x.meta["linear"][1] is not None else None


def cut_linear(self, node, linear, begin, size, place):
    rows, (name, tensor, turned), bias = linear.meta["linear"]
    own = tensor.t() if turned else tensor
    cut = own[:, begin : begin + size]
    weight = self.slice_name(name, place, begin, size)
    self.weight(weight, cut)
    shape = (*rows.shape[:-1], size)
    made = self.emit("MatMul", [rows.name, weight], shape, node)
    if bias is not None:
        stored = linear.meta["bias"]
        own = self.slice_name(stored[0], place, begin, size)
        self.weight(own, stored[1][begin : begin + size])
        made = self.emit("Add", [made.name, own], shape, node)
    return made


def slice_name(self, name, place, begin, size):
    """The name of columns of a parameter. Other columns of it have another name."""
    if (name, begin, size) not in self.cuts:
        own = f"{name}.{place}"
        while own in self.taken:
            own += "_"
        self.taken.add(own)
        self.cuts[(name, begin, size)] = own
    return self.cuts[(name, begin, size)]


@lowers("cat")
def concatenate(self, node, parts, dim=0):
    parts = [one for one in parts if math.prod(self.shape(one)) > 0]
    if len(parts) == 1:
        self.pass_on(node, parts[0])
        return
    rank = len(self.shape(node))
    self.give(node, "Concat", [self.full(one).name for one in parts], axis=dim % rank)


@lowers("stack")
def stack(self, node, parts, dim=0):
    shape = list(self.shape(node))
    dim %= len(shape)
    shape[dim] = 1
    self.give(node, "Concat", [self.reshaped(self.get(one), shape).name for one in parts], axis=dim)


@lowers("constant_pad_nd")
def pad(self, node, x, sizes, number=0):
    value = self.get(x)
    rank = len(value.shape)
    for i in range(0, len(sizes), 2):
        value = self.padded(node, value, rank - 1 - i // 2, sizes[i], sizes[i + 1], number)
    self.values[node] = value


@lowers("index_select")
def index_select(self, node, x, dim, places):
    if places not in self.constants:
        self.refuse(node, "positions that depend on data")
    self.values[node] = picked(self, node, self.get(x), dim % len(self.shape(x)), self.constants[places].tolist())


def picked(self, node, value, dim, places):
    """Positions along a dim: ranges of consecutive positions, or a product with ones and zeros."""
    runs, places = [], [place % value.shape[dim] for place in places]
    for place in places:
        if runs and runs[-1][0] + runs[-1][1] == place:
            runs[-1][1] += 1
        else:
            runs.append([place, 1])
    shape = (*value.shape[:dim], len(places), *value.shape[dim + 1 :])
    if len(runs) == 1 and runs[0] == [0, value.shape[dim]]:
        return value
    if len(runs) <= 8:
        parts = [self.range_of_value(node, value, dim, *run) for run in runs]
        return parts[0] if len(parts) == 1 else self.emit("Concat", [one.name for one in parts], shape, node, axis=dim)
    chosen = torch.zeros(value.shape[dim], len(places))
    chosen[places, list(range(len(places)))] = 1
    return self.product(node, value, dim, chosen)


@lowers("roll")
def roll(self, node, x, by, dims=()):
    value = self.get(x)
    if not dims:  # as one row
        value, dims = self.reshaped(value, (math.prod(value.shape),)), [0]
    for shift, dim in zip(by, dims):
        size = value.shape[dim]
        value = picked(self, node, value, dim % len(value.shape), [(i - shift) % size for i in range(size)])
    self.values[node] = self.reshaped(value, self.shape(node))


@lowers("flip")
def flip(self, node, x, dims):
    value = self.get(x)
    for dim in dims:
        value = picked(self, node, value, dim % len(value.shape), list(range(value.shape[dim]))[::-1])
    self.values[node] = value


@lowers("repeat")
def repeat(self, node, x, times):
    value, rank = self.get(x), len(self.shape(x))
    value = self.reshaped(value, (1,) * (len(times) - rank) + value.shape)
    for dim, number in enumerate(times):
        if number != 1:
            shape = (*value.shape[:dim], value.shape[dim] * number, *value.shape[dim + 1 :])
            value = self.emit("Concat", [value.name] * number, shape, node, axis=dim)
    self.values[node] = self.reshaped(value, self.shape(node))


@lowers("index")
def index(self, node, x, places):
    """Known positions along one dim, or along several leading dims, which are then one."""
    given = [(dim, one) for dim, one in enumerate(places) if one is not None]
    if one_of_each_row(self, node, x, given):
        return
    if any(one not in self.constants for _, one in given):
        self.refuse(node, "positions that depend on data")
    known = [self.constants[one] for _, one in given]
    if len(known) == 1 and known[0].dtype in (torch.bool, torch.uint8):
        if known[0].dim() > 1:
            self.refuse(node, "a mask of several dims")
        known = [known[0].nonzero().flatten()]
    first, shape = given[0][0], self.shape(x)
    if [dim for dim, _ in given] != list(range(first, first + len(given))):
        self.refuse(node, "positions along dims that do not follow one another")
    sizes = shape[first : first + len(given)]
    flat = torch.zeros((), dtype=torch.int64)
    for places_of, size in zip(known, sizes):
        flat = flat * size + torch.remainder(places_of, size)
    merged = (*shape[:first], math.prod(sizes), *shape[first + len(given) :])
    if x in self.parameters and first == 0 and len(given) == 1:
        self.looked_up(node, x, flat)
    else:
        value = picked(self, node, self.reshaped(self.get(x), merged), first, flat.flatten().tolist())
        self.values[node] = self.reshaped(value, self.shape(node))


def one_of_each_row(self, node, x, given):
    """x[arange(b), positions]: one computed position of each row, such as its last token."""
    rows = self.constants.get(given[0][1])
    if len(given) != 2 or [dim for dim, _ in given] != [0, 1] or rows is None or given[1][1] in self.constants:
        return False
    if not torch.equal(rows, torch.arange(self.shape(x)[0]).to(rows)) or not self.is_whole(given[1][1]):
        return False
    value = self.get(x)
    marks = marked(self, node, given[1][1], value.shape[1])
    rest = string.ascii_lowercase[2 : len(value.shape)]
    self.values[node] = self.einsum(node, f"ab,ab{rest}->a{rest}", marks, value)
    return True


def merges(apart, merged):
    """Whether the leading dims are merged and the others are equal: [b, s, d] to [b * s, d]."""
    more = len(apart) - len(merged)
    return apart[more + 1 :] == merged[1:] and math.prod(apart[: more + 1]) == merged[0]


def range_of(self, node, x, dim, begin, size):
    """A range of positions along one dim of a node."""
    if x not in self.constants:
        value = self.loose(x)
        groups = groups_of(value.shape, self.shape(x))
        if groups is not None and value.shape != self.shape(x) and len(groups[dim]) == 1:
            return self.range_of_value(node, value, groups[dim][0], begin, size)
    return self.range_of_value(node, self.full(x), dim, begin, size)


def range_of_value(self, node, value, dim, begin, size):
    shape = (*value.shape[:dim], size, *value.shape[dim + 1 :])
    if shape == value.shape:
        return value
    bounds = [self.wholes([one]) for one in (begin, begin + size, dim)]
    return self.emit("Slice", [value.name, *bounds], shape, node)


def padded(self, node, value, dim, before, after, number):
    """With `number` before and after a dim; negative sizes cut positions off."""
    begin, end = max(-before, 0), value.shape[dim] - max(-after, 0)
    value = self.range_of_value(node, value, dim, begin, end - begin)

    def wide(size):
        return (*value.shape[:dim], size, *value.shape[dim + 1 :])

    edges = [[self.constant(torch.full(wide(size), float(number)))] if size > 0 else [] for size in (before, after)]
    if not any(edges):
        return value
    shape = wide(value.shape[dim] + max(before, 0) + max(after, 0))
    return self.emit("Concat", [*edges[0], value.name, *edges[1]], shape, node, axis=dim)


Lowering.range_of, Lowering.range_of_value, Lowering.padded = range_of, range_of_value, padded
Lowering.slice_name = slice_name
