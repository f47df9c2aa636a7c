"""Traces a module into a graph of ATen operators with static shapes.

Uses torch.export if available; older versions of torch trace a call of the module with make_fx.
Both reject control flow that depends on data, with its source line.
"""

import contextlib
import inspect
import os
import traceback

import torch

from .trace_experts import as_operators


class NotUnderstood(Exception):
    """An operation that WeftQL does not support, with its source location."""


class Traced:
    """A torch.fx graph; `sources` by placeholder: ("input" | "parameter" | "buffer", name, tensor)."""

    def __init__(self, module, sources):
        self.module = module
        self.graph = module.graph
        self.sources = sources

    def attribute(self, way):
        """A tensor of the graph, and the placeholder of the parameter it is tied to, if any."""
        tensor = self.module
        for part in way.split("."):
            tensor = getattr(tensor, part)
        for node, (kind, _, source) in self.sources.items():
            if kind == "parameter" and source.data_ptr() == tensor.data_ptr() and source.shape == tensor.shape:
                return tensor, node
        return tensor, None


class Called(torch.nn.Module):
    """A module that is called by position or by name, of whose results one is read, or a loss of it."""

    def __init__(self, model, count, names=None, loss=None, notes=None):
        super().__init__()
        self.model, self.loss = model, loss
        self.count, self.names, self.notes = count, names, notes

    def forward(self, *given):
        inputs, targets = given[: self.count], given[self.count :]
        result = self.model(*inputs) if self.names is None else self.model(**dict(zip(self.names, inputs)))
        return one_result(result, self.notes) if self.loss is None else self.loss(result, *targets)


def one_result(result, notes=None):
    """The tensor to read of a module's results: a loss, the logits, or the first."""
    if isinstance(result, torch.Tensor):
        return result
    named = dict(result.items()) if hasattr(result, "items") else {}
    if not named and isinstance(result, (tuple, list)):
        named = {f"result {i}": one for i, one in enumerate(result)}
    found = {name: one for name, one in named.items() if isinstance(one, torch.Tensor)}
    if not found:
        raise NotUnderstood(f"expected a result with a tensor, found {type(result).__name__}")
    name = next((one for one in ("loss", "logits") if one in found), next(iter(found)))
    others = [one for one in named if one != name and named[one] is not None]
    if notes is not None and others:
        notes.add(f"the model's output is {name}; left out: {', '.join(others)}")
    return found[name]


def argument_names(function, count, skip=()):
    names = [name for name in inspect.signature(function).parameters if name not in skip]
    return names[:count] if len(names) >= count else [f"input{i}" for i in range(count)]


# Whose lines no message names.
OWN = (os.path.dirname(torch.__file__), os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "functorch"),
       os.path.dirname(__file__))


def place_of(stack):
    """The innermost frame outside of torch, such as "net.py:12"."""
    frames = [frame for frame in stack if not frame.filename.startswith(OWN) and "<" not in frame.filename]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None


def traced_by_calls(module, inputs, names):
    from torch.fx.experimental import proxy_tensor

    try:
        from torch.func import functional_call
    except ImportError:
        from torch.nn.utils.stateless import functional_call
    parameters = dict(module.named_parameters())
    buffers = dict(module.named_buffers())
    state = list({**parameters, **buffers})

    def call(*values):
        return functional_call(module, dict(zip(state, values)), tuple(values[len(state) :]))

    tensors = [{**parameters, **buffers}[name].detach() for name in state]
    # Records source locations, which make_fx does not keep.
    tracer = proxy_tensor.PythonKeyTracer
    before, tracer.create_node = tracer.create_node, with_places(tracer.create_node)
    try:
        # A call may change buffers, such as batch statistics, so it gets copies.
        copies = [one if name in parameters else one.clone() for name, one in zip(state, tensors)]
        made = proxy_tensor.make_fx(without_changes(call), decompositions())(*copies, *inputs)
    finally:
        tracer.create_node = before
    kinds = [("parameter" if name in parameters else "buffer", name) for name in state]
    kinds += [("input", name) for name in names]
    placeholders = [node for node in made.graph.nodes if node.op == "placeholder"]
    sources = {node: (*kind, tensor) for node, kind, tensor in zip(placeholders, kinds, [*tensors, *inputs])}
    return Traced(made, sources)


# Operators that torch expresses by others, which WeftQL has.
DECOMPOSED = ("elu", "mish", "glu", "hardsigmoid", "log_sigmoid_forward", "threshold", "addcmul", "addcdiv",
              "var", "std", "addmv", "celu", "huber_loss", "smooth_l1_loss", "tril", "triu", "xlogy")


def decompositions():
    from torch._decomp import get_decompositions

    return get_decompositions([getattr(torch.ops.aten, name) for name in DECOMPOSED if hasattr(torch.ops.aten, name)])


