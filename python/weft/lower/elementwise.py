"""Elementwise operators and masks."""

import math

import torch

from .graph import OPERATORS, SAME_ORDER, Lowering, Value, groups_of, lowers, narrowed, stem
from .shapes import linear_behind, same

FLOAT_MAX = torch.finfo(torch.float32).max
LEAST_MASK = -1e9  # acts as minus infinity in a softmax; a file cannot hold infinity


def two(self, node, operation, a, b, alpha=1):
    shape = self.shape(node)

    def value(one):
        if not isinstance(one, torch.fx.Node):
            return Value(self.constant(one), ())
        return self.narrow(one, shape) if not self.is_whole(one) else self.reshaped(self.numbers(one), self.shape(one))

    left, right = value(a), value(b)
    alike = [self.loose(one) for one in (a, b)
             if isinstance(one, torch.fx.Node) and self.shape(one) == shape and not self.is_whole(one)]
    apart = rows_apart(self, a, b)
    if len(alike) == 2 and alike[0].shape == alike[1].shape:  # rows may keep their separate dims
        left, right, shape = *alike, alike[0].shape
    elif apart is not None:
        left, right = apart
        shape = broadcast(left.shape, right.shape)
    else:
        left, right, shape = split_alike(self, a, b, left, right, shape)
    if alpha != 1:
        right = self.emit("Mul", [right.name, self.constant(alpha)], right.shape)
    self.values[node] = self.emit(operation, [left.name, right.name], broadcast(left.shape, right.shape), node)
    if self.values[node].shape != shape:  # both are repeated
        self.give_narrow(node, self.values.pop(node))
    # A bias added by a separate operator.
    bias = operation == "Add" and alpha == 1 and isinstance(a, torch.fx.Node) and b in self.parameters
    behind = linear_behind(self, a) if bias else None
    if behind is not None and behind.meta["linear"][2] is None and self.shape(b) == self.shape(a)[-1:]:
        node.meta["linear"] = (*behind.meta["linear"][:2], right.name)
        node.meta["bias"] = self.parameters[b]


def rows_apart(self, a, b):
    """Both values, if the same leading dims are split in both: [b, s, k] and [b, s, 1]."""
    values = []
    for one in (a, b):
        if not isinstance(one, torch.fx.Node) or one in self.constants or one in self.later or self.is_whole(one):
            return None
        values.append((self.loose(one).shape, self.shape(one)))
    splits = [groups_of(*pair) for pair in values]
    if None in splits or splits[0] != splits[1] or all(len(group) == 1 for group in splits[0]):
        return None
    same_rows = all(x == y for d, group in enumerate(splits[0]) if len(group) > 1
                    for x, y in zip(values[0][0][group[0] : group[-1] + 1], values[1][0][group[0] : group[-1] + 1]))
    return [self.loose(one) for one in (a, b)] if same_rows else None


def split_alike(self, a, b, left, right, shape):
    """Where one operand's dims are split and the other has size 1 there, both are split."""
    for one, other, swapped in ((a, right, False), (b, left, True)):
        if not isinstance(one, torch.fx.Node) or one in self.constants or one in self.later or self.shape(one) != shape:
            continue
        value = self.loose(one)
        groups = groups_of(value.shape, shape)
        sizes = (1,) * (len(shape) - len(other.shape)) + tuple(other.shape)
        if groups is None or value.shape == shape or self.is_whole(one) or len(other.shape) > len(shape):
            continue
        if any(len(group) > 1 and size != 1 for group, size in zip(groups, sizes)):
            continue
        split = tuple(dim for group, size in zip(groups, sizes) for dim in ([size] if len(group) == 1 else [1] * len(group)))
        wide = other if not other.shape or split == other.shape else self.reshaped(other, split)
        if all(size == 1 for size in sizes[: len(shape) - len(other.shape)]) and len(other.shape) <= 1:
            wide = other  # the last dim alone, which is not split
        return (wide, value, value.shape) if swapped else (value, wide, value.shape)
    return left, right, shape


