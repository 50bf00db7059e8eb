"""Integrals of samples."""

from __future__ import annotations

from typing import Any

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import is_operand, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import as_inexact, check_arrays, one_axis


def _prepared(name: str, y: Any, x: Any, dx: Any, axis: int) -> tuple[Any, Any, int]:
    """The samples with the axis of integration last, the distances ``[..., n - 1]``, the axis.

    Raises:
      ValueError: if ``x`` does not match, or there are no samples.
    """
    check_arrays(name, y)
    y = as_inexact(pnp.asarray(y))
    axis = one_axis(axis, typeof(y).ndim)
    y = pnp.moveaxis(y, axis, -1)
    n = typeof(y).shape[-1]
    if not n:
        raise ValueError(f"{name}: the axis {axis} of y has no samples")
    if x is None:
        dx = lax.convert_element_type(dx, typeof(y).dtype)
        return y, pnp.broadcast_to(dx, typeof(y).shape)[..., 1:], axis
    check_arrays(name, x)
    shape = typeof(x).shape
    x = lax.convert_element_type(x, typeof(y).dtype)
    if len(shape) == 1 and shape[0] == n:
        x = x.reshape((1,) * (typeof(y).ndim - 1) + (n,))
    elif len(shape) == typeof(y).ndim:
        x = pnp.moveaxis(x, axis, -1)
    if typeof(x).ndim != typeof(y).ndim or typeof(x).shape[-1] != n:
        raise ValueError(
            f"{name}: x of shape {shape} must be a vector of {n} points or have the shape of y"
        )
    x = pnp.broadcast_to(x, typeof(y).shape)
    return y, pnp.diff(x, axis=-1), axis


def _with_initial(name: str, out: Any, initial: Any, axis: int, add: bool) -> Any:
    if initial is not None:
        if is_operand(initial) and typeof(initial).ndim:
            raise ValueError(f"{name}: initial must be a number, got {typeof(initial).shape}")
        first = lax.convert_element_type(initial, typeof(out).dtype)
        column = pnp.broadcast_to(first, (*typeof(out).shape[:-1], 1))
        out = pnp.concatenate([column, out + first if add else out], -1)
    return pnp.moveaxis(out, -1, axis)


def cumulative_trapezoid(
    y: ArrayLike,
    x: ArrayLike | None = None,
    dx: ArrayLike = 1.0,
    axis: int = -1,
    initial: ArrayLike | None = None,
) -> Any:
    """Running integral of samples by the trapezoidal rule.

    Args:
      y: samples ``number[..., n, ...]``.
      x: the points, a vector ``[n]`` or an array like ``y``.
      dx: the distance of points if ``x`` is None.
      axis: the axis of integration.
      initial: a first element of the result, usually 0; None for ``n - 1`` elements.

    Raises:
      ValueError: if ``x`` does not match, or ``initial`` is not a number.

    >>> import numpy as np
    >>> cumulative_trapezoid(np.float32([0, 1, 2]), initial=0).tolist()
    [0.0, 0.5, 2.0]
    """
    y, d, axis = _prepared("cumulative_trapezoid", y, x, dx, axis)
    out = pnp.cumsum(d * (y[..., 1:] + y[..., :-1]) * 0.5, axis=-1)
    return _with_initial("cumulative_trapezoid", out, initial, axis, False)


def _pair(h0: Any, h1: Any, a: Any, b: Any, c: Any) -> Any:
    """The integral of the parabola through three points, over both intervals."""
    both = h0 + h1
    # Equal points contribute nothing.
    safe0, safe1 = pnp.where(h0 == 0, 1, h0), pnp.where(h1 == 0, 1, h1)
    degenerate = (h0 == 0) | (h1 == 0)
    middle = pnp.where(degenerate, 0, both * both / (safe0 * safe1))
    left = pnp.where(degenerate, 0, 2 - h1 / safe0)
    right = pnp.where(degenerate, 0, 2 - h0 / safe1)
    return both / 6 * (a * left + b * middle + c * right)


