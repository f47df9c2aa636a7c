"""Scaled dot-product attention, with heads shared by groups of queries."""

import math

import torch

from .elementwise import LEAST_MASK, broadcast
from .graph import Value, lowers, narrowed


@lowers("scaled_dot_product_attention")
def attention(self, node, q, k, v, mask=None, dropout=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    if dropout:
        self.notes.append(f"{node.meta.get('place')}: dropout of {dropout} is left out")
    queries, groups = self.get(q), 1
    keys, values = (heads(self, one) for one in (k, v))
    if keys is not None and values is not None and keys[1] == values[1]:
        keys, values, groups = keys[0], values[0], keys[1]
    else:
        keys, values = self.get(k), self.get(v)
        groups = queries.shape[1] // keys.shape[1] if len(queries.shape) == len(keys.shape) == 4 else 1
    if len(queries.shape) != 4:
        self.refuse(node, f"queries of {len(queries.shape)} dims; attention has [batch, heads, positions, features]")
    shape = queries.shape
    if groups > 1:
        queries = self.reshaped(queries, (shape[0], keys.shape[1], groups, *shape[2:]))
    own, other = ("bgnse", "bgte") if groups > 1 else ("bhse", "bhte")
    scores = self.einsum(node, f"{own},{other}->{own[:-1]}t", queries, keys)
    factor = scale if scale is not None else 1 / math.sqrt(shape[-1])
    if factor != 1:
        scores = self.emit("Mul", [scores.name, self.constant(factor)], scores.shape, node)
    if is_causal:
        hides = torch.ones(shape[2], keys.shape[2]).triu(1).bool()
        scores = self.banded(node, scores, hides) or scores
    if mask is not None:
        scores = masked(self, node, scores, mask, groups)
    share = self.emit("Softmax", [scores.name], scores.shape, node, axis=-1)
    self.values[node] = self.einsum(node, f"{own[:-1]}t,{other}->{own}", share, values)


@lowers("_scaled_dot_product_flash_attention_for_cpu")
def attention_and_sums(self, node, q, k, v, dropout=0.0, is_causal=False, *, attn_mask=None, scale=None):
    """How torch 2.1 to 2.4 trace it; the second result, for its backward pass, is not read."""
    attention(self, node, q, k, v, attn_mask, dropout, is_causal, scale=scale)


def heads(self, node):
    """The heads before they were repeated, and how many times, if they were."""
    if node not in self.later or "grouped" not in node.meta or node.meta["grouped"][1] != 1:
        return None
    make, _, times = node.meta["grouped"]
    return make(), times


def masked(self, node, scores, mask, groups):
    if mask in self.constants:
        known = self.constants[mask]
        if known.dtype == torch.bool:
            if bool(known.all()):
                return scores
            added = torch.zeros(known.shape).masked_fill(~known, -math.inf)
        else:
            added = known.float()
        if not bool((added != 0).any()):
            return scores
        if not bool(((added != 0) & (added > -1e4)).any()):
            inside = self.banded(node, scores, added != 0)
            if inside is not None:
                return inside
        added = narrowed(added.clamp(min=LEAST_MASK))
        value = Value(self.constant(added, "mask"), tuple(added.shape))
    else:
        wide = scores.shape
        value = self.narrow(mask, (wide[0], wide[1] * groups, *wide[-2:]) if groups > 1 else wide)
    if groups > 1 and len(value.shape) >= 3:
        heads_of = value.shape[-3]
        split = (1, 1) if heads_of == 1 else (heads_of // groups, groups)
        value = self.reshaped(value, (*value.shape[:-3], *split, *value.shape[-2:]))
    return self.emit("Add", [scores.name, value.name], broadcast(scores.shape, value.shape), node)
