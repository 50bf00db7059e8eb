"""Discrete Fourier transforms along the last axes."""

from __future__ import annotations

import enum
import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import Primitive, abstract, batch, lower
from .._ir.samples import Sample, c64, f32, samples
from .._ir.symbolic_dims import is_static, is_symbolic_dim
from .._lower.lazy import hlo, mlir, shaped
from .._trace.array import Array
from .._trace.core import typeof
from .._trace.typing import ArrayLike
from .._transform.batching import move_axis
from .arithmetic import mul
from .bitwise import bitwise_or
from .broadcasting import broadcasted_iota
from .comparison import eq
from .conversion import convert
from .elementwise import accepts, full_of, linear, scalar_like
from .magnitude import conj
from .selection import select

fft_p: Final = Primitive("fft")


class FftType(enum.IntEnum):
    """Kinds of discrete Fourier transforms.

    ``FFT`` and ``IFFT`` transform complex numbers, forward and inverse. ``RFFT`` transforms real
    numbers and returns the nonnegative frequencies; ``IRFFT`` is its inverse. It is the argument
    ``fft_type`` of :func:`fft`, which accepts the names too.

    >>> from primax_core import lax
    >>> x = np.array([1.0, 0.0, 0.0, 0.0], np.float32)
    >>> lax.fft(x, FftType.RFFT, (4,)).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Discrete Fourier transform along the last ``len(fft_lengths)`` axes.

    Args:
      x: floats or complex numbers; integers are converted. Complex numbers for FFT, IFFT and IRFFT,
        ``float32`` or ``float64`` for RFFT.
      fft_type: a member or its name. ``FFT``; ``IFFT``, the inverse, divided by the number of
        elements; ``RFFT``, the first half of the spectrum of real numbers, ``n // 2 + 1`` of ``n``
        elements on the last axis; ``IRFFT``, its inverse.
      fft_lengths: the sizes of at most 3 axes; for IRFFT the last one is the size of the result.

    Returns:
      An array of complex numbers, or of real numbers for IRFFT. IRFFT ignores the imaginary parts
      that are zero in the spectrum of real numbers.

    Raises:
      ValueError: if the transform, the dtype and the sizes are incompatible, or the name of the
        transform is unknown.
      TypeError: if ``fft_type`` is neither a member nor a string.

    >>> fft(np.array([1, 0, 0], np.complex64), "FFT", (3,)).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """
    kind = _type_of(fft_type)
    lengths = _lengths_of(fft_lengths)
    original_dtype = typeof(x).dtype
    dtype = _operand_dtype(original_dtype, kind)
    if not lengths:
        return convert(x, original_dtype)
    return fft_p.bind(convert(x, dtype), fft_type=kind, fft_lengths=lengths)


def _type_of(fft_type: Any) -> FftType:
    if isinstance(fft_type, FftType):
        return fft_type
    if not isinstance(fft_type, str):
        raise TypeError(f"Unknown FFT type value '{fft_type}'")
    try:
        return FftType[fft_type.upper()]
    except KeyError:
        raise ValueError(
            f"Unknown FFT type '{fft_type}'; the types are {', '.join(t.name for t in FftType)}"
        ) from None


def _lengths_of(fft_lengths: Any) -> tuple[int, ...]:
    try:
        return tuple([_length_of(n) for n in fft_lengths])
    except TypeError as e:
        raise TypeError(f"fft_lengths must be a sequence of integers, got {fft_lengths!r}") from e


def _length_of(n: Any) -> Any:
    return n if is_symbolic_dim(n) else operator.index(int(n) if n == int(n) else n)


@functools.cache
def _operand_dtype(dtype: Any, kind: FftType) -> Any:
    complex_too = accepts(dtype, ("complex",))
    if kind is FftType.RFFT and complex_too:
        raise ValueError("only real valued inputs supported for rfft")
    if kind is FftType.RFFT and accepts(dtype, ("float",)):
        return dtype
    double = dtypes.itemsize_bits(dtype) == (128 if complex_too else 64)
    if kind is FftType.RFFT:
        return dtypes.f64 if double else dtypes.f32
    return np.dtype(np.complex128 if double else np.complex64)