def broadcast(a, b):
    rank = max(len(a), len(b))
    wide = [(1,) * (rank - len(shape)) + tuple(shape) for shape in (a, b)]
    return tuple(max(pair) if 0 not in pair else 0 for pair in zip(*wide))


def table(self, node):
    """A constant with size 1 for dims along which it repeats itself."""
    known = narrowed(self.constants[node])
    return Value(self.constant(known), tuple(known.shape))


def is_whole(self, node):
    """Whether these are integers of an input, or positions from topk."""
    if node in self.constants or node in self.later:
        return False
    return self.loose(node).name in self.whole_inputs | self.whole_values


def numbers(self, node):
    """Integers as floating-point numbers."""
    value = self.loose(node)
    if not is_whole(self, node):
        return value
    if ("number", value.name) not in self.values:
        self.values[("number", value.name)] = self.emit("Cast", [value.name], value.shape, node, to=1)
    return self.values[("number", value.name)]


def type_of(node):
    known = (node.meta.get(key) for key in ("tensor", "val", "tensor_meta"))
    return getattr(next((one for one in known if one is not None), None), "dtype", None)


@lowers("_to_copy", "to")
def converted(self, node, x, *_, **given):
    """Floating-point types are those of the plan; conditions become numbers, and numbers conditions."""
    before, after = type_of(x), type_of(node)
    truncates = None not in (before, after) and before.is_floating_point and not after.is_floating_point
    if truncates and after != torch.bool:
        self.refuse(node, f"floating point as {after}, which WeftQL has no rounding for")
    if before != after and torch.bool in (before, after) and x not in self.parameters:
        value = self.loose(x)
        self.values[node] = self.emit("Cast", [value.name], value.shape, node, to=9 if after == torch.bool else 1)
    else:
        same(self, node, x)


Lowering.two, Lowering.table, Lowering.is_whole, Lowering.numbers = two, table, is_whole, numbers


def between(name, operation):
    @lowers(name)
    def lower(self, node, a, b, alpha=1, rounding_mode=None, **_):
        if rounding_mode is not None:
            self.refuse(node, f"rounding_mode {rounding_mode!r}, which WeftQL has no form for")
        of_conditions = {"Add": "Or", "Mul": "And"} if type_of(node) == torch.bool else {}
        self.two(node, of_conditions.get(operation, operation), a, b, alpha)


for _name, _operation in (("add", "Add"), ("sub", "Sub"), ("mul", "Mul"), ("div", "Div")):
    between(_name, _operation)


def extreme(name, comparison):
    @lowers(name)
    def lower(self, node, a, b):
        self.two(node, comparison, a, b)
        sides = [self.narrow(one, self.shape(node)).name for one in (a, b)]
        self.give(node, "Where", [self.get(node).name, *sides])


extreme("maximum", "Greater")
extreme("minimum", "Less")


def compared(name, operation, negated=False):
    @lowers(name)
    def lower(self, node, a, b):
        if stem(node).startswith("bitwise") and type_of(node) != torch.bool:
            self.refuse(node, "bits of integers")
        self.two(node, operation, a, b)
        if negated:
            value = self.loose(node)
            self.values[node] = self.emit("Not", [value.name], value.shape, node)


for _name, _operation in (("gt", "Greater"), ("ge", "GreaterOrEqual"), ("lt", "Less"), ("le", "LessOrEqual"),
                          ("eq", "Equal"), ("bitwise_and", "And"), ("logical_and", "And"), ("bitwise_or", "Or"),
                          ("logical_or", "Or")):
    compared(_name, _operation)
compared("ne", "Equal", negated=True)


@lowers("bitwise_not", "logical_not")
def inverted(self, node, x):
    self.give(node, "Not", [condition(self, x)])


@lowers("rsub")
def from_number(self, node, x, number, alpha=1):
    self.two(node, "Sub", number, x, alpha)


