"""Discrete Fourier transforms along one or several axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from primax_core import lax
from primax_core.extend import Array, dtypes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike, ShapeLike

from .._checks import check_arrays, one_axis
from .._functions import compiled

_FFT, _IFFT, _RFFT, _IRFFT = "FFT", "IFFT", "RFFT", "IRFFT"
_NORMS: Final = ("backward", "ortho", "forward")
_AT_ONCE: Final = 3
"""Maximum number of axes that XLA transforms in one operation."""


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Discrete Fourier transform along one axis: ``sum(a[k] * exp(-2j*pi*i*k/n))``.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      n: the length of the transform: the axis is truncated or padded with zeros.
      axis: the axis, by default the last.
      norm: the normalization: ``"backward"`` (the default) divides the inverse by ``n``,
        ``"forward"`` the forward transform by ``n``, ``"ortho"`` both by ``sqrt(n)``.

    Returns:
      A complex array, of size ``n`` along the axis.

    Raises:
      ValueError: if the axis does not exist, ``n`` is less than 1, or ``norm`` is unknown.

    >>> fft(np.float32([1, 0])).tolist()
    [(1+0j), (1+0j)]
    """
    return _one("fft", _FFT, a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Inverse discrete Fourier transform along one axis: ``sum(a[k] * exp(2j*pi*i*k/n)) / n``.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      n: the length of the transform: the axis is truncated or padded with zeros.
      axis: the axis, by default the last.
      norm: the normalization: ``"backward"`` (the default) divides the inverse by ``n``,
        ``"forward"`` the forward transform by ``n``, ``"ortho"`` both by ``sqrt(n)``.

    Returns:
      A complex array, of size ``n`` along the axis.

    Raises:
      ValueError: if the axis does not exist, ``n`` is less than 1, or ``norm`` is unknown.

    >>> ifft(np.complex64([1, 1])).tolist()
    [(1+0j), 0j]
    """
    return _one("ifft", _IFFT, a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Discrete Fourier transform of real numbers along one axis, without redundant elements.

    The result has the first ``n // 2 + 1`` elements of :func:`fft`; the others are their
    conjugates.

    Args:
      a: real numbers; the transform uses ``float32``, or ``float64`` for 64-bit dtypes.
      n: the length of the transform: the axis is truncated or padded with zeros.
      axis: the axis, by default the last.
      norm: the normalization: ``"backward"`` (the default) divides the inverse by ``n``,
        ``"forward"`` the forward transform by ``n``, ``"ortho"`` both by ``sqrt(n)``.

    Returns:
      A complex array, of size ``n // 2 + 1`` along the axis.

    Raises:
      ValueError: if ``a`` is complex, the axis does not exist, ``n`` is less than 1, or ``norm``
        is unknown.

    >>> rfft(np.float32([1, 0, 0, 0])).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """
    return _one("rfft", _RFFT, a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of :func:`rfft`: real numbers from the nonnegative frequencies.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      n: the length of the result, by default ``2 * (size - 1)``. Pass it for odd lengths.
      axis: the axis, by default the last.
      norm: the normalization: ``"backward"`` (the default) divides the inverse by ``n``,
        ``"forward"`` the forward transform by ``n``, ``"ortho"`` both by ``sqrt(n)``.

    Returns:
      A real array, of size ``n`` along the axis.

    Raises:
      ValueError: if the axis does not exist, ``n`` is less than 1, or ``norm`` is unknown.

    >>> irfft(np.complex64([1, 1, 1])).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    return _one("irfft", _IRFFT, a, n, axis, norm)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Real spectrum of a Hermitian-symmetric signal, represented by its first half.

    The result is :func:`irfft` of the conjugate, without the division by ``n``.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      n: the length of the result, by default ``2 * (size - 1)``. Pass it for odd lengths.
      axis: the axis, by default the last.
      norm: the normalization: ``"backward"`` (the default) divides the inverse by ``n``,
        ``"forward"`` the forward transform by ``n``, ``"ortho"`` both by ``sqrt(n)``.

    Returns:
      A real array, of size ``n`` along the axis.

    Raises:
      ValueError: if the axis does not exist, ``n`` is less than 1, or ``norm`` is unknown.

    >>> hfft(np.complex64([1, 0, 0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    check_arrays("fft.hfft", a)
    return _one("hfft", _IRFFT, a, n, axis, _inverse_norm("hfft", norm), conjugate=True)


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Inverse of :func:`hfft`: the conjugate of :func:`rfft`, divided by ``n``.

    Args:
      a: real numbers; the transform uses ``float32``, or ``float64`` for 64-bit dtypes.
      n: the length of the transform: the axis is truncated or padded with zeros.
      axis: the axis, by default the last.
      norm: the normalization: ``"backward"`` (the default) divides the inverse by ``n``,
        ``"forward"`` the forward transform by ``n``, ``"ortho"`` both by ``sqrt(n)``.

    Returns:
      A complex array, of size ``n // 2 + 1`` along the axis.

    Raises:
      ValueError: if ``a`` is complex, the axis does not exist, ``n`` is less than 1, or ``norm``
        is unknown.

    >>> np.abs(np.asarray(ihfft(np.float32([4, 0, 0, 0])))).tolist()
    [1.0, 1.0, 1.0]
    """
    return _one("ihfft", _RFFT, a, n, axis, _inverse_norm("ihfft", norm), conjugate=True)


def fftn(
    a: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Discrete Fourier transform along several axes, by default along all.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      s: the length of the transform along each axis; by default the size.
      axes: the axes; all by default, or the last ``len(s)`` ones.
      norm: the normalization, as for :func:`fft`, with the product of the lengths.

    Returns:
      A complex array, of the sizes ``s`` along the axes.

    Raises:
      ValueError: if axes do not exist or are repeated, or the sizes or ``norm`` are invalid.

    >>> fftn(np.float32([[1, 0], [0, 0]])).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _many("fftn", _FFT, a, s, axes, norm)


def ifftn(
    a: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Inverse discrete Fourier transform along several axes, by default along all.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      s: the length of the transform along each axis; by default the size.
      axes: the axes; all by default, or the last ``len(s)`` ones.
      norm: the normalization, as for :func:`fft`, with the product of the lengths.

    Returns:
      A complex array, of the sizes ``s`` along the axes.

    Raises:
      ValueError: if axes do not exist or are repeated, or the sizes or ``norm`` are invalid.

    >>> ifftn(np.complex64([[1, 1], [1, 1]])).tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return _many("ifftn", _IFFT, a, s, axes, norm)


def rfftn(
    a: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Discrete Fourier transform of real numbers along several axes, by default along all.

    Args:
      a: real numbers; the transform uses ``float32``, or ``float64`` for 64-bit dtypes.
      s: the length of the transform along each axis; by default the size.
      axes: the axes; all by default, or the last ``len(s)`` ones.
      norm: the normalization, as for :func:`fft`, with the product of the lengths.

    Returns:
      A complex array; the last axis has the first ``n // 2 + 1`` elements, the others the sizes
      ``s``.

    Raises:
      ValueError: if ``a`` is complex, and in the cases of :func:`fftn`.

    >>> rfftn(np.float32([[1, 0], [0, 0]])).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _many("rfftn", _RFFT, a, s, axes, norm)


def irfftn(
    a: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of :func:`rfftn`.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      s: the lengths of the result along each axis; the last is by default ``2 * (size - 1)``.
      axes: the axes; all by default, or the last ``len(s)`` ones.
      norm: the normalization, as for :func:`fft`, with the product of the lengths.

    Returns:
      A real array, of the sizes ``s`` along the axes.

    Raises:
      ValueError: if axes do not exist or are repeated, or the sizes or ``norm`` are invalid.

    >>> irfftn(np.complex64([[1, 1], [1, 1]])).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _many("irfftn", _IRFFT, a, s, axes, norm)


def fft2(
    a: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Discrete Fourier transform along two axes; :func:`fftn` with the last two by default.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      s: the lengths of the transform along the two axes; by default the sizes.
      axes: the two axes, by default the last.
      norm: the normalization, as for :func:`fft`, with the product of the lengths.

    Returns:
      A complex array, of the sizes ``s`` along the axes.

    Raises:
      ValueError: if axes do not exist or are repeated, or the sizes or ``norm`` are invalid.

    >>> fft2(np.float32([[1, 0], [0, 0]])).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _two("fft2", _FFT, a, s, axes, norm)


def ifft2(
    a: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Inverse discrete Fourier transform along two axes, the last by default.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      s: the lengths of the transform along the two axes; by default the sizes.
      axes: the two axes, by default the last.
      norm: the normalization, as for :func:`fft`, with the product of the lengths.

    Returns:
      A complex array, of the sizes ``s`` along the axes.

    Raises:
      ValueError: if axes do not exist or are repeated, or the sizes or ``norm`` are invalid.

    >>> ifft2(np.complex64([[1, 1], [1, 1]])).tolist()
    [[(1+0j), 0j], [0j, 0j]]
    """
    return _two("ifft2", _IFFT, a, s, axes, norm)


def rfft2(
    a: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Discrete Fourier transform of real numbers along two axes; :func:`rfftn` with the last two.

    Args:
      a: real numbers; the transform uses ``float32``, or ``float64`` for 64-bit dtypes.
      s: the lengths of the transform along the two axes; by default the sizes.
      axes: the two axes, by default the last.
      norm: the normalization, as for :func:`fft`, with the product of the lengths.

    Returns:
      A complex array; the last axis has the first ``n // 2 + 1`` elements, the others the sizes
      ``s``.

    Raises:
      ValueError: if ``a`` is complex, and in the cases of :func:`fftn`.

    >>> rfft2(np.float32([[1, 0], [0, 0]])).tolist()
    [[(1+0j), (1+0j)], [(1+0j), (1+0j)]]
    """
    return _two("rfft2", _RFFT, a, s, axes, norm)


def irfft2(
    a: ArrayLike,
    s: ShapeLike | None = None,
    axes: int | Sequence[int] | None = (-2, -1),
    norm: str | None = None,
) -> Array:
    """The inverse of :func:`rfft2`; :func:`irfftn` with the last two axes by default.

    Args:
      a: numbers; the transform uses ``complex64``, or ``complex128`` for 64-bit dtypes.
      s: the lengths of the result along the two axes; the last is by default ``2 * (size - 1)``.
      axes: the two axes, by default the last.
      norm: the normalization, as for :func:`fft`, with the product of the lengths.

    Returns:
      A real array, of the sizes ``s`` along the axes.

    Raises:
      ValueError: if axes do not exist or are repeated, or the sizes or ``norm`` are invalid.

    >>> irfft2(np.complex64([[1, 1], [1, 1]])).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _two("irfft2", _IRFFT, a, s, axes, norm)


def _inverse_norm(name: str, norm: str | None) -> str:
    canonical = _norm(name, norm)
    return {"backward": "forward", "forward": "backward", "ortho": "ortho"}[canonical]


def _norm(name: str, norm: str | None) -> str:
    if norm is None:
        return "backward"
    if norm not in _NORMS:
        raise ValueError(
            f'fft.{name}: Invalid norm value {norm!r}; should be "backward", "ortho" or "forward".'
        )
    return norm


def _one(name: str, kind: str, a: Any, n: Any, axis: Any, norm: Any, conjugate: bool = False):
    check_arrays(f"fft.{name}", a)
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"fft.{name} does not support multiple axes. Please use fft.{name}n. Got {axis = }."
        )
    sizes = None if n is None else (operator.index(n),)
    return _checked(name, kind, a, sizes, (axis,), norm, conjugate)


def _two(name: str, kind: str, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    check_arrays(f"fft.{name}", a)
    if len(tuple(axes)) != 2:
        raise ValueError(f"fft.{name} only supports 2 axes. Got {axes = }.")
    return _many(name, kind, a, s, axes, norm)


def _many(name: str, kind: str, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    check_arrays(f"fft.{name}", a)
    sizes = None if s is None else tuple([operator.index(d) for d in s])
    n = typeof(a).ndim
    if axes is None:
        axes = range(n) if sizes is None else range(n - len(sizes), n)
    axes = tuple(axes)
    if sizes is not None and len(sizes) != len(axes):
        raise ValueError(
            f"fft.{name}: Shape and axes have different lengths: s={sizes} and {axes = }."
        )
    return _checked(name, kind, a, sizes, axes, norm, False)


def _checked(name, kind, a, sizes, axes, norm, conjugate) -> Array:
    aval = typeof(a)
    axes = tuple([one_axis(i, aval.ndim) for i in axes])
    if len(set(axes)) != len(axes):
        raise ValueError(f"fft.{name} does not support repeated axes. Got axes {axes}.")
    if kind == _RFFT and dtypes.issubdtype(aval.dtype, np.complexfloating):
        raise ValueError(f"fft.{name}: the operand must be real, got {aval.dtype}")
    if sizes is not None and any(d < 1 for d in sizes):
        raise ValueError(f"fft.{name}: sizes must be positive, got {sizes}.")
    shape = [aval.shape[i] for i in axes]
    if sizes is None:
        sizes = [*shape]
        if kind == _IRFFT and sizes:
            sizes[-1] = max(2 * (sizes[-1] - 1), 0)
    if kind == _RFFT and 0 in sizes:
        raise ValueError(f"fft.{name}: cannot transform the empty shape {aval.shape}")
    return _transformed(
        a, kind=kind, sizes=tuple(sizes), axes=axes, norm=_norm(name, norm), conjugate=conjugate
    )


@compiled("kind", "sizes", "axes", "norm", "conjugate", name="fft")
def _transformed(a, *, kind, sizes, axes, norm, conjugate):
    wide = dtypes.itemsize_bits(typeof(a).dtype) >= 64 and _is_wide(typeof(a).dtype)
    complexes = dtypes.c128 if wide else dtypes.c64
    reals = dtypes.f64 if wide else dtypes.f32
    a = lax.convert_element_type(a, reals if kind == _RFFT else complexes)
    if not axes:
        return lax.real(a) if kind == _IRFFT else a
    if conjugate and kind == _IRFFT:
        a = lax.conj(a)
    spectrum = [d // 2 + 1 if kind == _IRFFT and i == len(axes) - 1 else d
                for i, d in enumerate(sizes)]  # fmt: skip
    a = _resized(a, axes, spectrum)
    n = typeof(a).ndim
    batch_axes = [i for i in range(n) if i not in axes]
    a = lax.transpose(a, (*batch_axes, *axes))
    if 0 in typeof(a).shape or 0 in sizes:
        out = lax.full((*typeof(a).shape[: len(batch_axes)], *sizes), 0, complexes)
        out = lax.real(out) if kind == _IRFFT else out
    else:
        out = _scaled(_over_last(a, kind, sizes), kind, math.prod(sizes), norm)
    if conjugate and kind == _RFFT:
        out = lax.conj(out)
    back = sorted(range(n), key=[*batch_axes, *axes].__getitem__)
    return lax.transpose(out, tuple(back))


def _is_wide(dtype: Any) -> bool:
    return dtype in (dtypes.f64, dtypes.c128, dtypes.i64, dtypes.u64)


def _resized(a, axes: Sequence[int], sizes: Sequence[int]):
    """Axes truncated or padded with zeros at their ends."""
    shape = typeof(a).shape
    target = dict(zip(axes, sizes))
    changes = [(0, target.get(i, d) - d, 0) for i, d in enumerate(shape)]
    if not any(high for _, high, _ in changes):
        return a
    return lax.pad(a, np.zeros((), typeof(a).dtype)[()], changes)


def _over_last(a, kind: str, sizes: Sequence[int]):
    """The transform over the last axes, in groups of the size that XLA supports.

    The real transform comes first in the forward direction, and last in the inverse.
    """
    count = len(sizes)
    if count <= _AT_ONCE:
        return lax.fft(a, kind, tuple(sizes))
    if kind == _RFFT:
        a = lax.fft(a, kind, tuple(sizes[-_AT_ONCE:]))
        return _over_first(a, _FFT, sizes)
    plain = _IFFT if kind in (_IFFT, _IRFFT) else _FFT
    a = _over_first(a, plain, sizes)
    return lax.fft(a, kind, tuple(sizes[-_AT_ONCE:]))


def _over_first(a, kind: str, sizes: Sequence[int]):
    """The transform over all but the last group of the transformed axes."""
    n = typeof(a).ndim
    first, last = n - len(sizes), n - _AT_ONCE
    order = (*range(first), *range(last, n), *range(first, last))
    a = _over_last(lax.transpose(a, order), kind, sizes[:-_AT_ONCE])
    return lax.transpose(a, tuple(sorted(range(n), key=order.__getitem__)))


def _scaled(a, kind: str, size: int, norm: str):
    """Apply the normalization; XLA divides inverse transforms by the number of elements."""
    inverse = kind in (_IFFT, _IRFFT)
    if norm == ("backward"):
        return a
    factor = (size**0.5 if inverse else size**-0.5) if norm == "ortho" else (
        float(size) if inverse else 1 / size
    )  # fmt: skip
    return lax.mul(a, np.asarray(factor).astype(typeof(a).dtype)[()])
