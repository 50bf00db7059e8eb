"""Start, stop and length of slices of axes with static or symbolic sizes."""

from __future__ import annotations

from typing import Any

from .symbolic_dims import decided, index, is_static, max_dim, min_dim


def slice_bounds(s: slice, n: Any) -> tuple[Any, Any, int]:
    """Start, stop and step of a Python slice, for an axis of any size.

    Args:
      s: a slice. Its bounds may be symbolic dimensions; negative ones count from the end.
      n: the size of the axis, a number or a symbolic dimension.

    Returns:
      ``(start, stop, step)``, like ``slice.indices``; the stop is not before the start.

    Raises:
      ValueError: if the step is zero.

    For symbolic sizes the results are expressions.

    >>> from primax_core.extend.dimensions import slice_bounds
    >>> slice_bounds(slice(-2, None), 5)
    (3, 5, 1)
    >>> slice_bounds(slice(None, None, 2), 5)
    (0, 5, 2)
    """
    bounds_and_step = [None if v is None else index(v) for v in (s.start, s.stop, s.step)]
    if is_static([n, *[v for v in bounds_and_step if v is not None]]):
        start, stop, step = slice(*bounds_and_step).indices(n)
        return start, max(start, stop) if step > 0 else min(start, stop), step
    low, high, step = bounds_and_step
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    first, last = (0, n) if step > 0 else (n - 1, -1)

    def inside(v: Any, default: Any) -> Any:
        if v is None:
            return default
        if v >= 0:
            return min_dim(n if step > 0 else n - 1, v)
        return max_dim(0 if step > 0 else -1, v + n)

    start, stop = inside(low, first), inside(high, last)
    if not _in_order(low, high, step):
        stop = max_dim(start, stop) if step > 0 else min_dim(start, stop)
    return start, stop, step


def _in_order(low: Any, high: Any, step: int) -> bool:
    """Return True if two bounds of the same sign are in order before they are clamped."""
    if low is None or high is None:
        return True
    if not decided(lambda: (low >= 0) == (high >= 0), False):
        return False
    return decided(lambda: low <= high if step > 0 else low >= high, False)


def slice_length(start: Any, stop: Any, step: int) -> Any:
    """Number of positions from a start to a stop.

    Args:
      start: the first position.
      stop: the end, which is not before the start.
      step: the distance of positions, a Python integer.

    Returns:
      A number, or an expression for symbolic bounds.

    The arguments are results of :func:`slice_bounds`.

    >>> from primax_core.extend.dimensions import slice_length
    >>> slice_length(0, 5, 2)
    3
    >>> slice_length(5, 5, 1)
    0
    """
    if is_static((start, stop, step)):
        return len(range(start, stop, step))
    if step < 0:
        start, stop, step = stop, start, -step
    return (stop - start + step - 1) // step