def activation(self, node, operation, x, *others, **attributes):
    # Elementwise: rows may keep their separate dims.
    value = self.loose(x)
    self.values[node] = self.emit(operation, [value.name, *others], value.shape, node, **attributes)


def function(name, operation):
    @lowers(name)
    def lower(self, node, x, *_, **__):
        activation(self, node, operation, x)


for _name, _operation in (("relu", "Relu"), ("sigmoid", "Sigmoid"), ("tanh", "Tanh"), ("erf", "Erf"), ("sqrt", "Sqrt"),
                          ("exp", "Exp"), ("log", "Log"), ("neg", "Neg"), ("abs", "Abs"), ("sin", "Sin"), ("cos", "Cos"),
                          ("reciprocal", "Reciprocal"), ("hardswish", "HardSwish")):
    function(_name, _operation)


@lowers("softplus")
def softplus(self, node, x, beta=1, threshold=20):
    if threshold < 16:
        self.refuse(node, f"a threshold of {threshold}, below which it is not the identity")
    value = self.loose(x)
    if beta != 1:
        value = self.emit("Mul", [value.name, self.constant(beta)], value.shape, node)
    value = self.emit("Softplus", [value.name], value.shape, node)
    if beta != 1:
        value = self.emit("Div", [value.name, self.constant(beta)], value.shape, node)
    self.values[node] = value


@lowers("silu")
def silu(self, node, x):
    value = self.loose(x)
    gate = self.emit("Sigmoid", [value.name], value.shape, node)
    self.values[node] = self.emit("Mul", [value.name, gate.name], value.shape, node)


@lowers("rsqrt")
def rsqrt(self, node, x):
    activation(self, node, "Sqrt", x)
    self.values[node] = self.emit("Reciprocal", [self.values[node].name], self.values[node].shape, node)


@lowers("log1p")
def log1p(self, node, x):
    value = self.loose(x)
    more = self.emit("Add", [value.name, self.constant(1)], value.shape, node)
    self.values[node] = self.emit("Log", [more.name], value.shape, node)


@lowers("expm1")
def expm1(self, node, x):
    value = self.loose(x)
    power = self.emit("Exp", [value.name], value.shape, node)
    self.values[node] = self.emit("Sub", [power.name, self.constant(1)], value.shape, node)


@lowers("gelu")
def gelu(self, node, x, approximate="none"):
    activation(self, node, "Gelu", x, approximate=approximate)


@lowers("leaky_relu")
def leaky_relu(self, node, x, slope=0.01):
    activation(self, node, "LeakyRelu", x, alpha=float(slope))


@lowers("hardtanh", "clamp", "clip")
def clamp(self, node, x, least=None, most=None):
    if least is not None and most is not None:
        activation(self, node, "Clip", x, self.constant(least), self.constant(most))
    elif least is not None:
        activation(self, node, "Max", x, self.constant(least))
    else:
        activation(self, node, "Min", x, self.constant(most))


@lowers("clamp.Tensor")
def clamp_by_tensors(self, node, x, least=None, most=None):
    if least is not None and most is not None:
        self.refuse(node, "two tensors as bounds")
    OPERATORS["maximum" if least is not None else "minimum"](self, node, x, least if least is not None else most)


@lowers("clamp_min")
def clamp_min(self, node, x, least):
    clamp(self, node, x, least)


@lowers("pow.Tensor_Scalar", "pow.Tensor_Tensor")
def power(self, node, x, exponent):
    if x in self.constants and self.constants[x].numel() == 1:
        power_of_number(self, node, float(self.constants[x]), exponent)
    elif isinstance(exponent, torch.fx.Node):
        self.refuse(node, "an exponent that is a tensor")
    elif exponent == 2:
        value = self.loose(x)
        self.values[node] = self.emit("Mul", [value.name, value.name], value.shape, node)
    else:
        activation(self, node, "Pow", x, self.constant(exponent))


