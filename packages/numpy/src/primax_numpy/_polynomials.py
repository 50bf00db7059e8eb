"""Arithmetic of polynomials, represented by their coefficients from the highest power down."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from primax_core import lax
from primax_core.errors import ConcretizationTypeError
from primax_core.extend import Array, Tracer, any_number, dtypes, inexact, one_call, promoted
from primax_core.extend.dimensions import broadcast_shapes
from primax_core.extend.elementwise import argument_type as typeof
from primax_core.typing import ArrayLike

from ._checks import check_arrays
from ._convolving import convolve
from ._functions import compiled
from ._promotion import repeated
from ._reduction_helpers import float_of, is_complex_dtype, strong, wide_of
from ._statistics import scalar


def _vectors(name: str, *ps: Any) -> None:
    check_arrays(name, *ps)
    for p in ps:
        if typeof(p).ndim != 1:
            raise ValueError(f"{name}: coefficients must be vectors, got shape {typeof(p).shape}")


def _lengthened(p: Any, n: int) -> Any:
    """Coefficients padded with leading zeros to length ``n``."""
    return lax.pad(p, scalar(0, typeof(p).dtype), [(n - typeof(p).shape[0], 0, 0)])


@compiled("subtract")
def _sum_of(a1, a2, *, subtract):
    a1, a2 = promoted("polyadd", a1, a2, any_number)
    n = max(typeof(a1).shape[0], typeof(a2).shape[0])
    return (lax.sub if subtract else lax.add)(_lengthened(a1, n), _lengthened(a2, n))


def _check_sum(name: str, a1: Any, a2: Any) -> None:
    _vectors(name, a1, a2)
    if typeof(a1).dtype == typeof(a2).dtype == np.bool_:
        raise TypeError(f"{name} does not accept booleans: convert them to integers first")


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Sum of two polynomials.

    Args:
      a1, a2: vectors of coefficients, from the highest power down.

    Returns:
      A vector of the length of the longer operand, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number.

    The sum is differentiable with respect to all coefficients.

    >>> polyadd(np.array([1, 2]), np.array([1, 0, 0])).tolist()
    [1, 1, 2]
    """
    _check_sum("polyadd", a1, a2)
    total: Array = _sum_of(a1, a2, subtract=False)
    return total


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Difference of two polynomials.

    Args:
      a1, a2: vectors of coefficients, from the highest power down.

    Returns:
      A vector of the length of the longer operand, of the promoted dtype.

    Raises:
      TypeError: if an operand is not an array or a number.

    The difference is differentiable with respect to all coefficients.

    >>> polysub(np.array([1, 2]), np.array([1, 0, 0])).tolist()
    [-1, 1, 2]
    """
    _check_sum("polysub", a1, a2)
    difference: Array = _sum_of(a1, a2, subtract=True)
    return difference


def _trimmed(name: str, p: Any, keep: int = 1) -> Any:
    """Concrete coefficients without leading zeros; at least ``keep`` remain."""
    if isinstance(p, Tracer):
        raise ConcretizationTypeError(
            p, f"{name}: trim_leading_zeros=True needs concrete values; omit it under jit"
        )
    nonzero = np.flatnonzero(np.asarray(p))
    n = typeof(p).shape[0]
    start = min(int(nonzero[0]) if len(nonzero) else n, max(n - keep, 0))
    return lax.slice_in_dim(p, start, n) if start else p


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Product of two polynomials; integers become floats.

    Args:
      a1, a2: vectors of coefficients, from the highest power down.
      trim_leading_zeros: first remove leading zeros of both factors, which must be concrete.

    Returns:
      A float vector of ``len(a1) + len(a2) - 1`` coefficients.

    Raises:
      TypeError: if an operand is not an array or a number.

    >>> polymul(np.array([1.0, 2.0]), np.array([1.0, 3.0])).tolist()
    [1.0, 5.0, 6.0]
    """
    _vectors("polymul", a1, a2)
    if trim_leading_zeros:
        a1, a2 = _trimmed("polymul", a1), _trimmed("polymul", a2)
    nothing = [typeof(p).shape[0] == 0 for p in (a1, a2)]
    a1, a2 = (lax.full_like(p, 0, shape=(1,)) if z else p for p, z in zip((a1, a2), nothing))
    product: Array = _polymul(a1, a2)
    return product


@compiled()
def _polymul(a1, a2):
    return strong(convolve(a1, a2))


