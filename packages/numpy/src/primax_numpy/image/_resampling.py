"""Resampling: every element of the result is a weighted sum of elements near its place."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from primax_core.extend import dtypes


class ResizeMethod(enum.Enum):
    """How elements between those of an image are found.

    ``NEAREST`` takes the nearest one. ``LINEAR`` (``"linear"``, ``"bilinear"``, ``"trilinear"``,
    ``"triangle"``) weighs by distance. ``CUBIC`` (``"cubic"``, ``"bicubic"``, ``"tricubic"``) is
    the interpolation of R. G. Keys, IEEE Trans. ASSP 29 (1981), with the parameter -1/2;
    ``CUBIC_PYTORCH`` (``"cubic-pytorch"``, ``"bicubic-pytorch"``) has -3/4 where it does not
    smooth. ``LANCZOS3`` and ``LANCZOS5`` (``"lanczos3"``, ``"lanczos5"``) weigh by windowed sinc
    functions, C. E. Duchon, J. Appl. Meteor. 18 (1979). ``AREA`` (``"area"``) averages over the
    area that an element of the result covers.
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
        """The method with a name.

        Raises:
          ValueError: for an unknown name.
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
    """A method given as itself or by name."""
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


# Weights of elements at a distance of x >= 0, in widths of an element. ``xp`` is the module that
# the functions come from: numpy for known sizes, this package for scales that may be traced.


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
    xp: Any, size: int, wanted: int, scale: Any, shift: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """How much each element of an axis counts in each of the result: ``[size, wanted]``.

    Element ``i`` of the axis comes to lie at ``i * scale + shift``. Elements of the result whose
    place is outside of the axis get no weights, the others weights whose sum is one; but
    ``CUBIC_PYTORCH`` repeats the first and last elements four times outside of the axis.

    Args:
      xp: numpy, or this package.
      scale, shift: floating scalars of ``xp``.
    """
    dtype = scale.dtype
    if method is ResizeMethod.AREA:
        weights = _overlaps(xp, size, wanted, 1 / scale, shift)
        return _normalized(xp, weights, True)
    places = (xp.arange(wanted, dtype=dtype) + 0.5 - shift) / scale - 0.5
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _repeating(xp, size, places)
    distance = xp.abs(places - xp.arange(size, dtype=dtype)[:, None])
    if antialias:
        distance = distance / xp.maximum(xp.abs(1 / scale), 1)
    inside = (places >= -0.5) & (places <= size - 0.5)
    return _normalized(xp, _KERNELS[method](xp, distance), inside)


def _repeating(xp, size: int, places):
    """Cubic weights where some elements outside of the axis are those at its ends."""
    reach = 4
    inside = (places >= -reach) & (places <= size - 1 + reach)
    elements = xp.arange(-reach, size + reach, dtype=places.dtype)[:, None]
    weights = _cubic(xp, xp.abs(xp.clip(places, -2, size + 1) - elements), -0.75)
    if size == 1:
        ends = [weights.sum(0, keepdims=True)]
    else:
        first, last = weights[: reach + 1], weights[-reach - 1 :]
        middle = weights[reach + 1 : -reach - 1]
        ends = [first.sum(0, keepdims=True), middle, last.sum(0, keepdims=True)]
    return xp.where(inside, xp.concatenate(ends, 0), 0)


def _normalized(xp, weights, counts):
    """Weights with the sum one, or zero where they do not count or nearly cancel."""
    total = weights.sum(0)
    counts = counts & (xp.abs(total) > 1000 * float(dtypes.finfo(weights.dtype).eps))
    return xp.where(counts, weights / xp.where(counts, total, 1), 0)


def _overlaps(xp, size: int, wanted: int, inverse, shift):
    """Lengths that elements of both sides have in common."""
    starts = (xp.arange(wanted, dtype=inverse.dtype) - shift) * inverse
    ends = starts + inverse
    left = xp.arange(size, dtype=inverse.dtype)[:, None]
    low = xp.maximum(left, xp.minimum(starts, ends))
    high = xp.minimum(left + 1, xp.maximum(starts, ends))
    return xp.maximum(high - low, 0)


# Few of many


class Taps(NamedTuple):
    """The elements that count in each of the result, as many for all of them.

    Attributes:
      places: ``int32[count, wanted]``.
      weights: ``[count, wanted]``.
    """

    places: np.ndarray
    weights: np.ndarray


def taps_of(weights: np.ndarray) -> Taps | None:
    """Weights that are not zero, if they are so few that a sum over all would be wasteful."""
    size, wanted = weights.shape
    used = weights != 0
    first = used.argmax(0)
    count = int((size - used[::-1].argmax(0) - first).max(initial=0))
    if count * _WASTE > size or not wanted:
        return None
    places = np.minimum(first + np.arange(count)[:, None], size - 1)
    fitting = first + np.arange(count)[:, None] < size
    found = np.where(fitting, np.take_along_axis(weights, places, 0), 0)
    return Taps(places.astype(np.int32), found)


_WASTE: Final = 16
"""How many times more elements than taps make taking them one by one faster than a matrix product
(measured on a CPU for images of three channels)."""
