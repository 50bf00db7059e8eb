"""Type II discrete cosine transforms and their inverses, by the FFT.

The even elements followed by the reversed odd elements have a Fourier transform whose elements,
times
phase factors, are the cosine transform: Makhoul, IEEE Trans. ASSP 28 (1980).
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, dtypes, typeof
from primax_numpy.declaring import as_inexact, axes_of, check_arrays, compiled, is_complex, one_axis


def _sized(x: Any, n: int, axis: int) -> Any:
    """An axis truncated or padded with zeros to a length."""
    length = typeof(x).shape[axis]
    if n <= length:
        return lax.slice_in_dim(x, 0, n, axis=axis)
    widths = [(0, 0, 0)] * typeof(x).ndim
    widths[axis] = (0, n - length, 0)
    return lax.pad(x, lax.full((), 0, typeof(x).dtype), widths)


def _phases(n: int, axis: int, x: Any, sign: float) -> Any:
    """``exp(sign i π k / (2 n))`` along an axis, computed in double precision."""
    angle = sign * math.pi / (2 * n) * np.arange(n)
    dtype = np.result_type(typeof(x).dtype, np.complex64)
    shape = [1] * typeof(x).ndim
    shape[axis] = n
    return np.exp(1j * angle).astype(dtype).reshape(shape)


def _orthonormal(n: int, axis: int, x: Any) -> Any:
    scale = np.full(n, math.sqrt(1 / (2 * n)))
    scale[:1] = math.sqrt(1 / (4 * n))
    shape = [1] * typeof(x).ndim
    shape[axis] = n
    return scale.astype(dtypes.finfo(typeof(x).dtype).dtype).reshape(shape)


def _forward(x: Any, axis: int, ortho: bool) -> Any:
    if is_complex(x):
        return lax.complex(
            _forward(lax.real(x), axis, ortho), _forward(lax.imag(x), axis, ortho)
        )  # fmt: skip
    n = typeof(x).shape[axis]
    even = lax.slice_in_dim(x, 0, n, 2, axis)
    odd = lax.slice_in_dim(x, 1, n, 2, axis) if n > 1 else lax.slice_in_dim(x, 0, 0, 1, axis)
    permuted = lax.concatenate([even, lax.rev(odd, (axis,))], axis)
    out = 2 * lax.real(pnp.fft.fft(permuted, axis=axis) * _phases(n, axis, x, -1.0))
    return out * _orthonormal(n, axis, x) if ortho else out


def _backward(y: Any, axis: int, ortho: bool) -> Any:
    if is_complex(y):
        return lax.complex(
            _backward(lax.real(y), axis, ortho), _backward(lax.imag(y), axis, ortho)
        )  # fmt: skip
    n = typeof(y).shape[axis]
    if ortho:
        y = y / _orthonormal(n, axis, y)
    # Element n - k of the transform is that at k times a phase factor of 90 degrees.
    rest = lax.rev(lax.slice_in_dim(y, 1, n, axis=axis), (axis,))
    widths = [(0, 0, 0)] * typeof(y).ndim
    widths[axis] = (1, 0, 0)
    mirrored = lax.pad(rest, lax.full((), 0, typeof(y).dtype), widths)
    spectrum = lax.complex(y, -mirrored) * (0.5 * _phases(n, axis, y, 1.0))
    permuted = lax.real(pnp.fft.ifft(spectrum, axis=axis))
    half = (n + 1) // 2
    even = lax.slice_in_dim(permuted, 0, half, axis=axis)
    odd = lax.rev(lax.slice_in_dim(permuted, half, n, axis=axis), (axis,))
    pads_even, pads_odd = list(widths), list(widths)
    pads_even[axis], pads_odd[axis] = (0, n - (2 * half - 1), 1), (1, n % 2, 1)
    zero = lax.full((), 0, typeof(y).dtype)
    if n == 1:
        return even
    return lax.pad(even, zero, pads_even) + lax.pad(odd, zero, pads_odd)


@compiled("axes", "sizes", "ortho", "back", name="dct")
def _transformed(x, *, axes, sizes, ortho, back):
    x = as_inexact(x)
    dtype = typeof(x).dtype
    if dtype.itemsize < 4:
        x = lax.convert_element_type(x, np.float32)
    for axis, n in zip(axes, sizes):
        x = (_backward if back else _forward)(_sized(x, n, axis), axis, ortho)
    return lax.convert_element_type(x, typeof(x).dtype)


def _apply(name: str, x: Any, type: int, sizes: Any, axes: Any, norm: Any, back: bool) -> Array:
    check_arrays(name, x)
    if type != 2:
        raise NotImplementedError(
            f"{name}: only type 2 (and its inverse) is implemented, got type {type}"
        )
    if norm not in (None, "backward", "ortho"):
        raise ValueError(
            f"{name}: norm={norm!r} is not implemented; use None, 'backward' or 'ortho'"
        )
    shape = typeof(x).shape
    lengths = [shape[a] for a in axes] if sizes is None else [operator.index(n) for n in sizes]
    if len(lengths) != len(axes):
        raise ValueError(f"{name}: {len(lengths)} sizes for {len(axes)} axes")
    if any(n < 1 for n in lengths):
        raise ValueError(f"{name}: sizes must be positive, got {lengths}")
    out: Array = _transformed(
        x, axes=tuple(axes), sizes=tuple(lengths), ortho=norm == "ortho", back=back
    )
    return out


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: Any = None) -> Array:
    """Type II cosine transform, ``2 sum(x[j] cos(π k (2 j + 1) / (2 n)))`` for each ``k``.

    Args:
      x: numbers; integers and narrow floats become ``float32`` or wider.
      type: only 2.
      n: the length to which the axis is truncated or padded with zeros.
      axis: the axis.
      norm: ``"ortho"`` for an orthonormal transform; None or ``"backward"``.

    Raises:
      NotImplementedError: if the type is not 2.
      ValueError: if the norm is unknown, or the axis does not exist.

    >>> dct(np.float32([1, 1])).tolist()
    [4.0, 0.0]
    """
    check_arrays("dct", x)
    position = one_axis(axis, typeof(x).ndim)
    return _apply("dct", x, type, None if n is None else (n,), (position,), norm, False)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: Any = None) -> Array:
    """Inverse of :func:`dct` with the same arguments."""
    check_arrays("idct", x)
    position = one_axis(axis, typeof(x).ndim)
    return _apply("idct", x, type, None if n is None else (n,), (position,), norm, True)


def _several(name: str, x: Any, type: int, s: Any, axes: Any, norm: Any, back: bool) -> Array:
    check_arrays(name, x)
    ndim = typeof(x).ndim
    if axes is None and s is not None:
        axes = range(ndim - len(s), ndim)
    return _apply(
        name, x, type, s, axes_of(None if axes is None else _tuple(axes), ndim), norm, back
    )


def _tuple(axes: Any) -> tuple[int, ...]:
    return tuple(axes) if hasattr(axes, "__iter__") else (axes,)


def dctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None) -> Array:
    """:func:`dct` along several axes, by default all, or the last ``len(s)`` axes of lengths
    ``s``."""
    return _several("dctn", x, type, s, axes, norm, False)


def idctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None) -> Array:
    """Inverse of :func:`dctn` with the same arguments."""
    return _several("idctn", x, type, s, axes, norm, True)
