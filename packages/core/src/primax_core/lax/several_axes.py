"""Collectives over several named axes, as collectives over one axis after the other.

An index over several names counts the last name fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .._base.pytree import PyTree
from .._trace.core import typeof
from .permuting import transpose
from .reshaping import reshape

Collective = Callable[..., Any]


def _move(x: Any, source: int, target: int) -> Any:
    order = [i for i in range(typeof(x).ndim) if i != source]
    order.insert(target, source)
    return transpose(x, tuple(order))


def _divided(x: Any, axis: int, sizes: Sequence[int]) -> Any:
    shape = typeof(x).shape
    return reshape(x, (*shape[:axis], *sizes, *shape[axis + 1 :]))


def _merged(x: Any, axis: int, count: int) -> Any:
    shape = typeof(x).shape
    merged = math.prod(shape[axis : axis + count])
    return reshape(x, (*shape[:axis], merged, *shape[axis + count :]))


def all_to_all(
    one: Collective, x: PyTree, names: Sequence[Any], sizes: Sequence[int], split: int, concat: int,
    tiled: bool,
) -> Any:  # fmt: skip
    """``all_to_all`` over ``names``; ``one`` exchanges over one name, not tiled."""
    total = math.prod(sizes)
    block = [typeof(x).shape[split] // total] if tiled else []
    x = _divided(x, split, [*sizes, *block])
    for k, name in enumerate(names):
        x = one(x, name, split + k, split + k)
    x = _move(_merged(x, split, len(names)), split, concat)
    return _merged(x, concat, 2) if tiled else x


def all_gather(one: Collective, x: PyTree, names: Sequence[Any], axis: int, tiled: bool) -> Any:
    """``all_gather`` over ``names``; ``one`` gathers over one name."""
    for name in reversed(names):
        x = one(x, name, axis, tiled)
    return x if tiled else _merged(x, axis, len(names))


def psum_scatter(
    one: Collective, x: PyTree, names: Sequence[Any], sizes: Sequence[int], axis: int, tiled: bool
) -> Any:
    """``psum_scatter`` over ``names``; ``one`` scatters over one name."""
    x = x if tiled else _divided(x, axis, sizes)
    for name in names:
        x = one(x, name, axis, tiled)
    return x