@compiled()
def _polydiv(u, v):
    u, v = promoted("polydiv", u, v, inexact)
    u, v = strong(u), strong(v)
    n, m = typeof(u).shape[0], typeof(v).shape[0]
    steps = n - m + 1
    if steps < 1:
        return lax.full((1,), scalar(0, typeof(u).dtype)), u
    lead = lax.squeeze(lax.slice_in_dim(v, 0, 1), (0,))

    def divide(rest, k):
        window = lax.dynamic_slice_in_dim(rest, k, m)
        factor = lax.div(lax.squeeze(lax.slice_in_dim(window, 0, 1), (0,)), lead)
        window = lax.sub(window, lax.mul(v, repeated(factor, (m,))))
        return lax.dynamic_update_slice_in_dim(rest, window, k, 0), factor

    rest, quotient = lax.scan(divide, u, lax.iota(np.int32, steps))
    return quotient, rest


def polydiv(
    u: ArrayLike | Sequence[Any], v: ArrayLike, *, trim_leading_zeros: bool = False
) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials; integers become floats.

    Args:
      u, v: dividend and divisor. The first coefficient of ``v`` must not be zero.
      trim_leading_zeros: remove leading zeros of the remainder, which must be concrete.

    Returns:
      A pair of float vectors; the remainder has the length of ``u`` unless it is trimmed.

    The result is differentiable with respect to all coefficients.

    >>> [p.tolist() for p in polydiv(np.array([1.0, 5.0, 7.0]), np.array([1.0, 2.0]))]
    [[1.0, 3.0], [0.0, 0.0, 1.0]]
    """
    _vectors("polydiv", u, v)
    if not typeof(v).shape[0] or not typeof(u).shape[0]:
        raise ValueError(
            f"polydiv: polynomials must have coefficients, got shapes {typeof(u).shape} and "
            f"{typeof(v).shape}"
        )
    quotient, rest = _polydiv(u, v)
    return quotient, _trimmed("polydiv", rest) if trim_leading_zeros else rest


def _order(name: str, m: Any) -> int:
    order = operator.index(m)
    if order < 0:
        raise ValueError(f"{name}: the order m must be nonnegative, got {order}")
    return order


@compiled("m")
def _polyder(p, *, m):
    dtype = float_of(typeof(p).dtype)
    p = lax.convert_element_type(p, dtype)
    n = typeof(p).shape[0]
    if m == 0:
        return p
    left = max(n - m, 0)
    powers = np.arange(n - 1, n - 1 - left, -1, dtype=np.float64)
    factors = np.ones(left)
    for k in range(min(m, n)):
        factors = factors * (powers - k)
    out = lax.slice_in_dim(p, 0, left)
    column = factors.astype(dtype)
    return lax.mul(out, lax.broadcast_in_dim(column, typeof(out).shape, (0,)))


def _with_axis(name: str, p: Any) -> None:
    check_arrays(name, p)
    if not typeof(p).ndim:
        raise TypeError(
            f"{name}: coefficients must be an array with at least one axis, got a scalar"
        )


@one_call("m")
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The ``m``-th derivative of a polynomial; integers become floats.

    Args:
      p: a vector of coefficients, from the highest power down.
      m: the order of the derivative, a concrete integer.

    Returns:
      A float vector of ``max(len(p) - m, 0)`` coefficients.

    Raises:
      ValueError: if ``m`` is negative.

    The result is differentiable with respect to all coefficients.

    >>> polyder(np.array([1.0, 2.0, 3.0])).tolist()
    [2.0, 2.0]
    """
    _with_axis("polyder", p)
    derivative: Array = _polyder(p, m=_order("polyder", m))
    return derivative


@compiled("m")
def _polyint(p, k, *, m):
    p, k = promoted("polyint", p, k, inexact)
    p, k = strong(p), strong(k)
    dtype = typeof(p).dtype
    if m == 0:
        return p
    k = repeated(lax.reshape(k, (typeof(k).size,)), (m,))
    joint = lax.concatenate([p, k], 0)
    n = typeof(joint).shape[0]
    powers = np.arange(n - 1, -1, -1, dtype=np.float64)
    divisors = np.ones(n)
    # Constants of later integrations are integrated fewer times.
    for i in range(m):
        times = np.where(np.arange(n) < n - m + i, powers - (m - 1 - i), 1.0)
        later = np.arange(n) >= n - m + i + 1
        divisors = divisors * np.where(later, 1.0, np.maximum(times, 1.0))
    return lax.div(joint, divisors.astype(dtype))


