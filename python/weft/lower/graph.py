"""The graph that is lowered: its values, constants and parameters.

Values that depend on no input and no parameter, such as masks and positions, are computed here.
Torch flattens rows before a product and restores them after it, [b, s, d] to [b * s, d]; here they
keep their dims, since a plan names each index. A slice of a linear layer's outputs, such as the
queries of a fused QKV projection, becomes a separate layer.
"""

import math
import operator
import struct

import torch

from ..onnx_file import BOOL, FLOAT, INT64, OnnxFile
from ..trace import NotUnderstood

OPERATORS = {}  # by name, with or without overload: function(lowering, node, *arguments)
NO_VALUE = {"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size"}
# Tensors whose elements do not depend on their operands: their number, or the argument that holds it.
FILLED = {"full_like": 1, "new_full": 2, "zeros_like": 0.0, "new_zeros": 0.0, "ones_like": 1.0, "new_ones": 1.0,
          "empty_like": 0.0, "new_empty": 0.0, "fill": 1}
RANDOM = {"native_dropout", "bernoulli", "rand", "randn", "rand_like", "randn_like"}
# Operators that keep the elements and their order.
SAME_ORDER = {"view", "_unsafe_view", "_reshape_alias", "reshape", "clone", "detach", "contiguous", "alias",
              "lift_fresh_copy", "_to_copy"}


class Value:
    """A tensor of the file. Its shape may merge or split the node's dims, in the same order."""

    def __init__(self, name, shape):
        self.name, self.shape = name, tuple(shape)


def without_prefix(text, prefix):
    return text[len(prefix):] if text.startswith(prefix) else text


def short(node):
    return without_prefix(str(node.target), "aten.")


def stem(node):
    """The operator's name without its overload."""
    return short(node).rsplit(".", 1)[0]


def lowers(*names):
    """Registers a function as the lowering of these operators."""

    def register(function):
        OPERATORS.update({name: function for name in names})
        return function

    return register


