"""Updates of windows: positions that are slices with static or dynamic starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primax_core import lax
from primax_core.extend import typeof
from primax_core.extend.dimensions import is_size, is_static, max_dim, size_as, slice_length

from ._index_plans import Plan
from ._reading import as_position, counted_from_start, is_beyond_int32


class Window(NamedTuple):
    """A strided window of an array.

    Attributes:
      starts: first position along each axis: a static integer or a nonnegative dynamic position.
      sizes: extent along each axis.
      steps: stride along each axis; negative strides reverse the order.
      counts: number of positions along each axis.
    """

    starts: list[Any]
    sizes: list[int]
    steps: list[int]
    counts: list[int]


def window_of(
    plan: Plan, operands: Sequence[Any], shape: tuple[int, ...], wrap: bool
) -> Window | None:
    """The window of a plan without index arrays, if its static positions are in bounds."""
    window = Window([], [], [], [])
    axis = 0
    for part in plan.parts:
        kind = part[0]
        if kind == "new":
            continue
        if kind in ("none", "array"):
            return None
        n = shape[axis]
        start, size, step, count = 0, n, 1, n
        if kind == "slice":
            if part[3] not in (1, -1) and not is_static(part[1:]):
                return None
            start, count, step = part[1], slice_length(*part[1:]), part[3]
            size = count if abs(step) == 1 else max_dim((count - 1) * abs(step) + 1, 0)
            if step < 0:
                start -= size - 1
        elif kind == "at":
            if not (-n if wrap else 0) <= part[1] < n:
                return None
            start, size, count = part[1] % n, 1, 1
        elif kind != "all":
            operand = operands[part[1]]
            start = counted_from_start(operand, n) if wrap else as_position(operand)
            size = count = 1 if kind == "scalar" else part[2]
        for values, value in zip(window, (start, size, step, count)):
            values.append(value)
        axis += 1
    return window


def changed(
    x: Any, values: Any, window: Window, change: Callable[[Any, Any], Any] | None, guarded: bool
) -> Any:
    """The array with ``change(old, values)``, or ``values`` themselves, in a window.

    Args:
      values: values of the shape of the positions, in the dtype of the array.
      change: an elementwise function.
      guarded: drop the update if the window is out of bounds; otherwise its start is clamped.
    """
    shape = typeof(x).shape
    starts, sizes, steps, counts = window
    dynamic = any(not is_size(s) for s in starts)
    sparse = any(k != 1 for k in steps)
    guarded = guarded and dynamic
    values = lax.reshape(values, tuple(counts))
    whole = tuple(sizes) == shape and not dynamic
    far = any(is_beyond_int32(s) for s in starts)
    index = [size_as(s, np.uint32 if far else np.int32) if is_size(s) else s for s in starts]
    if dynamic:
        kinds = {typeof(i).dtype for i in index}
        wide = max(kinds, key=lambda d: (d.itemsize, d.kind))
        index = [lax.convert_element_type(i, wide) for i in index]
    if change is not None or sparse or guarded:
        old = x if whole else _read(x, starts, sizes, index, dynamic)
        if sparse:
            values, mask = _spread(values, window)
        new = values if change is None else change(old, values)
        if sparse:
            new = lax.select(mask, new, old)
        if guarded:
            inside = _fits(index, starts, sizes, shape)
            new = lax.select(lax.broadcast_in_dim(inside, tuple(sizes), ()), new, old)
        values = new
    if whole:
        return values
    return lax.dynamic_update_slice(x, values, index, allow_negative_indices=False)


def _read(x, starts, sizes, index, dynamic: bool):
    if dynamic:
        return lax.dynamic_slice(x, index, sizes, allow_negative_indices=False)
    return lax.slice(x, starts, [s + n for s, n in zip(starts, sizes)])


def _spread(values, window: Window):
    """Values dilated by the strides of the window, and the mask of their positions."""
    back = tuple([i for i, k in enumerate(window.steps) if k < 0])
    config = [
        (0, 0, abs(k) - 1) if n != 0 else (0, 0, 0) for k, n in zip(window.steps, window.counts)
    ]
    # The gaps are computed and discarded: 1 is valid for every operation.
    one = lax.full_like(values, 1, shape=())
    values = lax.pad(lax.rev(values, back), one, config)
    if not is_static(window.sizes):
        return values, _symbolic_mask(window)
    mask = np.ones((), np.bool_)
    for axis, (n, k) in enumerate(zip(window.sizes, window.steps)):
        line = np.arange(n) % abs(k) == 0
        mask = mask & line.reshape((n,) + (1,) * (len(window.sizes) - axis - 1))
    return values, np.broadcast_to(mask, tuple(window.sizes))


def _symbolic_mask(window: Window) -> Any:
    """The mask of updated positions for windows of symbolic sizes."""
    mask = lax.full(tuple(window.sizes), True)
    for axis, k in enumerate(window.steps):
        if abs(k) != 1:
            place = lax.broadcasted_iota(np.int32, window.sizes, axis)
            mask = lax.bitwise_and(mask, lax.eq(lax.rem(place, np.int32(abs(k))), np.int32(0)))
    return mask


def _fits(index, starts, sizes, shape):
    """True if a window is in bounds."""
    inside = None
    for i, start, size, n in zip(index, starts, sizes, shape):
        if is_size(start):
            continue
        dtype = typeof(i).dtype
        within = lax.bitwise_and(
            lax.ge(i, np.zeros((), dtype)[()]), lax.le(i, size_as(n - size, dtype))
        )
        inside = within if inside is None else lax.bitwise_and(inside, within)
    return inside