@lowers("pow.Scalar")
def power_of_number(self, node, base, x):
    if base <= 0:
        self.refuse(node, f"powers of {base}")
    value = self.loose(x)
    made = self.emit("Mul", [value.name, self.constant(math.log(base))], value.shape, node)
    self.values[node] = self.emit("Exp", [made.name], value.shape, node)


@lowers("_softmax", "softmax")
def softmax(self, node, x, dim, *_):
    value, rank = self.loose(x), len(self.shape(x))
    if dim % rank != rank - 1 or value.shape[-1:] != self.shape(x)[-1:]:
        self.give(node, "Softmax", [self.get(x).name], axis=dim)
    else:  # rows may keep their separate dims
        self.values[node] = self.emit("Softmax", [value.name], value.shape, node, axis=-1)


def condition(self, mask):
    """The name of a mask, which a reshape made numbers of."""
    value = self.get(mask)
    return self.emit("Cast", [value.name], value.shape, to=9).name if value.name in self.reshaped_from else value.name


@lowers("masked_fill")
def masked_fill(self, node, x, mask, number):
    number = self.constants.get(number, number)
    if mask not in self.constants or isinstance(number, torch.fx.Node):
        filling = self.get(number).name if isinstance(number, torch.fx.Node) else self.constant(number)
        self.give(node, "Where", [condition(self, mask), filling, self.get(x).name])
        return
    self.hidden(node, x, self.constants[mask].bool(), torch.as_tensor(float(number)))


@lowers("where")
def where(self, node, mask, x, y):
    if mask not in self.constants:
        inputs = [condition(self, mask), *(self.narrow(one, self.shape(node)).name for one in (x, y))]
        self.give(node, "Where", inputs)
        return
    chosen = self.constants[mask].bool()
    if y in self.constants:
        self.hidden(node, x, ~chosen, self.constants[y])
    elif x in self.constants:
        self.hidden(node, y, chosen, self.constants[x])
    else:
        sides = [self.emit("Mul", [self.get(one).name, self.constant(narrowed(part.float()))], self.shape(node), node)
                 for one, part in ((x, chosen), (y, ~chosen))]
        self.values[node] = self.emit("Add", [one.name for one in sides], self.shape(node), node)


def hidden(self, node, x, mask, filling):
    """x, with known numbers where a known mask is true."""
    value = self.narrow(x, self.shape(node))

    def with_table(operation, value, known):
        known = narrowed(known)
        return self.emit(operation, [value.name, self.constant(known)], broadcast(value.shape, known.shape), node)

    infinite = bool((filling == -math.inf).all())
    hides = infinite or bool((filling <= -1e4).all()) and only_for_softmax(self, node)
    inside = self.banded(node, value, mask) if hides else None
    if inside is not None:
        made = inside
    elif hides and not infinite or infinite and only_for_softmax(self, node):
        made = with_table("Add", value, torch.zeros(mask.shape).masked_fill(mask, LEAST_MASK))
    else:
        made = with_table("Mul", value, (~mask).float())
        filled = torch.where(mask, filling.to(torch.float32), torch.zeros(())).clamp(min=-FLOAT_MAX, max=FLOAT_MAX)
        if bool(filled.any()):
            made = with_table("Add", made, filled)
    self.give_narrow(node, made)


def only_for_softmax(self, node):
    """Whether these are scores: whatever reads them ends in a softmax of the last dim."""
    def fits(user):
        if user.op != "call_function":
            return False
        if stem(user) in ("_softmax", "softmax"):
            return user.args[1] % len(self.shape(user)) == len(self.shape(user)) - 1
        kept = ("add", "masked_fill", "where", "expand", "unsqueeze", "squeeze", "native_dropout", "dropout")
        return (stem(user) in SAME_ORDER or stem(user) in kept) and only_for_softmax(self, user)

    return bool(node.users) and all(fits(user) for user in node.users)


Lowering.hidden = hidden