@fft_p.rule(abstract)
def _abstract(x, *, fft_type, fft_lengths):
    n = len(fft_lengths)
    if n > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as "
            f"fft_lengths {fft_lengths}."
        )
    if n > 3:
        raise ValueError(
            f"FFT of {n} axes, with fft_lengths {fft_lengths}: the rank must be between 1 and 3; "
            "transform the other axes by further calls"
        )
    last = x.shape[x.ndim - n :]
    if fft_type is FftType.IRFFT:
        if last[:-1] != fft_lengths[:-1]:
            raise ValueError(
                f"IRFFT input shape {x.shape} minor dimensions must be equal to all except the "
                f"last fft_length, got fft_lengths={fft_lengths}"
            )
        if last[-1] != fft_lengths[-1] // 2 + 1:
            raise ValueError(
                f"IRFFT input shape {x.shape} must have fft_lengths[-1] // 2 + 1 = "
                f"{fft_lengths[-1] // 2 + 1} elements on its last axis, for "
                f"fft_lengths={fft_lengths}; cut the spectrum, or add zeros to it"
            )
        part = np.finfo(_checked(x, "complex")).dtype
        return ShapedArray((*x.shape[:-1], fft_lengths[-1]), part)
    if last != fft_lengths:
        raise ValueError(
            f"{fft_type.name} input shape {x.shape} minor dimensions must be equal to fft_lengths "
            f"{fft_lengths}"
        )
    if fft_type is FftType.RFFT:
        if x.dtype not in (dtypes.f32, dtypes.f64):
            raise ValueError(f"RFFT input must be float32 or float64, got {x.dtype.name}")
        whole = np.dtype(np.complex128 if x.dtype == dtypes.f64 else np.complex64)
        return ShapedArray((*x.shape[:-1], fft_lengths[-1] // 2 + 1), whole)
    return ShapedArray(x.shape, _checked(x, "complex"))


def _checked(x: ShapedArray, kind: str) -> Any:
    if not accepts(x.dtype, (kind,)):
        raise ValueError(f"FFT input must be {kind}, got {x.dtype.name}")
    return x.dtype


@fft_p.rule(lower)
def _lower(ctx, x, *, fft_type, fft_lengths):
    if not ctx.in_avals[0].size or not ctx.out_avals[0].size:
        return shaped.zeros_of(ctx.out_avals[0])  # XLA returns a wrong shape for an empty RFFT
    if not is_static(fft_lengths):
        raise NotImplementedError(
            f"a Fourier transform along axes of symbolic sizes {fft_lengths} cannot be written as "
            "StableHLO, which has its lengths as constants: give the transformed axes fixed sizes"
        )
    return hlo.fft(x, hlo.FftTypeAttr.get(fft_type.name), mlir.i64s(fft_lengths))


def _back(ct: Any, x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    """Transpose of the transform.

    The matrices of FFT and IFFT are symmetric. In the half spectrum of a real array an element
    counts once if it is its own mirror image, and twice otherwise; the transposes correct for that.
    """
    if fft_type in (FftType.FFT, FftType.IFFT):
        return fft(ct, fft_type, fft_lengths)
    n = math.prod(fft_lengths)
    if not x.size or not n:
        return full_of(x, 0)
    if fft_type is FftType.RFFT:
        half = mul(conj(ct), _half_spectrum(ct, fft_lengths[-1], n, n / 2))
        return fft(half, FftType.IRFFT, fft_lengths)
    half = fft(ct, FftType.RFFT, fft_lengths)
    return conj(mul(half, _half_spectrum(half, fft_lengths[-1], 1 / n, 2 / n)))


def _half_spectrum(x: Any, n: int, own: float, other: float) -> Any:
    """A factor for a half spectrum of ``n`` real elements on the last axis.

    Args:
      own: the factor for elements that are their own mirror images.
      other: the factor for all other elements.
    """
    shape = typeof(x).shape
    index = broadcasted_iota(dtypes.i32, (*(1 for _ in shape[1:]), shape[-1]), len(shape) - 1)
    zero, middle = scalar_like(index, 0), scalar_like(index, n // 2 if n % 2 == 0 else 0)
    alone = bitwise_or(eq(index, zero), eq(index, middle))
    like = ShapedArray(typeof(index).shape, typeof(x).dtype)
    return select(alone, full_of(like, own), full_of(like, other))


linear(fft_p, _back)


@fft_p.rule(batch)
def _batch(axis, args, dims, *, fft_type, fft_lengths):
    (x,), (dim,) = args, dims
    if dim >= typeof(x).ndim - len(fft_lengths):
        x, dim = move_axis(x, dim, 0, axis.size), 0
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), dim


@fft_p.rule(samples)
def _samples():
    yield Sample(c64(5), fft_type=FftType.FFT, fft_lengths=(5,))
    yield Sample(c64(2, 3, 4), fft_type=FftType.IFFT, fft_lengths=(3, 4))
    yield Sample(f32(2, 6), fft_type=FftType.RFFT, fft_lengths=(6,))
    yield Sample(f32(2, 3, 5), fft_type=FftType.RFFT, fft_lengths=(2, 3, 5))
    yield Sample(c64(3, 4), fft_type=FftType.IRFFT, fft_lengths=(3, 6))
    yield Sample(c64(2, 3), fft_type=FftType.IRFFT, fft_lengths=(5,))
    yield Sample(c64(0, 3), fft_type=FftType.FFT, fft_lengths=(3,))