def _first_of_pair(h0: Any, h1: Any, a: Any, b: Any, c: Any) -> Any:
    """The integral of the parabola through three points, over the first interval."""
    safe, both = pnp.where(h1 == 0, 1, h1), pnp.where(h0 + h1 == 0, 1, h0 + h1)
    bend = pnp.where(h1 == 0, 0, (c - b) * h0 / safe - (b - a)) * h0 / both
    return h0 * (0.5 * (a + b) - bend / 6)


def simpson(
    y: ArrayLike, x: ArrayLike | None = None, *, dx: ArrayLike = 1.0, axis: int = -1
) -> Any:
    """Integral of samples by Simpson's rule.

    Args:
      y, x, dx, axis: as for :func:`cumulative_trapezoid`. If the number of samples is even, the
        last interval is integrated with the parabola through the last three points (Cartwright,
        J. Math. Sci. Math. Educ. 12, 2017). Two samples use the trapezoidal rule.

    >>> import numpy as np
    >>> round(float(simpson(np.float32([0, 1, 4, 9, 16]))), 3)
    21.333
    """
    y, d, _ = _prepared("simpson", y, x, dx, axis)
    n = typeof(y).shape[-1]
    if n < 3:
        return pnp.sum(d * (y[..., 1:] + y[..., :-1]) * 0.5, -1)
    odd = n if n % 2 else n - 1
    if x is None and not (is_operand(dx) and typeof(dx).ndim):
        middles, others = pnp.sum(y[..., 1:odd:2], -1), pnp.sum(y[..., 2 : odd - 1 : 2], -1)
        out = (y[..., 0] + y[..., odd - 1] + 4 * middles + 2 * others) * (d[..., 0] / 3)
    else:
        pairs = _pair(
            d[..., 0 : odd - 1 : 2], d[..., 1:odd:2], y[..., 0 : odd - 2 : 2],
            y[..., 1 : odd - 1 : 2], y[..., 2:odd:2],
        )  # fmt: skip
        out = pnp.sum(pairs, -1)
    if n % 2 == 0:
        out = out + _first_of_pair(d[..., -1], d[..., -2], y[..., -1], y[..., -2], y[..., -3])
    return out


def cumulative_simpson(
    y: ArrayLike,
    *,
    x: ArrayLike | None = None,
    dx: ArrayLike = 1.0,
    axis: int = -1,
    initial: ArrayLike | None = None,
) -> Any:
    """Running integral of samples by Simpson's rule.

    Args:
      y, x, dx, axis: as for :func:`cumulative_trapezoid`; two samples use the trapezoidal rule.
      initial: a first element of the result, which is added to all; None for ``n - 1`` elements.

    Each interval is integrated with a parabola through it and a neighbour (Cartwright, 2017).

    >>> import numpy as np
    >>> [round(float(v), 4) for v in cumulative_simpson(np.float32([0, 1, 4]), initial=0)]
    [0.0, 0.3333, 2.6667]
    """
    y, d, axis = _prepared("cumulative_simpson", y, x, dx, axis)
    n = typeof(y).shape[-1]
    if n < 3:
        out = pnp.cumsum(d * (y[..., 1:] + y[..., :-1]) * 0.5, axis=-1)
        return _with_initial("cumulative_simpson", out, initial, axis, True)
    h0, h1 = d[..., :-1], d[..., 1:]
    a, b, c = y[..., :-2], y[..., 1:-1], y[..., 2:]
    first, second = _first_of_pair(h0, h1, a, b, c), _first_of_pair(h1, h0, c, b, a)
    index = pnp.arange(n - 1)
    ahead = pnp.minimum(index, n - 3)
    behind = pnp.maximum(index - 1, 0)
    even = (index % 2 == 0) & (index < n - 2)
    parts = pnp.where(even, first[..., ahead], second[..., behind])
    return _with_initial("cumulative_simpson", pnp.cumsum(parts, axis=-1), initial, axis, True)
