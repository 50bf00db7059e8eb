"""B-spline weights and coefficients on uniform grids.

Unser, Aldroubi and Eden, IEEE Trans. Signal Processing 41 (1993). The coefficients are computed by
division of spectra, with a periodic extension for each boundary condition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import typeof

from .._layout import along, constant


def weights(t: Any, order: int) -> list[Any]:
    """The ``order + 1`` nonzero B-splines at fractions ``t`` of an interval, left to right."""
    values: list[Any] = [lax.full_like(t, 1)]
    for k in range(1, order + 1):
        new = []
        for j in range(k + 1):
            term: Any = None
            if j > 0:
                term = (t + float(k - j)) * values[j - 1]
            if j < k:
                right = (float(j + 1) - t) * values[j]
                term = right if term is None else term + right
            new.append(term / float(k))
        values = new
    return values


def start_and_fraction(x: Any, order: int) -> tuple[Any, Any]:
    """The first node with a nonzero B-spline at a coordinate, as a float, and the fraction."""
    center = lax.floor(x + 0.5) if order % 2 == 0 else lax.floor(x)
    fraction = x - center + (0.5 if order % 2 == 0 else 0.0)
    return center - float(order // 2), fraction


def _at_integers(order: int) -> Any:
    """The B-spline at the integers from ``-order // 2`` on."""
    values = [1.0]
    t = 0.5 if order % 2 == 0 else 0.0
    for k in range(1, order + 1):
        padded = [0.0, *values, 0.0]
        values = [((t + k - j) * padded[j] + (j + 1 - t) * padded[j + 1]) / k for j in range(k + 1)]
    return values if order % 2 == 0 else values[:-1]


def spline_coefficients(x: Any, axis: int, order: int, mode: str) -> Any:
    """Coefficients of the interpolating spline along an axis.

    Args:
      x: floats or complex numbers.
      mode: ``"mirror"``, ``"reflect"`` or ``"grid-wrap"``.
    """
    n = typeof(x).shape[axis]
    if order < 2 or n == 1:
        return x
    if mode == "mirror":
        inner = lax.rev(lax.slice_in_dim(x, 1, n - 1, axis=axis), (axis,))
        whole = lax.concatenate([x, inner], axis)
    elif mode == "reflect":
        whole = lax.concatenate([x, lax.rev(x, (axis,))], axis)
    else:
        whole = x
    size = typeof(whole).shape[axis]
    samples = np.array(_at_integers(order))
    half = len(samples) // 2
    angles = 2 * np.pi * np.arange(size) / size
    spectrum = samples[half] + 2 * sum(
        samples[half + k] * np.cos(k * angles) for k in range(1, half + 1)
    )
    if typeof(x).dtype.kind == "c":
        divisor = along(constant(spectrum + 0j, x), axis, typeof(x).ndim)
        out = pnp.fft.ifft(pnp.fft.fft(whole, axis=axis) / divisor, axis=axis)
    else:
        divisor = along(constant(spectrum[: size // 2 + 1] + 0j, x), axis, typeof(x).ndim)
        out = pnp.fft.irfft(pnp.fft.rfft(whole, axis=axis) / divisor, size, axis=axis)
    return lax.slice_in_dim(out, 0, n, axis=axis)
