"""Resampling: every element of the result is a weighted sum of elements near its place."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import dtypes, typeof


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


# Weights of elements at a distance of x >= 0, in widths of an element.


def _triangle(x):
    return lax.max(lax.sub(_number(x, 1), x), _number(x, 0))


def _cubic(x, a: float):
    near = _polynomial(x, (a + 2, -(a + 3), 0, 1))
    far = _polynomial(x, (a, -5 * a, 8 * a, -4 * a))
    zero = lax.full_like(x, 0)
    outer = lax.select(lax.lt(x, lax.full_like(x, 2)), far, zero)
    return lax.select(lax.lt(x, lax.full_like(x, 1)), near, outer)


def _lanczos(x, radius: int):
    one = lax.full_like(x, 1)
    small = lax.le(x, lax.full_like(x, 1e-3))
    y = lax.mul(lax.select(small, one, x), _number(x, math.pi))
    window = lax.sin(lax.div(y, _number(x, radius)))
    value = lax.div(lax.mul(_number(x, radius), lax.mul(lax.sin(y), window)), lax.mul(y, y))
    inside = lax.lt(x, lax.full_like(x, radius))
    return lax.select(small, one, lax.select(inside, value, lax.full_like(x, 0)))


def _number(x, value: float):
    return np.asarray(value, typeof(x).dtype)[()]


def _polynomial(x, coefficients):
    out = lax.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        out = lax.add(lax.mul(out, x), _number(x, c))
    return out


def _kernel(method: ResizeMethod, antialias: bool) -> Callable[[Any], Any]:
    match method:
        case ResizeMethod.LINEAR:
            return _triangle
        case ResizeMethod.CUBIC:
            return lambda x: _cubic(x, -0.5)
        case ResizeMethod.CUBIC_PYTORCH:
            return lambda x: _cubic(x, -0.5 if antialias else -0.75)
        case ResizeMethod.LANCZOS3:
            return lambda x: _lanczos(x, 3)
        case _:
            return lambda x: _lanczos(x, 5)


def weights_of(
    size: int, wanted: int, scale: Any, shift: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """How much each element of an axis counts in each of the result: ``[size, wanted]``.

    Element ``i`` of the axis comes to lie at ``i * scale + shift``. Elements of the result whose
    place is outside of the axis get no weights, the others weights whose sum is one; but
    ``CUBIC_PYTORCH`` repeats the first and last elements four times outside of the axis.
    """
    dtype = typeof(scale).dtype
    inverse = lax.div(np.ones((), dtype)[()], scale)
    if method is ResizeMethod.AREA:
        weights = _overlaps(size, wanted, inverse, shift)
        return _normalized(weights, lax.full((wanted,), True, np.dtype(bool)))
    middle = lax.add(lax.iota(dtype, wanted), np.asarray(0.5, dtype)[()])
    places = lax.sub(
        lax.mul(lax.sub(middle, _filled(shift, wanted)), _filled(inverse, wanted)),
        np.asarray(0.5, dtype)[()],
    )
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _repeating(size, places)
    distance = _distances(places, 0, size)
    if antialias:
        width = lax.max(lax.abs(inverse), np.ones((), dtype)[()])
        distance = lax.div(distance, lax.broadcast_in_dim(width, (size, wanted), ()))
    inside = lax.bitwise_and(
        lax.ge(places, np.asarray(-0.5, dtype)[()]),
        lax.le(places, np.asarray(size - 0.5, dtype)[()]),
    )
    return _normalized(_kernel(method, antialias)(distance), inside)


def _distances(places, start: int, stop: int):
    """Distances of elements from places: ``[stop - start, wanted]``."""
    dtype = typeof(places).dtype
    shape = (stop - start, typeof(places).shape[0])
    elements = lax.add(lax.broadcasted_iota(dtype, shape, 0), np.asarray(start, dtype)[()])
    return lax.abs(lax.sub(lax.broadcast_in_dim(places, shape, (1,)), elements))


def _repeating(size: int, places):
    """Cubic weights where some elements outside of the axis are those at its ends."""
    dtype = typeof(places).dtype
    reach = 4
    given = places
    places = lax.clamp(np.asarray(-2, dtype)[()], places, np.asarray(size + 1, dtype)[()])
    weights = _cubic(_distances(places, -reach, size + reach), -0.75)
    n = size + 2 * reach
    first, last = (
        lax.expand_dims(lax.reduce_sum(lax.slice_in_dim(weights, *part), (0,)), (0,))
        for part in ((0, reach + 1), (n - reach - 1, n))
    )
    if size == 1:
        all_of = lax.full_like(first, 1)
    else:
        inner = lax.slice_in_dim(weights, reach + 1, n - reach - 1)
        all_of = lax.concatenate([first, inner, last], 0)
    ends = (np.asarray(v, dtype)[()] for v in (-reach, size - 1 + reach))
    low, high = (compare(given, end) for compare, end in zip((lax.ge, lax.le), ends))
    inside = lax.convert_element_type(lax.bitwise_and(low, high), dtype)
    return lax.mul(all_of, lax.broadcast_in_dim(inside, typeof(all_of).shape, (1,)))


def _normalized(weights, counts):
    """Weights with the sum one, or zero where they do not count or nearly cancel."""
    dtype = typeof(weights).dtype
    total = lax.reduce_sum(weights, (0,))
    least = np.asarray(1000 * float(dtypes.finfo(dtype).eps), dtype)[()]
    counts = lax.bitwise_and(counts, lax.gt(lax.abs(total), least))
    one = lax.full_like(total, 1)
    factor = lax.select(
        counts, lax.div(one, lax.select(counts, total, one)), lax.full_like(total, 0)
    )
    return lax.mul(weights, lax.broadcast_in_dim(factor, typeof(weights).shape, (1,)))


def _filled(x, n: int):
    return lax.broadcast_in_dim(x, (n,), ())


def _overlaps(size: int, wanted: int, inverse, shift):
    """Lengths that elements of both sides have in common."""
    dtype = typeof(inverse).dtype
    starts = lax.sub(lax.iota(dtype, wanted), _filled(shift, wanted))
    ends = lax.add(starts, np.ones((), dtype)[()])
    first, second = (lax.mul(v, _filled(inverse, wanted)) for v in (starts, ends))
    shape = (size, wanted)
    left = lax.broadcasted_iota(dtype, shape, 0)
    right = lax.add(left, np.ones((), dtype)[()])
    low = lax.max(left, lax.broadcast_in_dim(lax.min(first, second), shape, (1,)))
    high = lax.min(right, lax.broadcast_in_dim(lax.max(first, second), shape, (1,)))
    return lax.max(lax.sub(high, low), np.zeros((), dtype)[()])
