"""Convolution and correlation of arrays of any rank: direct sums, the FFT, or blocks of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import primax_numpy as pnp
from primax_core import lax
from primax_core.extend import Array, inexact, promoted, typeof
from primax_core.typing import ArrayLike
from primax_numpy.declaring import axes_of, check_arrays, compiled, is_complex

from .._fast_lengths import next_fast_len
from .._layout import check_mode

MODES = ("full", "same", "valid")
_METHODS = ("auto", "direct", "fft")
_BOUNDARIES = ("fill", "wrap", "symm")
# Measured on a CPU: nanoseconds of a product of direct sums, and of N log2(N) of three transforms.
_DIRECT, _TRANSFORM, _OVERHEAD = 0.4, 1.8, 3e4


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: lax.PrecisionLike = None,
) -> Array:
    """Convolution of two arrays of the same rank: sums of ``in1[k] * in2[i - k]``.

    Args:
      in1, in2: nonempty arrays ``[m...]`` and ``[n...]``. Integers become floats.
      mode: ``"full"`` returns all ``m + n - 1`` sums along each axis, ``"same"`` the middle ``m``
        of them, ``"valid"`` those that need no elements outside of the larger array.
      method: ``"direct"`` sums, ``"fft"`` multiplies transforms, ``"auto"`` takes the faster one by
        the estimate of `choose_conv_method`. The errors of the FFT are relative to the norms of the
        operands, and NaN or infinity in one element spreads to all sums.
      precision: the precision of direct sums, as in `lax.conv_general_dilated`.

    Returns:
      The sums, of the promoted dtype; integers become floats.

    Raises:
      ValueError: if the ranks differ, an array is empty, the mode or method is unknown, or no array
        is the larger one in each axis and the mode is ``"valid"``.

    >>> convolve(np.float32([1, 2, 3]), np.float32([0, 1, 0.5])).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    """
    return _summed("convolve", in1, in2, mode, method, precision, False)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: lax.PrecisionLike = None,
) -> Array:
    """Cross-correlation of two arrays: sums of ``in1[i + k] * conj(in2[k])``.

    Args:
      in1, in2: nonempty arrays of the same rank. Integers become floats.
      mode: ``"full"``, ``"same"`` or ``"valid"``, as in `convolve`.
      method: ``"auto"``, ``"direct"`` or ``"fft"``, as in `convolve`.
      precision: the precision of direct sums.

    Returns:
      The sums, an array of the size that ``mode`` defines.

    Raises:
      ValueError: as `convolve`.

    >>> correlate(np.float32([1, 2, 3]), np.float32([0, 1, 0.5])).tolist()
    [0.5, 2.0, 3.5, 3.0, 0.0]
    """
    return _summed("correlate", in1, in2, mode, method, precision, True)


def convolve2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill",
    fillvalue: ArrayLike = 0, precision: lax.PrecisionLike = None,
) -> Array:  # fmt: skip
    """Convolution of two matrices; the method is chosen as in `convolve`.

    Args:
      boundary: the values outside of ``in1``: ``"fill"``, those of ``fillvalue``; ``"wrap"``,
        periodic ones; ``"symm"``, reflected ones, with the edge repeated.
      fillvalue: a number.
      in1, in2, mode, precision: as in `convolve`.

    Returns:
      The sums, a matrix of the size that ``mode`` defines.

    Raises:
      ValueError: if an operand is not a matrix, the boundary is unknown, and as in `convolve`.

    >>> x = np.float32([[1, 2], [3, 4]])
    >>> convolve2d(x, np.ones((2, 2), np.float32), mode="same", boundary="wrap").tolist()
    [[10.0, 10.0], [10.0, 10.0]]
    """
    return _matrices("convolve2d", in1, in2, mode, boundary, fillvalue, precision, False)


def correlate2d(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill",
    fillvalue: ArrayLike = 0, precision: lax.PrecisionLike = None,
) -> Array:  # fmt: skip
    """Cross-correlation of two matrices.

    Args:
      in1, in2: nonempty matrices. Integers become floats.
      mode: ``"full"``, ``"same"`` or ``"valid"``, as in `convolve`.
      boundary: ``"fill"``, ``"wrap"`` or ``"symm"``, as in `convolve2d`.
      fillvalue: the number outside of ``in1`` if the boundary is ``"fill"``.
      precision: the precision of direct sums.

    Returns:
      The sums, a matrix of the size that ``mode`` defines.

    Raises:
      ValueError: as `convolve2d`.

    >>> x = np.float32([[1, 2], [3, 4]])
    >>> correlate2d(x, x, mode="valid").tolist()
    [[30.0]]
    """
    return _matrices("correlate2d", in1, in2, mode, boundary, fillvalue, precision, True)


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """Convolution by the FFT, along all axes or some of them.

    Args:
      in1, in2: arrays of the same rank. Their other axes broadcast.
      mode: as in `convolve`.
      axes: the axes, by default all.

    Returns:
      The convolution, of the promoted dtype; integers become floats.

    Raises:
      ValueError: if axes do not exist or are repeated, the other sizes do not broadcast, and as in
        `convolve`.

    >>> [round(float(v), 4) for v in fftconvolve(np.float32([1, 2, 3]), np.float32([1, 1]))]
    [1.0, 3.0, 5.0, 3.0]
    """
    return _along_axes("fftconvolve", in1, in2, mode, axes, False)


def oaconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """Convolution by overlap-add: the longer array is divided into blocks of optimal length.

    It is faster than `fftconvolve` if one array is much longer. Overlap-add: Oppenheim and Schafer,
    Discrete-Time Signal Processing, 8.7.3.

    Args:
      in1, in2: arrays of the same rank. Their other axes broadcast.
      mode: as in `convolve`.
      axes: the axes, by default all.

    Returns:
      The result of `fftconvolve`, up to rounding.

    Raises:
      ValueError: as `fftconvolve`.

    >>> [round(float(v), 4) for v in oaconvolve(np.float32([1, 2, 3]), np.float32([1, 1]))]
    [1.0, 3.0, 5.0, 3.0]
    """
    return _along_axes("oaconvolve", in1, in2, mode, axes, True)


def choose_conv_method(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", measure: bool = False
) -> str:
    """The faster method of `convolve`, ``"direct"`` or ``"fft"``, by an estimate of operations.

    Args:
      in1, in2, mode: as in `convolve`; only the shapes matter.
      measure: only False: times cannot be measured under a transformation.

    Returns:
      ``"direct"`` or ``"fft"``.

    Raises:
      ValueError: if ``measure`` is true, and as in `convolve`.

    >>> choose_conv_method(np.ones(100_000), np.ones(3))
    'direct'
    >>> choose_conv_method(np.ones(100_000), np.ones(50_000))
    'fft'
    """
    if measure:
        raise ValueError(
            "choose_conv_method: measure=True is not supported; time convolve with each method."
        )
    _check("choose_conv_method", in1, in2, mode)
    return _faster(typeof(in1).shape, typeof(in2).shape, mode)


def _faster(m: tuple[int, ...], n: tuple[int, ...], mode: str) -> str:
    sums = [a + b - 1 if mode == "full" else a if mode == "same" else abs(a - b) + 1
            for a, b in zip(m, n)]  # fmt: skip
    products = math.prod(sums) * min(math.prod(m), math.prod(n))
    full = math.prod(next_fast_len(a + b - 1, True) for a, b in zip(m, n))
    transforms = _TRANSFORM * full * math.log2(max(full, 2)) + _OVERHEAD
    return "direct" if products * _DIRECT <= transforms else "fft"


def _check(name: str, a: Any, b: Any, mode: str) -> None:
    check_arrays(name, a, b)
    m, n = typeof(a).shape, typeof(b).shape
    check_mode(name, mode, MODES)
    if len(m) != len(n):
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of dimensions, got shapes {m} and {n}: "
            "add axes of size 1 with reshape."
        )
    if 0 in m or 0 in n:
        raise ValueError(f"{name}: in1 and in2 must not be empty, got shapes {m} and {n}.")
    _check_valid(name, m, n, mode)


def _check_valid(name: str, m: tuple[int, ...], n: tuple[int, ...], mode: str) -> None:
    larger = all(a >= b for a, b in zip(m, n)) or all(a <= b for a, b in zip(m, n))
    if mode == "valid" and not larger:
        raise ValueError(
            f"{name}: with mode='valid' one array must be at least as large as the other in every "
            f"dimension, got shapes {m} and {n}."
        )


def _summed(name: str, a: Any, b: Any, mode: str, method: str, precision: Any, conj: bool) -> Array:
    _check(name, a, b, mode)
    check_mode(name, method, _METHODS, "method")
    if method == "auto":
        method = _faster(typeof(a).shape, typeof(b).shape, mode)
    out: Array = _convolved(a, b, mode=mode, fft=method == "fft", conj=conj, precision=precision)
    return out


@compiled("mode", "fft", "conj", "precision", name="convolve")
def _convolved(a, b, *, mode, fft, conj, precision):
    a, b = promoted("convolve", a, b, inexact)
    if conj:  # a correlation is a convolution with the reversed conjugate
        b = lax.rev(lax.conj(b) if is_complex(b) else b, tuple(range(typeof(b).ndim)))
    if not typeof(a).ndim:
        return a * b
    if fft:
        return by_transform(a, b, mode, tuple(range(typeof(a).ndim)))
    return _direct(a, b, mode, precision)


def _window(m: int, n: int, mode: str) -> tuple[int, int]:
    """The first of all sums, and their number, for arrays of ``m`` and ``n`` elements."""
    if mode == "full":
        return 0, m + n - 1
    if mode == "same":
        return (n - 1) // 2, m
    return min(m, n) - 1, abs(m - n) + 1


def _direct(a, b, mode, precision):
    m, n = typeof(a).shape, typeof(b).shape
    pads = []
    swapped = math.prod(n) > math.prod(m)
    if swapped:
        a, b = b, a
    kernel = typeof(b).shape
    for p, q, k in zip(m, n, kernel):
        first, count = _window(p, q, mode)
        # Sum i needs elements i - k + 1 to i of the array.
        pads.append((k - 1 - first, first + count - (p + q - 1) + k - 1))
    b = lax.rev(b, tuple(range(len(kernel))))
    out = lax.conv_general_dilated(
        lax.reshape(a, (1, 1, *typeof(a).shape)), lax.reshape(b, (1, 1, *kernel)),
        (1,) * len(m), pads, precision=precision,
    )  # fmt: skip
    return lax.reshape(out, typeof(out).shape[2:])


def by_transform(a: Any, b: Any, mode: str, axes: tuple[int, ...]) -> Any:
    """Convolution along some axes as a product of spectra; the other axes broadcast."""
    dtype = typeof(a).dtype
    m, n = typeof(a).shape, typeof(b).shape
    windows = {i: _window(m[i], n[i], mode) for i in axes}
    axes = tuple(i for i in axes if m[i] != 1 or n[i] != 1)
    if not axes:
        return a * b
    if dtype.itemsize < 4:
        a, b = (lax.convert_element_type(x, np.float32) for x in (a, b))
    sizes = [next_fast_len(m[i] + n[i] - 1, not is_complex(a)) for i in axes]
    if is_complex(a):
        out = pnp.fft.ifftn(
            pnp.fft.fftn(a, sizes, axes) * pnp.fft.fftn(b, sizes, axes), sizes, axes
        )
    else:
        spectrum = pnp.fft.rfftn(a, sizes, axes) * pnp.fft.rfftn(b, sizes, axes)
        out = pnp.fft.irfftn(spectrum, sizes, axes)
    for i in axes:
        first, count = windows[i]
        out = lax.slice_in_dim(out, first, first + count, axis=i)
    return lax.convert_element_type(out, dtype)


def _matrices(name, a, b, mode, boundary, fillvalue, precision, conj) -> Array:
    _check(name, a, b, mode)
    check_arrays(name, fillvalue)
    check_mode(name, boundary, _BOUNDARIES, "boundary")
    if typeof(a).ndim != 2:
        raise ValueError(f"{name}: in1 and in2 must be matrices, got shape {typeof(a).shape}")
    if typeof(fillvalue).shape:
        raise ValueError(f"{name}: fillvalue must be a number, got shape {typeof(fillvalue).shape}")
    method = _faster(typeof(a).shape, typeof(b).shape, mode)
    if mode == "valid":
        out: Array = _convolved(
            a, b, mode=mode, fft=method == "fft", conj=conj, precision=precision
        )
        # SciPy and the reference correlate in2 with in1 if that is smaller, and reverse the sums.
        smaller = typeof(a).shape != typeof(b).shape and all(
            m <= n for m, n in zip(typeof(a).shape, typeof(b).shape)
        )
        return lax.conj(out) if conj and smaller and is_complex(out) else out
    out = _bounded(
        a, b, fillvalue, mode=mode, boundary=boundary, fft=method == "fft", conj=conj,
        precision=precision,
    )  # fmt: skip
    return out


@compiled("mode", "boundary", "fft", "conj", "precision", name="convolve2d")
def _bounded(a, b, fill, *, mode, boundary, fft, conj, precision):
    a, b = promoted("convolve2d", a, b, inexact)
    fill = lax.convert_element_type(fill, typeof(a).dtype)
    pads = []
    for m, n in zip(typeof(a).shape, typeof(b).shape):
        first, count = _window(m, n, mode)
        if conj and mode == "same":
            first = n // 2
        pads.append((n - 1 - first, first + count - m))
    if boundary == "fill":
        a = lax.pad(a, fill, [(*p, 0) for p in pads])
    else:
        a = pnp.pad(a, pads, mode="wrap" if boundary == "wrap" else "symmetric")
    if conj:
        b = lax.rev(lax.conj(b) if is_complex(b) else b, (0, 1))
    if fft:
        return _covered(by_transform(a, b, "full", (0, 1)), typeof(b).shape)
    return _covered(_direct(a, b, "full", precision), typeof(b).shape)


def _covered(full, kernel):
    """The sums that the whole kernel contributes to."""
    limits = [s - k + 1 for s, k in zip(typeof(full).shape, kernel)]
    return lax.slice(full, [k - 1 for k in kernel], limits)


def _along_axes(name: str, a: Any, b: Any, mode: str, axes: Any, blocks: bool) -> Array:
    check_arrays(name, a, b)
    check_mode(name, mode, MODES)
    m, n = typeof(a).shape, typeof(b).shape
    if len(m) != len(n):
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of dimensions, got shapes {m} and {n}: "
            "add axes of size 1 with reshape."
        )
    if 0 in m or 0 in n:
        raise ValueError(f"{name}: in1 and in2 must not be empty, got shapes {m} and {n}.")
    chosen = axes_of(axes, len(m))
    for i in range(len(m)):
        if i not in chosen and m[i] != n[i] and 1 not in (m[i], n[i]):
            raise ValueError(f"{name}: shapes {m} and {n} do not broadcast along axis {i}")
    _check_valid(name, tuple(m[i] for i in chosen), tuple(n[i] for i in chosen), mode)
    out: Array = _transformed(a, b, mode=mode, axes=chosen, blocks=blocks)
    return out


@compiled("mode", "axes", "blocks", name="fftconvolve")
def _transformed(a, b, *, mode, axes, blocks):
    a, b = promoted("fftconvolve", a, b, inexact)
    if not typeof(a).ndim:
        return a * b
    if not blocks:
        return by_transform(a, b, mode, axes)
    m, n = typeof(a).shape, typeof(b).shape
    sizes = {i: _block(m[i], n[i]) for i in axes}
    axis = max(axes, key=lambda i: max(m[i], n[i]) / sizes[i], default=0)
    if not axes or max(m[axis], n[axis]) <= 2 * sizes[axis]:
        return by_transform(a, b, mode, axes)
    if n[axis] > m[axis]:
        full = _overlap_added(b, a, axes, axis, sizes[axis])
    else:
        full = _overlap_added(a, b, axes, axis, sizes[axis])
    for i in axes:
        first, count = _window(m[i], n[i], mode)
        full = lax.slice_in_dim(full, first, first + count, axis=i)
    return full


def _block(m: int, n: int) -> int:
    """The number of elements of a block with the fewest operations for each of them."""
    short, long = min(m, n), max(m, n)
    lengths = [1 << k for k in range(max(short, 2).bit_length(), (short + long).bit_length() + 1)]
    best = min(
        lengths, key=lambda size: size * math.log2(size) * -(-long // max(size - short + 1, 1))
    )
    return max(best - short + 1, 1)


def _overlap_added(a, b, axes, axis, size):
    """All sums along the axes; ``a`` is divided into blocks along one of them."""
    shape, short = typeof(a).shape, typeof(b).shape[axis]
    count = -(-shape[axis] // size)
    widths = [(0, 0, 0)] * len(shape)
    widths[axis] = (0, count * size - shape[axis], 0)
    a = lax.pad(a, lax.full((), 0, typeof(a).dtype), widths)
    a = lax.reshape(a, (*shape[:axis], count, size, *shape[axis + 1 :]))
    b = lax.expand_dims(b, (axis,))
    moved = tuple(i + (i >= axis) for i in axes)
    parts = by_transform(a, b, "full", moved)  # [..., count, size + short - 1, ...]
    head = lax.slice_in_dim(parts, 0, size, axis=axis + 1)
    tail = lax.slice_in_dim(parts, size, size + short - 1, axis=axis + 1)
    joined = _joined(head, axis)
    # The tail of each block is at the start of the next ones.
    steps = -(-(short - 1) // size) if short > 1 else 0
    total = shape[axis] + short - 1
    out = _sized(joined, axis, total)
    for k in range(steps):
        part = lax.slice_in_dim(tail, k * size, min((k + 1) * size, short - 1), axis=axis + 1)
        widths = [(0, 0, 0)] * typeof(part).ndim
        widths[axis + 1] = (0, size - typeof(part).shape[axis + 1], 0)
        part = _joined(lax.pad(part, lax.full((), 0, typeof(part).dtype), widths), axis)
        widths = [(0, 0, 0)] * typeof(part).ndim
        widths[axis] = ((k + 1) * size, 0, 0)
        part = lax.pad(part, lax.full((), 0, typeof(part).dtype), widths)
        out = out + _sized(part, axis, total)
    return out


def _joined(x, axis):
    shape = typeof(x).shape
    return lax.reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _sized(x, axis, n):
    widths = [(0, 0, 0)] * typeof(x).ndim
    widths[axis] = (0, n - typeof(x).shape[axis], 0)
    return lax.pad(x, lax.full((), 0, typeof(x).dtype), widths)
