"""Lowers ATen operators to the ONNX operators that `weft import` reads.

    graph.py        the graph, its values and constants
    shapes.py       views, transposes, slices, concatenations, padding
    repeats.py      tensors repeated along a dim, as grouped-query attention repeats its heads
    products.py     matrix products, linear layers, embeddings
    elementwise.py  elementwise operators and masks
    complexes.py    complex numbers
    reductions.py   sums, means, norms
    attention.py    scaled dot-product attention
    images.py       convolutions and pooling
    experts.py      mixtures of experts
    losses.py       cross-entropy and mean squared error
    idioms.py       RMS norms, rotary positions and causal masks, which are functions of WeftQL
"""

from . import attention, complexes, elementwise, experts, images, losses, products, reductions, repeats, shapes
from . import idioms  # noqa: F401  (after those that it extends)
from .graph import Lowering, without_prefix

__all__ = ["Lowering", "without_prefix"]
