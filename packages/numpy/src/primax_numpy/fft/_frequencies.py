"""Transform frequencies and their order."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import device_put, lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, DTypeLike, PlacementLike

from .._checks import axes_of, check_arrays, dtype_argument
from .._flips import roll_known
from .._functions import compiled


def fftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: PlacementLike | None = None,
) -> Array:
    """Frequencies of the elements of :func:`fft`, in cycles per unit of ``d``.

    Args:
      n: the number of elements, a concrete integer.
      d: the sample spacing, a scalar, 1 by default. It may be traced.
      dtype: the dtype of the result, by default the default float.
      device: placement of the result.

    Returns:
      A vector of ``n`` numbers: 0, the positive frequencies, then the negative ones, ascending.

    Raises:
      ValueError: if ``n`` is not positive, or ``d`` is not a real scalar.

    >>> fftfreq(4, 0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    >>> fftfreq(2).tolist()
    [0.0, -0.5]
    """
    n = _count("fftfreq", n)
    values = np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)])
    return _frequencies("fftfreq", values, n, d, dtype, device)


def rfftfreq(
    n: int,
    d: ArrayLike = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: PlacementLike | None = None,
) -> Array:
    """Frequencies of the elements of :func:`rfft`, in cycles per unit of ``d``.

    Args:
      n: the number of elements, a concrete integer.
      d: the sample spacing, a scalar, 1 by default. It may be traced.
      dtype: the dtype of the result, by default the default float.
      device: placement of the result.

    Returns:
      A vector of ``n // 2 + 1`` nonnegative numbers, ascending.

    Raises:
      ValueError: if ``n`` is not positive, or ``d`` is not a real scalar.

    >>> rfftfreq(4, 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    n = _count("rfftfreq", n)
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, device)


def _count(name: str, n: Any) -> int:
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(f"fft.{name}: n must be a concrete integer, got {n!r}") from None
    if count < 1:
        raise ValueError(f"fft.{name}: n must be positive, got {count}")
    return count


def _frequencies(name: str, values: np.ndarray, n: int, d: Any, dtype: Any, device: Any) -> Array:
    check_arrays(f"fft.{name}", d)
    if typeof(d).ndim or dtypes.issubdtype(typeof(d).dtype, np.complexfloating):
        raise ValueError(f"fft.{name}: d must be a real scalar, got {typeof(d)}")
    result_dtype = dtype_argument(dtype, name) or dtypes.default_float()
    out = _divided(values.astype(np.int32), d, n=n, dtype=result_dtype)
    return out if device is None else device_put(out, device)


@compiled("n", "dtype", name="fftfreq")
def _divided(values, d, *, n, dtype):
    wide = dtypes.f64 if dtypes.itemsize_bits(dtype) == 64 else dtypes.f32
    span = lax.mul(lax.convert_element_type(d, wide), np.asarray(n, wide)[()])
    out = lax.div(
        lax.convert_element_type(values, wide),
        lax.broadcast_in_dim(span, typeof(values).shape, ()),
    )
    return lax.convert_element_type(out, dtype)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Halves of axes swapped, so that the zero frequency is centred.

    Args:
      x: an array, such as the result of :func:`fft`.
      axes: an axis or a sequence of axes; all by default.

    Returns:
      An array of the shape of ``x``: a roll of each axis by ``size // 2``.

    Raises:
      ValueError: if an axis does not exist.

    The inverse is :func:`ifftshift`.

    >>> fftshift(fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    check_arrays("fft.fftshift", x)
    shape = typeof(x).shape
    positions = axes_of(axes, len(shape))
    return roll_known(x, shifts=tuple([shape[i] // 2 for i in positions]), axes=positions)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of :func:`fftshift`, which differs from it for axes of odd size.

    Args:
      x: an array with the zero frequency in the centre.
      axes: an axis or a sequence of axes; all by default.

    Returns:
      An array of the shape of ``x``: a roll of each axis by ``-(size // 2)``.

    Raises:
      ValueError: if an axis does not exist.

    >>> ifftshift(np.array([1, 2, 3])).tolist()
    [2, 3, 1]
    >>> ifftshift(fftshift(np.array([1, 2, 3]))).tolist()
    [1, 2, 3]
    """
    check_arrays("fft.ifftshift", x)
    shape = typeof(x).shape
    positions = axes_of(axes, len(shape))
    return roll_known(x, shifts=tuple([-(shape[i] // 2) for i in positions]), axes=positions)