@one_call("m")
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | Sequence[Any] | None = None) -> Array:
    """The ``m``-fold antiderivative of a polynomial; integers become floats.

    Args:
      p: a vector of coefficients, from the highest power down.
      m: the number of integrations, a concrete integer.
      k: the constants of integration in order: a scalar for all, or a vector of ``m``; zero by
        default.

    Returns:
      A float vector of ``len(p) + m`` coefficients.

    Raises:
      ValueError: if ``m`` is negative, or ``k`` has another length.

    >>> polyint(np.array([2.0, 2.0]), k=np.array([5.0])).tolist()
    [1.0, 2.0, 5.0]
    """
    _vectors("polyint", p)
    order = _order("polyint", m)
    if order > 10_000:
        raise ValueError(f"polyint: the order m must be at most 10,000, got {order:,}")
    k = 0 if k is None else k
    check_arrays("polyint", p, k)
    shape = typeof(k).shape
    if len(shape) > 1 or (shape and shape[0] not in (1, order)):
        raise ValueError(
            f"polyint: k must be a scalar or a vector of length 1 or m = {order}, got shape {shape}"
        )
    integral: Array = _polyint(p, k, m=order)
    return integral


@compiled("unroll")
def _polyval(p, x, *, unroll):
    p, x = promoted("polyval", p, x, any_number)
    p, x = strong(p), strong(x)
    shape = broadcast_shapes(typeof(p).shape[1:], typeof(x).shape)
    n = typeof(p).shape[0]
    if not n:
        return lax.full(shape, scalar(0, typeof(x).dtype))
    x = repeated(x, shape)
    if typeof(p).shape[1:] not in ((), shape):
        rest = typeof(p).shape[1:]
        offset = len(shape) - len(rest)
        dims = (0, *range(1 + offset, 1 + len(shape)))
        p = lax.broadcast_in_dim(p, (n, *shape), dims)
    return lax.polynomial(x, lax.rev(p, (0,)), unroll=unroll)


@one_call()
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """Values of a polynomial, by Horner's method.

    Args:
      p: coefficients along the first axis, from the highest power down; further axes broadcast
        with ``x``.
      x: the points of evaluation, of any shape.
      unroll: the number of steps in one loop iteration; by default short polynomials are unrolled
        completely.

    Returns:
      An array of the broadcast shape, of the promoted dtype.

    The values are differentiable with respect to coefficients and points.

    >>> polyval(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0])).tolist()
    [3.0, 11.0]
    """
    _with_axis("polyval", p)
    check_arrays("polyval", p, x)
    if typeof(p).dtype == typeof(x).dtype == np.bool_:
        raise TypeError("polyval does not accept booleans: convert them to integers first")
    values: Array = _polyval(p, x, unroll=unroll)
    return values


def _product_of_roots(zeros: Any) -> Any:
    """Coefficients of the monic polynomial with the zeros ``zeros``."""
    n, dtype = typeof(zeros).shape[0], typeof(zeros).dtype
    start = lax.concatenate([lax.full((1,), scalar(1, dtype)), lax.full((n,), scalar(0, dtype))], 0)

    def times(p, z):
        later = lax.pad(p, scalar(0, dtype), [(1, -1, 0)])
        return lax.sub(p, lax.mul(later, repeated(z, (n + 1,)))), None

    return lax.scan(times, start, zeros)[0]


@compiled()
def _poly(seq_of_zeros):
    dtype = float_of(typeof(seq_of_zeros).dtype)
    zeros = lax.convert_element_type(seq_of_zeros, dtype)
    if typeof(zeros).ndim == 2:
        zeros = lax.linalg.eig(
            zeros, compute_left_eigenvectors=False, compute_right_eigenvectors=False
        )[0]
    else:
        zeros = lax.convert_element_type(lax.reshape(zeros, (typeof(zeros).size,)), wide_of(dtype))
    if not typeof(zeros).shape[0]:
        return scalar(1, dtype)
    out = _product_of_roots(zeros)
    return out if is_complex_dtype(typeof(out).dtype) else lax.convert_element_type(out, dtype)


@one_call()
def poly(seq_of_zeros: ArrayLike | Sequence[Any]) -> Array:
    """Coefficients of the monic polynomial with given zeros.

    Args:
      seq_of_zeros: a vector of zeros, or a square matrix whose eigenvalues are the zeros (the
        coefficients are then complex).

    Returns:
      A vector of one coefficient more than zeros, from the highest power down.

    Raises:
      ValueError: if the argument is neither a vector nor a square matrix.

    The inverse is :func:`roots`.

    >>> poly(np.array([1.0, 2.0])).tolist()
    [1.0, -3.0, 2.0]
    """
    check_arrays("poly", seq_of_zeros)
    shape = typeof(seq_of_zeros).shape
    if len(shape) > 2 or (len(shape) == 2 and (shape[0] != shape[1] or not shape[0])):
        raise ValueError(f"poly: input must be 1d or non-empty square 2d array, got shape {shape}")
    coefficients: Array = _poly(seq_of_zeros)
    return coefficients