class Lowering:
    def __init__(self, traced, name):
        self.traced = traced
        self.file = OnnxFile(name)
        self.values = {}  # node, or (node, number of the result): Value
        self.constants = {}  # node: tensor
        self.parameters = {}  # node: (name, tensor, whether transposed)
        self.buffers = {}  # node: name
        self.whole_inputs = set()  # names
        self.whole_values = set()  # names of computed positions
        self.pairs = {}  # node of complex numbers: (real, imaginary)
        self.fixed = {}  # (shape, bytes): name of the constant
        self.notes = []
        self.later = {}  # node: function that emits its Value when an operator reads it
        self.reshaped_from = {}  # name of a reshaped value: what it was made from
        self.count = 0
        self.names = {}  # node of a source: its name in the file, where no two are alike
        self.taken = {"output", "loss"}
        self.cuts = {}  # (name of the parameter, first column, columns): name of the slice
        for node, (kind, own, _) in sorted(traced.sources.items(), key=lambda one: one[1][0] != "input"):
            while own in self.taken:
                own += "_"
            self.names[node] = own
            self.taken.add(own)

    # -- the graph ---------------------------------------------------------------------------------

    def run(self):
        read = self.read_nodes()
        for node in self.traced.graph.nodes:
            if node.op == "placeholder":
                kind, _, tensor = self.traced.sources[node]
                self.source(node, kind, self.names[node], tensor)
            elif node not in read:
                continue
            elif node.op == "get_attr":
                self.attribute(node)
            elif node.op == "output":
                self.output(node)
            else:
                self.call(node)
        unread = self.file.drop_unread()
        self.type_inputs()
        left = [name for name in unread if any(name == one for one, _, _ in self.parameters.values())]
        if left:
            self.notes.append(f"left out, since the output does not depend on them: {', '.join(left)}")
        return self.file

    def read_nodes(self):
        """The nodes that the output depends on, and those that change a tensor in place."""
        read = set()
        for node in reversed(self.traced.graph.nodes):
            operands = getattr(getattr(node.target, "_schema", None), "arguments", ())
            changes = any(one.alias_info is not None and one.alias_info.is_write for one in operands)
            if node.op == "output" or changes or node in read:
                read.update((node, *node.all_input_nodes))
        return read

    def type_inputs(self):
        """Integer inputs that are neither positions of a Gather nor labels are numbers, such as a mask."""
        whole = set()
        for operation, _, inputs, outputs, _ in reversed(self.file.nodes):
            if operation in ("Gather", "SoftmaxCrossEntropyLoss"):
                whole.add(inputs[1])
            elif operation in ("Cast", "Identity", "Reshape", "Transpose") and outputs[0] in whole:
                whole.add(inputs[0])
        self.file.inputs = [(name, FLOAT if kind == INT64 and name not in whole else kind, shape)
                            for name, kind, shape in self.file.inputs]

    def source(self, node, kind, name, tensor):
        node.meta["tensor"] = tensor
        if kind == "input":
            whole = not tensor.dtype.is_floating_point
            kind = BOOL if tensor.dtype == torch.bool else INT64 if whole else FLOAT
            self.file.inputs.append((name, kind, tensor.shape))
            self.values[node] = Value(name, tensor.shape)
            if kind == INT64:
                self.whole_inputs.add(name)
        elif kind == "parameter":
            self.parameters[node] = (name, tensor, False)
            # A number that is trained is a tensor of one element; a scalar of a file is a constant.
            shape = tuple(tensor.shape) or (1,)
            self.weight(name, tensor.reshape(shape))
            self.values[node] = Value(name, shape)
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
        if stem(node) in NO_VALUE:
            return
        known = OPERATORS.get(short(node)) or OPERATORS.get(stem(node))
        if all(one in self.constants for one in node.all_input_nodes) and stem(node) not in RANDOM:
            self.constants[node] = self.evaluate(node)
            return
        if stem(node) in FILLED:
            number = FILLED[stem(node)]
            number = node.args[number] if isinstance(number, int) else number
            if isinstance(number, torch.fx.Node):
                if number not in self.constants:
                    self.refuse(node, "a computed number")
                number = self.constants[number].item()
            self.constants[node] = torch.full(self.shape(node), number)
            return
        if node.target is operator.getitem:
            known = Lowering.part
        if known is None:
            self.refuse(node, "this operator has no form in WeftQL")
        known(self, node, *node.args, **node.kwargs)

    def part(self, node, of, place):
        if of in self.values and place == 0:
            self.values[node] = self.values[of]
        elif (of, place) in self.values:
            self.values[node] = self.values[(of, place)]
        elif node.users:
            self.refuse(of, f"only its first result is read, not number {place}")

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
        while f"{stem}_{self.count}" in self.taken:
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
        if node in self.later:
            self.values[node] = self.later.pop(node)()
            return self.values[node]
        if node not in self.constants:
            self.refuse(node, "its value is not read by the operators that follow it")
        constant = self.constants[node]
        self.values[node] = Value(self.constant(constant), constant.shape)
        return self.values[node]

    def get(self, node):
        value = self.loose(node)
        return value if value.shape == self.shape(node) else self.reshaped(value, self.shape(node))

    def reshaped(self, value, shape):
        if value.shape == tuple(shape) or (not shape and math.prod(value.shape) == 1):
            return value  # a number stays a tensor of one element
        origin = self.reshaped_from.get(value.name, value)
        if origin.shape == tuple(shape):
            return origin
        made = self.emit("Reshape", [origin.name, self.wholes(shape)], shape)
        self.reshaped_from[made.name] = origin
        return made

    def emit(self, operation, inputs, shape, node=None, **attributes):
        name = self.fresh(operation.lower())
        place = (node.meta.get("place") or "") if node is not None else ""
        self.file.add(operation, inputs, name, place, **attributes)
        return Value(name, shape)

    def give(self, node, operation, inputs, **attributes):
        self.values[node] = self.emit(operation, inputs, self.shape(node), node, **attributes)

    def turned(self, value, order):
        return self.emit("Transpose", [value.name], [value.shape[d] for d in order], perm=list(order))


def numbers_of(tensor):
    return tensor.detach().to(torch.float32).contiguous().cpu().numpy().tobytes()


def narrowed(tensor, keep_rank=False):
    """Without leading dims of size 1, and with size 1 for a dim along which all elements are equal:
    a mask or a table of positions that is repeated for each example of a batch."""
    for dim, size in enumerate(tensor.shape):
        one = tensor.narrow(dim, 0, 1)
        if size > 1 and (tensor.stride(dim) == 0 or bool((tensor == one).all())):
            tensor = one
    while not keep_rank and tensor.dim() > 0 and tensor.shape[0] == 1:
        tensor = tensor[0]
    return tensor


def groups_of(fine, coarse):
    """The dims of `fine` that each dim of `coarse` merges, or None if `fine` is no such refinement."""
    groups, at = [], 0
    for size in coarse:
        group, product = [], 1
        while product < size and at < len(fine):
            product *= fine[at]
            group.append(at)
            at += 1
        if product != size:
            return None
        groups.append(group)
    return groups if at == len(fine) and all(len(group) > 0 for group in groups) else None