def without_changes(call):
    """Operators that change a tensor in place become ones that give a new tensor, where torch can do that."""
    try:
        from torch.func import functionalize
    except ImportError:
        try:
            from functorch.experimental import functionalize
        except ImportError:
            return call
    return functionalize(call, remove="mutations")


def with_places(create_node):
    def create(self, kind, *arguments, **keywords):
        node = create_node(self, kind, *arguments, **keywords)
        if kind == "call_function":
            node.meta["place"] = place_of(traceback.extract_stack())
        return node

    return create


# Operators that are lowered as they are, where torch can keep them.
KEPT = ("scaled_dot_product_attention", "silu", "softplus", "hardswish", "leaky_relu", "nll_loss_forward",
        "nll_loss2d_forward", "mse_loss")


def core_operators(program):
    if not hasattr(torch.export, "default_decompositions"):
        return program.run_decompositions()
    table = torch.export.default_decompositions()
    for operator in list(table):
        if str(operator).split(".")[1:2] and str(operator).split(".")[1] in KEPT:
            table.pop(operator)
    return program.run_decompositions(table)


def traced_by_export(module, inputs, names):
    program = core_operators(torch.export.export(module, tuple(inputs)))
    signature = program.graph_signature
    sources = {}
    given = iter(zip(names, inputs))
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        if node.name in signature.inputs_to_parameters:
            name = signature.inputs_to_parameters[node.name]
            sources[node] = ("parameter", name, program.state_dict[name])
        elif node.name in signature.inputs_to_buffers:
            name = signature.inputs_to_buffers[node.name]
            sources[node] = ("buffer", name, {**program.state_dict, **program.constants}[name])
        elif node.name in getattr(signature, "inputs_to_lifted_tensor_constants", {}):
            name = signature.inputs_to_lifted_tensor_constants[node.name]
            sources[node] = ("buffer", name, program.constants[name])
        else:
            sources[node] = ("input", *next(given))
    for node in program.graph.nodes:
        lines = (node.meta.get("stack_trace") or "").split("\n")
        places = [line.strip().split('"') for line in lines if line.strip().startswith('File "')]
        if places:
            outside = [one for one in places if not one[1].startswith(OWN)] or places
            node.meta["place"] = f"{outside[-1][1]}:{outside[-1][2].split('line ')[1].split(',')[0]}"
    return Traced(program.graph_module, sources)


@contextlib.contextmanager
def without_dropout(notes):
    """Replaces dropout by the identity: a random mask must not become part of the graph."""
    before = torch.nn.functional.dropout

    def identity(x, p=0.5, training=True, inplace=False):
        if training and p > 0:
            notes.add(f"{place_of(traceback.extract_stack()) or 'the module'}: dropout of {p} is left out")
        return x

    torch.nn.functional.dropout = identity
    try:
        yield
    finally:
        torch.nn.functional.dropout = before


@contextlib.contextmanager
def without_fast_path(module):
    """Attention of torch.nn becomes its own operators: some versions call one fused operator in eval mode."""
    changed = []
    for one in module.modules():
        if isinstance(one, torch.nn.MultiheadAttention) and not one.training and not one.dropout:
            changed.append((one, "dropout", one.dropout))
            one.dropout = 1e-9  # not applied in eval mode
        if hasattr(one, "activation_relu_or_gelu"):
            changed.append((one, "activation_relu_or_gelu", one.activation_relu_or_gelu))
            one.activation_relu_or_gelu = 0
    try:
        yield
    finally:
        for one, name, value in changed:
            setattr(one, name, value)


@contextlib.contextmanager
def without_cache(module):
    """Models of transformers return keys and values for the next call: they are not traced."""
    configurations = [one.config for one in module.modules() if getattr(getattr(one, "config", None), "use_cache", False)]
    for one in configurations:
        one.use_cache = False
    try:
        yield
    finally:
        for one in configurations:
            one.use_cache = True


def trace(module, inputs, names, notes):
    """Raises NotUnderstood if control flow depends on data. Adds to the set `notes`."""
    how = traced_by_export if hasattr(torch, "export") and hasattr(torch.export, "export") else traced_by_calls
    try:
        with without_dropout(notes), without_cache(module), without_fast_path(module), as_operators(module):
            return how(module, inputs, names)
    except NotUnderstood:
        raise
    except Exception as error:  # torch's exception types differ by version
        place = place_of(traceback.extract_tb(error.__traceback__))
        told = str(error).strip().split("\n")[0]
        branches = any(word in str(error) for word in ("data-dependent", "_local_scalar_dense", "DataDependent"))
        what = "control flow, or a number, that depends on data" if branches else f"{type(error).__name__}: {told}"
        raise NotUnderstood(f"{place or 'the module'}: {what}") from error
