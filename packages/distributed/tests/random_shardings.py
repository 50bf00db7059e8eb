"""Random meshes, specs and shapes for hypothesis."""

from __future__ import annotations

import itertools
import math
from typing import Any

from hypothesis import strategies as st

NAMES = ("x", "y", "z")
SIZES = [
    sizes
    for n in (1, 2, 4, 6, 8)
    for rank in (1, 2, 3)
    for sizes in itertools.product(range(1, 9), repeat=rank)
    if math.prod(sizes) == n
]


@st.composite
def divisions(draw: Any, ndim: int | None = None) -> tuple[Any, Any, Any]:
    """Sizes of mesh axes, entries of a spec, and a shape that it divides.

    An entry is ``None`` or a tuple of the positions of mesh axes.
    """
    sizes = draw(st.sampled_from(SIZES))
    rank = draw(st.integers(0, 3)) if ndim is None else ndim
    order = list(draw(st.permutations(range(len(sizes)))))
    entries: list[Any] = []
    for _ in range(draw(st.integers(0, rank))):
        count = draw(st.integers(0, min(2, len(order))))
        entries.append(tuple(order[:count]) or None)
        order = order[count:]
    tiles = [math.prod(sizes[i] for i in e or ()) for e in entries]
    tiles += [1] * (rank - len(entries))
    shape = tuple(t * draw(st.integers(0, 3)) for t in tiles)
    return sizes, entries, shape


def named(entries: Any) -> list[Any]:
    """The entries with names of axes."""
    return [None if e is None else tuple(NAMES[i] for i in e) for e in entries]
