"""Resampling weights: each output element is a weighted sum of nearby input elements."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core.extend import dtypes


class ResizeMethod(enum.Enum):
    """Interpolation method of image resizing.

    ``NEAREST`` selects the nearest element. ``LINEAR`` (``"linear"``, ``"bilinear"``,
    ``"trilinear"``, ``"triangle"``) uses a triangle kernel. ``CUBIC`` (``"cubic"``, ``"bicubic"``,
    ``"tricubic"``) is the interpolation of R. G. Keys, IEEE Trans. ASSP 29 (1981), with the
    parameter -1/2; ``CUBIC_PYTORCH`` (``"cubic-pytorch"``, ``"bicubic-pytorch"``) uses -3/4
    without antialiasing. ``LANCZOS3`` and ``LANCZOS5`` (``"lanczos3"``, ``"lanczos5"``) use
    windowed sinc functions, C. E. Duchon, J. Appl. Meteor. 18 (1979). ``AREA`` (``"area"``)
    averages over the input area of each output element.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a given name.

        Raises:
          ValueError: if the name is unknown.
        """
        if s not in _NAMES:
            raise ValueError(f'Unknown resize method "{s}": use one of {", ".join(_NAMES)}')
        return _NAMES[s]


_NAMES: Final = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def method_of(method: Any) -> ResizeMethod:
    """The method, which may be specified by name."""
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


# Kernels: weights at a distance x >= 0, in units of input elements. ``xp`` is numpy for concrete #
# scales, or this package for scales that may be traced.


def _triangle(xp, x):
    return xp.maximum(1 - x, 0)


def _cubic(xp, x, a: float):
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return xp.where(x < 1, near, xp.where(x < 2, far, 0))


def _lanczos(xp, x, radius: int):
    small = x <= 1e-3
    y = math.pi * xp.where(small, 1, x)
    value = radius * xp.sin(y) * xp.sin(y / radius) / (y * y)
    return xp.where(small, 1, xp.where(x < radius, value, 0))


_KERNELS: Final[dict[ResizeMethod, Callable[[Any, Any], Any]]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: lambda xp, x: _cubic(xp, x, -0.5),
    ResizeMethod.CUBIC_PYTORCH: lambda xp, x: _cubic(xp, x, -0.5),
    ResizeMethod.LANCZOS3: lambda xp, x: _lanczos(xp, x, 3),
    ResizeMethod.LANCZOS5: lambda xp, x: _lanczos(xp, x, 5),
}


def weights_of(
    xp: Any, size: int, out_size: int, scale: Any, shift: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """Weight of each input element in each output element: ``[size, out_size]``.

    Input position ``i`` maps to output position ``i * scale + shift``. Output elements outside of
    the input have zero weights, the others have weights of sum 1. ``CUBIC_PYTORCH`` first extends
    the input by four copies of the first and of the last element.

    Args:
      xp: numpy, or this package.
      scale, shift: floating scalars of ``xp``.
    """
    dtype = scale.dtype
    if method is ResizeMethod.AREA:
        weights = _overlaps(xp, size, out_size, 1 / scale, shift)
        return _normalized(xp, weights, True)
    places = (xp.arange(out_size, dtype=dtype)[None, :] + 0.5 - shift) / scale - 0.5
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _repeating(xp, size, places)
    distance = xp.abs(places - xp.arange(size, dtype=dtype)[:, None])
    if antialias:
        distance = distance / xp.maximum(xp.abs(1 / scale), 1)
    inside = (places >= -0.5) & (places <= xp.asarray(size, dtype) - 0.5)
    return _normalized(xp, _KERNELS[method](xp, distance), inside)


def _repeating(xp, size: int, places):
    """Cubic weights for an input extended by copies of its end elements."""
    reach, dtype = 4, places.dtype
    end = xp.asarray(size, dtype)
    inside = (places >= -reach) & (places <= end - 1 + reach)
    places = xp.clip(places, -2, end + 1)

    def weights(elements):
        return _cubic(xp, xp.abs(places - elements[:, None]), -0.75)

    elements, outside = xp.arange(size, dtype=dtype), xp.arange(reach, dtype=dtype)
    before = weights(outside - reach).sum(0, keepdims=True)
    after = weights(outside + end).sum(0, keepdims=True)
    total = weights(elements)
    total = total + xp.where(elements[:, None] == 0, before, 0)
    total = total + xp.where(elements[:, None] == end - 1, after, 0)
    return xp.where(inside, total, 0)


def _normalized(xp, weights, counts):
    """Weights of sum 1, or zero where ``counts`` is false or the weights nearly cancel."""
    total = weights.sum(0, keepdims=True)
    counts = counts & (xp.abs(total) > 1000 * float(dtypes.finfo(weights.dtype).eps))
    return xp.where(counts, weights / xp.where(counts, total, 1), 0)


def _overlaps(xp, size: int, out_size: int, inverse, shift):
    """Overlap lengths of input and output elements."""
    starts = (xp.arange(out_size, dtype=inverse.dtype)[None, :] - shift) * inverse
    ends = starts + inverse
    left = xp.arange(size, dtype=inverse.dtype)[:, None]
    low = xp.maximum(left, xp.minimum(starts, ends))
    high = xp.minimum(left + 1, xp.maximum(starts, ends))
    return xp.maximum(high - low, 0)


# Sparse weights


class Taps(NamedTuple):
    """The input elements with nonzero weights, in equal numbers for all output elements.

    Attributes:
      places: input indices, ``int32[count, out_size]``.
      weights: their weights, ``[count, out_size]``.
    """

    places: np.ndarray
    weights: np.ndarray


def taps_of(weights: np.ndarray) -> Taps | None:
    """The nonzero weights, if they are so sparse that a dense product would be wasteful."""
    size, out_size = weights.shape
    used = weights != 0
    first = used.argmax(0)
    count = int((size - used[::-1].argmax(0) - first).max(initial=0))
    if count * _WASTE > size or not out_size:
        return None
    places = np.minimum(first + np.arange(count)[:, None], size - 1)
    fitting = first + np.arange(count)[:, None] < size
    values = np.where(fitting, np.take_along_axis(weights, places, 0), 0)
    return Taps(places.astype(np.int32), values)


_WASTE: Final = 16
"""Minimum ratio of elements to taps at which gathering single taps is faster than a matrix product
(measured on a CPU for images of three channels)."""
