"""Division of the last axis into overlapping segments, and sums of such segments."""

from __future__ import annotations

from typing import Any

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import typeof

from .._layout import resized


def segments(x: Any, size: int, step: int) -> Any:
    """Segments ``[..., count, size]`` of the last axis, whose starts differ by ``step``."""
    shape = typeof(x).shape
    count = (shape[-1] - size) // step + 1
    repeats = -(-size // step)
    hops = count + repeats - 1
    x = resized(x, len(shape) - 1, hops * step)
    rows = lax.reshape(x, (*shape[:-1], hops, step))
    axis = len(shape) - 1
    parts = [lax.slice_in_dim(rows, k, k + count, axis=axis) for k in range(repeats)]
    return lax.slice_in_dim(pnp.concatenate(parts, -1), 0, size, axis=axis + 1)


def overlap_added(parts: Any, step: int) -> Any:
    """The sum ``[..., size + (count - 1) * step]`` of segments ``[..., count, size]``."""
    *batch, count, size = typeof(parts).shape
    repeats = -(-size // step)
    axis = len(batch)
    parts = resized(parts, axis + 1, repeats * step)
    parts = lax.reshape(parts, (*batch, count, repeats, step))
    total: Any = None
    zero = lax.full((), 0, typeof(parts).dtype)
    for k in range(repeats):
        rows = lax.index_in_dim(parts, k, axis + 1, keepdims=False)
        widths = [(0, 0, 0)] * len(batch) + [(k, repeats - 1 - k, 0), (0, 0, 0)]
        rows = lax.pad(rows, zero, widths)
        total = rows if total is None else total + rows
    total = lax.reshape(total, (*batch, (count + repeats - 1) * step))
    return resized(total, axis, size + (count - 1) * step)