def _eigenvalues_of_companion(p: Any) -> Any:
    """Zeros of a polynomial whose leading coefficient is not zero."""
    n = typeof(p).shape[0] - 1
    lead = lax.slice_in_dim(p, 0, 1)
    row = lax.neg(lax.div(lax.slice_in_dim(p, 1, n + 1), repeated(lead, (n,))))
    below = np.eye(n, k=-1)[1:].astype(typeof(p).dtype)
    companion = lax.concatenate([lax.reshape(row, (1, n)), below], 0)
    return lax.linalg.eig(
        companion, compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]


@compiled("zeros")
def _roots(p, *, zeros):
    p = lax.convert_element_type(p, float_of(typeof(p).dtype))
    eigenvalues = _eigenvalues_of_companion(p)
    if not zeros:
        return eigenvalues
    return lax.concatenate(
        [lax.full((zeros,), scalar(0, typeof(eigenvalues).dtype)), eigenvalues], 0
    )


@compiled()
def _all_roots(p):
    """Zeros of a polynomial with possibly zero leading coefficients: one trailing NaN for each."""
    p = lax.convert_element_type(p, float_of(typeof(p).dtype))
    n = typeof(p).shape[0]
    is_zero = lax.eq(p, lax.full_like(p, 0))
    leading = lax.cumprod(lax.convert_element_type(is_zero, np.int32), 0)
    leading = lax.reduce_sum(leading, (0,))
    twice = lax.concatenate([p, p], 0)
    rotated = lax.dynamic_slice_in_dim(twice, lax.min(leading, np.int32(n - 1)), n)
    eigenvalues = _eigenvalues_of_companion(rotated)
    size = lax.abs(lax.stop_gradient(eigenvalues))
    order = lax.sort((lax.neg(size), lax.iota(np.int32, n - 1)), num_keys=1)[1]
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    ordered = lax.gather(
        eigenvalues, lax.expand_dims(order, (1,)), numbers, (1,),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )  # fmt: skip
    real = lax.lt(lax.iota(np.int32, n - 1), repeated(lax.sub(np.int32(n - 1), leading), (n - 1,)))
    none = lax.full_like(ordered, complex(np.nan, np.nan))
    return lax.select(real, ordered, none)


def roots(p: ArrayLike | Sequence[Any], *, strip_zeros: bool = True) -> Array:
    """Complex zeros of a polynomial: the eigenvalues of its companion matrix.

    Args:
      p: a vector of coefficients, from the highest power down.
      strip_zeros: first strip leading and trailing zeros, which needs concrete values. With
        ``False``, as required under ``jit``, the result has ``len(p) - 1`` zeros in descending
        order of magnitude, with one trailing NaN for each leading coefficient that is zero.

    Returns:
      A complex vector.

    Raises:
      ValueError: if ``p`` is not a vector.

    >>> sorted(np.real(roots(np.array([1.0, -3.0, 2.0]))).round(3).tolist())
    [1.0, 2.0]
    """
    check_arrays("roots", p)
    aval = typeof(p)
    if aval.ndim > 1:
        raise ValueError(f"roots: coefficients must be a vector, got shape {aval.shape}")
    dtype = float_of(aval.dtype)
    if dtypes.itemsize_bits(dtype) < 32:
        raise TypeError(f"roots does not accept dtype {aval.dtype.name}: convert to float32 first")
    nothing = lax.full((0,), scalar(0, dtype if is_complex_dtype(dtype) else _complex_of(dtype)))
    if aval.size < 2:
        return nothing
    if not strip_zeros:
        every: Array = _all_roots(p)
        return every
    start, stop = _nonzero_part(p)
    if stop - start < 2:
        return lax.full((max(aval.size - stop, 0) if stop else 0,), scalar(0, nothing.dtype))
    zeros: Array = _roots(lax.slice_in_dim(p, start, stop), zeros=aval.size - stop)
    return zeros


def _complex_of(dtype: Any) -> Any:
    return dtypes.c128 if dtype == dtypes.f64 else dtypes.c64


def _nonzero_part(p: Any) -> tuple[int, int]:
    """Bounds of the slice from the first to the last nonzero coefficient."""
    if isinstance(p, Tracer):
        try:
            nonzero = np.flatnonzero(np.asarray(_mask(p)))
        except Exception:
            raise ConcretizationTypeError(
                p,
                "The number of zeros depends on values. Under jit pass strip_zeros=False; the "
                "result then ends with NaN if leading coefficients are zero.",
            ) from None
    else:
        nonzero = np.flatnonzero(np.asarray(p))
    return (int(nonzero[0]), int(nonzero[-1]) + 1) if len(nonzero) else (0, 0)


def _mask(p: Any) -> Any:
    return lax.ne(p, lax.full_like(p, 0))
