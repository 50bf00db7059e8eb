"""Positions of an access in NumPy's form."""

from __future__ import annotations

from typing import Any

import numpy as np

from primax_core.extend.references import INTEGER, INTEGER_ARRAY


def open_mesh(index: Any, where: list[Any]) -> tuple[Any, ...]:
    """Positions along each axis, shaped so that they broadcast to the part's shape.

    Slices have an axis of their own, all arrays of positions share theirs, at the place of the
    first if they are neighbours, and in front otherwise.
    """
    arrays = [p for p, e in zip(where, index) if e == INTEGER_ARRAY]
    shared = np.broadcast_shapes(*(p.shape for p in arrays)) if arrays else ()
    advanced = [i for i, e in enumerate(index) if e in (INTEGER_ARRAY, INTEGER)]
    at_front = bool(arrays) and advanced != list(range(advanced[0], advanced[-1] + 1))
    order: list[Any] = ["shared"] if at_front else []
    for i, entry in enumerate(index):
        if entry == INTEGER_ARRAY:
            if "shared" not in order:
                order.append("shared")
        elif entry != INTEGER:
            order.append(i)
    if arrays and not at_front:  # a scalar position before the first array opens its place
        order.remove("shared")
        before = sum(1 for i in range(advanced[0]) if index[i] not in (INTEGER, INTEGER_ARRAY))
        order.insert(before, "shared")
    sizes = [shared if o == "shared" else where[o].shape for o in order]
    starts = [sum(len(s) for s in sizes[:k]) for k in range(len(sizes))]
    rank = sum(len(s) for s in sizes)
    shaped = []
    for i, (entry, p) in enumerate(zip(index, where)):
        if entry == INTEGER:
            shaped.append(p.reshape((1,) * rank) if rank else p)
            continue
        key = "shared" if entry == INTEGER_ARRAY else i
        k = order.index(key)
        own = np.broadcast_to(p, shared) if entry == INTEGER_ARRAY else p
        shape = [1] * rank
        shape[starts[k] : starts[k] + len(sizes[k])] = own.shape
        shaped.append(own.reshape(shape))
    return tuple(shaped)
