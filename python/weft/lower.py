"""Lowers ATen operators to the ONNX operators that `weft import` reads.

Values that depend on no input and no parameter, such as masks and positions, are computed here.
Torch flattens rows before a product and restores them after it, [b, s, d] to [b * s, d]; here they
keep their dims, since a plan names each index. A slice of a linear layer's outputs, such as the
queries of a fused QKV projection, becomes a separate layer.
"""

import math
import operator
import struct

import torch

from .onnx_file import FLOAT, INT64, OnnxFile
from .trace import NotUnderstood

LEAST_MASK = -1e9  # acts as minus infinity in a softmax; a file cannot hold infinity


class Value:
    """A tensor of the file. Its shape may merge or split the node's dims, in the same order."""

    def __init__(self, name, shape):
        self.name, self.shape = name, tuple(shape)


def without_prefix(text, prefix):
    return text[len(prefix):] if text.startswith(prefix) else text


def short(node):
    return without_prefix(str(node.target), "aten.")


def elements(shape):
    return math.prod(shape)


class Lowering:
    def __init__(self, traced, name):
        self.traced = traced
        self.file = OnnxFile(name)
        self.values = {}  # node: Value
        self.constants = {}  # node: tensor
        self.parameters = {}  # node: (name, tensor, whether transposed)
        self.buffers = {}  # node: name
        self.whole_inputs = set()  # names
        self.fixed = {}  # (shape, bytes): name of the constant
        self.notes = []
        self.count = 0

    # -- the graph ---------------------------------------------------------------------------------

    def run(self):
        for node in self.traced.graph.nodes:
            if node.op == "placeholder":
                self.source(node, *self.traced.sources[node])
            elif node.op == "get_attr":
                self.attribute(node)
            elif node.op == "output":
                self.output(node)
            else:
                self.call(node)
        self.file.drop_unread()
        return self.file

    def source(self, node, kind, name, tensor):
        node.meta["tensor"] = tensor
        if kind == "input":
            whole = not tensor.dtype.is_floating_point
            self.file.inputs.append((name, INT64 if whole else FLOAT, tensor.shape))
            self.values[node] = Value(name, tensor.shape)
            if whole:
                self.whole_inputs.add(name)
        elif kind == "parameter":
            self.parameters[node] = (name, tensor, False)
            self.weight(name, tensor)
            self.values[node] = Value(name, tensor.shape)
        else:
            self.constants[node] = tensor.clone()
            self.buffers[node] = name

    def attribute(self, node):
        tensor, twin = self.traced.attribute(node.target)
        node.meta["tensor"] = tensor
        if twin is None:
            self.constants[node] = tensor
            return
        self.parameters[node] = self.parameters[twin]
        self.values[node] = self.values[twin]

    def output(self, node):
        outputs = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
        for i, one in enumerate(one for one in outputs if isinstance(one, torch.fx.Node)):
            value = self.get(one)
            name = "output" if i == 0 else f"output{i}"
            if self.shape(one) == ():
                name = "loss"
            self.file.rename(value.name, name)
            self.file.outputs.append((name, value.shape))

    def call(self, node):
        constant = all(one in self.constants for one in node.all_input_nodes)
        if constant and short(node) not in RANDOM:
            self.constants[node] = self.evaluate(node)
            return
        known = OPERATORS.get(short(node)) or OPERATORS.get(short(node).split(".")[0])
        if node.target is operator.getitem:
            known = Lowering.part
        if known is None:
            self.refuse(node, "this operator has no form in WeftQL")
        known(self, node, *node.args, **node.kwargs)

    def evaluate(self, node):
        def value(one):
            return self.constants[one] if isinstance(one, torch.fx.Node) else one

        arguments = torch.fx.node.map_aggregate(node.args, value)
        keywords = torch.fx.node.map_aggregate(node.kwargs, value)
        return node.target(*arguments, **{key: one for key, one in keywords.items() if key != "pin_memory"})

    def refuse(self, node, why):
        raise NotUnderstood(f"{node.meta.get('place') or 'the module'}: aten.{short(node)}: {why}")

    # -- values ------------------------------------------------------------------------------------

    def shape(self, node):
        if node in self.constants:
            return tuple(self.constants[node].shape)
        # For several results, the shape of the first.
        first = [user for user in node.users if user.target is operator.getitem and user.args[1] == 0]
        told = [one.meta[key] for one in (node, *first) for key in ("tensor", "val", "tensor_meta") if key in one.meta]
        value = next(one for one in told if one is not None)
        return tuple(int(dim) for dim in (value if hasattr(value, "shape") else value[0]).shape)

    def fresh(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def weight(self, name, tensor):
        self.file.tensor(name, FLOAT, tensor.shape, lambda: numbers_of(tensor))

    def constant(self, tensor, stem="constant"):
        """Adds a tensor or a single number to the file."""
        if not isinstance(tensor, torch.Tensor):
            tensor = torch.tensor(float(tensor))
        name = self.fresh(stem)
        if tensor.dim() == 0:
            self.file.tensor(name, FLOAT, (), numbers_of(tensor))
            return name
        return self.kept(tensor, name)

    def kept(self, tensor, name):
        # Equal constants are stored once and shared between layers.
        numbers = numbers_of(tensor)
        key = (tuple(tensor.shape), numbers)
        if key not in self.fixed:
            self.file.fixed(name, tensor.shape, numbers)
            self.fixed[key] = name
        return self.fixed[key]

    def wholes(self, numbers):
        name = self.fresh("sizes")
        self.file.tensor(name, INT64, (len(numbers),), struct.pack(f"<{len(numbers)}q", *numbers))
        return name

    def loose(self, node):
        """The value, whose dims may be merged or split differently from the node's."""
        if node in self.values:
            return self.values[node]
        constant = self.constants[node]
        self.values[node] = Value(self.constant(constant), constant.shape)
        return self.values[node]

    def get(self, node):
        value = self.loose(node)
        return value if value.shape == self.shape(node) else self.reshaped(value, self.shape(node))

    def reshaped(self, value, shape):
        if value.shape == tuple(shape):
            return value
        return self.emit("Reshape", [value.name, self.wholes(shape)], shape)

    def emit(self, operation, inputs, shape, node=None, **attributes):
        name = self.fresh(operation.lower())
        place = (node.meta.get("place") or "") if node is not None else ""
        self.file.add(operation, inputs, name, place, **attributes)
        return Value(name, shape)

    def give(self, node, operation, inputs, **attributes):
        self.values[node] = self.emit(operation, inputs, self.shape(node), node, **attributes)

    def turned(self, value, order):
        return self.emit("Transpose", [value.name], [value.shape[d] for d in order], perm=list(order))

    # -- operators ---------------------------------------------------------------------------------

    def same(self, node, x, *_, **__):
        if x in self.parameters:
            self.parameters[node] = self.parameters[x]
        self.values[node] = self.loose(x)

    def part(self, node, of, place):
        if of in self.values and place == 0:
            self.values[node] = self.values[of]
        elif (of, place) in self.values:
            self.values[node] = self.values[(of, place)]
        elif node.users:
            self.refuse(of, f"only its first result is read, not number {place}")

    def view(self, node, x, *_, **__):
        self.values[node] = self.reshaped(self.loose(x), self.shape(node))

    def merged_view(self, node, x, *_, **__):
        """Keeps merged rows as separate dims until an operator needs them merged."""
        value, shape = self.loose(x), self.shape(node)
        if "scores" in x.meta or value.name in self.whole_inputs:
            # The scores and labels of a loss, which reads them with their original dims.
            node.meta.update({key: x.meta[key] for key in ("scores",) if key in x.meta})
            self.values[node] = value
            return
        if len(shape) >= 1 and len(value.shape) > len(shape) and merges(value.shape, shape):
            self.values[node] = value
            return
        self.values[node] = self.reshaped(value, shape)

    def expand(self, node, x, *_, **__):
        if self.shape(x) == self.shape(node):
            return self.same(node, x)
        # Elementwise operators broadcast dims of size 1 themselves.
        if all(one == other or one == 1 for one, other in zip(self.shape(x)[::-1], self.shape(node)[::-1])):
            self.values[node] = self.get(x)
            node.meta["narrow"] = True
            if any(short(user).split(".")[0] not in BROADCASTING for user in node.users):
                self.refuse(node, "a tensor that is repeated, which only sums and products take")
            node.meta["tensor"] = node.meta.get("tensor", node.meta.get("val", node.meta.get("tensor_meta")))
            return None
        return self.refuse(node, "a tensor that is repeated along a new dim")

    def permute(self, node, x, order):
        rank = len(self.shape(x))
        order = [place % rank for place in order]
        if x in self.parameters and not self.parameters[x][2] and order == [1, 0]:
            name, tensor, _ = self.parameters[x]
            self.parameters[node] = (name, tensor, True)
        self.values[node] = self.turned(self.get(x), order)

    def transpose(self, node, x, a=0, b=1):
        order = list(range(len(self.shape(x))))
        if not order:
            return self.same(node, x)
        order[a], order[b] = order[b], order[a]
        return self.permute(node, x, order)

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

    def matrix(self, node):
        return self.get(node)

    def mm(self, node, x, weight):
        self.values[node] = self.linear(node, x, self.matrix(weight), None, self.parameters.get(weight))

    def addmm(self, node, bias, x, weight, beta=1, alpha=1):
        if beta != 1 or alpha != 1:
            self.refuse(node, "beta and alpha other than 1")
        node.meta["bias"] = self.parameters.get(bias)
        self.values[node] = self.linear(node, x, self.matrix(weight), self.get(bias).name, self.parameters.get(weight))

    def bmm(self, node, a, b):
        x, y = self.loose(a), self.loose(b)
        apart = len(x.shape) == len(y.shape) and x.shape[:-2] == y.shape[:-2] and all(
            value.shape[-2:] == self.shape(one)[-2:] for value, one in ((x, a), (y, b)))
        if not apart:
            x, y = self.get(a), self.get(b)
        self.values[node] = self.emit("MatMul", [x.name, y.name], (*x.shape[:-1], y.shape[-1]), node)

    def matmul(self, node, a, b):
        if len(self.shape(b)) == 2:
            return self.mm(node, a, b)
        return self.give(node, "MatMul", [self.get(a).name, self.get(b).name])

    def whole_linear(self, node, x, weight, bias=None):
        turned = self.turned(self.get(weight), [1, 0])
        parameter = self.parameters.get(weight)
        node.meta["bias"] = self.parameters.get(bias) if bias is not None else None
        self.values[node] = self.linear(node, x, turned, self.get(bias).name if bias is not None else None,
                                        parameter and (*parameter[:2], True))

    def split(self, node, x, sizes, dim=0):
        rank, whole = len(self.shape(x)), self.shape(x)
        if isinstance(sizes, int):
            sizes = [min(sizes, whole[dim] - at) for at in range(0, whole[dim], sizes)]
        linear = self.linear_behind(x) if dim % rank == rank - 1 else None
        begin = 0
        for i, size in enumerate(sizes):
            if linear is not None:  # one smaller layer per slice
                self.values[(node, i)] = self.cut_linear(node, linear, begin, size, i)
            else:
                self.values[(node, i)] = self.range_of(node, x, dim % rank, begin, size)
            begin += size

    def chunk(self, node, x, chunks, dim=0):
        return self.split(node, x, -(-self.shape(x)[dim] // chunks), dim)

    def range_of(self, node, x, dim, begin, size):
        """A range of positions along one dim."""
        value = self.get(x)
        shape = (*value.shape[:dim], size, *value.shape[dim + 1 :])
        bounds = [self.wholes([one]) for one in (begin, begin + size, dim)]
        return self.emit("Slice", [value.name, *bounds], shape, node)

    def position_of(self, node, x, dim, place):
        """One position along a dim, which is removed."""
        shape = self.shape(x)
        one = self.range_of(node, x, dim, place % shape[dim], 1)
        return self.reshaped(one, (*shape[:dim], *shape[dim + 1 :]))

    def select(self, node, x, dim, place):
        self.values[node] = self.position_of(node, x, dim % len(self.shape(x)), place)

    def unbind(self, node, x, dim=0):
        dim %= len(self.shape(x))
        for place in range(self.shape(x)[dim]):
            self.values[(node, place)] = self.position_of(node, x, dim, place)

    def slice(self, node, x, dim=0, start=None, end=None, step=1):
        rank, whole = len(self.shape(x)), self.shape(x)
        dim, size = dim % rank, self.shape(node)[dim]
        if step != 1:
            self.refuse(node, f"a step of {step}; ranges of positions have a step of 1")
        start = min(max(start + whole[dim], 0) if (start or 0) < 0 else start or 0, whole[dim])
        if size == whole[dim]:
            return self.same(node, x)
        linear = self.linear_behind(x) if dim == rank - 1 else None
        if linear is not None:
            self.values[node] = self.cut_linear(node, linear, start, size, start)
        elif x in self.parameters and dim == 0:
            self.cut_rows(node, x, start, size)
        else:
            self.values[node] = self.range_of(node, x, dim, start, size)
        return None

    def linear_behind(self, x):
        while "linear" not in x.meta:
            if x.op != "call_function" or short(x).split(".")[0] not in SAME_ORDER or self.shape(x)[-1] != self.shape(x.args[0])[-1]:
                return None
            x = x.args[0]
        return x if x.meta["linear"][1] is not None else None

    def cut_linear(self, node, linear, begin, size, place):
        rows, (name, tensor, turned), bias = linear.meta["linear"]
        own = tensor.t() if turned else tensor
        cut = own[:, begin : begin + size]
        weight = f"{name}.{place}"
        self.weight(weight, cut)
        shape = (*rows.shape[:-1], size)
        made = self.emit("MatMul", [rows.name, weight], shape, node)
        if bias is not None:
            stored = linear.meta["bias"]
            self.weight(f"{stored[0]}.{place}", stored[1][begin : begin + size])
            made = self.emit("Add", [made.name, f"{stored[0]}.{place}"], shape, node)
        return made

    def cut_rows(self, node, x, begin, size):
        name, tensor, _ = self.parameters[x]
        if (begin, size) != (0, tensor.shape[0]):
            name = f"{name}.rows"
            self.weight(name, tensor[begin : begin + size])
            self.notes.append(f"{name}: rows {begin} to {begin + size - 1} of {tensor.shape[0]}, which alone are read")
        self.values[node] = Value(name, (size, *tensor.shape[1:]))

    def embedding(self, node, table, positions, *_, **__):
        if positions in self.constants:
            where = self.constants[positions].reshape(-1)
            begin = int(where[0])
            if table not in self.parameters or not torch.equal(where, torch.arange(begin, begin + len(where)).to(where)):
                self.refuse(node, "positions that are known but not one after the other")
            self.cut_rows(node, table, begin, len(where))
            self.values[node] = self.reshaped(self.values[node], self.shape(node))
            return
        self.give(node, "Gather", [self.get(table).name, self.loose(positions).name])

    def two(self, node, operation, a, b, alpha=1):
        def name(one):
            if not isinstance(one, torch.fx.Node):
                return self.constant(one)
            return self.get(one).name if not one.meta.get("narrow") else self.values[one].name

        right = name(b)
        if alpha != 1:
            right = self.emit("Mul", [right, self.constant(alpha)], self.shape(b)).name
        self.give(node, operation, [name(a), right])
        # A bias added by a separate operator.
        linear = self.linear_behind(a) if operation == "Add" and isinstance(a, torch.fx.Node) and b in self.parameters else None
        if linear is not None and linear.meta["linear"][2] is None and len(self.shape(b)) == 1:
            node.meta["linear"] = (*linear.meta["linear"][:2], right)
            node.meta["bias"] = self.parameters[b]

    def activation(self, node, operation, x, **attributes):
        # Elementwise: rows may keep their separate dims.
        value = self.loose(x)
        self.values[node] = self.emit(operation, [value.name], value.shape, node, **attributes)

    def silu(self, node, x):
        value = self.loose(x)
        gate = self.emit("Sigmoid", [value.name], value.shape, node)
        self.values[node] = self.emit("Mul", [value.name, gate.name], value.shape, node)

    def rsqrt(self, node, x):
        self.activation(node, "Sqrt", x)
        self.values[node] = self.emit("Reciprocal", [self.values[node].name], self.values[node].shape, node)

    def gelu(self, node, x, approximate="none"):
        self.activation(node, "Gelu", x, approximate=approximate)

    def power(self, node, x, exponent):
        self.give(node, "Pow", [self.get(x).name, self.constant(exponent)])

    def softmax(self, node, x, dim, *_):
        self.give(node, "Softmax", [self.get(x).name], axis=dim)

    def masked_fill(self, node, x, mask, value):
        value = self.constants[value] if isinstance(value, torch.fx.Node) else value
        if mask not in self.constants or float(value) > -1e4:
            self.refuse(node, "only a mask that is known, and hides what it masks")
        self.give(node, "Add", [self.get(x).name, self.mask(self.constants[mask].bool())])

    def where(self, node, mask, x, y):
        hides = mask in self.constants and y in self.constants and bool((self.constants[y] <= -1e4).all())
        if not hides:
            self.refuse(node, "only a mask that is known, and hides what it masks")
        self.give(node, "Add", [self.get(x).name, self.mask(~self.constants[mask].bool())])

    def mask(self, hidden):
        numbers = torch.zeros(hidden.shape).masked_fill(hidden, LEAST_MASK)
        while numbers.dim() > 1 and numbers.shape[0] == 1:
            numbers = numbers[0]
        return self.constant(numbers, "mask")

    def layer_norm(self, node, x, shape, weight=None, bias=None, epsilon=1e-5, *_):
        if len(shape) != 1:
            self.refuse(node, "only the last dim is normalized")
        inputs = [self.get(x).name]
        for one in (weight, bias):
            if one is not None:
                inputs.append(self.get(one).name)
        self.give(node, "LayerNormalization", inputs, axis=-1, epsilon=float(epsilon))

    def batch_norm(self, node, x, weight, bias, mean, variance, *rest):
        epsilon = rest[-1] if isinstance(rest[-1], float) else rest[-2]
        inputs = [self.get(x).name, self.get(weight).name, self.get(bias).name]
        for one in (mean, variance):
            inputs.append(self.buffers[one])
            self.file.fixed(self.buffers[one], self.shape(one), numbers_of(self.constants[one]))
        self.give(node, "BatchNormalization", inputs, epsilon=float(epsilon))

    def convolution(self, node, x, weight, bias, stride, padding, dilation, transposed, _, groups):
        if transposed:
            self.refuse(node, "convolutions that are transposed")
        inputs = [self.get(x).name, self.get(weight).name]
        if bias is not None:
            inputs.append(self.get(bias).name)
        self.give(node, "Conv", inputs, strides=stride, pads=[*padding, *padding], dilations=dilation, group=groups)

    def pool(self, node, operation, x, size, stride=None, padding=(0,), *rest):
        def two(numbers):
            return list(numbers) * (2 if len(numbers) == 1 else 1)

        attributes = {"count_include_pad": 1} if operation == "AveragePool" else {}
        if operation == "MaxPool" and rest and any(one != 1 for one in rest[0]):
            self.refuse(node, "dilations other than 1")
        pads = two(padding or [0])
        self.give(node, operation, [self.get(x).name], kernel_shape=two(size), strides=two(stride or size),
                  pads=[*pads, *pads], **attributes)

    def mean(self, node, x, dims=None, keepdim=False, **_):
        rank = len(self.shape(x))
        places = sorted(d % rank for d in dims) if dims else list(range(rank))
        if rank == 4 and places == [2, 3]:
            b, c, *_ = self.shape(x)
            pooled = self.emit("GlobalAveragePool", [self.get(x).name], (b, c, 1, 1), node)
            self.values[node] = self.reshaped(pooled, self.shape(node))
        elif places == list(range(rank)) and not keepdim:
            self.give(node, "ReduceMean", [self.loose(x).name], keepdims=0)
        elif places == [rank - 1]:
            # A product with a column whose elements are all equal.
            features = self.shape(x)[-1]
            column = self.kept(torch.full((features, 1), 1 / features), self.fresh("mean_of"))
            made = self.emit("MatMul", [self.get(x).name, column], (*self.shape(x)[:-1], 1), node)
            self.values[node] = self.reshaped(made, self.shape(node))
        else:
            self.refuse(node, "only means of images, of the last dim and of all")

    def adaptive_pool(self, node, x, size):
        if list(size) != [1, 1]:
            self.refuse(node, "only to one place")
        self.give(node, "GlobalAveragePool", [self.get(x).name])

    def concatenate(self, node, parts, dim=0):
        self.give(node, "Concat", [self.get(one).name for one in parts], axis=dim)

    def log_softmax(self, node, x, dim, *_):
        users = [user for user in node.users if short(user).split(".")[0] not in SAME_ORDER]
        if any(not short(user).startswith("nll_loss") for user in users):
            self.refuse(node, "only before nll_loss")
        node.meta["scores"] = (x, dim)
        self.values[node] = self.loose(x)

    def cross_entropy(self, node, scores, labels, weight=None, reduction=1, ignore_index=-100):
        if weight is not None or reduction != 1 or "scores" not in scores.meta:
            self.refuse(node, "only means of what log_softmax gives, all labels alike")
        of, dim = scores.meta["scores"]
        known = self.loose(labels)
        if len(self.shape(of)) > 2 and dim % len(self.shape(of)) == 1:
            x = self.get(of)
        else:
            x = self.loose(of)
            if x.shape[:-1] != known.shape:
                x, known = self.get(of), self.get(labels)
            # ONNX expects classes in the second dim.
            rank = len(x.shape)
            if rank > 2:
                x = self.turned(x, [0, rank - 1, *range(1, rank - 1)])
        self.values[node] = self.emit("SoftmaxCrossEntropyLoss", [x.name, known.name], (), node, reduction="mean")

    def mean_square(self, node, a, b, reduction=1):
        if reduction != 1:
            self.refuse(node, "only means")
        error = self.emit("Sub", [self.get(a).name, self.get(b).name], self.shape(a), node)
        square = self.emit("Mul", [error.name, error.name], error.shape, node)
        self.values[node] = self.emit("ReduceMean", [square.name], (), node, keepdims=0)

    def dropout(self, node, x, p=0.5, *_):
        self.notes.append(f"{node.meta.get('place')}: dropout of {p} is left out")
        self.same(node, x)


def numbers_of(tensor):
    return tensor.detach().to(torch.float32).contiguous().cpu().numpy().tobytes()


def merges(apart, merged):
    """Whether the leading dims are merged and the others are equal: [b, s, d] to [b * s, d]."""
    more = len(apart) - len(merged)
    return apart[more + 1 :] == merged[1:] and elements(apart[: more + 1]) == merged[0]


def function(operation, **attributes):
    return lambda self, node, x, *_, **__: self.activation(node, operation, x, **attributes)


def between(operation):
    return lambda self, node, a, b, alpha=1, **_: self.two(node, operation, a, b, alpha)


RANDOM = {"native_dropout.default", "bernoulli.p", "rand.default", "randn.default"}
SAME_ORDER = {"view", "_unsafe_view", "_reshape_alias", "reshape", "clone", "detach", "contiguous", "alias", "lift_fresh_copy"}
BROADCASTING = {"add", "sub", "mul", "div", "masked_fill", "where", "view", "_unsafe_view", "_reshape_alias", "clone"}

OPERATORS = {
    "view": Lowering.merged_view, "_unsafe_view": Lowering.merged_view, "reshape": Lowering.merged_view,
    "_reshape_alias": Lowering.merged_view,
    "flatten": Lowering.view, "squeeze": Lowering.view, "unsqueeze": Lowering.view,
    "clone": Lowering.same, "detach": Lowering.same, "contiguous": Lowering.same, "alias": Lowering.same,
    "lift_fresh_copy": Lowering.same, "_to_copy": Lowering.same,
    "expand": Lowering.expand, "permute": Lowering.permute, "transpose": Lowering.transpose, "t": Lowering.transpose,
    "mm": Lowering.mm, "addmm": Lowering.addmm, "bmm": Lowering.bmm, "matmul": Lowering.matmul,
    "linear": Lowering.whole_linear, "split": Lowering.split, "split_with_sizes": Lowering.split, "slice": Lowering.slice,
    "chunk": Lowering.chunk, "select": Lowering.select, "unbind": Lowering.unbind,
    "embedding": Lowering.embedding,
    "add": between("Add"), "sub": between("Sub"), "mul": between("Mul"), "div": between("Div"),
    "relu": function("Relu"), "sigmoid": function("Sigmoid"), "tanh": function("Tanh"), "erf": function("Erf"),
    "sqrt": function("Sqrt"), "exp": function("Exp"), "log": function("Log"), "neg": function("Neg"),
    "abs": function("Abs"), "sin": function("Sin"), "cos": function("Cos"), "reciprocal": function("Reciprocal"),
    "softplus": function("Softplus"), "hardswish": function("HardSwish"),
    "silu": Lowering.silu, "rsqrt": Lowering.rsqrt, "gelu": Lowering.gelu, "pow": Lowering.power,
    "_softmax": Lowering.softmax, "softmax": Lowering.softmax,
    "masked_fill": Lowering.masked_fill, "where": Lowering.where,
    "native_layer_norm": Lowering.layer_norm, "layer_norm": Lowering.layer_norm,
    "native_batch_norm": Lowering.batch_norm, "_native_batch_norm_legit": Lowering.batch_norm,
    "convolution": Lowering.convolution,
    "max_pool2d_with_indices": lambda self, node, *a: self.pool(node, "MaxPool", *a),
    "max_pool2d": lambda self, node, *a: self.pool(node, "MaxPool", *a),
    "avg_pool2d": lambda self, node, *a: self.pool(node, "AveragePool", *a),
    "mean": Lowering.mean, "_adaptive_avg_pool2d": Lowering.adaptive_pool, "adaptive_avg_pool2d": Lowering.adaptive_pool,
    "cat": Lowering.concatenate,
    "_log_softmax": Lowering.log_softmax, "log_softmax": Lowering.log_softmax,
    "nll_loss_forward": Lowering.cross_entropy, "nll_loss2d_forward": Lowering.cross_entropy,
    "mse_loss": Lowering.mean_square,
    "native_dropout": Lowering.dropout, "dropout": Lowering.dropout,
}
