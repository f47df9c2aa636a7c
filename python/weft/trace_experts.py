"""Traces the experts of transformers (5 and later) as two operators of Weft.

transformers sorts rows by expert, with sizes that depend on data. Here each expert has a slot for
each row: `weft::experts_sent` copies rows to the experts that they chose, `weft::experts_mixed` sums
the results. The products between them are the module's own.
"""

import contextlib

import torch

_library = None


def sent(x, chosen, experts):
    """[t, d] rows and [t, k] experts as [experts, t, d]: zeros where an expert was not chosen."""
    hits = torch.zeros(x.shape[0], experts, dtype=x.dtype).scatter(1, chosen, 1)
    return hits.t()[:, :, None] * x[None]


def mixed(done, chosen, weights):
    """The sum of each row's results, [experts, t, d], with its weights [t, k]."""
    shares = torch.zeros(done.shape[1], done.shape[0], dtype=done.dtype).scatter(1, chosen, weights.to(done.dtype))
    return (shares.t()[:, :, None] * done).sum(0)


def operators():
    global _library
    if _library is None:
        made = torch.library.Library("weft", "DEF")
        made.define("experts_sent(Tensor x, Tensor chosen, int experts) -> Tensor")
        made.define("experts_mixed(Tensor done, Tensor chosen, Tensor weights) -> Tensor")
        made.impl("experts_sent", sent, "CPU")
        made.impl("experts_mixed", mixed, "CPU")
        made.impl("experts_sent", lambda x, chosen, experts: x.new_empty((experts, *x.shape)), "Meta")
        made.impl("experts_mixed", lambda done, chosen, weights: done.new_empty(done.shape[1:]), "Meta")
        _library = made
    return torch.ops.weft


def forward(self, x, chosen, weights):
    """The forward pass of a module of experts, in the form that transformers calls."""
    weft = operators()
    first = self.gate_up_proj if self.has_gate else self.up_proj
    second = self.down_proj
    if not self.is_transposed:
        first, second = first.transpose(1, 2), second.transpose(1, 2)
    rows = torch.bmm(weft.experts_sent(x, chosen, first.shape[0]), first)
    if self.has_bias:
        rows = rows + (self.gate_up_proj_bias if self.has_gate else self.up_proj_bias)[:, None]
    rows = self._apply_gate(rows) if self.has_gate else self.act_fn(rows)
    rows = torch.bmm(rows, second)
    if self.has_bias:
        rows = rows + self.down_proj_bias[:, None]
    return weft.experts_mixed(rows, chosen, weights).to(x.dtype)


@contextlib.contextmanager
def as_operators(module):
    """Within this block, the experts of the module are traced as operators."""
    try:
        from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
    except ImportError:
        yield
        return
    ALL_EXPERTS_FUNCTIONS["weft"] = forward
    configurations = {id(one.config): one.config for one in module.modules()
                      if hasattr(one, "has_gate") and hasattr(one, "down_proj") and hasattr(one, "config")}
    before = {key: one._experts_implementation for key, one in configurations.items()}
    try:
        for one in configurations.values():
            one._experts_implementation = "weft"
        yield
    finally:
        for key, one in configurations.items():
            one._experts_implementation = before[key]
